/**
 * Reads of the API that components share: one request per address. It is kept as long as it is displayed, and repeated
 * when a frame of the stream says that the data changed.
 */
import { useEffect, useRef, useState } from 'preact/hooks';
import { WITH_PAST } from './api-types.ts';
import { type Asked, addressOf, type Call, type CallError, call, type ResponseOf } from './client.ts';
import { timeOfMoment, useAsOf } from './moment.ts';
import { onFrame, onGap } from './stream.ts';

interface Entry {
  readonly name: Call;
  readonly asked: Asked;
  readonly isPast: boolean;
  data: unknown;
  position: number | undefined;
  error: CallError | undefined;
  loading: boolean;
  /** A frame arrived since the last request began. */
  dirty: boolean;
  readAt: number;
  kinds: readonly string[];
  /** Milliseconds between two reads after frames. */
  readonly pause: number;
  /** Aborts the running request. */
  stop: AbortController | undefined;
  readonly listeners: Set<() => void>;
}

export interface Read<T> {
  readonly data: T | undefined;
  readonly error: CallError | undefined;
  readonly loading: boolean;
  /** `data` belongs to the previous moment; the one chosen now is being read. */
  readonly isOld: boolean;
  /** The past is displayed, and the call has none: `data` is that of now. */
  readonly isPresent: boolean;
  readonly position: number | undefined;
  /** Path and query, for "copy as curl". */
  readonly url: string;
  refresh(): void;
}

const MOST_KEPT = 150;
/** Frames come in bursts; a read is repeated at most this often. */
const PAUSE_MS = 1_000;
/** A read that has failed for a reason that passes is repeated after this time, milliseconds. */
const RETRY_MS = 10_000;
const entries = new Map<string, Entry>();

function notify(entry: Entry): void {
  for (const listener of [...entry.listeners]) listener();
}

async function load(key: string, entry: Entry): Promise<void> {
  if (entry.loading) {
    entry.dirty = true;
    return;
  }
  entry.loading = true;
  entry.dirty = false;
  entry.readAt = Date.now();
  const stop = new AbortController();
  entry.stop = stop;
  notify(entry);
  try {
    const { data, position } = await call(entry.name, entry.asked, { signal: stop.signal });
    entry.data = data;
    entry.position = position;
    entry.error = undefined;
  } catch (error) {
    if (!stop.signal.aborted) entry.error = error as CallError;
    // A component has requested it again in the meantime.
    else if (entry.listeners.size > 0) entry.dirty = true;
  }
  entry.loading = false;
  entry.stop = undefined;
  notify(entry);
  if (entry.error && mayPass(entry.error)) setTimeout(() => entry.error && later(key, entry), RETRY_MS);
  if (entry.dirty) later(key, entry);
}

/** No connection, a time-out, or a service that is starting or has failed. */
const mayPass = ({ status }: CallError): boolean => status === 0 || status >= 500;

const waiting = new Set<string>();
function later(key: string, entry: Entry): void {
  if (waiting.has(key) || entry.listeners.size === 0) return;
  waiting.add(key);
  const wait = Math.max(0, entry.readAt + entry.pause - Date.now());
  setTimeout(() => {
    waiting.delete(key);
    if (entry.listeners.size > 0) load(key, entry).catch(() => undefined);
  }, wait);
}

onFrame(({ type }) => {
  for (const [key, entry] of entries) {
    if (entry.isPast || !entry.kinds.some((kind) => type.startsWith(kind))) continue;
    if (entry.listeners.size === 0) entries.delete(key);
    else if (entry.loading) entry.dirty = true;
    else later(key, entry);
  }
});

/** Repeats every read on the screen, and discards the others. */
export function refreshAll(): void {
  for (const [key, entry] of entries) {
    if (entry.listeners.size === 0) entries.delete(key);
    else if (!entry.isPast || entry.error) later(key, entry);
  }
}
onGap(refreshAll);

/** Discards all reads, for another caller. */
export function forgetAll(): void {
  for (const [key, entry] of entries) if (entry.listeners.size === 0) entries.delete(key);
}

