/** What an agent did, and what it cost, with the events behind each number. */
import { agentRecord } from '../../../queries/agents/agents.ts';
import { ATTRIBUTION_MODELS, type AttributedAgent, attributionOf } from '../../../queries/agents/attribution.ts';
import { badCursor, type EvidenceCursor, evidenceOf, readCursor } from '../../../queries/agents/evidence.ts';
import { agentParams } from '../../../shared/contract/agents/agents.ts';
import * as contract from '../../../shared/contract/agents/attribution.ts';
import { sectionsOf, type Timeframe, windowOf } from '../../../shared/contract/agents/scope.ts';
import { orNotFound } from '../../../shared/errors.ts';
import { taskViewOf } from '../../../shared/identity.ts';
import { defineCachedRoute } from '../../http/route.ts';
import type { Services } from '../../services.ts';
import { READER, requireReport } from './scope.ts';

interface Asked {
  readonly timeframe: Timeframe;
  readonly sections: ReadonlySet<contract.AttributionSection>;
  readonly limit: number;
  readonly evidence: boolean;
  /** Requests only the next page of one number. */
  readonly after: EvidenceCursor | undefined;
}

/** @throws AppError 400 */
function askedFor({ hours, section, evidence, cursor, limit }: contract.AttributionQuery, now: number): Asked {
  const timeframe = windowOf(hours?.trim() || undefined, now);
  const sections = sectionsOf(section, contract.ATTRIBUTION_SECTIONS);
  if (cursor === undefined) return { timeframe, sections, limit, evidence: evidence === '1', after: undefined };
  const after = readCursor(cursor, now);
  const own = contract.ATTRIBUTION_SECTIONS.find((one) => after.number.startsWith(`${one}.`));
  if (!own) throw badCursor();
  return { timeframe: after.timeframe, sections: new Set([own]), limit, evidence: true, after };
}

async function responseOf(
  services: Services,
  about: AttributedAgent,
  { timeframe, sections, limit, evidence, after }: Asked,
): Promise<Omit<contract.AttributionResponse, 'agent_name' | 'timeframe' | 'access_scope'>> {
  const { reads } = services;
  const { report, sources } = await attributionOf(reads, about, timeframe, sections);
  if (!evidence) return report;
  if (!after) return { ...report, evidence: await evidenceOf(reads, about, sources, { timeframe, limit }) };
  const source = sources.get(after.number);
  if (!source) throw badCursor();
  return { evidence: await evidenceOf(reads, about, new Map([[after.number, source]]), { timeframe, limit, after }) };
}

export const attributionRoute = defineCachedRoute({
  method: 'get',
  path: '/api/agents/{id}/attribution',
  summary: 'Get what an agent did, and what it cost',
  mcp: { tool: 'get_attribution' },
  description:
    'For the agent itself (its key, its name in `x-agent-name`, or a user of its name), and with `privileged=1` for admins. Everything is attributed by ids in the events, never by names in texts. `identity` covers all time, the other sections the last `hours`; numbers are exact, lists show the newest.\n\n`evidence=1` adds, for each number, what it was derived from, and a page of the events behind it, by their positions in the log. The `next` of a page, as `cursor`, gets the page after it. The window and the total stay those of the first page, so over all pages `count` adds up to the number.',
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'all', prompts: 'none' },
  params: agentParams,
  query: contract.attributionQuery,
  refuses: [403, 404],
  responses: { 200: { description: 'The sections that were asked for', schema: contract.attributionResponse } },
  cache: { models: ATTRIBUTION_MODELS, caller: READER, clock: 'second' },
  async respond({ params, query, identity, services }) {
    const { agent: found, scope } = await requireReport(services, identity, params.id, query, 'name or username');
    const asked = askedFor(query, services.now());
    // It may have been deleted in the meantime.
    const agent = orNotFound(await agentRecord(services.reads, identity.workspace, { id: found.id }), 'Agent');
    const { timeframe } = asked;
    const response = await responseOf(
      services,
      { workspace: identity.workspace, agent, view: taskViewOf(identity) },
      asked,
    );
    return { agent_name: agent.name, timeframe, access_scope: scope, ...response };
  },
});
