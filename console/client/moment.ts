/** The displayed moment: now, or one of the past, from `at` in the address. */
import { address, useAddress } from './address.ts';

/** A position of the log or a time in RFC 3339; undefined: now. */
export const asOf = (): string | undefined => address().query.get('at') ?? undefined;

export function useAsOf(): string | undefined {
  return useAddress().query.get('at') ?? undefined;
}

/** The time of the moment if the address contains a time; a position has none. Unix milliseconds. */
export function timeOfMoment(moment: string | undefined): number | undefined {
  if (moment === undefined) return undefined;
  const time = /^\d+$/.test(moment) ? Number.NaN : Date.parse(moment);
  return Number.isNaN(time) ? undefined : time;
}
