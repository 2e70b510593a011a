/**
 * Says that something fails, and that it works again. What asks a store several times a second would otherwise fill the
 * log with one line while the store is away.
 */
import type { Logger } from './logging.ts';

/** While it goes on failing it is said again this often, milliseconds. */
const REPEAT_MS = 30_000;

export interface Trouble {
  failed(error: unknown): void;
  worked(): void;
}

/** @param failing the warning @param works the line that ends it */
export function createTrouble(
  log: Pick<Logger, 'warn' | 'info'>,
  failing: string,
  works: string,
  now: () => number = Date.now,
): Trouble {
  let since: number | undefined;
  let told = 0;
  return {
    failed(error) {
      since ??= now();
      if (now() - told < REPEAT_MS) return;
      told = now();
      log.warn({ err: error, forMs: now() - since }, failing);
    },
    worked() {
      if (since === undefined) return;
      log.info({ afterMs: now() - since }, works);
      since = undefined;
      told = 0;
    },
  };
}
