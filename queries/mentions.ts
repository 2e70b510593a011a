/** Who can be mentioned: users by their names, agents by theirs. A handle belongs to its first owner, users first. */
import { sql } from 'kysely';
import { agentsProjection } from '../projections/agents/agents.ts';
import { usersProjection } from '../projections/auth/users.ts';
import type { MentionTarget, MentionTargets } from '../shared/ports/mentions.ts';
import type { Reads } from './reads.ts';

/** The handles of an agent, in SQL: the name with hyphens for blanks, and the name. Indexes are over the same terms. */
const DASHED = sql.raw(String.raw`lower(regexp_replace(name, '\s+', '-', 'g'))`);
const PLAIN = sql.raw('lower(name)');

interface Owner {
  readonly type: 'user' | 'agent';
  readonly name: string;
  readonly display: string | null;
  readonly role: string | null;
}

const dashed = (name: string): string => name.replace(/\s+/g, '-').toLowerCase();

/** The targets of one user or agent. */
function targetsOf({ type, name, display, role }: Owner): MentionTarget[] {
  if (type === 'user') return [{ handle: name.toLowerCase(), recipient: name, type, display: display ?? name }];
  return [...new Set([dashed(name), name.toLowerCase()])].map((handle) => ({
    handle,
    recipient: name,
    type,
    display: name,
    ...(role && { role }),
  }));
}

/** Each handle once: that of its first owner. */
function firstOwners(targets: readonly MentionTarget[]): MentionTarget[] {
  const first = new Map<string, MentionTarget>();
  for (const target of targets) if (!first.has(target.handle)) first.set(target.handle, target);
  return [...first.values()];
}

/** What commands need to look up about mentions. */
export const mentionTargets = (reads: Reads): MentionTargets => ({
  async find(workspace, handles) {
    const users = sql.table(`${reads.schema(usersProjection)}.users`);
    const agents = sql.table(`${reads.schema(agentsProjection)}.agents`);
    const { rows } = await sql<Owner>`
      SELECT 'user' AS type, username AS name, display_name AS display, NULL AS role, 1 AS rank FROM ${users}
      WHERE workspace_id = ${workspace} AND lower(username) = ANY(${handles})
      UNION
      SELECT 'agent', name, name, role, 2 FROM ${agents}
      WHERE workspace_id = ${workspace} AND ${DASHED} = ANY(${handles})
      UNION
      SELECT 'agent', name, name, role, 2 FROM ${agents}
      WHERE workspace_id = ${workspace} AND ${PLAIN} = ANY(${handles})
      ORDER BY rank, name`.execute(reads.db);
    const wanted = new Set(handles);
    return firstOwners(rows.flatMap(targetsOf)).filter(({ handle }) => wanted.has(handle));
  },
});
