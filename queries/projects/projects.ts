/** Projects: the list, one record, and lookups for commands. */
import { sql } from 'kysely';
import { agentsProjection } from '../../projections/agents/agents.ts';
import { projectAgentsTable } from '../../projections/projects/assignments.ts';
import { projectsProjection, projectsTable } from '../../projections/projects/projects.ts';
import { ticketsProjection } from '../../projections/projects/tickets.ts';
import { tasksProjection } from '../../projections/tasks/tasks.ts';
import {
  type ListedProject,
  type ProjectRecord,
  type ProjectsQuery,
  projectSchema,
} from '../../shared/contract/projects/projects.ts';
import type { TaskProject } from '../../shared/events/tasks/tasks.ts';
import { fieldNames } from '../../shared/fields.ts';
import type { Freshness, ReadAt, RecordPlace } from '../../shared/ports/read-models.ts';
import { agentNamesOf } from '../agents/agents.ts';
import { createLookUps } from '../kept.ts';
import { inWorkspace, type Reads, tableOf, tables } from '../reads.ts';
import { columnsOf, type Executed, type Records, rowAfter } from '../records.ts';
import { membersOf } from './assignments.ts';

export const projectTables = (reads: Reads) => tables(reads, projectsProjection);

/** Statuses of projects that callers can see; others are being deleted, or have been. */
const SEEN = ['active', 'archived'] as const;
const GENERAL_SLUG = 'general';

/** Read models from which a project with its tasks and agents is shown. */
export const PROJECT_MODELS: readonly string[] = [
  projectsProjection.name,
  ticketsProjection.name,
  tasksProjection.name,
  agentsProjection.name,
];

const COLUMNS = fieldNames(projectSchema.omit({ ticket_counter: true, updated_at: true }));

const seen = (reads: Reads, workspace: number, statuses: readonly string[] = SEEN) =>
  inWorkspace(reads, projectsProjection, 'projects', workspace).where('status', 'in', statuses);

/** Columns of lists besides a project's own, for row `projects`. */
const assignedAgents = (reads: Reads) =>
  sql<string[]>`(
  SELECT coalesce(json_agg(a.agent_name ORDER BY a.assigned_at, a.id), '[]')
  FROM ${membersOf(reads, { workspace: sql.ref('projects.workspace_id'), id: sql.ref('projects.id') })} a)`.as(
    'assigned_agents',
  );
/** The last ticket number, for row `projects`. A new ticket counts as a change of the project. */
const ticketed = (reads: Reads) => {
  const of = (column: 'last' | 'updated_at') => sql<number>`(
    SELECT ${sql.ref(column)} FROM ${tableOf(reads, ticketsProjection, 'tickets')} k
    WHERE k.workspace_id = projects.workspace_id AND k.project_id = projects.id)`;
  return [
    sql<number>`coalesce(${of('last')}, 0)`.as('ticket_counter'),
    sql<number>`greatest(projects.updated_at, ${of('updated_at')})`.as('updated_at'),
  ] as const;
};
const taskCount = (reads: Reads) =>
  sql<number>`(
  SELECT coalesce(sum(c.count), 0)::bigint FROM ${tableOf(reads, tasksProjection, 'task_counts')} c
  WHERE c.workspace_id = projects.workspace_id AND c.project_id = projects.id)`.as('task_count');

/** By name. */
export async function listProjects(reads: Reads, workspace: number, query: ProjectsQuery): Promise<ListedProject[]> {
  const page = seen(reads, workspace, query.includeArchived === '1' ? SEEN : ['active'])
    .select([...COLUMNS, 'updated_at'])
    .orderBy(sql`lower(name)`)
    .orderBy('id')
    .limit(query.limit)
    .offset(query.offset);
  // Agents and tasks are read only for the projects on the page, not for skipped ones.
  return reads.db
    .selectFrom(page.as('projects'))
    .select(COLUMNS)
    .select([...ticketed(reads), assignedAgents(reads), taskCount(reads)])
    .orderBy(sql`lower(name)`)
    .orderBy('id')
    .$castTo<ListedProject>()
    .execute();
}

/** One project; undefined when the workspace has none such. */
export const listedProject = (reads: Reads, workspace: number, id: number): Promise<ListedProject | undefined> =>
  seen(reads, workspace)
    .select(COLUMNS)
    .select([...ticketed(reads), assignedAgents(reads), taskCount(reads)])
    .where('id', '=', id)
    .executeTakeFirst();

/**
 * A project with its agents after a command.
 *
 * @param parts.reads must not wait for the command
 * @param before the project before the command; its tickets are shown
 */
