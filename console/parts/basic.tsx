/** The small parts of which every view is composed. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { urlOf } from '../client/address.ts';
import { background } from '../client/background.ts';
import { BASE } from '../client/base.ts';
import type { CallError } from '../client/client.ts';
import type { Read } from '../client/reads.ts';
import { ago, fullTime, time, utc, words } from './format.ts';

type Children = { readonly children?: ComponentChildren };

/** @param at Unix milliseconds; null: never */
export function Time({ at, none = '–' }: { readonly at: number | null | undefined; readonly none?: string }) {
  if (at === null || at === undefined) return <span class="dim">{none}</span>;
  return (
    <time dateTime={utc(at)} title={`${utc(at)} (UTC)\n${fullTime(at)} here`}>
      {ago(at) ?? time(at)}
    </time>
  );
}

/** `Time` for Unix seconds, as most records have them. */
export const Seconds = ({ at, none }: { readonly at: number | null | undefined; readonly none?: string }) => (
  <Time at={typeof at === 'number' ? at * 1000 : at} none={none} />
);

/** A shape for each tone, so that colour is never the only sign. */
const SHAPES = { good: '●', busy: '◐', wait: '○', warn: '▲', bad: '■', none: '–' } as const;
export type Tone = keyof typeof SHAPES;

const TONES: Readonly<Record<string, Tone>> = {
  online: 'good',
  idle: 'good',
  busy: 'busy',
  offline: 'none',
  error: 'bad',
  inbox: 'wait',
  backlog: 'none',
  assigned: 'wait',
  awaiting_owner: 'warn',
  in_progress: 'busy',
  review: 'busy',
  quality_review: 'busy',
  done: 'good',
  failed: 'bad',
  critical: 'bad',
  high: 'warn',
  medium: 'wait',
  low: 'none',
  approved: 'good',
  rejected: 'bad',
  pending: 'wait',
  success: 'good',
  healthy: 'good',
  warning: 'warn',
  degraded: 'warn',
  unhealthy: 'bad',
  connected: 'good',
  disconnected: 'none',
  active: 'good',
  running: 'busy',
  completed: 'good',
  cancelled: 'none',
  queued: 'wait',
  unknown: 'none',
  info: 'wait',
  warn: 'warn',
};

export const toneOf = (name: string): Tone => TONES[name] ?? 'none';

export function State({ is, tone, text }: { readonly is: string; readonly tone?: Tone; readonly text?: string }) {
  const shown = tone ?? toneOf(is);
  return (
    <span class={`state ${shown}`}>
      <span aria-hidden="true">{SHAPES[shown]}</span> {text ?? words(is)}
    </span>
  );
}

