/** Alert rules: list, create, change, delete, evaluate, backtest. */
import { z } from 'zod';
import { evaluateWorkspace } from '../../../commands/alerts/evaluations.ts';
import {
  changeRule,
  createRule,
  decideDelete,
  ruleDecider,
  ruleStream,
  type UrlFault,
} from '../../../commands/alerts/rules.ts';
import type { CommandContext, Executed } from '../../../commands/handler.ts';
import { evaluationDerivations, triggerDerivations } from '../../../queries/alerts/evidence.ts';
import { alertReads, countRules, findRule, listRules, ruleAfter } from '../../../queries/alerts/rules.ts';
import { createAddressRule } from '../../../shared/addresses.ts';
import * as contract from '../../../shared/contract/alerts/rules.ts';
import { listedOf } from '../../../shared/contract/evidence.ts';
import { invalid, orNotFound } from '../../../shared/errors.ts';
import type { Identity } from '../../../shared/identity.ts';
import { maskedConfig } from '../../../shared/secrets.ts';
import { inPieces } from '../../../shared/waiting.ts';
import { showPosition } from '../../http/consistency.ts';
import type { RequestContext } from '../../http/context.ts';
import { defineCachedRoute, defineRoute, type Route } from '../../http/route.ts';
import { limitsOf, type Services } from '../../services.ts';

/** Operators set secrets, but only admins may read them. */
const shownTo =
  ({ seesSecrets }: Pick<Identity, 'seesSecrets'>) =>
  (rule: contract.AlertRuleRecord): contract.AlertRuleRecord =>
    seesSecrets ? rule : { ...rule, action_config: maskedConfig(rule.action_config) };

const faultOf = ({ settings }: Services): UrlFault => createAddressRule(settings.webhookAllowedNetworks).fault;

/** The rule after a command, with up to `most` events behind its number. */
async function ruleResponse(
  { records, logIndex }: Services,
  identity: Identity,
  id: number,
  executed: Executed,
  most: number | undefined,
) {
  const { workspace } = identity;
  const rule = await ruleAfter(records, workspace, id, executed);
  const response = { rule: shownTo(identity)(rule) };
  if (most === undefined) return response;
  const { trigger_count } = rule;
  const counted = { id, trigger_count, to: executed.position, number: 'rule.trigger_count' };
  return { ...response, evidence: await triggerDerivations(logIndex, workspace, [counted], most) };
}

const list = defineCachedRoute({
  method: 'get',
  path: '/api/alerts',
  summary: 'Alert rules, newest first',
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'all', prompts: 'none' },
  query: contract.alertsQuery,
  responses: { 200: { description: 'All rules of the workspace', schema: contract.alertRulesResponse } },
  cache: { models: ['alert_rules'], caller: ['workspace', 'seesSecrets'] },
  async respond({ query, identity, services: { reads, logIndex } }) {
    const { workspace } = identity;
    const found = await listRules(reads, workspace);
    const rules = await inPieces(found, ({ rule }) => shownTo(identity)(rule));
    const most = listedOf(query);
    if (most === undefined) return { rules };
    const counted = found.map(({ rule: { id, trigger_count }, position }) => ({
      id,
      trigger_count,
      to: position,
      number: `rules.${id}.trigger_count`,
    }));
    return { rules, evidence: await triggerDerivations(logIndex, workspace, counted, most) };
  },
});

async function create(
  services: Services,
  command: CommandContext,
  body: contract.NewRuleBody,
  identity: Identity,
  most: number | undefined,
) {
  const { action: _create, description, enabled = true, ...fields } = body;
  const rule = { ...fields, enabled, description: description || null };
  const limits = limitsOf(services, countRules);
  const { id, executed } = await createRule(services.commands, command, limits, rule, faultOf(services));
  return ruleResponse(services, identity, id, executed, most);
}

