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
 * The current subject of an activity, as a JSON expression over columns of its row; null when the subject no longer exists,
 * or its kind cannot be looked up. One look-up by primary key per row: PostgreSQL plans that in a moment, whereas planning
 * joins with all of these tables took longer than anything else about a page.
 */
export function subjectOf(reads: Reads, workspace: number, type: RawBuilder<string>, id: RawBuilder<number>) {
  const cases = Object.entries(SUBJECTS).map(([name, { projection, table, shows }]) => {
    const fields = shows.map((column) => sql`, ${sql.lit(column)}, s.${sql.ref(column)}`);
    return sql`WHEN ${sql.lit(name)} THEN (
      SELECT json_build_object('type', ${sql.lit(name)}, 'id', s.id${sql.join(fields, sql``)})
      FROM ${sql.table(`${reads.schema(projection)}.${table}`)} s WHERE s.workspace_id = ${workspace} AND s.id = ${id})`;
  });
  return sql`CASE ${type} ${sql.join(cases, sql` `)} END`;
}
