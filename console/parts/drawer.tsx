/** The drawer of an event: the event, its cause and its effects. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { setParams, urlOf, urlWith } from '../client/address.ts';
import type { HistoryEffect, HistoryEvent } from '../client/api-types.ts';
import { useRead } from '../client/reads.ts';
import { Copy, curlOf, Empty, Fact, Seconds, Shown } from './basic.tsx';
import { count, json, typeInWords } from './format.ts';

export const openUrl = (what: string): string => urlWith({ open: what });

export function Drawer({ title, children }: { readonly title: string; readonly children: ComponentChildren }) {
  const box = useRef<HTMLDivElement>(null);
  const close = () => setParams({ open: undefined }, { replace: true });
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    box.current?.focus();
    return () => before?.focus?.();
  }, []);
  return (
    <div
      ref={box}
      class="drawer"
      tabIndex={-1}
      role="dialog"
      aria-label={title}
      onKeyDown={(event) => {
        if (event.key === 'Escape') close();
      }}
    >
      <header>
        <h2>{title}</h2>
        <button type="button" class="quiet" aria-label="Close" onClick={close}>
          ✕
        </button>
      </header>
      {children}
    </div>
  );
}

export const Json = ({ value }: { readonly value: unknown }) => (
  <pre class="json" tabIndex={0}>
    {json(value)}
  </pre>
);

export function PositionDrawer({ position }: { readonly position: number }) {
  const found = useRead('GET /api/history/events', { query: { after: position - 1, limit: 1 } });
  const [event] = found.data?.events ?? [];
  if (event) return <EventDrawer id={event.id} />;
  return (
    <Drawer title={`Position ${position}`}>
      <Shown read={found}>{() => <Empty>No event is at this position.</Empty>}</Shown>
    </Drawer>
  );
}

export function EventDrawer({ id }: { readonly id: string }) {
  const [open, setOpen] = useState(false);
  const read = useRead('GET /api/history/causes/{id}', { params: { id }, query: { open: open ? '1' : undefined } });
  const title = read.data ? typeInWords(read.data.event.type) : 'Event';
  return (
    <Drawer title={title}>
      <Shown read={read} rows={8}>
        {({ event, causes, causes_complete, effects, effects_complete }) => (
          <>
            <EventFacts event={event} />
            <h3>Why</h3>
            {!causes_complete && <p class="dim">There are more causes than are shown: open the first one.</p>}
            <ol class="causes">
              {[...causes].reverse().map((cause) => (
                <li key={`${cause.kind} ${cause.id}`}>
                  {cause.kind === 'event' ? (
                    <EventLink event={cause} />
                  ) : (
                    <>
                      <strong>{cause.kind}</strong> by {cause.actor?.name ?? 'unknown'}
                      {typeof cause.ip === 'string' && ` from ${cause.ip}`} <Seconds at={cause.at} />
                      {cause.user_agent && <div class="dim">{cause.user_agent}</div>}
                    </>
                  )}
                </li>
              ))}
              <li aria-current="true">
                <strong>{typeInWords(event.type)}</strong> <span class="dim">this event</span>
              </li>
            </ol>
            <h3>What followed</h3>
            {effects.length === 0 ? <p class="dim">Nothing followed from it.</p> : <Effects of={effects} />}
            {!effects_complete && <p class="dim">There are more effects than are shown.</p>}
            <h3>The event</h3>
            <Json value={event.data} />
            <details>
              <summary>Its metadata</summary>
              <Json value={event.meta} />
            </details>
            <div class="buttons">
              <Copy text={curlOf(read.url)} label="Copy as curl" />
              <Copy text={event.id} label="Copy id" />
              <button type="button" class="quiet" aria-pressed={open} onClick={() => setOpen(!open)}>
                {open ? 'Hide personal fields' : 'Show personal fields'}
              </button>
              <a href={urlWith({ at: event.position, open: undefined })}>See everything as of this event</a>
              <a href={urlOf('/log/verify', { event: event.id })}>Prove that it is in the log</a>
            </div>
          </>
        )}
      </Shown>
    </Drawer>
  );
}

const EventFacts = ({ event }: { readonly event: HistoryEvent }) => (
  <dl class="facts">
    <Fact name="Who">
      {event.actor.name} {event.actor.type !== event.actor.name && <span class="dim">{event.actor.type}</span>}
    </Fact>
    <Fact name="When">
      <Seconds at={event.at} />
    </Fact>
    <Fact name="Position">{count(event.position)}</Fact>
    <Fact name="Stream">
      <a href={urlOf('/log', { stream: event.stream })}>{event.stream}</a>
    </Fact>
  </dl>
);

export const EventLink = ({ event }: { readonly event: Pick<HistoryEvent, 'id' | 'type' | 'actor' | 'at'> }) => (
  <>
    <a href={openUrl(`event:${event.id}`)}>{typeInWords(event.type)}</a> by {event.actor.name} <Seconds at={event.at} />
  </>
);

const Effects = ({ of }: { readonly of: readonly HistoryEffect[] }) => (
  <ul class="causes">
    {of.map((one) => (
      <li key={one.id}>
        <EventLink event={one} />
        {one.effects.length > 0 && <Effects of={one.effects} />}
      </li>
    ))}
  </ul>
);
