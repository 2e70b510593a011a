/** New ids. */
import { randomUUID } from 'node:crypto';

/**
 * A UUID of version 7 (RFC 9562): the time in milliseconds, then 74 random bits. An index of such ids grows at its end,
 * where one of random ids changes any of its pages.
 */
export function newId(now = Date.now()): string {
  const time = now.toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`;
}
