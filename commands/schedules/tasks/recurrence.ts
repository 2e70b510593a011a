/**
 * Creates a task whenever the schedule of a recurring task is due.
 *
 * The read model names the candidates. The decision is made on the recurring task's own stream: the event there
 * reserves the id of the new task, and only one process can append it. The stream of the new task must not exist yet.
 * If a process is killed between the two, the next run finds an id without a task, and creates that task.
 */
import type { ProjectDirectory } from '../../../queries/projects/projects.ts';
import type { RecurrenceReads, RecurringTask } from '../../../queries/tasks/recurrence.ts';
import { cronProblem, dueAfter, latestDue, minuteOf } from '../../../shared/cron.ts';
import { newId } from '../../../shared/ids.ts';
import { DAY, MINUTE, seconds } from '../../../shared/time.ts';
import type { CommandContext, Commands } from '../../handler.ts';
import { scheduledContext } from '../../policies/policy.ts';
import { takeTicket } from '../../projects/tickets.ts';
import { decideRecurrence, decideSpawn, titleFor } from '../../tasks/recurrence.ts';
import { taskDecider, taskStream } from '../../tasks/tasks.ts';
import { counted, EVERY_MINUTE_MS, forAll, isOn, paged, type Schedule, type Setting } from '../schedule.ts';

export interface Recurrence {
  readonly commands: Commands;
  readonly reads: RecurrenceReads;
  readonly projects: ProjectDirectory;
  /** IANA name of the time zone of schedules and titles. */
  readonly zone: string;
  /** Unix ms. */
  readonly now: () => number;
}

/** Titles name no year, so an older task with the same title is of another year. Seconds. */
const HALF_A_YEAR = 183 * DAY;
/** Candidates per page. */
const PAGE = 200;

/**
 * Checks all recurring tasks once. A failed one does not stop the others.
 *
 * @returns the ids of the created tasks
 * @throws the first failure, at the end
 */
export async function spawnRecurring(parts: Recurrence): Promise<readonly number[]> {
  const made: number[] = [];
  const run = newId();
  const until = minuteOf(seconds(parts.now()));
  await forAll(
    paged((after, limit) => parts.reads.recurring(after, limit), PAGE),
    async (template) => {
      for await (const id of spawnDue(parts, run, template, until)) made.push(id);
    },
  );
  return made;
}

/** Creates the missing and the due tasks of one recurring task. `until`: Unix seconds. */
async function* spawnDue(parts: Recurrence, run: string, template: RecurringTask, until: number) {
  const { tenant, workspace, cron, cronSince, recurredAt, missingChild } = template;
  const context = scheduledContext(run, tenant, workspace);
  if (missingChild !== null) yield* await makeChild(parts, context, template, missingChild);
  if (cronProblem(cron) !== undefined) return;
  // However many times were missed while no process was running, the latest one is made up for.
  const dueAt = latestDue(cron, parts.zone, until);
  if (dueAt > dueAfter(Math.max(recurredAt ?? 0, cronSince), until + MINUTE))
    yield* await recur(parts, context, template, dueAt);
}

/** Creates the task for a minute, unless another process does. */
async function recur(parts: Recurrence, context: CommandContext, template: RecurringTask, dueAt: number) {
  const { commands, reads, zone } = parts;
  const { workspace, id, cron } = template;
  const { state } = await commands.load(taskDecider, taskStream(workspace, id));
  const { title, project_id: projectId } = state.task;
  const made = titleFor(title, cron, dueAt, zone);
  if (await reads.titleTaken(workspace, projectId, made, dueAt - HALF_A_YEAR)) return [];
  const childId = await commands.counters.take('task');
  const { events } = await commands.execute(taskDecider, taskStream(workspace, id), context, (now) =>
    decideRecurrence(now, cron, dueAt, childId, seconds(parts.now())),
  );
  return events.length === 0 ? [] : makeChild(parts, context, template, childId);
}

/** Creates the task with the reserved id, unless it was already created; it may even have been deleted since. */
async function makeChild(parts: Recurrence, context: CommandContext, template: RecurringTask, childId: number) {
  const { commands, projects, zone } = parts;
  const { workspace, id } = template;
  const stream = taskStream(workspace, childId);
  const [{ state }, child] = await Promise.all([
    commands.load(taskDecider, taskStream(workspace, id)),
    commands.load(taskDecider, stream),
  ]);
  if (state.id === 0 || state.recurred?.child_id !== childId || child.lastAt > 0) return [];
  const { cron } = template;
  const spawned = {
    id: childId,
    cron,
    title: titleFor(state.task.title, cron, state.recurred.due_at, zone),
    ...(await takeTicket(commands, context, projects, state.task.project_id)).ticket,
  };
  const { events } = await commands.execute(taskDecider, stream, context, (now) => decideSpawn(now, state, spawned));
  return events.length === 0 ? [] : [childId];
}

export const recurringTasksSchedule = (parts: Recurrence & { readonly setting: Setting }): Schedule => ({
  id: 'recurring_task_spawn',
  kind: 'recurring-tasks',
  name: 'Create tasks from recurring ones',
  everyMs: EVERY_MINUTE_MS,
  enabled: isOn(parts.setting, 'general.recurring_task_spawn'),
  async run() {
    const made = await spawnRecurring(parts);
    return `${counted(made.length, 'task was', 'tasks were')} made.`;
  },
});
