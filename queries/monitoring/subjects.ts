/**
 * Subjects of activities. Each kind of subject is one line here: the `entity_type` of its activities, the read model in
 * which it is looked up, and the columns in the response.
 */
import { type RawBuilder, sql } from 'kysely';
import { agentsProjection, agentsTable } from '../../projections/agents/agents.ts';
import { chatProjection, messagesTable } from '../../projections/chat.ts';
import { notificationsProjection, notificationsTable } from '../../projections/monitoring/notifications.ts';
import { pipelinesProjection } from '../../projections/pipelines/pipelines.ts';
import { pipelinesTable } from '../../projections/pipelines/runs.ts';
import type { ColumnOf, Columns, Projection, Table } from '../../projections/projection.ts';
import { projectsProjection, projectsTable } from '../../projections/projects/projects.ts';
import { taskCommentsProjection, taskCommentsTable } from '../../projections/tasks/comments.ts';
import { tasksProjection, tasksTable } from '../../projections/tasks/tasks.ts';
import { workflowsProjection, workflowsTable } from '../../projections/workflows.ts';
import type { TaskView } from '../../shared/identity.ts';
import { nameNow, RECIPIENT, SENDER } from '../agents/names.ts';
import { type Reads, tableOf } from '../reads.ts';
import { notificationSeen, taskIdSeen, taskSeen } from '../tasks/visibility.ts';

interface Subject {
  readonly projection: Projection;
  readonly table: string;
  readonly shows: readonly string[];
  readonly also: Also;
  readonly seen: Seen;
}

/** Further fields by name, as expressions on the row `s`. */
type Also = (reads: Reads, workspace: number) => Readonly<Record<string, RawBuilder<unknown>>>;

/** Whether the caller may see it, as a condition on the row `s`. */
type Seen = (reads: Reads, view: TaskView) => RawBuilder<boolean>;

/**
 * The table must have the columns `workspace_id` and `id`. `shows` are the further columns in the response, under their
 * own names, so a column `type` is not possible.
 */
const subject = <C extends Columns & { readonly workspace_id: 'int'; readonly id: 'bigint' | ColumnOf<number> }>(
  projection: Subject['projection'],
  table: Table<C>,
  shows: readonly Exclude<keyof C & string, 'type' | 'id'>[],
  { also = () => ({}), seen = () => sql<boolean>`true` }: Partial<Pick<Subject, 'also' | 'seen'>> = {},
): Subject => ({ projection, table: table.name, shows, also, seen });

/** Maximum number of characters in a comment's preview. */
const PREVIEW = 100;

const ofComment: Also = (reads, workspace) => ({
  task_title: sql`(SELECT t.title FROM ${tableOf(reads, tasksProjection, tasksTable.name)} t
    WHERE t.workspace_id = ${workspace} AND t.id = s.task_id)`,
  content_preview: sql`left(s.content, ${sql.lit(PREVIEW)})`,
});

export const SUBJECTS: Readonly<Record<string, Subject>> = {
  agent: subject(agentsProjection, agentsTable, ['name', 'role', 'status']),
  pipeline: subject(pipelinesProjection, pipelinesTable, ['name']),
  workflow: subject(workflowsProjection, workflowsTable, ['name', 'agent_role']),
  project: subject(projectsProjection, projectsTable, ['name', 'status']),
  task: subject(tasksProjection, tasksTable, ['title', 'status'], { seen: (_reads, view) => taskSeen(view, 's') }),
  message: subject(chatProjection, messagesTable, ['message_type'], {
    also: (reads) => ({ from_agent: nameNow(reads, 's', SENDER), to_agent: nameNow(reads, 's', RECIPIENT) }),
  }),
  notification: subject(notificationsProjection, notificationsTable, ['recipient', 'title'], {
    also: () => ({ notification_type: sql`s.type` }),
    seen: (_reads, view) => notificationSeen(view, 's'),
  }),
  comment: subject(taskCommentsProjection, taskCommentsTable, ['task_id', 'content'], {
    also: ofComment,
    seen: (reads, view) => taskIdSeen(reads, view, sql.ref('s.task_id')),
  }),
};

/** Read models in which subjects are looked up. */
export const SUBJECT_MODELS: readonly string[] = [
  ...new Set(Object.values(SUBJECTS).map(({ projection }) => projection.name)),
];

/**
 * The current subject of an activity, as a JSON expression on columns of its row; null when the subject no longer
 * exists, the caller may not see it, or its kind has no lookup. One lookup by primary key per row: PostgreSQL plans
 * that quickly, whereas planning joins with all of these tables took longer than the rest of a page.
 */
export function subjectOf(reads: Reads, view: TaskView, type: RawBuilder<string>, id: RawBuilder<number>) {
  const { workspace } = view;
  const cases = Object.entries(SUBJECTS).map(([name, { projection, table, shows, also, seen }]) => {
    const fields = [
      ...shows.map((column) => sql`, ${sql.lit(column)}, s.${sql.ref(column)}`),
      ...Object.entries(also(reads, workspace)).map(([field, value]) => sql`, ${sql.lit(field)}, ${value}`),
    ];
    return sql`WHEN ${sql.lit(name)} THEN (
      SELECT json_build_object('type', ${sql.lit(name)}, 'id', s.id${sql.join(fields, sql``)})
      FROM ${tableOf(reads, projection, table)} s
      WHERE s.workspace_id = ${workspace} AND s.id = ${id} AND ${seen(reads, view)})`;
  });
  return sql`CASE ${type} ${sql.join(cases, sql` `)} END`;
}
