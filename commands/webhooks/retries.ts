/** Back-off and circuit of webhooks: when a failed delivery is retried, and when its webhook gets no new messages. */

import { DAY } from '../../shared/time.ts';

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

/** Longest pause that a receiver can ask for, milliseconds. */
const MAX_RETRY_AFTER_MS = DAY * 1_000;

/** The date formats of HTTP, by their beginning: a weekday. `Date.parse` accepts more, such as plain numbers. */
const HTTP_DATE = /^(mon|tue|wed|thu|fri|sat|sun)/i;

/**
 * The pause that a receiver asks for with `Retry-After`: seconds, or a date.
 *
 * Source: RFC 9110, 10.2.3
 *
 * @param now Unix ms
 * @returns milliseconds, at most a day; 0 for a value that is neither
 */
export function retryAfterMs(value: string | null, now: number): number {
  const text = value?.trim() ?? '';
  const ms = /^\d+$/.test(text) ? Number(text) * 1_000 : HTTP_DATE.test(text) ? dateOf(text) - now : 0;
  return Number.isNaN(ms) ? 0 : Math.min(Math.max(ms, 0), MAX_RETRY_AFTER_MS);
}

/** Unix ms. The oldest format names no zone; it is GMT. */
const dateOf = (text: string): number => Date.parse(/GMT$/i.test(text) ? text : `${text} GMT`);

/**
 * Whether so many attempts in a row have failed that new messages wait until a retry succeeds, and a message that uses
 * up its attempts disables the webhook.
 */
export const isOpen = (failures: number, { attempts }: Pick<RetrySchedule, 'attempts'>): boolean =>
  failures >= attempts;
