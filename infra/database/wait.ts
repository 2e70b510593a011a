/** Waiting for a store at the start, so that the order in which things are started does not matter. */
import type { Logger } from '../logging.ts';

/** Tries `reach` until it succeeds. @throws Error that names the store when `deadline` (ms) passes */
export async function waitForStore(
  what: string,
  reach: () => Promise<unknown>,
  deadline: number,
  log: Logger,
): Promise<void> {
  for (let pause = 100; ; pause = Math.min(pause * 2, 2_000)) {
    try {
      await reach();
      return;
    } catch (error) {
      const reason =
        error instanceof Error ? error.message || String((error as { code?: unknown }).code) : String(error);
      if (Date.now() + pause > deadline) {
        throw new Error(`${what} could not be reached in time: ${reason}. Check its address and that it runs.`, {
          cause: error,
        });
      }
      log.warn({ reason }, `waiting for ${what}`);
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }
}

/** @throws Error that names `what` when it takes longer than `ms` */
export async function within<T>(ms: number, work: Promise<T>, what: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} did not answer within ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
