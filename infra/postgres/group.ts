/** Which waiting appends may share one statement. Pure. */
import type { Expectation, NewEvent } from '../../shared/ports/event-log.ts';

export interface GroupMember {
  readonly stream: string;
  readonly events: readonly NewEvent[];
  readonly expected: Expectation;
}

/**
 * Splits appends, in order, into those that can be written together and the rest. Two appends to one stream can be
 * written together when the second builds on the first: it expects any revision, or exactly the one that the first will
 * produce. Once an append to a stream has to wait, all later ones to that stream wait, too.
 */
export function planGroup<Member extends GroupMember>(
  waiting: readonly Member[],
): { members: Member[]; rest: Member[] } {
  const members: Member[] = [];
  const rest: Member[] = [];
  /** Revision of each stream after the group; undefined when its first append expects `any`. */
  const revisions = new Map<string, number | undefined>();
  const held = new Set<string>();
  for (const append of waiting) {
    const { stream, events, expected } = append;
    const inGroup = revisions.has(stream);
    const revision = revisions.get(stream);
    const fits = !inGroup || expected === 'any' || (revision !== undefined && expected === revision);
    if (held.has(stream) || !fits) {
      held.add(stream);
      rest.push(append);
      continue;
    }
    const start = inGroup ? revision : expected === 'any' ? undefined : expected === 'none' ? -1 : expected;
    revisions.set(stream, start === undefined ? undefined : start + events.length);
    members.push(append);
  }
  return { members, rest };
}
