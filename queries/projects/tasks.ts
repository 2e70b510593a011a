/** Tasks of one project. */
import { sql } from 'kysely';
import { tasksProjection, type tasksTable } from '../../projections/tasks/tasks.ts';
import type { ProjectRecord } from '../../shared/contract/projects/projects.ts';
import type { TaskRecord } from '../../shared/contract/tasks/tasks.ts';
import { NO_SOURCE, type TaskSource, ticketRef } from '../../shared/events/tasks/tasks.ts';
import type { TaskView } from '../../shared/identity.ts';
import { inWorkspace, type Reads, type Row, upToSize } from '../reads.ts';
import { assigneeNow, TASK_COLUMNS } from '../tasks/tasks.ts';
import { taskSeen } from '../tasks/visibility.ts';

/** Tasks that the caller may see, newest first. */
export async function listProjectTasks(
  reads: Reads,
  view: TaskView,
  project: Pick<ProjectRecord, 'id' | 'name' | 'ticket_prefix'>,
  { limit, offset }: { readonly limit: number; readonly offset: number },
): Promise<TaskRecord[]> {
  const page = inWorkspace(reads, tasksProjection, 'tasks', view.workspace)
    .selectAll()
    .where('project_id', '=', project.id)
    .where(taskSeen(view, 'tasks'))
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .offset(offset);
  const newest = sql`created_at DESC, id DESC`;
  const columns = [...TASK_COLUMNS, 'source'].filter((column) => column !== 'assigned_to');
  const { rows } = await sql<Pick<Row<typeof tasksTable>, (typeof TASK_COLUMNS)[number] | 'source'>>`
    SELECT ${sql.join(columns.map((column) => sql.ref(column)))}, ${assigneeNow(reads, 'tasks')} AS assigned_to
    FROM (${upToSize(page, newest)}) tasks ORDER BY ${newest}`.execute(reads.db);
  return rows.map(({ source, ...row }) => ({
    ...NO_SOURCE,
    ...(source as TaskSource | null),
    ...(row as Pick<TaskRecord, keyof typeof row>),
    project_name: project.name,
    project_prefix: project.ticket_prefix,
    ticket_ref: ticketRef(project.ticket_prefix, row.project_ticket_no),
  }));
}
