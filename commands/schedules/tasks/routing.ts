/**
 * Assigns each unassigned task to the agent that fits best.
 *
 * The read models name tasks and agents; the decision is made on the task's own stream, so a task that was just taken
 * stays with its agent, and several processes assign it only once.
 */
import type { RoutableAgent, RoutingReads } from '../../../queries/tasks/routing.ts';
import { newId } from '../../../shared/ids.ts';
import type { Commands } from '../../handler.ts';
import { scheduledContext, unlessBusy } from '../../policies/policy.ts';
import { bestOf, decideRoute } from '../../tasks/routing.ts';
import { taskDecider, taskStream } from '../../tasks/tasks.ts';
import { counted, EVERY_MINUTE_MS, isOn, type Schedule, type Setting } from '../schedule.ts';

/** Tasks per workspace in one turn. */
const TASKS = 5;
/** Agents per workspace that are compared. */
const AGENTS = 500;

export interface Routing {
  readonly commands: Commands;
  readonly reads: RoutingReads;
}

/** Checks all workspaces once. @returns the ids of the assigned tasks */
export async function routeTasks(parts: Routing): Promise<readonly number[]> {
  const { commands, reads } = parts;
  const run = newId();
  const routed: number[] = [];
  const known = new Map<number, RoutableAgent[]>();
  for (const { tenant, workspace, id } of await reads.unassigned(TASKS)) {
    const agents = known.get(workspace) ?? [...(await reads.agents(workspace, AGENTS))];
    known.set(workspace, agents);
    const stream = taskStream(workspace, id);
    const { state } = await commands.load(taskDecider, stream);
    const best = bestOf(state.task, agents);
    if (!best) continue;
    const context = scheduledContext(run, tenant, workspace);
    const events = await unlessBusy(commands.execute(taskDecider, stream, context, (now) => decideRoute(now, best)));
    if (events.length === 0) continue;
    routed.push(id);
    const at = agents.indexOf(best.agent);
    agents[at] = { ...best.agent, assigned: best.agent.assigned + 1 };
  }
  return routed;
}

export const taskRoutingSchedule = (parts: Routing & { readonly setting: Setting }): Schedule => ({
  id: 'task_auto_route',
  kind: 'task-routing',
  name: 'Assign unassigned tasks to agents',
  everyMs: EVERY_MINUTE_MS,
  enabled: isOn(parts.setting, 'general.task_dispatch'),
  async run() {
    const routed = await routeTasks(parts);
    return `${counted(routed.length, 'task was', 'tasks were')} given to agents.`;
  },
});
