/** The contents of a workspace, for moving them out of a deleted one. */
import { type RawBuilder, sql } from 'kysely';
import { agentsProjection } from '../../projections/agents/agents.ts';
import { alertRulesProjection } from '../../projections/alerts/rules.ts';
import { usersProjection } from '../../projections/auth/users.ts';
import type { Projection } from '../../projections/projection.ts';
import { projectsProjection } from '../../projections/projects/projects.ts';
import { tasksProjection } from '../../projections/tasks/tasks.ts';
import { webhooksProjection } from '../../projections/webhooks/webhooks.ts';
import { workspacesProjection } from '../../projections/workspaces/workspaces.ts';
import type { EventOf } from '../../shared/events/define.ts';
import type { projectCreated } from '../../shared/events/projects/projects.ts';
import { inWorkspace, type Reads, tableOf, tables } from '../reads.ts';

/** Users and projects per page. */
const PAGE = 100;
/** Few agents per page, because their texts may be large. */
const PAGE_OF_AGENTS = 10;
/** Maximum number of workspaces that a schedule reads in one turn. */
const IN_ONE_TURN = 100;

export interface MovingAgent {
  readonly id: number;
  readonly name: string;
  readonly role: string;
  readonly session_key: string | null;
  readonly hidden: boolean;
  readonly runtime_type: string | null;
  readonly source: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly soul: string | null;
  readonly memory: string;
  readonly memoryFields: Readonly<Record<string, unknown>>;
}

export interface MovingProject extends Omit<EventOf<typeof projectCreated>['data'], 'project_id'> {
  readonly id: number;
  readonly archived: boolean;
}

interface RemovedWorkspace {
  readonly tenant: number;
  readonly workspace: number;
  readonly moves_to: number;
}

/** Automatic activities of a workspace: webhooks, alert rules, recurring tasks, syncs of projects. */
export type ActiveKind = 'webhooks' | 'rules' | 'recurring tasks' | 'synced projects';

/** By kind: its table, and the condition for rows of a workspace that are switched on. */
const ACTIVE: Readonly<
  Record<ActiveKind, { readonly projection: Projection; readonly table: string; readonly on: RawBuilder<boolean> }>
> = {
  webhooks: { projection: webhooksProjection, table: 'webhooks', on: sql`enabled` },
  rules: { projection: alertRulesProjection, table: 'alert_rules', on: sql`enabled` },
  'recurring tasks': { projection: tasksProjection, table: 'tasks', on: sql`cron IS NOT NULL` },
  'synced projects': {
    projection: projectsProjection,
    table: 'projects',
    on: sql`github_sync_enabled = 1 AND status IN ('active', 'archived')`,
  },
};

const KINDS = Object.keys(ACTIVE) as ActiveKind[];

const activeRows = (reads: Reads, kind: ActiveKind, workspace: RawBuilder<unknown>): RawBuilder<unknown> => {
  const { projection, table, on } = ACTIVE[kind];
  return sql`FROM ${tableOf(reads, projection, table)} WHERE workspace_id = ${workspace} AND ${on}`;
};

/** Ids of users of a workspace, some of them. */
export async function usersToMove(reads: Reads, workspace: number): Promise<readonly number[]> {
  const rows = await inWorkspace(reads, usersProjection, 'users', workspace)
    .select('id')
    .orderBy('created_at')
    .orderBy('id')
    .limit(PAGE)
    .execute();
  return rows.map(({ id }) => id);
}

/** Agents of a workspace, some of them. */
export async function agentsToMove(reads: Reads, workspace: number): Promise<readonly MovingAgent[]> {
  const rows = await tables(reads, agentsProjection)
    .selectFrom('agents as a')
    .innerJoin('agent_texts as t', (join) =>
      join.onRef('t.workspace_id', '=', 'a.workspace_id').onRef('t.id', '=', 'a.id'),
    )
    .select(['a.id', 'a.name', 'a.role', 'a.session_key', 'a.hidden', 'a.runtime_type'])
    .select(['a.source', 't.config', 't.soul_content as soul', 't.working_memory as memory'])
    .select('t.memory_fields as memoryFields')
    .where('a.workspace_id', '=', workspace)
    .orderBy('a.id')
    .limit(PAGE_OF_AGENTS)
    .execute();
  return rows.map(({ hidden, config, memoryFields, ...row }) => ({
    ...row,
    hidden: hidden === 1,
    config: config as Readonly<Record<string, unknown>>,
    memoryFields: memoryFields as Readonly<Record<string, unknown>>,
  }));
}

/** Projects that the other workspace does not have yet, some of them; without the general one. */
export async function projectsToMove(
  reads: Reads,
  workspace: number,
  movesTo: number,
): Promise<readonly MovingProject[]> {
  const projects = tableOf(reads, projectsProjection, 'projects');
  const rows = await inWorkspace(reads, projectsProjection, 'projects', workspace)
    .select(['id', 'name', 'slug', 'description', 'ticket_prefix', 'github_repo'])
    .select(['deadline', 'color', 'status'])
    .where('slug', '<>', 'general')
    .where('status', 'in', ['active', 'archived'])
    .where(
      sql<boolean>`NOT EXISTS (SELECT 1 FROM ${projects} p WHERE p.workspace_id = ${movesTo} AND p.id = projects.id)`,
    )
    .orderBy('id')
    .limit(PAGE)
    .execute();
  return rows.map(({ status, ...row }) => ({ ...row, archived: status === 'archived' }));
}

/** Ids of records that are switched on, some of them. */
export async function activeIn(reads: Reads, workspace: number, kind: ActiveKind): Promise<readonly number[]> {
  const { rows } = await sql<{ id: number }>`
    SELECT id ${activeRows(reads, kind, sql`${workspace}`)} ORDER BY id LIMIT ${sql.lit(PAGE)}`.execute(reads.db);
  return rows.map(({ id }) => id);
}

/** Workspaces whose deletion has begun, and deleted ones into which a record came at the last moment; some of them. */
export async function workspacesInRemoval(reads: Reads): Promise<readonly RemovedWorkspace[]> {
  const users = tableOf(reads, usersProjection, 'users');
  const agents = tableOf(reads, agentsProjection, 'agents');
  const anyActive = sql.join(
    KINDS.map((kind) => sql`EXISTS (SELECT 1 ${activeRows(reads, kind, sql.ref('workspaces.id'))})`),
    sql` OR `,
  );
  const rows = await tables(reads, workspacesProjection)
    .selectFrom('workspaces')
    .select(['tenant_id as tenant', 'id as workspace', 'moves_to'])
    .where('life', '<>', 'active')
    .where(
      sql<boolean>`(life = 'removing'
        OR EXISTS (SELECT 1 FROM ${users} u WHERE u.workspace_id = workspaces.id)
        OR EXISTS (SELECT 1 FROM ${agents} a WHERE a.workspace_id = workspaces.id)
        OR ${anyActive})`,
    )
    .orderBy('id')
    .limit(IN_ONE_TURN)
    .execute();
  return rows as RemovedWorkspace[];
}
