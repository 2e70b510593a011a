/** Waiting for a store at startup, so that processes and stores can be started in any order. */
import { storeFaultOf } from '../../shared/store-faults.ts';
import { createBackOff, pause } from '../../shared/waiting.ts';
import type { Logger } from '../logging.ts';
import { isConnectionFailure } from './failures.ts';

const reasonOf = (error: unknown): string =>
  error instanceof Error ? error.message || String((error as { code?: unknown }).code) : String(error);

/** Whether the store was reached and says why it cannot be used. */
const isDefinite = (error: unknown): boolean => error instanceof Error && !isConnectionFailure(error);

/** Tries `reach` until it succeeds. @returns its result @throws Error that names the store when `deadline` (ms) passes */
export async function waitForStore<T>(
  what: string,
  reach: () => Promise<T>,
  deadline: number,
  log: Logger,
): Promise<T> {
  const backOff = createBackOff({ firstMs: 100, lastMs: 2_000 });
  for (;;) {
    try {
      return await reach();
    } catch (error) {
      const reason = reasonOf(error);
      const waitMs = backOff.next();
      if (Date.now() + waitMs > deadline) {
        const remedy = isDefinite(error) ? storeFaultOf(error)?.message : undefined;
        throw new Error(
          `${what} could not be reached in time: ${reason}. ${remedy ?? 'Check its address and that it is running.'}`,
          { cause: error },
        );
      }
      log.warn({ reason }, `waiting for ${what}`);
      await pause(waitMs, undefined, { ref: true });
    }
  }
}
