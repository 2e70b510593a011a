/**
 * Sums of reported tokens by hour, day and month (UTC), so that a window of any length is a few thousand rows. Each
 * report counts in three facets: of its agent, of its session, and of its task.
 */
import { hash } from 'node:crypto';
import type { TokenReport } from '../../shared/events/tokens/reports.ts';
import { startOf, UNITS, type Unit } from '../../shared/time-buckets.ts';
import { NANO } from '../../shared/token-prices.ts';
import { type Change, change, defineTable } from '../projection.ts';

export type Facet = 'agent' | 'session' | 'task';

/** Sessions and tasks have no hours: there would be nearly as many as reports. */
export const FACET_UNITS: Readonly<Record<Facet, readonly Unit[]>> = {
  agent: UNITS,
  session: ['day', 'month'],
  task: ['day', 'month'],
};

export const tokenUsageTable = defineTable(
  'usage',
  {
    workspace_id: 'int',
    facet: 'text',
    unit: 'text',
    /** Unix ms. */
    start: 'bigint',
    /** Digest of the four columns after it, whose texts may be too long for an index. */
    series: 'text',
    /** Empty, the session, or the id of the task, by facet. */
    subject: 'text',
    /** 0: no agent of the workspace. */
    agent_id: 'bigint',
    /** Of reports without an agent's id; empty where there is one, because agents can be renamed. */
    agent_name: 'text',
    model: 'text',
    requests: 'bigint',
    // Sums of whole numbers. Unlike bigint, the type has no largest value that an update could exceed.
    input_tokens: 'double',
    output_tokens: 'double',
    /** Billionths of a US dollar. */
    cost: 'double',
    /** Time of the newest report, Unix ms. */
    last_at: 'bigint',
  },
  {
    key: ['workspace_id', 'facet', 'unit', 'start', 'series'],
    indexes: ['workspace_id, agent_id, facet, unit, start'],
  },
);

interface Sums {
  requests: number;
  input_tokens: number;
  output_tokens: number;
  cost: number;
}

interface Series extends Sums {
  readonly facet: Facet;
  readonly series: string;
  readonly subject: string;
  readonly agent_id: number;
  readonly agent_name: string;
  readonly model: string;
}

/** One series for each combination that occurs, with its sums. */
function seriesOf(reports: readonly TokenReport[]): Series[] {
  const found = new Map<string, Series>();
  for (const { agentId, agentName, model, sessionId, taskId, inputTokens, outputTokens, cost } of reports) {
    const subjects: [Facet, string][] = [
      ['agent', ''],
      ['session', sessionId],
    ];
    if (taskId !== null) subjects.push(['task', String(taskId)]);
    for (const [facet, subject] of subjects) {
      const whose = { subject, agent_id: agentId ?? 0, agent_name: agentId === null ? agentName : '', model };
      const text = JSON.stringify(whose);
      const key = facet + text;
      const sums = found.get(key);
      if (sums) {
        sums.requests += 1;
        sums.input_tokens += inputTokens;
        sums.output_tokens += outputTokens;
        sums.cost += Math.round(cost * NANO);
        continue;
      }
      const series = hash('sha256', text, 'base64url').slice(0, 22);
      found.set(key, {
        facet,
        series,
        ...whose,
        requests: 1,
        input_tokens: inputTokens,
        output_tokens: outputTokens,
        cost: Math.round(cost * NANO),
      });
    }
  }
  return [...found.values()];
}

/** The reports of one event in all of their buckets. @param at Unix ms */
export function usageChanges(workspace: number, at: number, reports: readonly TokenReport[]): Change[] {
  return seriesOf(reports).flatMap(({ facet, series, subject, agent_id, agent_name, model, ...sums }) =>
    FACET_UNITS[facet].map((unit) => {
      const key = { workspace_id: workspace, facet, unit, start: startOf(unit, at), series };
      return change(tokenUsageTable, key, (row) => ({
        ...key,
        subject,
        agent_id,
        agent_name,
        model,
        requests: (row?.requests ?? 0) + sums.requests,
        input_tokens: (row?.input_tokens ?? 0) + sums.input_tokens,
        output_tokens: (row?.output_tokens ?? 0) + sums.output_tokens,
        cost: (row?.cost ?? 0) + sums.cost,
        last_at: Math.max(row?.last_at ?? 0, at),
      }));
    }),
  );
}