export async function projectAfter(
  { reads, records }: { readonly reads: Reads; readonly records: Records },
  workspace: number,
  { id, ticket_counter, updated_at }: ProjectRecord,
  executed: Executed,
) {
  const [row, agents] = await Promise.all([
    rowAfter(records, 'Project', [projectsProjection, projectsTable], { workspace_id: workspace, id }, executed),
    records.all(projectsProjection, projectAgentsTable, { workspace_id: workspace, project_id: id }, executed),
  ]);
  const names = await agentNamesOf(
    reads,
    workspace,
    agents.flatMap(({ agent_id: agent }) => agent ?? []),
  );
  const shown = agents
    .toSorted((a, b) => a.assigned_at - b.assigned_at || a.id - b.id)
    .flatMap(({ agent_id: agent, agent_name }) => (agent === null ? agent_name : (names.get(agent) ?? [])));
  return {
    ...columnsOf(row, COLUMNS),
    ticket_counter,
    updated_at: Math.max(row.updated_at, updated_at),
    assigned_agents: [...new Set(shown)],
  };
}

/** A project without its tasks and agents. */
export const projectRecord = (reads: Reads, workspace: number, id: number): Promise<ProjectRecord | undefined> =>
  seen(reads, workspace).select(COLUMNS).select(ticketed(reads)).where('id', '=', id).executeTakeFirst();

/** The tenant of a workspace, found by its general project; undefined while it has none. */
export async function tenantOf(reads: Reads, workspace: number): Promise<number | undefined> {
  const row = await seen(reads, workspace).select('tenant_id').where('slug', '=', GENERAL_SLUG).executeTakeFirst();
  return row?.tenant_id;
}

/** Maximum number of cached places for tasks per process, for all workspaces together. */
const KEPT_PLACES = 10_000;

/** A project that is neither deleted nor being deleted. */
export interface FoundProject extends TaskProject {
  readonly id: number;
  readonly slug: string;
  readonly status: 'active' | 'archived';
}

export type ProjectDirectory = ReturnType<typeof projectDirectory>;
/**
 * The lookups of commands about projects.
 *
 * @param freshness undefined: every place for a task is looked up again
 */
export function projectDirectory(reads: Reads, freshness?: Pick<Freshness, 'stamp'>) {
  const found = (from: Reads, workspace: number, statuses: readonly string[] = SEEN) =>
    seen(from, workspace, statuses).select(['id', 'name', 'ticket_prefix as prefix', 'slug', 'status']);
  const one = (row: { status: string } | undefined) => row as FoundProject | undefined;
  const find = async (from: Reads, workspace: number, id: number, statuses?: readonly string[]) =>
    one(await found(from, workspace, statuses).where('id', '=', id).executeTakeFirst());
  const general = async (from: Reads, workspace: number) =>
    one(await found(from, workspace).where('slug', '=', GENERAL_SLUG).executeTakeFirst());
  const models = [projectsProjection.name];
  const lookUps = createLookUps<FoundProject | undefined>({
    reads,
    freshness,
    models,
    values: KEPT_PLACES,
    scope: 'workspace',
  });
  return {
    find: (workspace: number, id: number) => find(reads, workspace, id),
    /** The project of records without another project. Undefined in a workspace that has none yet. */
    general: (workspace: number) => general(reads, workspace),
    /**
     * The project for a task that requests `id`: that project if it is active, otherwise the general one, otherwise the
     * active one with the lowest id. Undefined in a workspace without an active project.
     *
     * @param at default: the head of the log at the time of the call
     */
    async placeFor(workspace: number, id: number | undefined, at?: ReadAt): Promise<FoundProject | undefined> {
      const lookUp = await lookUps(workspace, at);
      return lookUp(`place ${id}`, async (then) => {
        const asked = id === undefined ? undefined : await find(then, workspace, id, ['active']);
        return (
          asked ??
          (await general(then, workspace)) ??
          one(await found(then, workspace, ['active']).orderBy('id').executeTakeFirst())
        );
      });
    },
  };
}

/** Maximum number of projects that a schedule reads in one turn. */
const IN_ONE_TURN = 100;

/** Tasks by project, for moving them out of a deleted one. */
export type ProjectTasks = ReturnType<typeof projectTasks>;
export const projectTasks = (reads: Reads) => ({
  /** Ids of tasks of a project, at most `limit`, the oldest first. */
  async idsIn(workspace: number, project: number, limit: number): Promise<readonly number[]> {
    const rows = await inWorkspace(reads, tasksProjection, 'tasks', workspace)
      .select('id')
      .where('project_id', '=', project)
      .orderBy('created_at')
      .orderBy('id')
      .limit(limit)
      .execute();
    return rows.map(({ id }) => id);
  },
  /** Projects that are being deleted, and deleted ones in which a task was placed at the last moment; some of them. */
  async inDeletion(): Promise<readonly RecordPlace[]> {
    const counts = tableOf(reads, tasksProjection, 'task_counts');
    return projectTables(reads)
      .selectFrom('projects')
      .select(['tenant_id as tenant', 'workspace_id as workspace', 'id'])
      .where('status', 'in', ['deleting', 'deleted'])
      .where(
        sql<boolean>`(status = 'deleting' OR EXISTS (
          SELECT 1 FROM ${counts} c
          WHERE c.workspace_id = projects.workspace_id AND c.project_id = projects.id AND c.count > 0))`,
      )
      .orderBy('workspace_id')
      .orderBy('id')
      .limit(IN_ONE_TURN)
      .execute();
  },
});
