/** Alert rules: list, create, change, delete, evaluate, try on the past. */
import { z } from 'zod';
import { evaluateWorkspace } from '../../../commands/alerts/evaluations.ts';
import {
  createRule,
  decideChange,
  decideDelete,
  maskedConfig,
  type RuleState,
  ruleDecider,
  ruleStream,
  type UrlFault,
} from '../../../commands/alerts/rules.ts';
import type { CommandContext, Executed } from '../../../commands/handler.ts';
import { alertReads, countRules, findRule, listRules, ruleAfter } from '../../../queries/alerts/rules.ts';
import { createAddressRule } from '../../../shared/addresses.ts';
import {
  type AlertRuleRecord,
  alertRuleAnswer,
  alertRulesAnswer,
  alertsBody,
  type BacktestBody,
  backtestAnswer,
  deleteRuleBody,
  deleteRuleQuery,
  evaluationAnswer,
  type NewRuleBody,
  ruleChangesBody,
  ruleDeletedAnswer,
} from '../../../shared/contract/alerts/rules.ts';
import { invalid, notFound } from '../../../shared/errors.ts';
import type { EventDraft } from '../../../shared/events/define.ts';
import type { Identity } from '../../../shared/identity.ts';
import { defineCachedRoute, defineRoute, type Route } from '../../http/route.ts';
import { limitsOf, type Services } from '../../services.ts';

/** Operators set secrets, and only admins see them again. */
const shownTo =
  ({ role }: Pick<Identity, 'role'>) =>
  (rule: AlertRuleRecord): AlertRuleRecord =>
    role === 'admin' ? rule : { ...rule, action_config: maskedConfig(rule.action_config) as Record<string, unknown> };

const faultOf = ({ settings }: Services): UrlFault => createAddressRule(settings.webhookAllowedNetworks).fault;

const ruleAnswer = async ({ records }: Services, identity: Identity, id: number, executed: Executed) => ({
  rule: shownTo(identity)(await ruleAfter(records, identity.workspace, id, executed)),
});

const list = defineCachedRoute({
  method: 'get',
  path: '/api/alerts',
  tag: 'Alerts',
  summary: 'Alert rules, newest first',
  access: 'viewer',
  responses: { 200: { description: 'All rules of the workspace', schema: alertRulesAnswer } },
  cache: {
    models: ['alert_rules'],
    scope: 'workspace',
    caller: ['workspace', 'role'],
  },
  async respond({ identity, services: { reads } }) {
    return { body: { rules: (await listRules(reads, identity.workspace)).map(shownTo(identity)) } };
  },
});

async function create(services: Services, context: CommandContext, body: NewRuleBody, identity: Identity) {
  const { action: _create, description, enabled = true, ...fields } = body;
  const rule = { ...fields, enabled, description: description || null };
  const limits = limitsOf(services, countRules);
  const { id, executed } = await createRule(services.commands, context, limits, rule, faultOf(services));
  return ruleAnswer(services, identity, id, executed);
}

async function tryOut(services: Services, { id, rule: given, hours }: BacktestBody, { workspace }: Identity) {
  const rule = given ?? (id === undefined ? undefined : await findRule(services.reads, workspace, id));
  if (!rule) throw notFound('Alert rule');
  return { rule_id: id ?? null, ...(await services.backtests.run(workspace, rule, hours)) };
}

const act = defineRoute({
  method: 'post',
  path: '/api/alerts',
  tag: 'Alerts',
  summary: 'Create an alert rule, evaluate the rules, or try one on the past',
  description:
    'Without `action` the body is a rule, and it is created. `evaluate` evaluates the enabled rules of the workspace now, as the service also does by the clock; a rule whose condition is met triggers, unless it is in its cooldown. `backtest` answers how often a rule would have triggered, and triggers nothing.',
  access: 'operator',
  limit: 'mutation',
  body: alertsBody,
  refuses: [404],
  responses: {
    200: { description: 'What came of it', schema: z.union([evaluationAnswer, backtestAnswer]) },
    201: { description: 'The rule', schema: alertRuleAnswer },
  },
  async handle({ body, identity, services, command, exchange }) {
    if (body.action === 'evaluate') {
      const { commands, now, log } = services;
      // As of the arrival: no rule waits for what an earlier one has triggered.
      const reads = services.reads.at({ since: exchange.startedAt });
      const failed = (error: unknown, { id }: { readonly id: number }) =>
        log.error({ err: error, rule: id, workspace: identity.workspace }, 'an alert rule could not be evaluated');
      const evaluated = await evaluateWorkspace({ commands, reads: alertReads(reads), now, failed }, command);
      return { status: 200, body: evaluated };
    }
    if (body.action === 'backtest') return { status: 200, body: await tryOut(services, body, identity) };
    return { status: 201, body: await create(services, command, body, identity) };
  },
});

const execute = (
  { commands }: Services,
  context: CommandContext,
  id: number,
  decide: (state: RuleState) => EventDraft[],
) => commands.execute(ruleDecider, ruleStream(context.origin.workspace, id), context, decide);

const change = defineRoute({
  method: 'put',
  path: '/api/alerts',
  tag: 'Alerts',
  summary: 'Change an alert rule',
  description:
    'Fields that are sent are set, `action_config` as a whole; 8 dashes in it stand for what was there. When the rule triggered, and how often, stays.',
  access: 'operator',
  limit: 'mutation',
  body: ruleChangesBody,
  refuses: [404],
  responses: { 200: { description: 'The rule', schema: alertRuleAnswer } },
  async handle({ body: { id, ...sent }, identity, services, command }) {
    const changes = { ...sent, ...(sent.description === '' && { description: null }) };
    const executed = await execute(services, command, id, (state) => decideChange(state, changes, faultOf(services)));
    return { body: await ruleAnswer(services, identity, id, executed) };
  },
});

const remove = defineRoute({
  method: 'delete',
  path: '/api/alerts',
  tag: 'Alerts',
  summary: 'Delete an alert rule',
  description: 'The id is in the body, or in the query.',
  access: 'admin',
  limit: 'mutation',
  query: deleteRuleQuery,
  body: deleteRuleBody,
  bodyOptional: true,
  refuses: [404],
  responses: { 200: { description: 'Deleted', schema: ruleDeletedAnswer } },
  async handle({ body, query, services, command }) {
    const id = body.id ?? query.id;
    if (id === undefined) throw invalid('id: is required, in the body or in the query', ['id: is required']);
    await execute(services, command, id, decideDelete);
    return { body: { deleted: true as const } };
  },
});

export const alertRoutes: readonly Route[] = [list, act, change, remove];
