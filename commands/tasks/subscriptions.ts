/**
 * Who follows a task: names, and the ids of those that are agents. The id is the reference: a later agent of the name
 * is not notified, a renamed agent is, under its new name.
 */
import type { EventDraft, EventOf } from '../../shared/events/define.ts';
import { notificationRaised } from '../../shared/events/monitoring/notifications.ts';
import { taskSubscribed } from '../../shared/events/tasks/subscriptions.ts';
import type { TaskData } from '../../shared/events/tasks/tasks.ts';
import { agentInLog } from '../agents/names.ts';
import type { Look } from '../decider.ts';

type Ids = Readonly<Record<string, number>>;
type Assignee = Pick<TaskData, 'assigned_to' | 'assignee_id'>;

interface Followed {
  readonly task: Assignee;
  /** Ids of subscribers that are agents, by name. */
  readonly followers: Ids;
}

/** Notifications that go to followers; the others name their recipient anew. */
const FOR_FOLLOWERS: readonly string[] = ['comment', 'status_change', 'message'];

/** The ids with that of the assignee, if it is an agent. */
export const withFollower = (ids: Ids, { assigned_to: name, assignee_id: id }: Assignee): Ids =>
  name === null || id === undefined || (Object.hasOwn(ids, name) && ids[name] === id) ? ids : { ...ids, [name]: id };

/** Whether the agent that has this name now is the one that follows the task. */
export function isFollower(
  { task, followers }: Followed,
  agent: { readonly id: number; readonly name: string },
): boolean {
  if (Object.hasOwn(followers, agent.name)) return followers[agent.name] === agent.id;
  return task.assigned_to === agent.name && task.assignee_id === undefined;
}

/** Adds the ids of new subscribers, and addresses notifications of followers to those that they are now. */
export async function withFollowers(
  drafts: readonly EventDraft[],
  state: Followed,
  { workspace, at, load }: Look,
): Promise<readonly EventDraft[]> {
  if (!drafts.some(({ type }) => type === taskSubscribed.type || type === notificationRaised.type)) return drafts;
  let { followers } = state;
  let { task } = state;
  const told = new Set<string>();
  const completed: EventDraft[] = [];
  for (const draft of drafts) {
    const { after, task: changed } = draft.data as { readonly after?: Assignee; readonly task?: Assignee };
    const place = after ?? changed;
    if (typeof place === 'object' && place.assigned_to !== undefined) {
      task = place;
      followers = withFollower(followers, task);
    }
    if (draft.type === taskSubscribed.type) {
      const data = draft.data as EventOf<typeof taskSubscribed>['data'];
      const agents: Record<string, number> = {};
      for (const name of data.names) {
        const agent = await agentInLog({ load }, workspace, { name }, at);
        if (agent) agents[name] = agent.id;
      }
      followers = { ...followers, ...agents };
      completed.push(Object.keys(agents).length === 0 ? draft : { ...draft, data: { ...data, agents } });
      continue;
    }
    const data = draft.data as EventOf<typeof notificationRaised>['data'];
    if (draft.type !== notificationRaised.type || !FOR_FOLLOWERS.includes(data.type)) {
      completed.push(draft);
      continue;
    }
    const recipient = await nameNow(data.recipient, { task, followers }, { workspace, at, load });
    if (recipient === undefined || recipient === data.by || told.has(recipient)) continue;
    told.add(recipient);
    completed.push(recipient === data.recipient ? draft : { ...draft, data: { ...data, recipient } });
  }
  return completed;
}

/** The name of a follower now; undefined: it is deleted, and another one may have the name. */
async function nameNow(
  name: string,
  { task, followers }: Followed,
  { workspace, at, load }: Look,
): Promise<string | undefined> {
  if (Object.hasOwn(followers, name))
    return (await agentInLog({ load }, workspace, { id: followers[name] as number }, at))?.name;
  if (name === task.assigned_to) return name;
  // A user, whose name an agent may have got since.
  return (await agentInLog({ load }, workspace, { name }, at)) ? undefined : name;
}
