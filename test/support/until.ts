/** Waits for a condition in tests, never for a fixed time. */
import { setTimeout as sleep } from 'node:timers/promises';

/** Resolves when the condition holds; rejects with `what` when it does not within `patienceMs`. */
export async function until(
  what: string,
  condition: () => boolean | Promise<boolean>,
  patienceMs = 20_000,
): Promise<void> {
  const deadline = Date.now() + patienceMs;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`waited ${patienceMs} ms in vain until ${what}`);
    await sleep(5);
  }
}