export function Failure({ error, retry }: { readonly error: CallError; readonly retry?: () => void }) {
  return (
    <div class="failure" role="alert">
      <p>
        <strong>{error.status === 403 ? 'Not permitted' : 'That did not work'}.</strong> {error.message}
      </p>
      {error.requestId && <p class="dim">Request {error.requestId}</p>}
      {retry && (
        <button type="button" onClick={retry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** Shows the state of a read: its result, a loading sign, or its error. */
export function Shown<T>({
  read,
  children,
  rows = 3,
}: {
  readonly read: Read<T>;
  readonly rows?: number;
  readonly children: (data: T) => ComponentChildren;
}) {
  const { data, error, refresh } = read;
  if (data === undefined) {
    if (error) return <Failure error={error} retry={refresh} />;
    return (
      <div class="loading" role="status" aria-label="Loading">
        {Array.from({ length: rows }, (_, n) => (
          <span key={n} />
        ))}
      </div>
    );
  }
  return (
    <div class={read.isOld ? 'old' : undefined} aria-busy={read.isOld}>
      {error && <Failure error={error} retry={refresh} />}
      {children(data)}
    </div>
  );
}

export function Copy({ text, label }: { readonly text: string; readonly label: string }) {
  const [state, setState] = useState('');
  const copy = async () => {
    // Without HTTPS, browsers offer no clipboard.
    const done = await navigator.clipboard?.writeText(text).then(
      () => true,
      () => false,
    );
    setState(done ? 'Copied' : text);
    setTimeout(() => setState(''), done ? 1500 : 20_000);
  };
  return (
    <button type="button" class="quiet" title={text} onClick={() => background(copy())}>
      {state || label}
    </button>
  );
}

/** The request behind the displayed data. */
export const curlOf = (url: string): string => `curl -sS -H "x-api-key: $KEY" '${location.origin}${BASE}${url}'`;
export const Curl = ({ read }: { readonly read: { readonly url: string } }) => (
  <Copy text={curlOf(read.url)} label="Copy as curl" />
);

interface PanelProps extends Children {
  readonly title: string;
  readonly read?: { readonly url: string; readonly isPresent?: boolean };
  readonly more?: ComponentChildren;
  readonly class?: string;
}

export function Panel({ title, read, more, class: name = '', children }: PanelProps) {
  return (
    <section class={`panel ${name}`} aria-label={title}>
      <header>
        <h2>{title}</h2>
        <span class="tools">
          {read?.isPresent && (
            <span class="badge" title="No past is kept of this: it is shown as it is now.">
              as of now
            </span>
          )}
          {more}
          {read && <Curl read={read} />}
        </span>
      </header>
      {children}
    </section>
  );
}

export function Page({ title, more, children, about }: PanelProps & { readonly about?: ComponentChildren }) {
  useEffect(() => {
    document.title = `${title} · Signalbox`;
  }, [title]);
  return (
    <>
      <div class="page-head">
        <div>
          <h1 tabIndex={-1}>{title}</h1>
          {about && <p class="dim">{about}</p>}
        </div>
        <div class="tools">{more}</div>
      </div>
      {children}
    </>
  );
}

export const Empty = ({ children }: Children) => <div class="empty">{children}</div>;

export interface Column<T> {
  readonly name: string;
  readonly of: (row: T) => ComponentChildren;
  readonly class?: string;
}

interface TableProps<T> {
  readonly label: string;
  readonly rows: readonly T[];
  readonly columns: readonly (Column<T> | false)[];
  readonly id: (row: T) => string | number;
  readonly empty?: ComponentChildren;
  /** URL of a row; the first column becomes the link. */
  readonly href?: (row: T) => string;
}

export function Table<T>({ label, rows, columns, id, empty, href }: TableProps<T>) {
  if (rows.length === 0) return <Empty>{empty ?? 'Nothing here.'}</Empty>;
  const shown = columns.filter((one): one is Column<T> => one !== false);
  return (
    // Wide tables scroll on their own, by keyboard too.
    <div class="table" role="region" aria-label={label} tabIndex={0}>
      <table>
        <thead>
          <tr>
            {shown.map(({ name, class: kind }) => (
              <th key={name} scope="col" class={kind}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={id(row)}>
              {shown.map(({ name, of, class: kind }, at) => (
                <td key={name} class={kind}>
                  {at === 0 && href ? <a href={href(row)}>{of(row)}</a> : of(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Steps through a list. `set` gets the new offset. */
export function Pager({
  offset,
  limit,
  total,
  set,
}: {
  readonly offset: number;
  readonly limit: number;
  readonly total: number;
  readonly set: (offset: number) => void;
}) {
  if (total <= limit && offset === 0) return null;
  return (
    <nav class="pager" aria-label="Pages">
      <button type="button" disabled={offset === 0} onClick={() => set(Math.max(0, offset - limit))}>
        Back
      </button>
      <span>
        {Math.min(offset + 1, total).toLocaleString('en-GB')}–{Math.min(offset + limit, total).toLocaleString('en-GB')}{' '}
        of {total.toLocaleString('en-GB')}
      </span>
      <button type="button" disabled={offset + limit >= total} onClick={() => set(offset + limit)}>
        Next
      </button>
    </nav>
  );
}

interface ChoiceProps {
  readonly label: string;
  readonly value: string;
  readonly options: readonly (string | readonly [value: string, text: string])[];
  readonly set: (value: string) => void;
}

export function Choice({ label, value, options, set }: ChoiceProps) {
  return (
    <label class="choice">
      <span>{label}</span>
      <select value={value} onChange={(event) => set(event.currentTarget.value)}>
        {options.map((one) => {
          const [key, text] = typeof one === 'string' ? [one, words(one)] : one;
          return (
            <option key={key} value={key}>
              {text}
            </option>
          );
        })}
      </select>
    </label>
  );
}

/** A text filter that applies after a pause. */
export function Filter({
  label,
  value,
  set,
}: {
  readonly label: string;
  readonly value: string;
  readonly set: (value: string) => void;
}) {
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (input.current && document.activeElement !== input.current) input.current.value = value;
  }, [value]);
  return (
    <label class="choice">
      <span>{label}</span>
      <input
        ref={input}
        type="search"
        defaultValue={value}
        onInput={(event) => {
          const text = event.currentTarget.value;
          clearTimeout(timer.current);
          timer.current = setTimeout(() => set(text.trim()), 300);
        }}
      />
    </label>
  );
}

const twoDigits = (n: number): string => String(n).padStart(2, '0');

/** A time as `datetime-local` shows it, in the viewer's zone. @param time RFC 3339 */
function localTime(time: string | undefined): string {
  const at = new Date(time ?? '');
  if (Number.isNaN(at.getTime())) return '';
  const day = [at.getFullYear(), twoDigits(at.getMonth() + 1), twoDigits(at.getDate())].join('-');
  return `${day}T${twoDigits(at.getHours())}:${twoDigits(at.getMinutes())}`;
}

/** A filter by time. `set` gets RFC 3339 in UTC, or an empty text. */
export const Moment = ({
  label,
  value,
  set,
}: {
  readonly label: string;
  readonly value: string | undefined;
  readonly set: (value: string) => void;
}) => (
  <label class="choice">
    <span>{label}</span>
    <input
      type="datetime-local"
      value={localTime(value)}
      title={value ?? ''}
      onChange={(event) => {
        const at = new Date(event.currentTarget.value);
        set(Number.isNaN(at.getTime()) ? '' : utc(at.getTime()));
      }}
    />
  </label>
);

/** Tabs are links, so that each has an address. */
export function Tabs({
  label,
  tabs,
  now,
}: {
  readonly label: string;
  readonly now: string;
  readonly tabs: readonly (readonly [id: string, text: string, url: string])[];
}) {
  const box = useRef<HTMLElement>(null);
  // In a narrow window the chosen one may be out of sight.
  useEffect(() => {
    const chosen = box.current?.querySelector<HTMLElement>('[aria-current]');
    if (box.current && chosen) box.current.scrollLeft = chosen.offsetLeft - box.current.offsetLeft - 40;
  }, [now]);
  return (
    <nav class="tabs" aria-label={label} ref={box}>
      {tabs.map(([id, text, url]) => (
        <a key={id} href={url} aria-current={id === now ? 'page' : undefined}>
          {text}
        </a>
      ))}
    </nav>
  );
}

export const Fact = ({ name, children }: Children & { readonly name: string }) => (
  <div class="fact">
    <dt>{name}</dt>
    <dd>{children}</dd>
  </div>
);

export const AgentLink = ({ name }: { readonly name: string | null | undefined }) =>
  name ? <a href={urlOf(`/agents/${encodeURIComponent(name)}`)}>{name}</a> : <span class="dim">unassigned</span>;
