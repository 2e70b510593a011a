/** Progress and interruption of commands that read the whole log. */
import { SingleBar } from 'cli-progress';

/** Without a terminal, progress is reported at this interval, milliseconds. */
const REPORT_EVERY_MS = 10_000;

/** How far it is. */
interface Progress {
  readonly phase: string;
  /** How many events were read. */
  readonly events: number;
  readonly position: number;
  /** The last position; 0: unknown. */
  readonly target: number;
}

export interface Watched {
  readonly signal: AbortSignal;
  readonly onProgress: (progress: Progress) => void;
}

/**
 * Runs `work` and shows its progress on stderr: a bar on a terminal, else a line from time to time.
 *
 * @param interrupted the message with which SIGINT and SIGTERM abort `signal`; undefined: they end the process, because
 *   the work has nothing to finish
 * @returns also how many events were read
 */
export async function withProgress<T>(
  interrupted: string | undefined,
  work: (watched: Watched) => Promise<T>,
): Promise<{ readonly result: T; readonly events: number; readonly seconds: number }> {
  const stop = new AbortController();
  const interrupt = () => stop.abort(new Error(interrupted));
  const signals = interrupted === undefined ? [] : (['SIGINT', 'SIGTERM'] as const);
  for (const signal of signals) process.once(signal, interrupt);
  const begun = performance.now();
  let reportedAt = begun;
  let events = 0;
  let bar: SingleBar | undefined;
  const begin = (isBounded: boolean, total: number): SingleBar => {
    const format = `{phase} ${isBounded ? '[{bar}] {percentage}% | ' : ''}{events} events, {rate}/s`;
    const fresh = new SingleBar({ format, stream: process.stderr, clearOnComplete: true });
    fresh.start(total, 0, { phase: 'starting', events: 0, rate: 0 });
    return fresh;
  };
  try {
    const result = await work({
      signal: stop.signal,
      onProgress({ phase, position, target, ...progress }) {
        events = progress.events;
        const now = performance.now();
        const rate = Math.round((events * 1_000) / Math.max(now - begun, 1));
        if (process.stderr.isTTY) {
          const total = Math.max(target, position, 1);
          bar ??= begin(target > 0, total);
          bar.setTotal(total);
          bar.update(position, { phase, events, rate });
        } else if (now - reportedAt > REPORT_EVERY_MS) {
          reportedAt = now;
          console.error(`${phase}: ${events} events, ${rate}/s`);
        }
      },
    });
    return { result, events, seconds: (performance.now() - begun) / 1_000 };
  } finally {
    bar?.stop();
    for (const signal of signals) process.off(signal, interrupt);
  }
}
