/**
 * Users and agents that can be mentioned. A handle belongs to its first owner: the agent of this name, else the user,
 * else an agent whose name has blanks for hyphens, else the only user with this display name.
 */
import { type RawBuilder, sql } from 'kysely';
import { agentsProjection } from '../projections/agents/agents.ts';
import { usersProjection } from '../projections/auth/users.ts';
import type { MentionsQuery } from '../shared/contract/mentions.ts';
import { folded, foldedPattern } from '../shared/folding.ts';
import { displayNameFault, nameKeys } from '../shared/names.ts';
import { createKept } from './kept.ts';
import { type Reads, tableOf } from './reads.ts';

/** A handle and its owner. */
export interface MentionTarget {
  /** The text after the `@`, in lower case. */
  readonly handle: string;
  /** Username, or name of the agent. */
  readonly recipient: string;
  readonly type: 'user' | 'agent';
  /** Display name of a user, or name of the agent. */
  readonly display: string;
  /** Of agents that have one. */
  readonly role?: string;
}

/** Read models of the lookups of mentions. */
export const MENTION_MODELS: readonly string[] = [usersProjection.name, agentsProjection.name];

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

/** Each handle once, with its first owner. */
function firstOwners(targets: readonly MentionTarget[]): MentionTarget[] {
  const first = new Map<string, MentionTarget>();
  for (const target of targets) if (!first.has(target.handle)) first.set(target.handle, target);
  return [...first.values()];
}

const placesOf = (reads: Reads) => ({
  users: tableOf(reads, usersProjection, 'users'),
  agents: tableOf(reads, agentsProjection, 'agents'),
});

/** The owners of these handles, which are in lower case; at most one for each. */
export async function mentionTargets(
  reads: Reads,
  workspace: number,
  handles: readonly string[],
): Promise<readonly MentionTarget[]> {
  const { users, agents } = placesOf(reads);
  const { rows } = await sql<Owner & { readonly rank: number }>`
    SELECT 'user' AS type, username AS name, display_name AS display, NULL AS role, 2 AS rank FROM ${users}
    WHERE workspace_id = ${workspace} AND lower(username) = ANY(${handles})
    UNION
    SELECT 'agent', name, name, role, 3 FROM ${agents}
    WHERE workspace_id = ${workspace} AND ${DASHED} = ANY(${handles})
    UNION
    SELECT 'agent', name, name, role, 1 FROM ${agents}
    WHERE workspace_id = ${workspace} AND ${PLAIN} = ANY(${handles})
    ORDER BY rank, name`.execute(reads.db);
  const wanted = new Set(handles);
  const targets = rows.map(({ rank, ...owner }): MentionTarget => {
    const [target] = targetsOf(owner) as [MentionTarget];
    return rank === 1 ? { ...target, handle: owner.name.toLowerCase() } : target;
  });
  const named = firstOwners(targets).filter(({ handle }) => wanted.has(handle));
  for (const { handle } of named) wanted.delete(handle);
  if (wanted.size === 0) return named;
  const displayed = await displayedAs(reads, workspace, [...wanted]);
  for (const { handle } of displayed) wanted.delete(handle);
  if (wanted.size === 0) return [...named, ...displayed];
  return [...named, ...displayed, ...(await lookAlikes(reads, workspace, [...wanted]))];
}

// Computing keys takes longer than looking them up.
const keptKeys = createKept<readonly string[]>({ values: 20_000 });

function keysOf(workspace: number, name: string): readonly string[] {
  const own = keptKeys.of(workspace);
  const keys = own.get(name) ?? nameKeys(name);
  own.set(name, keys);
  return keys;
}

/** The users and agents whose names look like these handles: names are compared that way, so there is one at most. */
async function lookAlikes(reads: Reads, workspace: number, handles: readonly string[]): Promise<MentionTarget[]> {
  const { users, agents } = placesOf(reads);
  const wanted = new Map<string, string[]>();
  for (const handle of handles)
    for (const key of nameKeys(handle)) wanted.set(key, [...(wanted.get(key) ?? []), handle]);
  const { rows } = await sql<Owner>`
    SELECT 'user' AS type, username AS name, display_name AS display, NULL AS role FROM ${users} WHERE workspace_id = ${workspace}
    UNION ALL SELECT 'agent', name, name, role FROM ${agents} WHERE workspace_id = ${workspace}`.execute(reads.db);
  const found = rows.flatMap((owner) => {
    const asked = keysOf(workspace, owner.name).flatMap((key) => wanted.get(key) ?? []);
    return asked.flatMap((handle) => targetsOf(owner).map((target) => ({ ...target, handle })));
  });
  return firstOwners(found);
}

