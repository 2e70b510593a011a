/**
 * Caches states of streams between commands. A cached state may be ahead of the log: it includes the events of the append
 * in flight, which the next command waits for.
 */
import { LRUCache } from 'lru-cache';
import type { EventStore } from '../shared/event-store.ts';
import type { DomainEvent } from '../shared/events/define.ts';
import type { Snapshots } from '../shared/ports/snapshots.ts';
import type { Decider } from './decider.ts';

/** Maximum number of characters in all cached states together. */
const KEPT_CHARACTERS = 64_000_000;
/** Minimum weight of a state: with small ones about 20,000 streams are cached. */
const SMALL = 3_200;
/** Number of events between two snapshots of a stream. */
const SNAPSHOT_EVERY = 200;

/** A stream according to the log. */
export interface StreamState {
  readonly state: unknown;
  /** -1: no events. */
  readonly revision: number;
  readonly position: number;
  /** Unix ms of the last event; 0 without events. */
  readonly at: number;
}

export interface KeptState {
  state: unknown;
  revision: number;
  position: number;
  at: number;
  /** Weight of the state in the cache, characters. */
  weight: number;
  /** Revision of the last snapshot, or of the first load. */
  savedAt: number;
  /** Appends in flight that were decided on this state. */
  readonly appends: Set<Promise<unknown>>;
}

export interface States {
  /** The cached state; undefined when there is none. */
  kept(stream: string): KeptState | undefined;
  /**
   * The state according to the log at `since` (`performance.now()`) or later: the cached one if every event until then
   * was seen and none of the stream's is missing, else that with the events that are read.
   */
  read(decider: Decider<unknown>, stream: string, since: number): Promise<StreamState>;
  /**
   * The same, possibly older: the cached state. Events of other processes may be missing that this one has not seen yet.
   */
  recent(decider: Decider<unknown>, stream: string): Promise<StreamState>;
  /**
   * Reads the events after `known`, or the whole stream, and caches the state.
   *
   * @param trustSnapshots false: reads the stream from its first event
   */
  load(
    decider: Decider<unknown>,
    stream: string,
    known: KeptState | undefined,
    trustSnapshots: boolean,
  ): Promise<KeptState>;
  /** Caches the initial state of a stream that most likely does not exist. The first append shows whether it does. */
  begin(decider: Decider<unknown>, stream: string): KeptState;
  /** Applies events that are about to be appended to a cached state. */
  advance(decider: Decider<unknown>, stream: string, kept: KeptState, events: readonly DomainEvent[]): void;
  /** Tracks such an append: if it fails, the state is discarded. @returns the result of `append` */
  track<T extends { readonly position: number; readonly events: readonly DomainEvent[] }>(
    decider: Decider<unknown>,
    stream: string,
    kept: KeptState,
    append: Promise<T>,
  ): Promise<T>;
  forget(stream: string): void;
  /** Called with the events of the log, in order and without gaps, and the position of the last one. */
  saw(position: number, events: readonly Pick<DomainEvent, 'stream' | 'revision'>[]): void;
}

const weightOf = (decider: Decider<unknown>, state: unknown): number =>
  Math.max(SMALL, Math.ceil(decider.sizeOf?.(state) ?? 0));

/** The kind under which states of the decider are saved; undefined if they are not saved. */
export const snapshotKind = ({ kind, snapshotVersion }: Decider<unknown>): string | undefined =>
  snapshotVersion === undefined ? undefined : `${kind}.${snapshotVersion}`;

/** Maximum number of characters in all these states together, and the minimum weight of one: 20,000 small ones. */
const RECENT_CHARACTERS = 16_000_000;
const RECENT_SMALL = 800;

/** What is known of a stream besides the state on which decisions are made. */
interface Recent {
  /** Revision of the last event of the stream that was seen in the log; -1: none was. */
  seen: number;
  /** States according to the log, by kind of decider. */
  readonly states: Map<string, { readonly decider: Decider<unknown>; now: StreamState }>;
}

const weightOfRecent = ({ states }: Recent): number => {
  let weight = RECENT_SMALL;
  for (const { decider, now } of states.values()) weight += Math.ceil(decider.sizeOf?.(now.state) ?? 0);
  return weight;
};

/**
 * @param seen whether `saw` was called with every event that was in the log at `since` (`performance.now()`); default:
 *   it never is, and each state is read
 */
