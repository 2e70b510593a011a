/**
 * Evaluation of alert rules; a rule triggers when its condition is met.
 *
 * The database evaluates the conditions. Whether a rule triggers is decided on its own stream: only one process can
 * append the event, and the next one finds the rule in its cooldown.
 */

import type { AlertReads, WatchedRule } from '../../queries/alerts/rules.ts';
import { coolsRecords, inCooldown, isMet, ruleCooldown } from '../../shared/contract/alerts/conditions.ts';
import type { Evaluation } from '../../shared/contract/alerts/rules.ts';
import { type AlertRecords, alertRuleTriggered, MAX_COOLING, recordsText } from '../../shared/events/alerts/rules.ts';
import type { DomainEvent, EventDraft } from '../../shared/events/define.ts';
import { allTasks, type TaskView } from '../../shared/identity.ts';
import { seconds } from '../../shared/time.ts';
import { agentInLog } from '../agents/names.ts';
import type { CommandContext, Commands } from '../handler.ts';
import { type RuleState, ruleDecider, ruleStream } from './rules.ts';

/** Recipient of notifications, unless a rule names another one. */
const DEFAULT_RECIPIENT = 'system';

const isRecipient = (value: unknown): value is string => typeof value === 'string' && value.trim() !== '';

/** The recipient of a rule, as it was looked up. */
export interface AlertRecipient {
  /** As in the rule. */
  readonly text: string;
  /** Id of the agent, as in the rule. */
  readonly agent: number | null;
  /** Its name now. */
  readonly name: string;
}

const recipientText = ({ action_config: { recipient } }: RuleState['rule']): string =>
  isRecipient(recipient) ? recipient.trim() : DEFAULT_RECIPIENT;

/** What an evaluation found for a rule whose condition is met. */
export interface AlertFindings extends AlertRecords {
  /** Ids of records whose cooldown begins. */
  readonly ids: readonly number[];
  /** Position of the newest matching activity; null: the records are no activities. */
  readonly reported_to: number | null;
  readonly recipient: AlertRecipient;
}

/**
 * Triggers a rule whose condition was found to be met. No event if the rule has another condition or recipient by now,
 * or is disabled or in its cooldown. Where records have the cooldown, those found are valid only as long as the rule has
 * not triggered again.
 *
 * @param now Unix seconds
 */
export function decideTrigger(
  state: RuleState,
  found: WatchedRule,
  now: number,
  { records, more, ids, reported_to, recipient }: AlertFindings,
): EventDraft[] {
  const { id, rule, lastTriggeredAt, triggerCount } = state;
  const isSame =
    rule.entity_type === found.entity_type &&
    rule.condition_field === found.condition_field &&
    rule.condition_operator === found.condition_operator &&
    rule.condition_value === found.condition_value &&
    rule.cooldown_per === found.cooldown_per &&
    recipientText(rule) === recipient.text &&
    rule.recipient_agent === recipient.agent;
  const isQuiet =
    rule.cooldown_per === 'record'
      ? triggerCount !== found.trigger_count
      : inCooldown(rule.cooldown_minutes, lastTriggeredAt, now);
  if (id === 0 || !rule.enabled || !isSame || isQuiet) return [];
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
      cooldown_per: rule.cooldown_per,
      records: [...records],
      more,
      cooling: coolsRecords(rule) ? [...ids] : null,
      reported_to,
      recipient: rule.action_type === 'notification' ? recipient.name : null,
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

interface Evaluated {
  /** `Condition met` with the records, `Condition not met`, `In cooldown`, `The condition could not be evaluated`. */
  readonly verdict: string;
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
  if (inCooldown(ruleCooldown(rule), rule.last_triggered_at, at)) return { verdict: 'In cooldown' };
  const quiet = await reads.quiet(rule, at);
  if (!(await reads.isMet(rule, at, quiet))) {
    const isQuiet = quiet.length > 0 && (await reads.isMet(rule, at, []));
    return { verdict: isQuiet ? 'In cooldown' : 'Condition not met' };
  }
  const room = MAX_COOLING - quiet.length;
  if (room <= 0) return { verdict: 'In cooldown' };
  const stream = ruleStream(rule.workspace, rule.id);
  const { state } = await commands.load(ruleDecider, stream, { recent: true });
  const { recipient, view } = await recipientNow({ commands, reads }, rule.workspace, state.rule);
  const found = await reads.matching(rule, at, quiet, view, room);
  if (!isMet(rule, found.total)) return { verdict: 'Condition not met' };
  const { events } = await commands.execute(ruleDecider, stream, context, (current) =>
    decideTrigger(current, rule, at, { ...found, recipient }),
  );
  // No event: in the meantime another process has triggered or changed the rule.
  const [trigger] = events;
  if (!trigger) return { verdict: 'In cooldown' };
  const named = recordsText(rule.entity_type, found, true);
  return { verdict: named === undefined ? 'Condition met' : `Condition met. ${named}`, trigger };
}

/** The recipient of a rule and what it may see. A deleted agent is replaced by the default recipient. */
async function recipientNow(
  { commands, reads }: Pick<Evaluating, 'commands' | 'reads'>,
  workspace: number,
  rule: RuleState['rule'],
): Promise<{ readonly recipient: AlertRecipient; readonly view: TaskView }> {
  const { recipient_agent: id } = rule;
  const text = recipientText(rule);
  const agent = await agentInLog(commands, workspace, id === null ? { name: text } : { id });
  const name = agent?.name ?? (id === null ? await reads.recipientOf(workspace, text) : DEFAULT_RECIPIENT);
  return {
    recipient: { text, agent: id, name },
    view: agent ? { workspace, agent: { id: agent.id, name: agent.name } } : allTasks(workspace),
  };
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