/** Users by their display names, in lower case: those that only one user has, and that are not reserved. */
async function displayedAs(reads: Reads, workspace: number, handles: readonly string[]): Promise<MentionTarget[]> {
  const { rows } = await sql<{ handle: string; recipient: string; display: string }>`
    SELECT lower(display_name) AS handle, min(username) AS recipient, min(display_name) AS display
    FROM ${placesOf(reads).users} WHERE workspace_id = ${workspace} AND lower(display_name) = ANY(${handles})
    GROUP BY lower(display_name) HAVING count(*) = 1`.execute(reads.db);
  return rows
    .filter(({ display }) => displayNameFault(display) === undefined)
    .map((row) => ({ ...row, type: 'user' as const }));
}

/** Where a page of owners ends. */
interface Cursor {
  readonly type: Owner['type'];
  readonly name: string;
}

/** Users by name, then agents by name: `limit` of those after `after` that match a text. */
async function ownersBehind(
  reads: Reads,
  workspace: number,
  { q, type, limit }: MentionsQuery,
  after: Cursor | undefined,
): Promise<Owner[]> {
  const { users, agents } = placesOf(reads);
  const holds = (term: RawBuilder<unknown>) => sql`normalize(${term} COLLATE "C", NFC) ~ ${foldedPattern(q)}`;
  const behind = (of: Owner['type'], column: RawBuilder<unknown>) =>
    after?.type === of ? sql`AND ${column} > ${after.name}` : sql``;
  const branches = [
    sql`(SELECT 'user' AS type, username AS name, display_name AS display, NULL AS role, 1 AS rank FROM ${users}
      WHERE workspace_id = ${workspace} AND (${holds(sql`username`)} OR ${holds(sql`display_name`)})
        ${behind('user', sql`username`)}
      ORDER BY username LIMIT ${limit})`,
    sql`(SELECT 'agent' AS type, name, name AS display, role, 2 AS rank FROM ${agents}
      WHERE workspace_id = ${workspace} AND (${holds(sql`name`)} OR ${holds(sql`regexp_replace(name, '\\s+', '-', 'g')`)})
        ${behind('agent', sql`name`)}
      ORDER BY name LIMIT ${limit})`,
  ];
  const wanted = branches.filter(
    (_, at) => !(at === 0 ? type === 'agent' || after?.type === 'agent' : type === 'user'),
  );
  if (wanted.length === 0) return [];
  const { rows } = await sql<Owner>`
    SELECT type, name, display, role FROM (${sql.join(wanted, sql` UNION ALL `)}) owners
    ORDER BY rank, name LIMIT ${limit}`.execute(reads.db);
  return rows;
}

/** An editor's suggestions for the beginning of a mention. */
export async function listMentions(
  reads: Reads,
  workspace: number,
  query: MentionsQuery,
): Promise<readonly MentionTarget[]> {
  const { q, limit } = query;
  const matches = ({ handle, recipient, display }: MentionTarget) =>
    [handle, recipient, display].some((text) => folded(text).includes(q));
  const found: MentionTarget[] = [];
  let after: Cursor | undefined;
  for (;;) {
    const owners = await ownersBehind(reads, workspace, query, after);
    const candidates = owners.flatMap(targetsOf).filter(matches);
    const handles = [...new Set(candidates.map(({ handle }) => handle))];
    // A handle belongs to the owner that comes first.
    const first = new Map((await mentionTargets(reads, workspace, handles)).map((one) => [one.handle, one]));
    for (const candidate of candidates) {
      const owner = first.get(candidate.handle);
      if (owner?.type === candidate.type && owner.recipient === candidate.recipient) found.push(candidate);
      if (found.length === limit) return found;
    }
    const last = owners.at(-1);
    if (owners.length < limit || !last) return found;
    after = { type: last.type, name: last.name };
  }
}
