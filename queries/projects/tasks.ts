/** Tasks of one project. */
import { tasksProjection, tasksTable } from '../../projections/tasks/tasks.ts';
import type { ProjectRecord } from '../../shared/contract/projects/projects.ts';
import { type TaskRecord, taskSchema, ticketRef } from '../../shared/contract/tasks/tasks.ts';
import { NO_SOURCE, type TaskSource } from '../../shared/events/tasks/tasks.ts';
import type { TaskView } from '../../shared/identity.ts';
import { type Reads, tables } from '../reads.ts';
import { taskSeen } from '../tasks/visibility.ts';

type Column = keyof (typeof tasksTable)['columns'] & keyof TaskRecord;
const COLUMNS = Object.keys(taskSchema.shape).filter((field): field is Column => field in tasksTable.columns);

/** Those that the caller sees, newest first. */
export async function listProjectTasks(
  reads: Reads,
  view: TaskView,
  project: Pick<ProjectRecord, 'id' | 'name' | 'ticket_prefix'>,
  { limit, offset }: { readonly limit: number; readonly offset: number },
): Promise<TaskRecord[]> {
  const rows = await tables(reads, tasksProjection)
    .selectFrom('tasks')
    .select([...COLUMNS, 'source'])
    .where('workspace_id', '=', view.workspace)
    .where('project_id', '=', project.id)
    .where(taskSeen(view, 'tasks'))
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .offset(offset)
    .execute();
  return rows.map(({ source, ...row }) => ({
    ...NO_SOURCE,
    ...(source as TaskSource | null),
    ...(row as Pick<TaskRecord, Column>),
    project_name: project.name,
    project_prefix: project.ticket_prefix,
    ticket_ref: ticketRef(project.ticket_prefix, row.project_ticket_no),
  }));
}
