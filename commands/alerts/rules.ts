/** Alert rules: created, changed, deleted. */
import { problemOf } from '../../shared/contract/alerts/conditions.ts';
import { MAX_RULES, type RuleChangesBody } from '../../shared/contract/alerts/rules.ts';
import { invalid, notFound } from '../../shared/errors.ts';
import {
  type ActionConfig,
  alertRuleCreated,
  alertRuleDeleted,
  alertRuleTriggered,
  alertRuleUpdated,
  NO_RULE,
  type RuleFields,
  ruleAfter,
  ruleStream,
} from '../../shared/events/alerts/rules.ts';
import type { EventDraft } from '../../shared/events/define.ts';
import { sent } from '../../shared/fields.ts';
import { hiddenUrl, restored } from '../../shared/secrets.ts';
import { isStorableText } from '../../shared/storable.ts';
import { seconds } from '../../shared/time.ts';
import { agentInLog } from '../agents/names.ts';
import { defineDecider, on } from '../decider.ts';
import type { CommandContext, Commands, Executed } from '../handler.ts';
import { type Limit, type LimitParts, withinLimit } from '../limits.ts';
import { createRecord } from '../record-ids.ts';

export { ruleStream };

/** A rule and the agent that is its recipient. */
export type StoredRule = typeof NO_RULE;

export interface RuleState {
  /** 0 before the rule is created and after it is deleted. */
  readonly id: number;
  readonly rule: StoredRule;
  /** Unix seconds. */
  readonly lastTriggeredAt: number | null;
  readonly triggerCount: number;
}

const NONE: RuleState = { id: 0, rule: NO_RULE, lastTriggeredAt: null, triggerCount: 0 };

export const ruleDecider = defineDecider<RuleState>({
  kind: 'alert rule',
  initial: NONE,
  sizeOf: ({ rule }) => JSON.stringify(rule.action_config).length + 2_000,
  folds: [
    on(alertRuleCreated, (_state, { data: { rule_id: id, ...fields } }) => ({
      ...NONE,
      id,
      rule: ruleAfter(NO_RULE, fields),
    })),
    on(alertRuleUpdated, (state, { data: { rule_id: _, ...changes } }) => ({
      ...state,
      rule: ruleAfter(state.rule, changes),
    })),
    on(alertRuleTriggered, (state, { data, at }) => ({
      ...state,
      lastTriggeredAt: seconds(at),
      triggerCount: data.count,
    })),
    on(alertRuleDeleted, () => NONE),
  ],
});

// --- Action configs --------------------------------------------------------------------------------------------------

/** Why requests to a URL are not allowed; undefined if they are. */
export type UrlFault = (url: string) => string | undefined;

const refused = (field: string, reason: string) => invalid(`${field}: ${reason}`, [`${field}: ${reason}`]);

const MAX_URL = 2_048;
const MAX_RECIPIENT = 200;

/** @throws AppError 400 */
function checkAction({ action_type, action_config: { recipient, url, secret } }: RuleFields, faultOf: UrlFault): void {
  if (action_type === 'notification') {
    if (recipient === undefined || recipient === null) return;
    if (typeof recipient !== 'string' || recipient.trim() === '' || recipient.length > MAX_RECIPIENT)
      throw refused(
        'action_config.recipient',
        `must be the name of an agent or a user, at most ${MAX_RECIPIENT} characters`,
      );
    return;
  }
  if (typeof url !== 'string' || url.length > MAX_URL || !isStorableText(url))
    throw refused('action_config.url', 'is required for the action webhook: the http or https URL to call');
  const fault = faultOf(url);
  if (fault !== undefined) throw refused('action_config.url', fault);
  if (secret !== undefined && secret !== null && (typeof secret !== 'string' || secret === ''))
    throw refused('action_config.secret', 'must be a text with which requests are signed, or be left out');
}

/**
 * The config that a client sends back after it was shown a masked one.
 *
 * @throws AppError 400 for a mask without a stored value
 */
function restoredConfig(next: ActionConfig, stored: ActionConfig): ActionConfig {
  const keepsUrl = typeof stored.url === 'string' && next.url === hiddenUrl(stored.url);
  return restored(keepsUrl ? { ...next, url: stored.url } : next, stored, 'action_config') as ActionConfig;
}

// --- Decisions -------------------------------------------------------------------------------------------------------

/** The agent of a name, as it is now; null: no agent has this name. */
type AgentOf = (name: string) => Promise<number | null>;

const agentOf =
  (commands: Commands, { origin }: CommandContext): AgentOf =>
  async (name) =>
    (await agentInLog(commands, origin.workspace, { name }))?.id ?? null;

