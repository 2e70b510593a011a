/**
 * Retrying an append with an unknown outcome, and responding to one whose events are known.
 *
 * For `none` and exact expectations, the server compares the ids with the events at those revisions, so such an append
 * can safely be sent again. For `any`, it only has a cache that is lost on a restart. So the stream is first searched
 * for the ids, and the append then expects the revision found: if the earlier attempt is written after all, this one
 * fails.
 */
import { setMaxListeners } from 'node:events';
import type { Appended, Position } from '../../shared/ports/event-log.ts';
import { settledWithin } from '../../shared/waiting.ts';
import type { PreparedAppend } from '../event-log/prepared.ts';
import type { AppendResponse, Connection } from './client.ts';
import { classify, StoreFailure } from './failure.ts';
import type { KnownIds } from './known.ts';
import type { Page } from './page.ts';

/** How far the clocks of server and client may differ when searching for events since a given time, milliseconds. */
const CLOCK_SKEW_MS = 300_000;
const TAIL_PAGE = 500;

export interface RepeatOptions {
  readonly connection: Connection;
  readonly known: KnownIds;
  /** Makes one attempt at an append; rejects with a StoreFailure. */
  send(append: PreparedAppend, waitMs: number): Promise<AppendResponse>;
  /** Time limit of one call, given the deadline, milliseconds. */
  waitMs(deadline: number): number;
}

export interface Repeats {
  /**
   * The response according to the known ids: the earlier response when all are known, undefined when none is; rejects
   * with a conflict when only some are.
   */
  fromKnown(append: PreparedAppend, deadline: number): Promise<Appended | undefined>;
  /** Converts the server's response and records it. */
  done(append: PreparedAppend, response: AppendResponse, deadline: number): Promise<Appended>;
  /** Repeats an append with `any` that may have been written since `since` (Unix milliseconds). */
  sendPinned(append: PreparedAppend, since: number, deadline: number): Promise<Appended>;
}

/**
 * Shared by all retries in a stream: they take turns, because each would invalidate the revision that the others
 * expect.
 */
interface Chain {
  turn: Promise<void>;
  users: number;
  /** The last known end of the stream; everything since `since` has been searched. */
  tail: { revision: number; readonly since: number } | undefined;
}

export function createRepeats({ connection, known, send, waitMs }: RepeatOptions): Repeats {
  const never = new AbortController().signal;
  setMaxListeners(0, never);
  const chains = new Map<string, Chain>();

  const page = (stream: string, from: number | 'end', backwards: boolean, count: number, deadline: number) =>
    connection.readStream(stream, { from, backwards, count, timeoutMs: waitMs(deadline), closing: never });

  const positionAt = async (stream: string, revision: number, deadline: number): Promise<Position> => {
    const { last } = await page(stream, revision, false, 1, deadline);
    if (!last) throw new StoreFailure('unavailable', `${stream} does not show revision ${revision} yet`);
    return last.position;
  };

  /** Remembers the ids of the stream's events since a given time. @returns its last revision, -1 for none */
  const lookThrough = async (stream: string, since: number, deadline: number): Promise<number> => {
    let head: number | undefined;
    for (let from: number | 'end' = 'end'; ; ) {
      let tail: Page;
      try {
        tail = await page(stream, from, true, TAIL_PAGE, deadline);
      } catch (error) {
        if (classify(error).kind === 'no stream') return -1;
        throw error;
      }
      known.saw(tail.events);
      if (!tail.last) return head ?? -1;
      head ??= tail.last.revision + tail.received - 1;
      if (tail.last.revision === 0 || tail.last.created.getTime() < since - CLOCK_SKEW_MS) return head;
      from = tail.last.revision - 1;
    }
  };

  const fromKnown: Repeats['fromKnown'] = async (append, deadline) => {
    const found = known.of(append);
    if (found.every((event) => event === undefined)) return undefined;
    const last = found.at(-1);
    if (!last || found.includes(undefined))
      throw new StoreFailure('conflict', 'some of the events are already in the stream');
    const position = last.position ?? (await positionAt(append.stream, last.revision, deadline));
    return { revision: last.revision, position };
  };

  const done: Repeats['done'] = async (append, { revision, position: answered }, deadline) => {
    const position = answered ?? (await positionAt(append.stream, revision, deadline));
    known.wrote(append, revision, position);
    return { revision, position };
  };

  const pinned = async (append: PreparedAppend, chain: Chain, since: number, deadline: number): Promise<Appended> => {
    for (;;) {
      if (!chain.tail || chain.tail.since > since) {
        chain.tail = { revision: await lookThrough(append.stream, since, deadline), since };
      }
      const before = await fromKnown(append, deadline);
      if (before) return before;
      const { revision } = chain.tail;
      try {
        const response = await send({ ...append, expected: revision < 0 ? 'none' : revision }, waitMs(deadline));
        chain.tail.revision = response.revision;
        return await done(append, response, deadline);
      } catch (error) {
        chain.tail = undefined;
        // Another process was faster, or the earlier attempt has just been written: search again.
        if (classify(error).kind !== 'conflict') throw error;
        if (Date.now() >= deadline) throw new StoreFailure('unavailable', 'other writers were faster every time');
      }
    }
  };

  return {
    fromKnown,
    done,
    async sendPinned(append, since, deadline) {
      const chain = chains.get(append.stream) ?? { turn: Promise.resolve(), users: 0, tail: undefined };
      chains.set(append.stream, chain);
      chain.users++;
      const before = chain.turn;
      let end = () => {};
      chain.turn = new Promise((resolve) => {
        end = resolve;
      });
      try {
        if (!(await settledWithin(deadline - Date.now(), before)))
          throw new StoreFailure('unavailable', 'its turn did not come in time');
        return await pinned(append, chain, since, deadline);
      } finally {
        end();
        if (--chain.users === 0) chains.delete(append.stream);
      }
    },
  };
}
