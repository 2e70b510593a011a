/**
 * The assignee of a task: a name that is shown, and the id of the agent that had it when the task was assigned. The id
 * is the reference: a later agent of the name gets nothing of an earlier one, and a renamed agent keeps its tasks.
 */
import type { EventDraft, EventOf } from '../../shared/events/define.ts';
import { taskAssigneeRenamed, taskClaimed } from '../../shared/events/tasks/queue.ts';
import { type TaskData, taskCreated } from '../../shared/events/tasks/tasks.ts';
import { agentInLog } from '../agents/names.ts';
import type { Look } from '../decider.ts';

type Assignee = Pick<TaskData, 'assigned_to' | 'assignee_id'>;

/** The fields of an event that say where the task is afterwards. */
const PLACES = ['after', 'task'] as const;

/** Whether an event names the agent itself: a claim, a rename, or a task for the agent of a job or of a recurring task. */
const keeps = ({ type, data }: EventDraft): boolean =>
  type === taskClaimed.type ||
  type === taskAssigneeRenamed.type ||
  (type === taskCreated.type && (data as EventOf<typeof taskCreated>['data']).task.assignee_id !== undefined);

/** Adds the id of the assignee to each event that says who it is. */
export async function withAssigneeId(
  drafts: readonly EventDraft[],
  { task: now }: { readonly task: Assignee },
  { workspace, load }: Look,
): Promise<readonly EventDraft[]> {
  let ids: Map<string, number | undefined> | undefined;
  const idOf = async (name: string): Promise<number | undefined> => {
    if (name === now.assigned_to && now.assignee_id !== undefined) return now.assignee_id;
    ids ??= new Map();
    if (!ids.has(name)) ids.set(name, (await agentInLog({ load }, workspace, { name }, { recent: true }))?.id);
    return ids.get(name);
  };
  return Promise.all(
    drafts.map(async (draft) => {
      const data = draft.data as Record<string, unknown>;
      const place = PLACES.find((field) => typeof data[field] === 'object' && data[field] !== null);
      if (place === undefined) return draft;
      const { assignee_id: given, ...rest } = data[place] as Assignee;
      if (rest.assigned_to === undefined) return draft;
      const id = rest.assigned_to === null ? undefined : keeps(draft) ? given : await idOf(rest.assigned_to);
      if (id === given) return draft;
      return { ...draft, data: { ...data, [place]: id === undefined ? rest : { ...rest, assignee_id: id } } };
    }),
  );
}

/** Whether a task still has the same assignee, possibly under another name. */
export const isSame = (one: Assignee, other: Assignee): boolean =>
  one.assignee_id === undefined ? one.assigned_to === other.assigned_to : one.assignee_id === other.assignee_id;

/** The assignee of a task, for `seesTask` and `isAssignedTo`. */
export const assigneeIn = ({ assigned_to, assignee_id }: Assignee) => ({
  assignedTo: assigned_to,
  assigneeId: assignee_id ?? null,
});
