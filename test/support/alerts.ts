/** The plain evaluation of a condition, which the database and backtests are compared with. */
import { activitiesAfter, type Condition, isMet, type Seen, spanOf } from '../../shared/contract/alerts/conditions.ts';

/** Evaluates a condition on all records of a workspace. @param now Unix seconds */
export function evaluate(
  condition: Condition,
  records: Iterable<Seen>,
  now: number,
  lastTriggeredAt: number | null = null,
): boolean {
  const since = activitiesAfter(condition, now, lastTriggeredAt);
  let found = 0;
  for (const seen of records) {
    if (condition.entity_type === 'activity' && seen.at <= since) continue;
    const span = spanOf(condition, seen);
    if (span && span.after < now && now < span.before) found++;
  }
  return isMet(condition, found);
}
