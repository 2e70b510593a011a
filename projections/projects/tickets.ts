/**
 * The last ticket number of each project, in a separate projection: every task changes it, and a lookup of a project
 * would otherwise wait for all earlier tasks.
 */
import type { DomainEvent } from '../../shared/events/define.ts';
import { taskUpdated } from '../../shared/events/tasks/changes.ts';
import { taskCreated, taskMoved } from '../../shared/events/tasks/tasks.ts';
import { seconds } from '../../shared/time.ts';
import { type Change, change, defineProjection, defineTable, on } from '../projection.ts';

export const ticketsTable = defineTable(
  'tickets',
  {
    workspace_id: 'int',
    project_id: 'bigint',
    /** The last number that was given to a task. */
    last: 'bigint',
    updated_at: 'bigint',
  },
  { key: ['workspace_id', 'project_id'] },
);

/** A task got a ticket of the project. Numbers may arrive out of order, because they are reserved before the append. */
function ticket({ meta }: DomainEvent, projectId: number, number: number): Change {
  const key = { workspace_id: meta.workspace, project_id: projectId };
  return change(ticketsTable, key, (row) => ({
    ...key,
    last: Math.max(row?.last ?? 0, number),
    updated_at: seconds(meta.at),
  }));
}

export const ticketsProjection = defineProjection({
  name: 'tickets',
  version: 1,
  tables: [ticketsTable],
  handlers: [
    on(taskCreated, (event) => [ticket(event, event.data.task.project_id, event.data.task.project_ticket_no)]),
    on(taskUpdated, (event) => {
      const { task, before } = event.data;
      return task.project_id === (before.project_id ?? task.project_id)
        ? []
        : [ticket(event, task.project_id, task.project_ticket_no)];
    }),
    on(taskMoved, (event) => [ticket(event, event.data.after.project_id, event.data.project_ticket_no)]),
  ],
});
