/** Back-off and circuit of webhooks: when a failed delivery is retried, and when its webhook gets no new messages. */

/** When failed deliveries are retried. */
export interface RetrySchedule {
  /** Attempts in total; the same number of failures in a row opens the circuit. */
  readonly attempts: number;
  /** Pauses after the first, second … failed attempt, milliseconds; the last one is repeated. */
  readonly delaysMs: readonly number[];
}

/** Pauses vary at random by this fraction. */
const JITTER = 0.2;

/**
 * The back-off after a failed attempt.
 *
 * @param attempt number of the failed attempt, from 0
 * @param random 0 to 1
 * @returns milliseconds until the next attempt; null: it was the last one
 */
export function retryDelay(
  attempt: number,
  { attempts, delaysMs }: RetrySchedule,
  random: () => number,
): number | null {
  if (attempt >= attempts - 1) return null;
  const base = delaysMs[Math.min(attempt, delaysMs.length - 1)] ?? 0;
  return Math.round(base * (1 + JITTER * (2 * random() - 1)));
}

/**
 * Whether so many attempts in a row have failed that new messages wait until a retry succeeds, and a message that uses
 * up its attempts disables the webhook.
 */
export const isOpen = (failures: number, { attempts }: Pick<RetrySchedule, 'attempts'>): boolean =>
  failures >= attempts;
