/**
 * What catching-up streams may hold together: pages that are being read, and frames that wait in connections. Whoever
 * wants to read waits for room, first come, first served.
 */
export interface Budget {
  /** Bytes held now, those set aside for reads included. */
  readonly held: number;
  /**
   * Sets bytes aside for one read as soon as there is room. Gives the function that ends the read, or undefined when
   * the signal aborted first.
   */
  enter(signal: AbortSignal): Promise<(() => void) | undefined>;
  /** These bytes wait in a connection. */
  hold(bytes: number): void;
  /** They do not any more. */
  free(bytes: number): void;
}

/**
 * @param options.bytes held at most, apart from what one read in progress brings beyond `pageBytes`
 * @param options.pageBytes set aside for a read
 * @param options.readers reads in progress at most
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