export function createStates(
  store: Pick<EventStore, 'readStream'>,
  snapshots: Snapshots | undefined,
  seen: (since: number) => Promise<boolean> | boolean = () => false,
): States {
  const states = new LRUCache<string, KeptState>({
    maxSize: KEPT_CHARACTERS,
    sizeCalculation: ({ weight }) => weight,
  });

  /** By stream. */
  const recents = new LRUCache<string, Recent>({ maxSize: RECENT_CHARACTERS, sizeCalculation: weightOfRecent });
  /** Position of the last event that `saw` was called with. */
  let level: number | undefined;

  /** The cached state, unless an event was seen that it lacks. */
  function currentOf(stream: string, { kind }: Decider<unknown>): StreamState | undefined {
    const recent = recents.get(stream);
    const now = recent?.states.get(kind)?.now;
    return recent && now && now.revision >= recent.seen ? now : undefined;
  }

  async function read(decider: Decider<unknown>, stream: string, since: number): Promise<StreamState> {
    if (currentOf(stream, decider) && (await seen(since))) {
      const now = currentOf(stream, decider);
      if (now) return now;
    }
    return refresh(decider, stream);
  }

  /** Reads the events that the cached state lacks. */
  async function refresh(decider: Decider<unknown>, stream: string): Promise<StreamState> {
    // Cached before the read, so that events are noticed that come after it, but before its result.
    let recent = recents.get(stream);
    if (!recent) {
      recent = { seen: -1, states: new Map() };
      recents.set(stream, recent);
    }
    const now = await readFrom(decider, stream, recent.states.get(decider.kind)?.now, true);
    // If it was dropped in the meantime, events may have been missed.
    if (recents.peek(stream) === recent) keep(stream, recent, decider, now);
    return now;
  }

  function keep(stream: string, recent: Recent, decider: Decider<unknown>, now: StreamState): void {
    const known = recent.states.get(decider.kind);
    // Another read, or an append, may have got further in the meantime.
    if (known && known.now.revision > now.revision) return;
    const isSame = known?.now.state === now.state;
    if (known) known.now = now;
    else recent.states.set(decider.kind, { decider, now });
    // Most events do not change a state; the cache computes weights only for new entries.
    if (isSame) return;
    recents.delete(stream);
    recents.set(stream, recent);
  }

  /**
   * Applies appended events to the other cached states of the stream. Only when they are in the log: otherwise a caller
   * could count the changes of an append that then fails, and take the same number of changes by another process for
   * them.
   */
  function follow(stream: string, events: readonly DomainEvent[]): void {
    const [first, last] = [events.at(0), events.at(-1)];
    const recent = recents.peek(stream);
    if (!first || !last || !recent) return;
    recent.seen = Math.max(recent.seen, last.revision);
    for (const { decider, now } of recent.states.values()) {
      if (now.revision !== first.revision - 1) continue;
      const state = fold(decider, now.state, events);
      keep(stream, recent, decider, { state, revision: last.revision, position: last.position, at: last.meta.at });
    }
  }

  function forget(stream: string): void {
    states.delete(stream);
    recents.delete(stream);
  }

  async function readFrom(
    decider: Decider<unknown>,
    stream: string,
    known: StreamState | undefined,
    trustSnapshots: boolean,
  ): Promise<StreamState> {
    const kind = snapshotKind(decider);
    const snapshot = kind && !known && trustSnapshots ? await snapshots?.find(stream, kind) : undefined;
    const start = known ?? snapshot;
    const events = await store.readStream(stream, start ? start.revision + 1 : 0);
    const last = events.at(-1);
    const now: StreamState = {
      state: fold(decider, start ? start.state : decider.initial, events),
      revision: last?.revision ?? start?.revision ?? -1,
      position: last?.position ?? start?.position ?? 0,
      at: last?.meta.at ?? start?.at ?? 0,
    };
    if (kind && events.length >= SNAPSHOT_EVERY) snapshots?.save(stream, kind, now);
    return now;
  }

  /** Saves a state only when all its events are in the log. */
  function saveSnapshot(decider: Decider<unknown>, stream: string, kept: KeptState): void {
    const kind = snapshotKind(decider);
    if (!kind || kept.appends.size > 0 || kept.revision - kept.savedAt < SNAPSHOT_EVERY) return;
    if (states.get(stream) !== kept) return;
    kept.savedAt = kept.revision;
    const { revision, position, at, state } = kept;
    snapshots?.save(stream, kind, { revision, position, at, state });
  }

  return {
    kept: (stream) => states.get(stream),
    read,
    recent: async (decider, stream) => currentOf(stream, decider) ?? refresh(decider, stream),
    async load(decider, stream, known, trustSnapshots) {
      const now = await readFrom(decider, stream, known, trustSnapshots);
      const { state, revision, position, at } = now;
      const weight = weightOf(decider, state);
      const savedAt = known?.savedAt ?? revision;
      const kept: KeptState = { state, revision, position, at, weight, savedAt, appends: new Set() };
      states.set(stream, kept);
      return kept;
    },
    begin(decider, stream) {
      const { initial: state } = decider;
      const weight = weightOf(decider, state);
      const kept: KeptState = {
        state,
        revision: -1,
        position: 0,
        at: 0,
        weight,
        savedAt: -1,
        appends: new Set(),
      };
      states.set(stream, kept);
      return kept;
    },
    advance(decider, stream, kept, events) {
      kept.state = fold(decider, kept.state, events);
      kept.revision += events.length;
      kept.at = events.at(-1)?.meta.at ?? kept.at;
      const weight = weightOf(decider, kept.state);
      if (weight === kept.weight) return;
      kept.weight = weight;
      // The cache computes weights only for new entries.
      if (states.get(stream) === kept) {
        states.delete(stream);
        states.set(stream, kept);
      }
    },
    track(decider, stream, kept, append) {
      const tracked = append.then(
        (appended) => {
          follow(stream, appended.events);
          kept.position = Math.max(kept.position, appended.position);
          return appended;
        },
        (error) => {
          if (states.get(stream) === kept) states.delete(stream);
          throw error;
        },
      );
      kept.appends.add(tracked);
      tracked.then(
        () => {
          kept.appends.delete(tracked);
          saveSnapshot(decider, stream, kept);
        },
        () => kept.appends.delete(tracked),
      );
      return tracked;
    },
    forget,
    saw(position, events) {
      // The first call, or another log, such as one restored from a backup: earlier events were not seen.
      if (level === undefined || position < level) recents.clear();
      level = position;
      for (const { stream, revision } of events) {
        const recent = recents.peek(stream);
        if (recent) recent.seen = Math.max(recent.seen, revision);
      }
    },
  };
}

/** The state after one more event of the stream. */
export const foldOne = (decider: Decider<unknown>, state: unknown, { type, data, meta }: DomainEvent): unknown =>
  decider.evolve(state, { type, data, at: meta.at, by: meta.actor });

const fold = (decider: Decider<unknown>, state: unknown, events: readonly DomainEvent[]): unknown =>
  events.reduce((before, event) => foldOne(decider, before, event), state);
