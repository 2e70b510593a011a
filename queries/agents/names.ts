/**
 * References to agents: a row has the id of the agent, or none for a person or a name that no agent had, and the name as
 * it was. The id decides whose a row is; the name that is shown is the present one.
 */
import { type RawBuilder, sql } from 'kysely';
import { agentsProjection } from '../../projections/agents/agents.ts';
import { inWorkspace, type Reads, tableOf } from '../reads.ts';

type Condition = RawBuilder<boolean>;

/** Columns of a row that refers to an agent. */
export interface Reference {
  readonly id: string;
  readonly name: string;
  /** The id if it refers to none; default: NULL. */
  readonly none?: 0;
}

/** The sender and the recipient of a message. */
export const SENDER: Reference = { id: 'from_agent_id', name: 'from_agent' };
export const RECIPIENT: Reference = { id: 'recipient_id', name: 'to_agent' };
/** The assignee of a task. */
export const ASSIGNEE: Reference = { id: 'assignee_id', name: 'assigned_to' };
/** The same in counts of tasks. */
export const COUNTED_ASSIGNEE: Reference = { ...ASSIGNEE, none: 0 };

const agentsOf = (reads: Reads) => tableOf(reads, agentsProjection, 'agents');
const columnsOf = (row: string, { id, name }: Reference) =>
  [sql.ref(`${row}.${id}`), sql.ref(`${row}.${name}`)] as const;

/**
 * The name to show: that of the agent now, else as it was.
 *
 * @param row alias of a row with a workspace
 * @param apart a deleted agent whose name another one has now gets its id as a suffix
 */
export function nameNow(
  reads: Reads,
  row: string,
  reference: Reference,
  { apart = false }: { readonly apart?: boolean } = {},
): RawBuilder<string> {
  const [id, name] = columnsOf(row, reference);
  const there = sql`FROM ${agentsOf(reads)} g WHERE g.workspace_id = ${sql.ref(`${row}.workspace_id`)}`;
  const other = sql`(SELECT ${name} || ' (#' || ${id} || ')' ${there} AND g.name = ${name}),`;
  return sql`CASE WHEN coalesce(${id}, 0) = 0 THEN ${name} ELSE coalesce(
    (SELECT g.name ${there} AND g.id = ${id}), ${apart ? other : sql``} ${name}) END`;
}

/** The agent that a filter names. */
export interface NamedAgent {
  readonly name: string;
  /** Undefined: no agent has this name now. */
  readonly id: number | undefined;
}

export async function agentNamed(reads: Reads, workspace: number, name: string): Promise<NamedAgent> {
  const found = await inWorkspace(reads, agentsProjection, 'agents', workspace)
    .where('name', '=', name)
    .select('id')
    .executeTakeFirst();
  return { name, id: found?.id };
}

/** Condition: a row is of this agent. By name only if it was written while no agent had the name. */
export const isOf = (row: string, reference: Reference, agent: Agent): Condition =>
  sql<boolean>`(${sql.join(waysToRefer(row, reference, agent), sql` OR `)})`;

interface Agent {
  readonly id: number;
  readonly name: string;
}

/** The same as conditions that each have an index. */
export function waysToRefer(row: string, reference: Reference, agent: Agent): readonly Condition[] {
  const [id, name] = columnsOf(row, reference);
  const refersToNone = reference.none === 0 ? sql`${id} = 0` : sql`${id} IS NULL`;
  return [sql<boolean>`${id} = ${agent.id}`, sql<boolean>`(${name} = ${agent.name} AND ${refersToNone})`];
}

/**
 * Rows that refer to an agent, as conditions that each have an index. A name that no agent has now means agents that had
 * it and were deleted, and persons.
 */
export function refersTo(reads: Reads, row: string, reference: Reference, agent: NamedAgent): readonly Condition[] {
  if (agent.id !== undefined) return waysToRefer(row, reference, { id: agent.id, name: agent.name });
  const [id, name] = columnsOf(row, reference);
  return [
    sql<boolean>`(${name} = ${agent.name} AND NOT EXISTS (SELECT FROM ${agentsOf(reads)} g
      WHERE g.workspace_id = ${sql.ref(`${row}.workspace_id`)} AND g.id = ${id}))`,
  ];
}
