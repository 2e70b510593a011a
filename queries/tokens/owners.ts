/** Owners of tokens: agents, and names that no agent had. */
import { sql } from 'kysely';
import type { Reads } from '../reads.ts';
import { agentsTable, tokensTable } from './usage.ts';

/** An owner of tokens: an agent, or a name that no agent had. */
export interface Whose {
  readonly agent_id: number;
  readonly agent_name: string;
}

export const whoseKey = ({ agent_id, agent_name }: Whose): string => `${agent_id} ${agent_name}`;

/** An agent with its current or last name. */
export interface NamedAgent {
  readonly id: number;
  readonly name: string;
  readonly gone: boolean;
}

/** The name to show for each owner. If two have the same, those that are not (or no longer) agents get a suffix. */
export function labelsOf(agents: readonly NamedAgent[], all: readonly Whose[]): (whose: Whose) => string {
  const labels = new Map<string, string>();
  const taken = new Set<string>();
  const give = (whose: Whose, name: string, suffix: string) => {
    let label = name;
    while (taken.has(label)) label += suffix;
    taken.add(label);
    labels.set(whoseKey(whose), label);
  };
  const existingFirst = [...agents].sort((a, b) => Number(a.gone) - Number(b.gone) || a.id - b.id);
  for (const { id, name } of existingFirst) give({ agent_id: id, agent_name: '' }, name, ` (#${id})`);
  for (const whose of all) {
    if (whose.agent_id === 0 && !labels.has(whoseKey(whose))) give(whose, whose.agent_name, ' (no agent)');
  }
  return (whose) => labels.get(whoseKey(whose)) ?? `#${whose.agent_id}`;
}

/** The name to show for each owner: the agent's current or last name (see `labelsOf`). */
export async function namesOf(
  reads: Reads,
  workspace: number,
  all: readonly Whose[],
): Promise<(whose: Whose) => string> {
  const ids = [...new Set(all.map(({ agent_id }) => agent_id))].filter((id) => id > 0);
  const { rows } = await sql<NamedAgent>`
    SELECT u.agent_id AS id, coalesce(a.name, u.name) AS name, a.id IS NULL AS gone
    FROM ${tokensTable(reads, 'agents')} u
    LEFT JOIN ${agentsTable(reads)} a ON a.workspace_id = u.workspace_id AND a.id = u.agent_id
    WHERE u.workspace_id = ${workspace} AND u.agent_id = ANY(${ids})`.execute(reads.db);
  return labelsOf(rows, all);
}
