/** Reports of used tokens, one by one and in batches. */
import { agentOfSession, type NewTokenReport, namesOfSession, reportTokens } from '../../../commands/tokens/reports.ts';
import { agentsOfSessions, recordOf } from '../../../queries/tokens/reports.ts';
import * as contract from '../../../shared/contract/tokens/reports.ts';
import { type Call, defineRoute, type Route } from '../../http/route.ts';

/** In the order of the reports. */
const recorded = (
  {
    services,
    command,
    identity,
  }: Pick<Call<unknown, unknown, unknown, 'operator'>, 'services' | 'command' | 'identity'>,
  reports: readonly NewTokenReport[],
  pathOf?: (index: number) => string,
) =>
  reportTokens(
    services.commands,
    command,
    { directory: services.tokens, subscribedProviders: services.settings.subscribedProviders, now: services.now },
    reports,
    identity.agentName,
    pathOf,
  );

/** The agents whose tokens these are; names without an agent are only texts. */
const agentsOf = async (
  { services, identity }: Pick<Call<unknown, unknown, unknown, 'operator'>, 'services' | 'identity'>,
  reports: readonly Pick<NewTokenReport, 'session_id'>[],
) => {
  const names = reports.flatMap(({ session_id }) => namesOfSession(session_id));
  const found = await agentsOfSessions(services.reads, identity.workspace, names);
  const owners = new Set(reports.map(({ session_id }) => agentOfSession(session_id, (name) => found.has(name))));
  return [...owners].flatMap((name) => found.get(name) ?? []);
};

const report = defineRoute({
  method: 'post',
  path: '/api/tokens',
  summary: 'Report used tokens',
  mcp: { tool: 'report_tokens' },
  description:
    'The report belongs to the agent whose name `sessionId` begins with, up to a colon or its end, the longest such name; a name that no agent has now stands for the agent that had it last. Where there is none, to the agent that the caller speaks for. With `timestamp` it counts at that moment in every sum. Its cost follows from the prices at the time of the call and never changes. With an `id`, or with the same `Idempotency-Key`, a repeated report is recorded only once.',
  access: 'operator',
  rules: { agentKeys: 'own', strict: 'allowed', past: 'none', prompts: 'none' },
  limit: 'none',
  body: contract.tokenReportBody,
  agents: (call) => agentsOf(call, [call.body]),
  responses: { 200: { description: 'Recorded', schema: contract.tokenReportResponse } },
  async respond(call) {
    const [one] = await recorded(call, [call.body]);
    if (!one) throw new Error('a report was recorded without a record');
    return { success: true, record: recordOf(call.identity.workspace, one.report) };
  },
});

const batch = defineRoute({
  method: 'post',
  path: '/api/tokens/batch',
  summary: 'Report used tokens, many at once',
  description: `Up to ${contract.MAX_REPORTS} reports. Give each an \`id\`: a batch that is repeated, as a whole or in other parts, then adds only missing reports.`,
  access: 'operator',
  rules: { agentKeys: 'own', strict: 'allowed', past: 'none', prompts: 'none' },
  limit: 'none',
  body: contract.tokenBatchBody,
  agents: (call) => agentsOf(call, call.body.reports),
  responses: { 200: { description: 'Recorded', schema: contract.tokenBatchResponse } },
  async respond(call) {
    const all = await recorded(call, call.body.reports, (n) => `reports.${n}.`);
    const ids = all.map((one) => one.report.id);
    const recordedNow = new Set(all.filter(({ isNew }) => isNew).map((one) => one.report.id)).size;
    return { success: true, recorded: recordedNow, repeated: all.length - recordedNow, ids };
  },
});

export const tokenReportRoutes: readonly Route[] = [report, batch];
