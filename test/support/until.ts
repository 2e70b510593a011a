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
  const begun = Date.now();
  for (;;) {
    const value = await holds();
    if (value) return value as Exclude<T, undefined | null | false | 0 | ''>;
    const waited = Date.now() - begun;
    if (waited > patienceMs) throw new Error(`waited ${patienceMs} ms in vain until ${what}`);
    // Less often the longer it takes: asking takes CPU time from what is waited for.
    await sleep(Math.min(Math.max(5, waited / 20), 25));
  }
}
