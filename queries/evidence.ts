/** What numbers were derived from: events are listed where they are few, and described by a range where they are many. */
import type { Derivation } from '../shared/contract/evidence.ts';
import { tokenUsageReported } from '../shared/events/agents/heartbeat.ts';
import { tokenReportsPurged, tokensReported } from '../shared/events/tokens/reports.ts';

/** Events that add reports of tokens, or take them away. */
export const REPORT_TYPES: readonly string[] = [tokensReported.type, tokenUsageReported.type, tokenReportsPurged.type];

/** The events that numbers of one kind were derived from. */
export interface EvidenceSource<Event extends { readonly position: number }> {
  readonly rule: Exclude<Derivation['rule'], 'derived'>;
  /** Default: any. */
  readonly types?: readonly string[];
  /** Undefined: they are too many, or not all known one by one. */
  readonly events: readonly Event[] | undefined;
  /** None is before this position. */
  readonly from: number;
  /** None is after this position. */
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
