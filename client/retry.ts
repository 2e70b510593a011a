/** Which requests are retried, and after which pause. */
import type { SignalboxError } from './errors.ts';

export interface RetryRules {
  /** Maximum number of retries; 0: none. */
  readonly retries: number;
  /** The longest pause, milliseconds. If the service asks for a longer wait, the call fails at once. */
  readonly longestPauseMs: number;
}

/** The first pause, milliseconds; each further pause may be twice as long. */
const FIRST_PAUSE_MS = 250;

/** Statuses of a proxy or of the service after which a retry may succeed. */
const TRANSIENT: ReadonlySet<number> = new Set([0, 408, 502, 503, 504]);
/** Codes of a 409 for which a retry may succeed. */
const BUSY: ReadonlySet<string> = new Set(['BUSY', 'IDEMPOTENCY_IN_PROGRESS']);

/**
 * Whether a request may be retried after this error.
 *
 * A GET changes nothing, except for the poll of the queue, which returns the same task again. A POST carries an
 * `Idempotency-Key`, so the service executes it once. PUT, PATCH and DELETE have no key: retrying one with an unknown
 * outcome could overwrite a later change by another caller, so they are retried only after a 429, which is sent before
 * anything is changed.
 */
export function isRetried(method: string, { status, code }: Pick<SignalboxError, 'status' | 'code'>): boolean {
  if (code === 'ABORTED' || code === 'REDIRECTED') return false;
  if (status === 429) return true;
  if (method !== 'GET' && method !== 'POST') return false;
  return TRANSIENT.has(status) || (status === 409 && BUSY.has(code ?? ''));
}

/**
 * The pause before a retry, milliseconds: the time that the service asks for, otherwise one that doubles with each
 * attempt. A random part of up to half is left out, so that clients that failed together do not retry together.
 *
 * @param attempt number of the failed attempt, from 1
 */
export function pauseOf(
  attempt: number,
  { longestPauseMs, firstPauseMs = FIRST_PAUSE_MS }: { longestPauseMs: number; firstPauseMs?: number },
  retryAfterMs: number | undefined,
  random: () => number = Math.random,
): number {
  const grown = Math.min(firstPauseMs * 2 ** (attempt - 1), longestPauseMs);
  return Math.max(retryAfterMs ?? 0, grown * (1 - random() / 2));
}

/** Resolves after some milliseconds, or when the signal aborts. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) {
      resolve();
      return;
    }
    const done = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener('abort', done);
  });
}
