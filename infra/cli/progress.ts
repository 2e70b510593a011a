/** Progress of what reads the whole log, and its interruption. */
import { SingleBar } from 'cli-progress';

/** How far it is. */
interface Progress {
  readonly phase: string;
  readonly position: number;
  readonly target: number;
  readonly events: number;
}

export interface Watched {
  readonly signal: AbortSignal;
  readonly onProgress: (progress: Progress) => void;
}

/**
 * Runs `work` with a progress bar on a terminal. SIGINT and SIGTERM interrupt it with `message`.
 *
 * @returns also how many events were read
 */
export async function withProgress<T>(
  message: string,
  work: (watched: Watched) => Promise<T>,
): Promise<{ readonly result: T; readonly events: number; readonly seconds: number }> {
  const stop = new AbortController();
  const interrupt = () => stop.abort(new Error(message));
  process.once('SIGINT', interrupt);
  process.once('SIGTERM', interrupt);
  const begun = performance.now();
  let events = 0;
  let bar: SingleBar | undefined;
  const begin = (): SingleBar => {
    const format = '{phase} [{bar}] {percentage}% | {events} events, {rate}/s';
    const fresh = new SingleBar({ format, stream: process.stderr, clearOnComplete: true });
    fresh.start(1, 0, { phase: 'starting', events: 0, rate: 0 });
    return fresh;
  };
  try {
    const result = await work({
      signal: stop.signal,
      onProgress(progress) {
        events = progress.events;
        if (!process.stderr.isTTY) return;
        bar ??= begin();
        const rate = Math.round((events * 1_000) / (performance.now() - begun));
        bar.setTotal(Math.max(progress.target, 1));
        bar.update(progress.position, { phase: progress.phase, events, rate });
      },
    });
    return { result, events, seconds: (performance.now() - begun) / 1_000 };
  } finally {
    bar?.stop();
    process.off('SIGINT', interrupt);
    process.off('SIGTERM', interrupt);
  }
}
