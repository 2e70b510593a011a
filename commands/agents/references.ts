/**
 * What refers to an agent follows it. Tasks and scheduled jobs hold its id, so neither a later agent of the name nor a
 * rename changes whose they are, nor which agent an alert rule notifies; this brings the rest up to date. After a rename
 * they show the new name. After a deletion, tasks that wait or are in progress return to the shared queue, recurring
 * tasks and scheduled jobs are paused, alert rules notify the default recipient, and it leaves its projects; the admins
 * of the workspace are notified.
 *
 * The request that renames or deletes an agent does it at once; `commands/schedules/agents/references.ts` does what is
 * left: after a failure, or for a task that was assigned at that very moment.
 */

import {
  type AssignedTask,
  assignedTasks,
  type Membership,
  memberships,
  notifiedBy,
} from '../../queries/agents/references.ts';
import { adminNames } from '../../queries/auth/users.ts';
import type { Reads } from '../../queries/reads.ts';
import { recurrenceOf } from '../../shared/contract/tasks/recurrence.ts';
import { cronJobAssigned, cronJobToggled } from '../../shared/events/admin/cron.ts';
import type { EventDraft } from '../../shared/events/define.ts';
import { notificationRaised } from '../../shared/events/monitoring/notifications.ts';
import { CRON_STREAM, type CronState, cronDecider } from '../admin/cron.ts';
import { decideRecipient, ruleDecider, ruleStream } from '../alerts/rules.ts';
import type { CommandContext, Commands } from '../handler.ts';
import { unlessBusy } from '../policies/policy.ts';
import { decideLeave, projectDecider, projectStream } from '../projects/projects.ts';
import { paged } from '../schedules/schedule.ts';
import { decideStopRecurring } from '../tasks/changes.ts';
import { decideRelease, decideRename } from '../tasks/queue.ts';
import { type TaskState, taskDecider, taskStream } from '../tasks/tasks.ts';
import { agentDecider, agentStream } from './agents.ts';

export interface FollowParts {
  readonly commands: Commands;
  readonly reads: Reads;
}

/** An agent as it is now: its name; null: it was deleted. `known`: its name before, for messages. */
interface Present {
  readonly id: number;
  readonly name: string | null;
  readonly known: string;
}

/** Records per page. */
const PAGE = 200;

/**
 * Brings what refers to one agent up to date.
 *
 * @param reads must show the tasks and projects to which it was assigned before
 */
export async function followAgent(
  { commands, reads }: FollowParts,
  context: CommandContext,
  id: number,
): Promise<void> {
  const { workspace } = context.origin;
  const origin = { origin: context.origin };
  await followJobs({ commands, reads }, () => origin, { workspace, id });
  const all = <T extends AssignedTask>(
    read: (...args: Parameters<typeof assignedTasks>) => Promise<readonly T[]>,
  ): AsyncGenerator<T, void, void> =>
    paged((after, limit) => read(reads, after, limit, { workspace, agent: id }), PAGE, { workspace, id: 0 });
  for await (const rule of all(notifiedBy)) await followRule({ commands, reads }, origin, rule);
  for await (const one of all(memberships)) await followMembership({ commands }, origin, one);
  for await (const task of all(assignedTasks)) await followTask({ commands, reads }, origin, task);
}

/** The agent according to the log. */
async function presentOf(commands: Commands, workspace: number, id: number): Promise<Present> {
  const { state } = await commands.load(agentDecider, agentStream(workspace, id));
  return { id, name: state.registered && !state.deleted ? state.name : null, known: state.name };
}

/** What an agent is now, and the admins to notify if it was deleted. */
async function lookUp({ commands, reads }: FollowParts, workspace: number, agent: number) {
  const present = await presentOf(commands, workspace, agent);
  return { present, admins: present.name === null ? await adminNames(reads, workspace) : [] };
}

/** @returns whether the task changed */
export async function followTask(
  { commands, reads }: FollowParts,
  context: CommandContext,
  { workspace, id, agent }: Pick<AssignedTask, 'workspace' | 'id' | 'agent'>,
): Promise<boolean> {
  const { present, admins } = await lookUp({ commands, reads }, workspace, agent);
  const events = await unlessBusy(
    commands.execute(taskDecider, taskStream(workspace, id), context, (state) =>
      present.name === null
        ? decideAbandoned(state, present, admins)
        : decideRename(state, { id: agent, name: present.name }),
    ),
  );
  return events.length > 0;
}

