/**
 * Evaluation of alert rules; a rule triggers when its condition is met.
 *
 * The database evaluates the conditions. Whether a rule triggers is decided on its own stream: only one process can
 * append the event, and the next one finds the rule in its cooldown.
 */

import type { AlertReads, WatchedRule } from '../../queries/alerts/rules.ts';
import { inCooldown } from '../../shared/contract/alerts/conditions.ts';
import type { Evaluation } from '../../shared/contract/alerts/rules.ts';
import { alertRuleTriggered } from '../../shared/events/alerts/rules.ts';
import type { DomainEvent, EventDraft } from '../../shared/events/define.ts';
import { seconds } from '../../shared/time.ts';
import type { CommandContext, Commands } from '../handler.ts';
import { type RuleState, ruleDecider, ruleStream } from './rules.ts';

/** Recipient of notifications, unless a rule names another one. */
const DEFAULT_RECIPIENT = 'system';

const isRecipient = (value: unknown): value is string => typeof value === 'string' && value.trim() !== '';

/**
 * Triggers a rule whose condition was found to be met. No event if the rule has another condition by now, or is
 * disabled or in its cooldown.
 *
 * @param now Unix seconds
 * @param recipientOf the recipient that a text names
 */
export function decideTrigger(
  state: RuleState,
  found: WatchedRule,
  now: number,
  recipientOf: (text: string) => string = (text) => text,
): EventDraft[] {
  const { id, rule, lastTriggeredAt, triggerCount } = state;
  const isSame =
    rule.entity_type === found.entity_type &&
    rule.condition_field === found.condition_field &&
    rule.condition_operator === found.condition_operator &&
    rule.condition_value === found.condition_value;
  if (id === 0 || !rule.enabled || !isSame || inCooldown(rule.cooldown_minutes, lastTriggeredAt, now)) return [];
  const { recipient } = rule.action_config;
  return [
    alertRuleTriggered.draft({
      rule_id: id,
      name: rule.name,
      description: rule.description,
      entity_type: rule.entity_type,
      condition_field: rule.condition_field,
      condition_operator: rule.condition_operator,
      condition_value: rule.condition_value,
      action_type: rule.action_type,
      recipient:
        rule.action_type !== 'notification'
          ? null
          : isRecipient(recipient)
            ? recipientOf(recipient.trim())
            : DEFAULT_RECIPIENT,
      count: triggerCount + 1,
    }),
  ];
}

export interface Evaluating {
  readonly commands: Commands;
  readonly reads: AlertReads;
  /** Unix ms */
  readonly now: () => number;
  /** Called when a rule could not be evaluated. */
  readonly failed: (error: unknown, rule: WatchedRule) => void;
}

export type AlertVerdict = 'Condition met' | 'Condition not met' | 'In cooldown';

interface Evaluated {
  readonly verdict: AlertVerdict | 'The condition could not be evaluated';
  /** The event that triggered the rule. */
  readonly trigger?: DomainEvent | undefined;
}

/** Evaluates one rule, and triggers it if its condition is met and no other process triggers it. */
export async function evaluateRule(
  { commands, reads, now }: Evaluating,
  context: CommandContext,
  rule: WatchedRule,
): Promise<Evaluated> {
  const at = seconds(now());
  if (inCooldown(rule.cooldown_minutes, rule.last_triggered_at, at)) return { verdict: 'In cooldown' };
  if (!(await reads.isMet(rule, at))) return { verdict: 'Condition not met' };
  const stream = ruleStream(rule.workspace, rule.id);
  const { recipient } = (await commands.load(ruleDecider, stream, { recent: true })).state.rule.action_config;
  const told = isRecipient(recipient) ? recipient.trim() : DEFAULT_RECIPIENT;
  const named = await reads.recipientOf(rule.workspace, told);
  const { events } = await commands.execute(ruleDecider, stream, context, (state) =>
    decideTrigger(state, rule, at, (text) => (text === told ? named : text)),
  );
  // No event: in the meantime another process has triggered or changed the rule.
  const [trigger] = events;
  return trigger ? { verdict: 'Condition met', trigger } : { verdict: 'In cooldown' };
}

/** Rules per page. */
export const PAGE = 100;

/** The result of an evaluation, and the positions of the events behind it. */
export interface EvaluatedWorkspace {
  readonly evaluation: Evaluation;
  /** Positions of the last changes of the evaluated rules. */
  readonly rules: readonly number[];
  /** Positions of the events that triggered rules. */
  readonly triggers: readonly number[];
}

/**
 * Evaluates the enabled rules of a workspace by ascending id. A rule that cannot be evaluated counts as not triggered,
 * unless all fail.
 */
export async function evaluateWorkspace(parts: Evaluating, context: CommandContext): Promise<EvaluatedWorkspace> {
  const { workspace } = context.origin;
  const results: Evaluation['results'][number][] = [];
  const failures: unknown[] = [];
  const rules: number[] = [];
  const triggers: number[] = [];
  for (let after = { workspace, id: 0 }; ; ) {
    const page = await parts.reads.watched(after, PAGE, workspace);
    for (const rule of page) {
      const { verdict, trigger } = await evaluateRule(parts, context, rule).catch((error: unknown): Evaluated => {
        parts.failed(error, rule);
        failures.push(error);
        return { verdict: 'The condition could not be evaluated' };
      });
      results.push({ rule_id: rule.id, rule_name: rule.name, triggered: trigger !== undefined, reason: verdict });
      rules.push(rule.position);
      if (trigger) triggers.push(trigger.position);
    }
    const last = page.at(-1);
    if (!last || page.length < PAGE) break;
    after = { workspace, id: last.id };
  }
  if (failures.length > 0 && failures.length === results.length) throw failures[0];
  return { evaluation: { evaluated: results.length, triggered: triggers.length, results }, rules, triggers };
}
