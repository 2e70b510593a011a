/** What an agent did, and what it cost, with the events behind each number. */
import { agentRecord } from '../../../queries/agents/agents.ts';
import { ATTRIBUTION_MODELS, attributionOf } from '../../../queries/agents/attribution.ts';
import { evidenceOf, readCursor } from '../../../queries/agents/evidence.ts';
import { agentParams } from '../../../shared/contract/agents/agents.ts';
import {
  ATTRIBUTION_SECTIONS,
  type AttributionAnswer,
  type AttributionQuery,
  type AttributionSection,
  attributionAnswer,
  attributionQuery,
} from '../../../shared/contract/agents/attribution.ts';
import { sectionsOf, type Timeframe, windowOf } from '../../../shared/contract/agents/scope.ts';
import { isStorable } from '../../../shared/contract/storable.ts';
import { invalid, notFound } from '../../../shared/errors.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import type { Services } from '../../services.ts';
import { readerOf, requireReport } from './scope.ts';

interface Asked {
  readonly timeframe: Timeframe;
  readonly sections: ReadonlySet<AttributionSection>;
  readonly limit: number;
  /** Undefined: without evidence. */
  readonly evidence:
    | { readonly number: string | undefined; readonly after: ReturnType<typeof readCursor> | undefined }
    | undefined;
}

/** @throws AppError 400 */
function askedFor(query: AttributionQuery, now: number): Asked {
  const { number, cursor, limit } = query;
  const timeframe = windowOf(query.hours?.trim() || undefined, now);
  const sections = sectionsOf(query.section, ATTRIBUTION_SECTIONS);
  if (query.evidence !== '1') return { timeframe, sections, limit, evidence: undefined };
  if (number === undefined) {
    if (cursor !== undefined) throw invalid('cursor: goes with number, which says what the next page is of');
    return { timeframe, sections, limit, evidence: { number, after: undefined } };
  }
  const section = ATTRIBUTION_SECTIONS.find((one) => number.startsWith(`${one}.`));
  if (!section || !isStorable(number)) throw unknownNumber(number);
  const after = cursor === undefined ? undefined : readCursor(cursor, now);
  return {
    timeframe: after?.timeframe ?? timeframe,
    sections: new Set([section]),
    limit,
    evidence: { number, after },
  };
}

const MAX_SHOWN = 100;
const unknownNumber = (number: string) =>
  invalid(
    `number: this report has no ${JSON.stringify(number.slice(0, MAX_SHOWN))}; ask without \`number\` for the names of its numbers`,
  );

async function answerOf(
  services: Services,
  about: Parameters<typeof attributionOf>[1],
  { timeframe, sections, limit, evidence }: Asked,
): Promise<Omit<AttributionAnswer, 'agent_name' | 'timeframe' | 'access_scope'>> {
  const { reads } = services;
  const { report, sources } = await attributionOf(reads, about, timeframe, sections);
  if (!evidence) return report;
  const { number, after } = evidence;
  if (number === undefined)
    return { ...report, evidence: await evidenceOf(reads, about, sources, { timeframe, limit }) };
  const source = sources.get(number);
  if (!source) throw unknownNumber(number);
  const page = { timeframe, limit, ...(after && { after }) };
  return { evidence: await evidenceOf(reads, about, new Map([[number, source]]), page) };
}

const attribution = defineRoute({
  method: 'get',
  path: '/api/agents/{id}/attribution',
  tag: 'Agents',
  summary: 'Get what an agent did, and what it cost',
  description:
    'For the agent itself (its key, its name in `x-agent-name`, or a user of its name), and with `privileged=1` for admins. Everything is attributed by ids in the events, never by names in texts. `identity` is of all time, the other sections are of the last `hours`; numbers are exact, lists show the newest.\n\n`evidence=1` adds, for each number, a page of the events behind it, by their positions in the log. `number` with the `next` of a page as `cursor` gets the following pages. The window and the total stay those of the first page, so `count` of all events adds up to the number.',
  access: 'viewer',
  params: agentParams,
  query: attributionQuery,
  refuses: [403, 404],
  responses: { 200: { description: 'The sections that were asked for', schema: attributionAnswer } },
  cache: { models: ATTRIBUTION_MODELS, scope: 'workspace', per: readerOf, clock: 'second' },
  async handle({ params, query, identity, services }) {
    const { agent: found, scope } = await requireReport(services, identity, params.id, query, 'name or username');
    const asked = askedFor(query, services.now());
    const agent = await agentRecord(services.reads, identity.workspace, { id: found.id });
    // Deleted in the meantime.
    if (!agent) throw notFound('Agent');
    const { timeframe } = asked;
    const answer = await answerOf(services, { workspace: identity.workspace, agent }, asked);
    return { body: { agent_name: agent.name, timeframe, access_scope: scope, ...answer } };
  },
});

export const attributionRoutes: readonly Route[] = [attribution];