/** The agent that a config names as its recipient. */
const recipientAgent = async ({ recipient }: ActionConfig, agent: AgentOf): Promise<number | null> =>
  typeof recipient === 'string' && recipient.trim() !== '' && recipient.length <= MAX_RECIPIENT
    ? agent(recipient.trim())
    : null;

/** @param agent id of the agent that is the recipient @throws AppError 400 */
export function decideCreate(
  id: number,
  rule: RuleFields,
  faultOf: UrlFault,
  agent: number | null = null,
): EventDraft[] {
  const given = { ...rule, action_config: restoredConfig(rule.action_config, {}) };
  checkAction(given, faultOf);
  return [alertRuleCreated.draft({ rule_id: id, ...given, recipient_agent: agent })];
}

export type RuleChanges = Omit<RuleChangesBody, 'id'>;

/**
 * After any change, the whole rule must be consistent.
 *
 * @param agent id of the agent that a changed recipient names
 * @throws AppError 400, 404
 */
export function decideChange(
  state: RuleState,
  changes: RuleChanges,
  faultOf: UrlFault,
  agent: number | null = null,
): EventDraft[] {
  if (state.id === 0) throw notFound('Alert rule');
  const { rule } = state;
  const set = sent(changes);
  const config = changes.action_config;
  const next: StoredRule = {
    ...rule,
    ...set,
    ...(config && { action_config: restoredConfig(config, rule.action_config) }),
    // The recipient that is shown stays the same agent, also while its rename has not reached the rule.
    ...(config && config.recipient !== rule.action_config.recipient && { recipient_agent: agent }),
  };
  const problem = problemOf(next, next.cooldown_per);
  if (problem) throw refused(problem.field, problem.reason);
  if ('action_type' in set || 'action_config' in set) checkAction(next, faultOf);
  const changed = Object.entries(next).filter(
    ([field, value]) => JSON.stringify(value) !== JSON.stringify(rule[field as keyof StoredRule]),
  );
  return [alertRuleUpdated.draft({ rule_id: state.id, ...Object.fromEntries(changed) })];
}

/** No event when the rule is not enabled. */
export const decideDisable = ({ id, rule }: RuleState): EventDraft[] =>
  rule.enabled ? [alertRuleUpdated.draft({ rule_id: id, enabled: false })] : [];

/** @throws AppError 404 */
export function decideDelete({ id, rule }: RuleState): EventDraft[] {
  if (id === 0) throw notFound('Alert rule');
  return [alertRuleDeleted.draft({ rule_id: id, name: rule.name })];
}

const LIMIT: Limit = { kind: 'alert rules', most: MAX_RULES, added: alertRuleCreated };

/** @throws AppError 400, 409 when the workspace has reached its limit */
export async function createRule(
  commands: Commands,
  context: CommandContext,
  limits: LimitParts,
  rule: RuleFields,
  faultOf: UrlFault,
): Promise<{ readonly id: number; readonly executed: Executed }> {
  // An invalid rule is refused before it takes an id.
  decideCreate(0, rule, faultOf);
  const agent = await recipientAgent(rule.action_config, agentOf(commands, context));
  return withinLimit(limits, LIMIT, context, () =>
    createRecord(commands, context, ['alert_rule', ruleDecider, ruleStream], (id) =>
      decideCreate(id, rule, faultOf, agent),
    ),
  );
}

/** @throws AppError 400, 404 */
export async function changeRule(
  commands: Commands,
  context: CommandContext,
  id: number,
  changes: RuleChanges,
  faultOf: UrlFault,
): Promise<Executed> {
  const agent = await recipientAgent(changes.action_config ?? {}, agentOf(commands, context));
  return commands.execute(ruleDecider, ruleStream(context.origin.workspace, id), context, (state) =>
    decideChange(state, changes, faultOf, agent),
  );
}

/** The recipient of a rule after its agent was renamed, or deleted: null. The default recipient replaces a deleted one. */
export function decideRecipient(
  { id, rule }: RuleState,
  agent: { readonly id: number; readonly name: string | null; readonly known: string },
  notify: (what: string) => readonly EventDraft[],
): EventDraft[] {
  const { recipient, ...config } = rule.action_config;
  if (id === 0 || rule.recipient_agent !== agent.id || recipient === agent.name) return [];
  if (agent.name !== null)
    return [alertRuleUpdated.draft({ rule_id: id, action_config: { ...config, recipient: agent.name } })];
  return [
    alertRuleUpdated.draft({ rule_id: id, action_config: config, recipient_agent: null }),
    ...(rule.action_type === 'notification' ? notify(`Alert rule "${rule.name}"`) : []),
  ];
}