function entryOf(
  key: string,
  name: Call,
  asked: Asked,
  { kinds = [], pause = PAUSE_MS }: ReadOptions,
  isPast: boolean,
): Entry {
  const known = entries.get(key);
  if (known) {
    // Move the latest to the end, so that the oldest is discarded first.
    entries.delete(key);
    entries.set(key, known);
    return known;
  }
  const entry: Entry = {
    name,
    asked,
    kinds,
    pause,
    isPast,
    data: undefined,
    position: undefined,
    error: undefined,
    loading: false,
    dirty: false,
    readAt: 0,
    stop: undefined,
    listeners: new Set(),
  };
  entries.set(key, entry);
  for (const [old, { listeners }] of entries) {
    if (entries.size <= MOST_KEPT) break;
    if (listeners.size === 0) entries.delete(old);
  }
  return entry;
}

export interface ReadOptions {
  /** Prefixes of the types of frames after which the read is repeated. */
  readonly kinds?: readonly string[];
  /** After frames, the read is repeated at most once in this time, milliseconds; default: 1,000. */
  readonly pause?: number;
  /** Data that no frame announces is read again after this time, milliseconds, while the window is visible. */
  readonly every?: number;
  /** Moment of the read, if not the displayed one; null: now. */
  readonly at?: string | null;
}

/** If `asked` is undefined, nothing is read. */
export function useRead<C extends Call>(
  name: C,
  asked: Asked | undefined,
  options: ReadOptions = {},
): Read<ResponseOf<C>> {
  const shown = useAsOf();
  const moment = options.at === null ? undefined : (options.at ?? shown);
  const path = name.slice(name.indexOf(' ') + 1);
  const past = WITH_PAST.has(path) ? moment : undefined;
  const full = asked && { ...asked, query: { ...asked.query, as_of: past } };
  const key = full ? addressOf(name, full) : '';
  const [, render] = useState(0);
  useEffect(() => {
    if (!full) return;
    const entry = entryOf(key, name, full, options, past !== undefined);
    const listener = () => render((n) => n + 1);
    entry.listeners.add(listener);
    const isOld =
      entry.error !== undefined ||
      entry.data === undefined ||
      (past === undefined && Date.now() - entry.readAt > 2_000);
    if (isOld && !entry.loading) load(key, entry).catch(() => undefined);
    else listener();
    return () => {
      entry.listeners.delete(listener);
      // Dragging over the register passes moments faster than they can be read.
      if (entry.listeners.size === 0 && entry.isPast) entry.stop?.abort();
    };
  }, [key]);
  const { every } = options;
  useEffect(() => {
    if (every === undefined || !full || past !== undefined) return;
    const timer = setInterval(() => {
      const entry = entries.get(key);
      if (entry && !entry.loading && document.visibilityState === 'visible') load(key, entry).catch(() => undefined);
    }, every);
    return () => clearInterval(timer);
  }, [key, every]);
  const entry = full ? entries.get(key) : undefined;
  // While the same read for another moment is in progress, the last result stays, marked as old.
  const same = full ? addressOf(name, { ...full, query: { ...full.query, as_of: undefined } }) : '';
  const kept = useRef<{ readonly same: string; readonly data: unknown } | undefined>(undefined);
  if (entry?.data !== undefined) kept.current = { same, data: entry.data };
  const isOld = entry?.data === undefined && entry?.error === undefined && kept.current?.same === same;
  return {
    data: (isOld ? kept.current?.data : entry?.data) as ResponseOf<C> | undefined,
    error: entry?.error,
    loading: full !== undefined && (entry === undefined || entry.loading),
    isOld,
    isPresent:
      shown !== undefined && past === undefined && options.at === undefined && !path.startsWith('/api/history/'),
    position: entry?.position,
    url: key,
    refresh() {
      if (entry) load(key, entry).catch(() => undefined);
    },
  };
}

/** The displayed moment, Unix milliseconds: of a position, when the service counted the workload for it. */
export function useShownTime(): number {
  const moment = useAsOf();
  const time = timeOfMoment(moment);
  const isPosition = moment !== undefined && time === undefined;
  const { data } = useRead('GET /api/workload', isPosition ? {} : undefined);
  return time ?? (data ? data.timestamp * 1000 : Date.now());
}