/** @returns whether the alert rule changed */
export async function followRule(
  { commands, reads }: FollowParts,
  context: CommandContext,
  { workspace, id, agent }: Pick<AssignedTask, 'workspace' | 'id' | 'agent'>,
): Promise<boolean> {
  const { present, admins } = await lookUp({ commands, reads }, workspace, agent);
  const events = await unlessBusy(
    commands.execute(ruleDecider, ruleStream(workspace, id), context, (state) =>
      decideRecipient(state, present, (what) =>
        admins.map((recipient) =>
          notificationRaised.draft({
            recipient,
            type: 'alert',
            title: 'Recipient deleted',
            message: `${what} notifies system: its recipient, the agent ${present.known}, was deleted. Name another recipient.`,
            source_type: 'alert_rule',
            source_id: id,
            by: null,
          }),
        ),
      ),
    ),
  );
  return events.length > 0;
}

/** @returns whether the agent left the project. Projects show its present name without an event. */
export async function followMembership(
  { commands }: Pick<FollowParts, 'commands'>,
  context: CommandContext,
  { workspace, project, agent }: Pick<Membership, 'workspace' | 'project' | 'agent'>,
): Promise<boolean> {
  const present = await presentOf(commands, workspace, agent);
  if (present.name !== null) return false;
  const events = await unlessBusy(
    commands.execute(projectDecider, projectStream(workspace, project), context, (state) =>
      decideLeave(state, (one) => one.agent_id === agent),
    ),
  );
  return events.length > 0;
}

/** A recurring task of a deleted agent is paused; another one returns to the queue. */
export function decideAbandoned(state: TaskState, { id, known }: Present, admins: readonly string[]): EventDraft[] {
  const { task } = state;
  if (state.id === 0 || task.assignee_id !== id) return [];
  const { cron_expr: cron, parent_task_id: parent = null } = recurrenceOf(task.metadata);
  if (cron === undefined || parent !== null) return decideRelease(state, id);
  const paused = decideStopRecurring(state);
  return paused.length === 0
    ? []
    : [...paused, ...told(admins, 'task', state.id, `Recurring task "${task.title}"`, known)];
}

const told = (admins: readonly string[], type: string | null, id: number | null, what: string, agent: string) =>
  admins.map((recipient) =>
    notificationRaised.draft({
      recipient,
      type: 'paused',
      title: 'Paused',
      message: `${what} was paused: its agent ${agent} was deleted. Name another agent, then enable it again.`,
      source_type: type,
      source_id: id,
      by: null,
    }),
  );

/** Scheduled jobs whose tasks are for agents. @param only of this agent @returns how many jobs changed */
export async function followJobs(
  { commands, reads }: FollowParts,
  contextIn: (workspace: number) => CommandContext,
  only?: { readonly workspace: number; readonly id: number },
): Promise<number> {
  const { state } = await commands.load(cronDecider, CRON_STREAM);
  let count = 0;
  for (const { name, task } of state.jobs) {
    if (task?.agent_id === undefined) continue;
    const { workspace, agent_id: id } = task;
    if (only && !(only.workspace === workspace && only.id === id)) continue;
    const present = await presentOf(commands, workspace, id);
    if (present.name === task.agent) continue;
    const admins = present.name === null ? await adminNames(reads, workspace) : [];
    const events = await unlessBusy(
      commands.execute(cronDecider, CRON_STREAM, contextIn(workspace), (now) => decideJob(now, name, present, admins)),
    );
    if (events.length > 0) count++;
  }
  return count;
}

export function decideJob({ jobs }: CronState, name: string, agent: Present, admins: readonly string[]): EventDraft[] {
  const job = jobs.find((one) => one.name === name);
  if (!job?.task || job.task.agent_id !== agent.id) return [];
  if (agent.name !== null)
    return job.task.agent === agent.name ? [] : [cronJobAssigned.draft({ name, agent: agent.name })];
  if (!job.enabled) return [];
  return [
    cronJobToggled.draft({ name, enabled: false }),
    ...told(admins, null, null, `Scheduled job "${name}"`, agent.known),
  ];
}
