/**
 * A shared memory budget for streams that are catching up: pages being read, and frames waiting in connections. Readers
 * wait for room in the order of arrival.
 */
export interface Budget {
  /** Bytes held now, including those reserved for reads. */
  readonly held: number;
  /**
   * Reserves bytes for one read as soon as there is room. Resolves to a function that ends the read, or undefined if the
   * signal aborts first.
   */
  enter(signal: AbortSignal): Promise<(() => void) | undefined>;
  /** Counts bytes that wait in a connection. */
  hold(bytes: number): void;
  /** Counts them out again. */
  free(bytes: number): void;
}

/**
 * @param options.bytes the maximum; a read in progress can exceed it by what it returns beyond `pageBytes`
 * @param options.pageBytes reserved for each read
 * @param options.readers maximum number of reads in progress
 */
export function createBudget(options: { bytes: number; pageBytes: number; readers: number }): Budget {
  let held = 0;
  let reading = 0;
  /** In order of arrival. */
  const queue = new Set<() => void>();

  const fits = () => reading < options.readers && held + options.pageBytes <= options.bytes;
  const admit = () => {
    for (const start of queue) {
      if (!fits()) return;
      queue.delete(start);
      start();
    }
  };
  const begin = () => {
    reading++;
    held += options.pageBytes;
    return () => {
      reading--;
      held -= options.pageBytes;
      admit();
    };
  };

  return {
    get held() {
      return held;
    },
    async enter(signal) {
      if (signal.aborted) return undefined;
      if (queue.size === 0 && fits()) return begin();
      return new Promise((resolve) => {
        const start = () => {
          signal.removeEventListener('abort', leave);
          resolve(begin());
        };
        const leave = () => {
          queue.delete(start);
          resolve(undefined);
        };
        signal.addEventListener('abort', leave, { once: true });
        queue.add(start);
      });
    },
    hold(bytes) {
      held += bytes;
    },
    free(bytes) {
      held -= bytes;
      admit();
    },
  };
}
