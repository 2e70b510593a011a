/** Which agent fits an unassigned task. `commands/schedules/tasks/routing.ts` finds such tasks. */

import type { RoutableAgent } from '../../queries/tasks/routing.ts';
import type { EventDraft } from '../../shared/events/define.ts';
import { taskRouted } from '../../shared/events/tasks/routing.ts';
import type { TaskData } from '../../shared/events/tasks/tasks.ts';
import { moved, type TaskState, tellAssignee } from './tasks.ts';

/** An agent with this many tasks in progress gets no further ones. */
export const BUSY = 3;

const ROLE_WORD = 10;
const CAPABILITY = 15;
const IDLE = 5;
/** Minimum length of a word; shorter words are in every text. */
const SHORTEST = 3;

const wordsOf = (text: string): readonly string[] => [
  ...new Set(
    text
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu)
      ?.filter((word) => word.length >= SHORTEST),
  ),
];

/** How well an agent fits a task, 1 or more: by the words of its role and by its capabilities that the task names. */
export function scoreOf(
  { title, description, tags }: Pick<TaskData, 'title' | 'description' | 'tags'>,
  { role, capabilities, status }: Pick<RoutableAgent, 'role' | 'capabilities' | 'status'>,
): number {
  const text = [title, description ?? '', ...tags].join('\n').toLowerCase();
  const named = (word: string) => text.includes(word);
  const score =
    wordsOf(role).filter(named).length * ROLE_WORD +
    [...new Set(capabilities.map((one) => one.trim().toLowerCase()))].filter((one) => one !== '' && named(one)).length *
      CAPABILITY +
    (status === 'idle' ? IDLE : 0);
  return Math.max(score, 1);
}

export interface Fit {
  readonly agent: RoutableAgent;
  readonly score: number;
}

/** The agent that fits best; among equals, the one with the fewest tasks. Undefined if all are busy. */
export function bestOf(task: TaskData, agents: readonly RoutableAgent[]): Fit | undefined {
  const load = ({ agent }: Fit) => agent.inProgress + agent.assigned;
  return agents
    .filter(({ inProgress }) => inProgress < BUSY)
    .map((agent) => ({ agent, score: scoreOf(task, agent) }))
    .sort((a, b) => b.score - a.score || load(a) - load(b) || (a.agent.name < b.agent.name ? -1 : 1))[0];
}

/** No event if the task was deleted, has left the inbox, or is already assigned. */
export function decideRoute(state: TaskState, { agent, score }: Fit): EventDraft[] {
  const { id, task } = state;
  if (id === 0 || task.status !== 'inbox' || task.assigned_to !== null) return [];
  const to = moved(state, { status: 'assigned', assigned_to: agent.name });
  return [
    taskRouted.draft({ ...to, agent: agent.name, role: agent.role, score }),
    ...tellAssignee(id, { ...task, assigned_to: agent.name }),
  ];
}
