/**
 * What an activity can be about. Each kind of subject is one line here: the `entity_type` of its activities, the read
 * model in which it is looked up, and the columns that the answer shows.
 */
import { type RawBuilder, sql } from 'kysely';
import { agentsProjection, agentsTable } from '../../projections/agents/agents.ts';
import { chatProjection, messagesTable } from '../../projections/chat.ts';
import { notificationsProjection, notificationsTable } from '../../projections/monitoring/notifications.ts';
import { pipelinesProjection } from '../../projections/pipelines/pipelines.ts';
import { pipelinesTable } from '../../projections/pipelines/runs.ts';
import type { Columns, Projection, Table } from '../../projections/projection.ts';
import { projectsProjection, projectsTable } from '../../projections/projects/projects.ts';
import { taskCommentsProjection, taskCommentsTable } from '../../projections/tasks/comments.ts';
import { tasksProjection, tasksTable } from '../../projections/tasks/tasks.ts';
import { workflowsProjection, workflowsTable } from '../../projections/workflows.ts';
import type { Reads } from '../reads.ts';

interface Subject {
  readonly projection: Pick<Projection, 'name' | 'version'>;
  readonly table: string;
  readonly shows: readonly string[];
}

/** The table has the columns `workspace_id` and `id`; `shows` are those that the answer has besides `type` and `id`. */
const subject = <C extends Columns & { readonly workspace_id: 'int'; readonly id: 'bigint' }>(
  projection: Subject['projection'],
  table: Table<C>,
  shows: readonly (keyof C & string)[],
): Subject => ({ projection, table: table.name, shows });

export const SUBJECTS: Readonly<Record<string, Subject>> = {
  agent: subject(agentsProjection, agentsTable, ['name', 'role', 'status']),
  pipeline: subject(pipelinesProjection, pipelinesTable, ['name']),
  workflow: subject(workflowsProjection, workflowsTable, ['name', 'agent_role']),
  project: subject(projectsProjection, projectsTable, ['name', 'status']),
  task: subject(tasksProjection, tasksTable, ['title', 'status']),
  message: subject(chatProjection, messagesTable, ['from_agent', 'to_agent', 'message_type']),
  notification: subject(notificationsProjection, notificationsTable, ['recipient', 'type', 'title']),
  comment: subject(taskCommentsProjection, taskCommentsTable, ['task_id', 'author']),
};

/** Read models in which subjects are looked up. */
export const SUBJECT_MODELS: readonly string[] = [
  ...new Set(Object.values(SUBJECTS).map(({ projection }) => projection.name)),
];

/**
 * The current subjects of a page of activities, as a query with the columns `entity_type`, `entity_id` and `entity`.
 * Subjects that no longer exist, or whose kind cannot be looked up, have no row.
 *
 * @param page name of a table or common table expression with the columns `entity_type` and `entity_id`
 */
export function subjectsOf(reads: Reads, workspace: number, page: string): RawBuilder<unknown> {
  const lookups = Object.entries(SUBJECTS).map(([type, { projection, table, shows }]) => {
    const fields = shows.map((column) => sql`, ${sql.lit(column)}, s.${sql.ref(column)}`);
    return sql`
      SELECT ${sql.lit(type)} AS entity_type, s.id AS entity_id,
        json_build_object('type', ${sql.lit(type)}, 'id', s.id${sql.join(fields, sql``)}) AS entity
      FROM ${sql.table(`${reads.schema(projection)}.${table}`)} s
      WHERE s.workspace_id = ${workspace}
        AND s.id IN (SELECT entity_id FROM ${sql.table(page)} WHERE entity_type = ${sql.lit(type)})`;
  });
  return sql`${sql.join(lookups, sql` UNION ALL `)}`;
}
