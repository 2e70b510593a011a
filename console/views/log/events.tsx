/** Events of the log as they are stored: the newest, or page by page from the oldest match of a filter. */
import { setParams, useAddress } from '../../client/address.ts';
import type { HistoryEvent } from '../../client/api-types.ts';
import { useAsOf } from '../../client/moment.ts';
import { useRead } from '../../client/reads.ts';
import { Filter, Panel, Seconds, Shown, Table } from '../../parts/basic.tsx';
import { openUrl } from '../../parts/drawer.tsx';
import { count, typeInWords, utc } from '../../parts/format.ts';

const PAGE = 100;
const FILTERS = ['type', 'stream', 'actor', 'since', 'until'] as const;

/**
 * Finds the start of the last page of the log, because the list is sorted from old to new.
 *
 * @param until RFC 3339; undefined: now
 */
function useLastPage(until: string | undefined, isAsked: boolean): string | undefined {
  const { data } = useRead('GET /api/history/timeline', isAsked ? { query: { until, bins: 400 } } : undefined, {
    kinds: ['activity.'],
    pause: 5_000,
  });
  if (!data) return undefined;
  let events = 0;
  for (let n = data.bins.length - 1; n >= 0; n--) {
    events += data.bins[n]?.count ?? 0;
    if (events >= PAGE) return utc((data.bins[n]?.at ?? 0) * 1000);
  }
  return utc(data.since * 1000);
}

export function Events() {
  const { query } = useAddress();
  const moment = useAsOf();
  const values = Object.fromEntries(FILTERS.map((name) => [name, query.get(name) ?? undefined]));
  const after = query.get('after') ?? undefined;
  const isFiltered = after !== undefined || FILTERS.some((name) => values[name] !== undefined);
  const isTime = moment !== undefined && !/^\d+$/.test(moment);
  const until = isTime ? moment : undefined;
  const since = useLastPage(until, !isFiltered);
  const read = useRead(
    'GET /api/history/events',
    isFiltered
      ? { query: { ...values, until: values.until ?? until, after, limit: PAGE } }
      : since === undefined
        ? undefined
        : { query: { since, until, limit: 1_000 } },
    { kinds: isFiltered ? [] : ['activity.'], pause: 5_000 },
  );
  const set = (name: string) => (value: string) => setParams({ [name]: value, after: undefined }, { replace: true });
  return (
    <>
      <div class="filters">
        <Filter label="Type" value={values.type ?? ''} set={set('type')} />
        <Filter label="Stream" value={values.stream ?? ''} set={set('stream')} />
        <Filter label="By" value={values.actor ?? ''} set={set('actor')} />
        <Filter label="Since (UTC)" value={values.since ?? ''} set={set('since')} />
        <Filter label="Until (UTC)" value={values.until ?? ''} set={set('until')} />
      </div>
      <Panel title={isFiltered ? 'Events, oldest first' : 'Newest events'} read={read}>
        <Shown read={read} rows={12}>
          {({ events, next_after }) => (
            <>
              <EventTable events={isFiltered ? events : events.slice(-PAGE).reverse()} />
              <nav class="pager" aria-label="Pages">
                <button type="button" disabled={!isFiltered} onClick={() => setParams(NONE)}>
                  Newest
                </button>
                <button type="button" onClick={() => setParams({ after: 0 })}>
                  Oldest
                </button>
                <button
                  type="button"
                  disabled={!isFiltered || next_after === null}
                  onClick={() => setParams({ after: next_after ?? undefined })}
                >
                  Next
                </button>
              </nav>
            </>
          )}
        </Shown>
      </Panel>
    </>
  );
}

const NONE = Object.fromEntries([...FILTERS, 'after'].map((name) => [name, undefined]));

export const EventTable = ({ events }: { readonly events: readonly HistoryEvent[] }) => (
  <Table
    label="Events"
    rows={events}
    id={({ id }) => id}
    href={({ id }) => openUrl(`event:${id}`)}
    empty="No event matches. Types are written as in the log, such as TaskCreated; times as 2026-01-31T12:00:00Z."
    columns={[
      { name: 'Event', of: ({ type }) => typeInWords(type), class: 'grow' },
      { name: 'Position', of: ({ position }) => count(position), class: 'number' },
      { name: 'When', of: ({ at }) => <Seconds at={at} />, class: 'time' },
      { name: 'By', of: ({ actor }) => actor.name },
      { name: 'Stream', of: ({ stream }) => <span class="dim">{stream}</span> },
    ]}
  />
);
