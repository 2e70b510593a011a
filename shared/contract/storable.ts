/**
 * Texts that PostgreSQL cannot hold: with the character U+0000 or half of a surrogate pair in them. JSON can say both,
 * the log would keep them, and every read model would stop at the event. So they are refused at the door.
 */
const UNSTORABLE = /[\0\p{Surrogate}]/u;

export const UNSTORABLE_TEXT = 'must not contain the character U+0000 or half of a surrogate pair';

/** Whether every text in a JSON value, keys included, can be stored. */
export function isStorable(value: unknown): boolean {
  if (typeof value === 'string') return !UNSTORABLE.test(value);
  if (typeof value !== 'object' || value === null) return true;
  if (Array.isArray(value)) return value.every(isStorable);
  return Object.entries(value).every(([key, one]) => !UNSTORABLE.test(key) && isStorable(one));
}
