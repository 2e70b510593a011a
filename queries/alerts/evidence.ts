/** The events behind the numbers of alert rules. */

import type { Condition, Cooldown } from '../../shared/contract/alerts/conditions.ts';
import type { Backtest } from '../../shared/contract/alerts/rules.ts';
import type { Derivation, Derivations } from '../../shared/contract/evidence.ts';
import { alertRuleTriggered, ruleStream } from '../../shared/events/alerts/rules.ts';
import type { LogIndex } from '../../shared/ports/history/events.ts';
import { derivation } from '../evidence.ts';

/** A rule with the number of its triggers, as displayed. */
export interface CountedRule {
  readonly id: number;
  readonly trigger_count: number;
  /** All its triggers are at or before this position. */
  readonly to: number;
  /** Name of the number. */
  readonly number: string;
}

const { type } = alertRuleTriggered;

/**
 * The events behind the numbers of triggers of rules. Only the counted ones of each rule are looked up: it may have
 * triggered again since the numbers were read.
 *
 * @param most positions are listed only up to this number of triggers
 */
export async function triggerDerivations(
  index: Pick<LogIndex, 'settled' | 'list'>,
  workspace: number,
  rules: readonly CountedRule[],
  most: number,
): Promise<Derivations> {
  await index.settled();
  const few = rules.reduce((sum, { trigger_count }) => sum + trigger_count, 0) <= most;
  const found: [string, Derivation][] = [];
  for (const { id, trigger_count: total, to, number } of rules) {
    const filter = { stream: ruleStream(workspace, id), type };
    const entries = total === 0 ? [] : await index.list(filter, few ? total : 1);
    const source = { rule: 'triggers', types: [type], from: entries[0]?.position ?? 0, to } as const;
    const events = few ? entries : undefined;
    found.push([number, derivation({ ...source, events }, total, { rule_id: id }, () => true)]);
  }
  return Object.fromEntries(found);
}

/** The events behind an evaluation. Rules are few, so positions are always listed. */
export const evaluationDerivations = (rules: readonly number[], triggers: readonly number[]): Derivations => ({
  evaluated: listed('rules', rules, { enabled: true }),
  triggered: listed('triggers', triggers, {}),
});

const listed = (
  rule: 'rules' | 'triggers',
  positions: readonly number[],
  filter: NonNullable<Derivation['filter']>,
): Derivation => ({
  total: positions.length,
  rule,
  filter,
  positions: [...positions].sort((one, other) => one - other),
});

/**
 * The events behind a backtest: all events that shaped the records.
 *
 * @param to position of the last event that was read; undefined: not all records are known up to there
 */
export const backtestDerivations = (
  { evaluated, triggered, since, until }: Pick<Backtest, 'evaluated' | 'triggered' | 'since' | 'until'>,
  rule: Condition & Cooldown,
  every_seconds: number,
  to: number | undefined,
): Derivations => {
  const { entity_type, condition_field, condition_operator, condition_value } = rule;
  const { cooldown_minutes, cooldown_per } = rule;
  const condition = {
    ...{ entity_type, condition_field, condition_operator, condition_value },
    ...{ cooldown_minutes, cooldown_per },
  };
  const moments = { every_seconds, since, until };
  return {
    evaluated: { total: evaluated, rule: 'derived', filter: moments, numbers: [] },
    ...(to !== undefined && {
      triggered: { total: triggered, rule: 'replay', filter: { ...condition, ...moments }, from: 0, to },
    }),
  };
};
