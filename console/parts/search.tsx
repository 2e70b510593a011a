/** Search: places that match the text at once, then results of the service. */
import { useEffect, useState } from 'preact/hooks';
import { go, urlOf, urlWith } from '../client/address.ts';
import type { SearchResult } from '../client/api-types.ts';
import { useRead } from '../client/reads.ts';
import { type Rights, useRights } from '../client/session.ts';
import { Dialog } from './act.tsx';
import { Failure } from './basic.tsx';
import { recordUrl } from './record.tsx';

/** The service allows ten searches a minute: it is called when typing has paused for this long, milliseconds. */
const PAUSE_MS = 500;

interface Place {
  readonly kind: string;
  readonly title: string;
  readonly detail?: string | undefined;
  readonly url: string;
}

/** Where a result leads. */
function urlOfResult({ type, id, created_at }: SearchResult): string {
  if (type === 'task') return urlOf(`/tasks/${id}`);
  if (type === 'agent') return urlOf(`/agents/${id}`);
  return recordUrl(type, id, type === 'activity' || type === 'audit' ? created_at : undefined);
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Places that can be found without a search: views, ids, positions, moments. */
export function placesOf(
  text: string,
  rooms: readonly { readonly path: string; readonly name: string }[],
  { ofDeployment }: Pick<Rights, 'ofDeployment'>,
): Place[] {
  const places: Place[] = [];
  const lower = text.toLowerCase();
  for (const { name, path } of rooms)
    if (name.toLowerCase().startsWith(lower)) places.push({ kind: 'view', title: name, url: urlOf(path) });
  const number = /^#?(\d{1,15})$/.exec(text.replaceAll(',', ''))?.[1];
  if (number !== undefined) {
    places.push({ kind: 'task', title: `Task ${number}`, url: urlOf(`/tasks/${number}`) });
    places.push({ kind: 'agent', title: `Agent ${number}`, url: urlOf(`/agents/${number}`) });
    if (ofDeployment)
      places.push({
        kind: 'event',
        title: `Event at position ${number}`,
        url: urlWith({ open: `position:${number}` }),
      });
    places.push({ kind: 'moment', title: `Everything as of position ${number}`, url: urlWith({ at: number }) });
  }
  if (ofDeployment && UUID.test(text))
    places.push({ kind: 'event', title: `Event ${text}`, url: urlWith({ open: `event:${lower}` }) });
  if (ofDeployment && /^[a-z_]+-\d+(-\d+)?$/.test(text))
    places.push({ kind: 'stream', title: `Events of ${text}`, url: urlOf('/log', { stream: text }) });
  const time = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : Number.NaN;
  if (!Number.isNaN(time)) {
    const at = new Date(time).toISOString().replace(/\.\d+Z$/, 'Z');
    places.push({ kind: 'moment', title: `Everything as of ${at}`, url: urlWith({ at }) });
  }
  return places;
}

interface SearchProps {
  readonly rooms: readonly { readonly path: string; readonly name: string }[];
  readonly close: () => void;
}

export function Search({ rooms, close }: SearchProps) {
  const rights = useRights();
  const [text, setText] = useState('');
  const [asked, setAsked] = useState('');
  useEffect(() => {
    const timer = setTimeout(() => setAsked(text.trim()), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  const isAsked = asked.length >= 2;
  const found = useRead('GET /api/search', isAsked ? { query: { q: asked, limit: 20 } } : undefined);
  const typed = text.trim();
  const places: Place[] = [
    ...(typed === '' ? [] : placesOf(typed, rooms, rights)),
    ...(isAsked && typed !== '' ? (found.data?.results ?? []) : []).map((one) => ({
      kind: one.type,
      title: one.title,
      detail: [`#${one.id}`, one.subtitle ?? one.excerpt].filter(Boolean).join(' · '),
      url: urlOfResult(one),
    })),
  ];
  const isSearching = typed.length >= 2 && (typed !== asked || found.loading);
  return (
    <Dialog title="Search" close={close}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const [first] = places;
          if (!first) return setAsked(typed);
          go(first.url);
          close();
        }}
      >
        <input
          class="wide"
          type="search"
          aria-label="Name, id, ticket, position, time or words"
          placeholder="Name, id, ticket, position, time or words"
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
          // By default, browsers only empty the field.
          onKeyDown={(event) => event.key === 'Escape' && close()}
        />
      </form>
      {found.error && <Failure error={found.error} />}
      <ul class="results" aria-live="polite">
        {places.map((one) => (
          <li key={one.url}>
            <a href={one.url} onClick={close}>
              <span class="kind">{one.kind}</span>
              <span>
                <strong>{one.title}</strong>
                {one.detail && <span class="dim">{one.detail}</span>}
              </span>
            </a>
          </li>
        ))}
      </ul>
      {isSearching && (
        <p class="dim" role="status">
          Searching …
        </p>
      )}
      {!isSearching && typed.length >= 2 && places.length === 0 && !found.error && (
        <p class="dim">Nothing found. Search covers names, titles and texts of this workspace, and ids.</p>
      )}
    </Dialog>
  );
}
