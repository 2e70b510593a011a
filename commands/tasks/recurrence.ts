/** Recurring tasks: when a task is created, and its fields. Schedule: `commands/schedules/tasks/recurrence.ts`. */
import { activeCron, recurrenceOf } from '../../shared/contract/tasks/recurrence.ts';
import { isFrequent, readingDue } from '../../shared/cron.ts';
import type { EventDraft } from '../../shared/events/define.ts';
import { taskRecurred } from '../../shared/events/tasks/recurrence.ts';
import { type TaskData, taskCreated } from '../../shared/events/tasks/tasks.ts';
import { frontOf } from '../../shared/storable.ts';
import type { Ticket } from '../projects/tickets.ts';
import { ofTask, type TaskState, taskDecider } from './tasks.ts';

/** Characters of a title. */
const MAX_TITLE = 500;

/**
 * No event when the task now has another schedule, or the minute already has its task.
 *
 * @param now Unix seconds: a later minute that has its task is from before the clock was set back
 */
export function decideRecurrence(
  state: TaskState,
  cron: string,
  dueAt: number,
  childId: number,
  now = Number.POSITIVE_INFINITY,
): EventDraft[] {
  const { id, task, recurred } = state;
  const doneAt = recurred?.due_at ?? 0;
  if (id === 0 || activeCron(task.metadata) !== cron || dueAt === doneAt) return [];
  if (dueAt < doneAt && doneAt <= now) return [];
  const { spawn_count: count } = recurrenceOf(task.metadata);
  const spawnCount = (Number.isSafeInteger(count) && Number(count) >= 0 ? Number(count) : 0) + 1;
  return [taskRecurred.draft({ ...ofTask(state), child_id: childId, due_at: dueAt, spawn_count: spawnCount })];
}

/**
 * The title of the task for a minute: with the day, the time if there may be several on one day, and the offset from UTC
 * if the clock shows that time twice.
 */
export function titleFor(title: string, cron: string, dueAt: number, zone: string): string {
  const { seconds: reading, isTwice } = readingDue(cron, zone, dueAt);
  const part = (options: Intl.DateTimeFormatOptions, timeZone = 'UTC', at = reading) =>
    new Intl.DateTimeFormat('en-US', { timeZone, ...options }).format(at * 1_000);
  // An offset comes only with a date.
  const offset = isTwice ? ` ${part({ timeZoneName: 'shortOffset' }, zone, dueAt).split(' ').at(-1)}` : '';
  const time = isFrequent(cron) ? `, ${part({ hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })}${offset}` : '';
  const suffix = ` - ${part({ month: 'short', day: '2-digit' })}${time}`;
  return frontOf(title, MAX_TITLE - suffix.length) + suffix;
}

/** No event when the task already exists. */
export function decideSpawn(
  child: TaskState,
  template: TaskState,
  spawned: Ticket & { readonly id: number; readonly title: string; readonly cron: string },
): EventDraft[] {
  if (child.id !== 0) return [];
  const { id, cron, ...own } = spawned;
  const { description, priority, assigned_to, assignee_id, tags } = template.task;
  const task: TaskData = {
    ...taskDecider.initial.task,
    description,
    priority,
    assigned_to,
    ...(assignee_id !== undefined && { assignee_id }),
    tags,
    ...own,
    status: assigned_to === null ? 'inbox' : 'assigned',
    created_by: 'scheduler',
    metadata: { recurrence: { parent_task_id: template.id, spawned_from_cron: cron } },
  };
  return [taskCreated.draft({ task_id: id, task, source: 'recurrence', parent_task_id: template.id, cron })];
}
