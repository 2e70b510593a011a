/** Waits for a condition in tests, never for a fixed time. */
import { setTimeout as sleep } from 'node:timers/promises';

/** How long a test waits. Mutation testing sets it lower: there many conditions never come to hold. */
const PATIENCE_MS = Number(process.env.TEST_PATIENCE_MS ?? 20_000);

/** Resolves with the result of `holds` as soon as that is truthy; rejects with `what` after `patienceMs`. */
export async function until<T>(
  what: string,
  holds: () => T | Promise<T>,
  patienceMs = PATIENCE_MS,
): Promise<Exclude<T, undefined | null | false | 0 | ''>> {
  const deadline = Date.now() + patienceMs;
  for (;;) {
    const value = await holds();
    if (value) return value as Exclude<T, undefined | null | false | 0 | ''>;
    if (Date.now() > deadline) throw new Error(`waited ${patienceMs} ms in vain until ${what}`);
    await sleep(5);
  }
}
