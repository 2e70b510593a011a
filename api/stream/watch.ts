/**
 * Ends streams together with their credential: at sign-out, when the user is disabled, deleted, moved, or gets another
 * role or password, when the key is revoked or replaced, and when the credential expires.
 *
 * Once a second each process reads one stamp. When it has changed, the credentials of all open streams are looked up
 * again with a few queries, however many streams there are. So code that changes credentials need not notify streams,
 * and changes by other processes are noticed too.
 */
import type { Logger } from 'pino';
import type { Identity } from '../../shared/identity.ts';
import { seconds } from '../../shared/time.ts';
import type { HeldCredential } from '../auth/known.ts';
import type { CredentialCheck } from '../auth/recheck.ts';

const EVERY_MS = 1_000;
/** Streams whose credentials could not be checked for this long are ended, because they may no longer be valid. */
const UNCHECKED_MS = 15_000;

export interface Watched {
  readonly credential: HeldCredential;
  readonly identity: Identity;
  end(comment: string): void;
}

interface Entry {
  /** Stamp of the last check; undefined before the first. */
  stamp: string | undefined;
  /** Start of the last check, Unix milliseconds. */
  checkedAt: number;
  /** Unix seconds; Infinity when it never expires or is not known yet. */
  expiresAt: number;
}

export interface Watch {
  add(stream: Watched): void;
  remove(stream: Watched): void;
  close(): Promise<void>;
}

/** @param parts.everyMs interval between checks */
export function watchCredentials(parts: {
  check: CredentialCheck;
  log: Logger;
  now: () => number;
  everyMs?: number;
  uncheckedMs?: number;
}): Watch {
  const { check, log, now, everyMs = EVERY_MS, uncheckedMs = UNCHECKED_MS } = parts;
  const entries = new Map<Watched, Entry>();
  let checking: Promise<void> | undefined;

  const endOf = (stream: Watched, comment: string) => {
    entries.delete(stream);
    stream.end(comment);
  };

  async function checkAll(): Promise<void> {
    const begun = now();
    const stamp = await check.stamp();
    // Streams added while this runs are checked the next time.
    const due: [Watched, Entry][] = [];
    for (const [stream, entry] of entries) {
      if (entry.stamp === stamp) entry.checkedAt = begun;
      else due.push([stream, entry]);
    }
    if (due.length === 0) return;
    const found = await check.lookUp(due.map(([stream]) => stream.credential));
    for (const [index, [stream, entry]] of due.entries()) {
      const known = found[index];
      if (!known || !hasSameAccess(known.identity, stream.identity)) {
        endOf(stream, 'the credential of this stream has ended or changed; connect again');
        continue;
      }
      entry.stamp = stamp;
      entry.checkedAt = begun;
      entry.expiresAt = known.expiresAt;
    }
  }

  const timer = setInterval(() => {
    const at = now();
    for (const [stream, entry] of entries) {
      if (entry.expiresAt <= seconds(at)) endOf(stream, 'the credential of this stream has expired; connect again');
      else if (at - entry.checkedAt > uncheckedMs) endOf(stream, 'the credential of this stream cannot be checked');
    }
    if (entries.size === 0 || checking) return;
    checking = checkAll()
      .catch((error: unknown) => log.warn({ err: error }, 'cannot look up the credentials of open streams; retrying'))
      .finally(() => {
        checking = undefined;
      });
  }, everyMs);
  timer.unref();

  return {
    add(stream) {
      entries.set(stream, { stamp: undefined, checkedAt: now(), expiresAt: Number.POSITIVE_INFINITY });
    },
    remove(stream) {
      entries.delete(stream);
    },
    async close() {
      clearInterval(timer);
      await checking;
    },
  };
}

/** A user's name may change while a stream is open; its permissions must not. An agent sees its tasks by its name. */
function hasSameAccess(one: Identity, other: Identity): boolean {
  return (
    one.kind === other.kind &&
    (one.kind !== 'agent-key' || one.agentName === other.agentName) &&
    one.id === other.id &&
    one.role === other.role &&
    one.tenant === other.tenant &&
    one.workspace === other.workspace
  );
}