async function tryOut(
  services: Services,
  { id, rule: given, hours }: contract.BacktestBody,
  { workspace }: Identity,
  evident: boolean,
  context: RequestContext,
) {
  const stored = given ?? (id === undefined ? undefined : await findRule(services.reads, workspace, id));
  const rule = orNotFound(stored, 'Alert rule');
  const { backtest, position } = await services.backtests.run(workspace, rule, hours, evident);
  showPosition(context, position);
  return { rule_id: id ?? null, ...backtest };
}

const act = defineRoute({
  method: 'post',
  path: '/api/alerts',
  summary: 'Create an alert rule, evaluate the rules, or try one on the past',
  description:
    'A body without `action`, or with another than these, is a rule, and it is created. `evaluate` evaluates the enabled rules of the workspace now, as the service also does on a schedule; a rule whose condition is met triggers, unless it is in its cooldown. `backtest` returns how often a rule would have triggered, and triggers nothing. `evidence=1` adds the events of the log that each number was derived from.',
  access: 'operator',
  rules: { agentKeys: 'admin', strict: 'allowed', past: 'none', prompts: 'screened' },
  query: contract.alertsQuery,
  body: contract.alertsBody,
  refuses: [404],
  responses: {
    200: { description: 'What came of it', schema: z.union([contract.evaluationResponse, contract.backtestResponse]) },
    201: { description: 'The rule', schema: contract.alertRuleResponse },
  },
  async handle({ query, body, identity, services, command, context }) {
    const most = listedOf(query);
    if (body.action === 'evaluate') {
      const { commands, now, log } = services;
      // Reads as of the arrival of the request: no rule waits for what an earlier rule has triggered.
      const reads = services.reads.at({ since: context.startedAt });
      const failed = (error: unknown, { id }: { readonly id: number }) =>
        log.error({ err: error, rule: id, workspace: identity.workspace }, 'an alert rule could not be evaluated');
      const evaluating = { commands, reads: alertReads(reads), now, failed };
      const { evaluation, rules, triggers } = await evaluateWorkspace(evaluating, command);
      const evidence = most !== undefined && { evidence: evaluationDerivations(rules, triggers) };
      return { status: 200, body: { ...evaluation, ...evidence } };
    }
    if (body.action === 'backtest')
      return { status: 200, body: await tryOut(services, body, identity, most !== undefined, context) };
    return { status: 201, body: await create(services, command, body, identity, most) };
  },
});

const change = defineRoute({
  method: 'put',
  path: '/api/alerts',
  summary: 'Change an alert rule',
  description:
    'Omitted fields stay unchanged; `action_config` is replaced as a whole, but 8 dashes in it keep the stored value. The trigger count and time stay.',
  access: 'operator',
  rules: { agentKeys: 'admin', strict: 'allowed', past: 'none', prompts: 'screened' },
  query: contract.alertsQuery,
  body: contract.ruleChangesBody,
  refuses: [404],
  responses: { 200: { description: 'The rule', schema: contract.alertRuleResponse } },
  async respond({ query, body: { id, ...sent }, identity, services, command }) {
    const changes = { ...sent, ...(sent.description === '' && { description: null }) };
    const executed = await changeRule(services.commands, command, id, changes, faultOf(services));
    return ruleResponse(services, identity, id, executed, listedOf(query));
  },
});

const remove = defineRoute({
  method: 'delete',
  path: '/api/alerts',
  summary: 'Delete an alert rule',
  description: 'The id is in the body, or in the query.',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'allowed', past: 'none', prompts: 'none' },
  query: contract.deleteRuleQuery,
  body: contract.deleteRuleBody,
  bodyOptional: true,
  refuses: [404],
  responses: { 200: { description: 'Deleted', schema: contract.ruleDeletedResponse } },
  async respond({ body, query, services, command }) {
    const id = body.id ?? query.id;
    if (id === undefined) throw invalid('id: is required, in the body or in the query', ['id: is required']);
    await services.commands.execute(ruleDecider, ruleStream(command.origin.workspace, id), command, decideDelete);
    return { deleted: true as const };
  },
});

export const alertRoutes: readonly Route[] = [list, act, change, remove];
