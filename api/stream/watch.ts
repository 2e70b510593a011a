/**
 * Streams end with their credential: at sign-out, when the user is disabled, deleted, moved, given another role or
 * another password, when the key is revoked or replaced, and when its time is over.
 *
 * Once a second each process asks for one stamp. When it has moved, the credentials of all open streams are looked up
 * again with a few queries, however many there are. So nobody has to remember to tell the streams, and a change made
 * at another process counts as well.
 */
import type { Logger } from 'pino';
import type { Identity } from '../../shared/identity.ts';
import { seconds } from '../../shared/time.ts';
import type { HeldCredential } from '../auth/known.ts';
import type { CredentialCheck } from '../auth/recheck.ts';

const EVERY_MS = 1_000;
/** Streams whose credentials could not be looked at for this long are ended: nobody knows whether they are still good. */
const UNCHECKED_MS = 15_000;

export interface Watched {
  readonly credential: HeldCredential;
  readonly identity: Identity;
  end(comment: string): void;
}

interface Entry {
  /** Of the last look; undefined: none so far. */
  stamp: string | undefined;
  /** When it was begun, Unix milliseconds. */
  lookedAt: number;
  /** Unix seconds; Infinity: never, or not known yet. */
  expiresAt: number;
}

export interface Watch {
  add(stream: Watched): void;
  remove(stream: Watched): void;
  close(): Promise<void>;
}

/** @param parts.everyMs pause between two looks */
export function watchCredentials(parts: {
  check: CredentialCheck;
  log: Logger;
  now: () => number;
  everyMs?: number;
  uncheckedMs?: number;
}): Watch {
  const { check, log, now, everyMs = EVERY_MS, uncheckedMs = UNCHECKED_MS } = parts;
  const entries = new Map<Watched, Entry>();
  let looking: Promise<void> | undefined;

  const endOf = (stream: Watched, comment: string) => {
    entries.delete(stream);
    stream.end(comment);
  };

  async function look(): Promise<void> {
    const begun = now();
    const stamp = await check.stamp();
    // Those that come while this runs are looked at the next time.
    const due: [Watched, Entry][] = [];
    for (const [stream, entry] of entries) {
      if (entry.stamp === stamp) entry.lookedAt = begun;
      else due.push([stream, entry]);
    }
    if (due.length === 0) return;
    const found = await check.lookUp(due.map(([stream]) => stream.credential));
    for (const [index, [stream, entry]] of due.entries()) {
      const known = found[index];
      if (!known || !opensTheSame(known.identity, stream.identity)) {
        endOf(stream, 'the credential of this stream has ended or changed; connect again');
        continue;
      }
      entry.stamp = stamp;
      entry.lookedAt = begun;
      entry.expiresAt = known.expiresAt;
    }
  }

  const timer = setInterval(() => {
    const at = now();
    for (const [stream, entry] of entries) {
      if (entry.expiresAt <= seconds(at)) endOf(stream, 'the credential of this stream has expired; connect again');
      else if (at - entry.lookedAt > uncheckedMs) endOf(stream, 'the credential of this stream cannot be checked');
    }
    if (entries.size === 0 || looking) return;
    looking = look()
      .catch((error: unknown) =>
        log.warn({ err: error }, 'credentials of open streams cannot be looked up; trying again'),
      )
      .finally(() => {
        looking = undefined;
      });
  }, everyMs);
  timer.unref();

  return {
    add(stream) {
      entries.set(stream, { stamp: undefined, lookedAt: now(), expiresAt: Number.POSITIVE_INFINITY });
    },
    remove(stream) {
      entries.delete(stream);
    },
    async close() {
      clearInterval(timer);
      await looking;
    },
  };
}

/** Names may change under an open stream; what it may see may not. */
function opensTheSame(one: Identity, other: Identity): boolean {
  return (
    one.kind === other.kind &&
    one.id === other.id &&
    one.role === other.role &&
    one.tenant === other.tenant &&
    one.workspace === other.workspace
  );
}
