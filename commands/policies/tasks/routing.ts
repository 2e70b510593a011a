/**
 * Whenever a task belongs to nobody, it is given to the agent that fits best.
 *
 * The read models name tasks and agents; the decision is made on the task's own stream, so that one that somebody has just
 * taken stays where it is, and several processes give it away once.
 */
import { randomUUID } from 'node:crypto';
import { AppError } from '../../../shared/errors.ts';
import type { RoutableAgent, RoutingReads } from '../../../shared/ports/routing.ts';
import type { Commands } from '../../handler.ts';
import { bestOf, decideRoute } from '../../tasks/routing.ts';
import { taskDecider, taskStream } from '../../tasks/tasks.ts';
import { scheduledContext } from '../policy.ts';

/** Tasks of a workspace in one turn. */
const TASKS = 5;
/** Agents of a workspace that are compared. */
const AGENTS = 500;

/** Looks at all workspaces once. Gives the ids of the tasks that were given away. */
export async function routeTasks(parts: {
  readonly commands: Commands;
  readonly reads: RoutingReads;
}): Promise<readonly number[]> {
  const { commands, reads } = parts;
  const run = randomUUID();
  const routed: number[] = [];
  const known = new Map<number, RoutableAgent[]>();
  for (const { tenant, workspace, id } of await reads.unassigned(TASKS)) {
    const agents = known.get(workspace) ?? [...(await reads.agents(workspace, AGENTS))];
    known.set(workspace, agents);
    const stream = taskStream(workspace, id);
    const { state } = await commands.load(taskDecider, stream);
    const best = bestOf(state.task, agents);
    if (!best) continue;
    const { events } = await commands
      .execute(taskDecider, stream, scheduledContext(run, tenant, workspace), (now) => decideRoute(now, best))
      .catch((error) => {
        // A task that keeps the handler busy with its own changes is in good hands.
        if (error instanceof AppError && error.status === 409) return { events: [] };
        throw error;
      });
    if (events.length === 0) continue;
    routed.push(id);
    const at = agents.indexOf(best.agent);
    agents[at] = { ...best.agent, assigned: best.agent.assigned + 1 };
  }
  return routed;
}
