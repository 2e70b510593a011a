/** The derivation of numbers: few events are listed, many are described by a range. */
import type { Derivation } from '../shared/contract/evidence.ts';
import { tokenReportsPurged, tokensReported } from '../shared/events/tokens/reports.ts';

/** Types of events that add or remove reports of tokens. */
export const REPORT_TYPES: readonly string[] = [tokensReported.type, tokenReportsPurged.type];

/** The events from which numbers of one kind were derived. */
export interface EvidenceSource<Event extends { readonly position: number }> {
  readonly rule: Exclude<Derivation['rule'], 'derived'>;
  /** Default: any. */
  readonly types?: readonly string[];
  /** Undefined if they are too many, or not all known individually. */
  readonly events: readonly Event[] | undefined;
  /** All are at or after this position. */
  readonly from: number;
  /** All are at or before this position. */
  readonly to: number;
}

/** @param counts whether an event counts for this number, by the same rule as `filter` */
export function derivation<Event extends { readonly position: number }>(
  { rule, types, events, from, to }: EvidenceSource<Event>,
  total: number,
  filter: NonNullable<Derivation['filter']>,
  counts: (event: Event) => boolean,
): Derivation {
  if (total === 0) return { total, rule, filter, positions: [] };
  if (!events) return { total, rule, filter, from, to, ...(types && { types: [...types] }) };
  const positions = new Set(events.filter(counts).map(({ position }) => position));
  return { total, rule, filter, positions: [...positions].sort((one, other) => one - other) };
}
