/** Progress and interruption of commands that read the whole log. */
import { SingleBar } from 'cli-progress';

/** Without a terminal, progress is reported at this interval, milliseconds. */
const REPORT_EVERY_MS = 10_000;

/** How far it is. */
export interface Progress {
  readonly phase: string;
  /** How many events were read. */
  readonly events: number;
  readonly position: number;
  /** The last position; 0: unknown. */
  readonly target: number;
}

const MINUTE_S = 60;

/**
 * The time that is left, if the rest takes as long per position as what was done.
 *
 * @param elapsed milliseconds
 * @returns a part of a sentence; empty if it cannot be estimated
 */
export function timeLeft(elapsed: number, { done, rest }: { readonly done: number; readonly rest: number }): string {
  if (done <= 0 || rest <= 0) return '';
  const seconds = Math.ceil((elapsed * rest) / done / 1_000);
  return `, about ${seconds < 2 * MINUTE_S ? `${seconds} s` : `${Math.ceil(seconds / MINUTE_S)} min`} left`;
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
  /** The first position that was reported: an interrupted command continues where it stopped. */
  let from: number | undefined;
  const begin = (isBounded: boolean, total: number): SingleBar => {
    const format = `{phase} ${isBounded ? '[{bar}] {percentage}% | ' : ''}{events} events, {rate}/s{left}`;
    const fresh = new SingleBar({ format, stream: process.stderr, clearOnComplete: true });
    fresh.start(total, 0, { phase: 'starting', events: 0, rate: 0, left: '' });
    return fresh;
  };
  try {
    const result = await work({
      signal: stop.signal,
      onProgress({ phase, position, target, ...progress }) {
        events = progress.events;
        const now = performance.now();
        const rate = Math.round((events * 1_000) / Math.max(now - begun, 1));
        from ??= position;
        const left = timeLeft(now - begun, { done: position - from, rest: target - position });
        if (process.stderr.isTTY) {
          const total = Math.max(target, position, 1);
          bar ??= begin(target > 0, total);
          bar.setTotal(total);
          bar.update(position, { phase, events, rate, left });
        } else if (now - reportedAt > REPORT_EVERY_MS) {
          reportedAt = now;
          console.error(`${phase}: ${events} events, ${rate}/s${left}`);
        }
      },
    });
    return { result, events, seconds: (performance.now() - begun) / 1_000 };
  } finally {
    bar?.stop();
    for (const signal of signals) process.off(signal, interrupt);
  }
}
