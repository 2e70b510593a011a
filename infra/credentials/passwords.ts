/**
 * Password hashes: argon2id with the parameters that OWASP recommends
 * (https://cheatsheetseries.owasp.org/cheatsheets/Password_Storage_Cheat_Sheet.html): 19 MiB, 2 passes, 1 lane.
 *
 * The library hashes on libuv's threads, off the event loop. Concurrency is bounded because each hash takes 19 MiB, and
 * the queue is bounded because no user waits minutes to sign in.
 */
import { randomBytes } from 'node:crypto';
import argon2 from 'argon2';
import { unavailable } from '../../shared/errors.ts';

const PARAMETERS = { memoryCost: 19_456, timeCost: 2, parallelism: 1 } as const;
const AT_ONCE = 4;
const MAX_WAITING = 200;

export function createPasswords() {
  let running = 0;
  const waiting: (() => void)[] = [];
  let dummy: Promise<string> | undefined;

  async function bounded<T>(work: () => Promise<T>): Promise<T> {
    if (running >= AT_ONCE) {
      if (waiting.length >= MAX_WAITING) {
        throw unavailable('Too many sign-ins at once; try again in a moment.', { headers: { 'Retry-After': '2' } });
      }
      // The finishing task passes on its slot, so `running` does not change.
      await new Promise<void>((resolve) => waiting.push(resolve));
    } else running++;
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else running--;
    }
  }

  const hashNow = (password: string | Buffer) => argon2.hash(password, { type: argon2.argon2id, ...PARAMETERS });

  return {
    hash: (password: string) => bounded(() => hashNow(password)),
    /** Verifies against `hash`; without one it takes the same time and gives false. */
    async verify(hash: string | undefined, password: string): Promise<boolean> {
      if (hash === undefined) {
        dummy ??= bounded(() => hashNow(randomBytes(32)));
        const other = await dummy.catch((error) => {
          dummy = undefined;
          throw error;
        });
        await bounded(() => argon2.verify(other, password));
        return false;
      }
      return bounded(() => argon2.verify(hash, password));
    },
    /** Whether the hash was made with parameters other than the current ones. */
    outdated: (hash: string) => argon2.needsRehash(hash, PARAMETERS),
  };
}
