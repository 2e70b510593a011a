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

/** Adds the id of the assignee to each event that says who it is, and its present name to a task that was done. */
export async function withAssigneeId(
  drafts: readonly EventDraft[],
  { task: now }: { readonly task: Assignee & Pick<TaskData, 'status'> },
  { workspace, at, load }: Look,
): Promise<readonly EventDraft[]> {
  let ids: Map<string, number | undefined> | undefined;
  const assigneeOf = async (name: string): Promise<Assignee> => {
    if (name === now.assigned_to && now.assignee_id !== undefined) {
      const id = now.assignee_id;
      // A rename changes only tasks that are not done.
      const present = now.status === 'done' ? await agentInLog({ load }, workspace, { id }, at) : undefined;
      return { assigned_to: present?.name ?? name, assignee_id: id };
    }
    ids ??= new Map();
    if (!ids.has(name)) ids.set(name, (await agentInLog({ load }, workspace, { name }, at))?.id);
    const id = ids.get(name);
    return { assigned_to: name, ...(id !== undefined && { assignee_id: id }) };
  };
  return Promise.all(
    drafts.map(async (draft) => {
      const data = draft.data as Record<string, unknown>;
      const place = PLACES.find((field) => typeof data[field] === 'object' && data[field] !== null);
      if (place === undefined) return draft;
      const { assignee_id: given, ...rest } = data[place] as Assignee;
      const name = rest.assigned_to;
      if (name === undefined || (name !== null && keeps(draft))) return draft;
      const assignee = name === null ? { assigned_to: null } : await assigneeOf(name);
      if (assignee.assigned_to === name && assignee.assignee_id === given) return draft;
      return { ...draft, data: { ...data, [place]: { ...rest, ...assignee } } };
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
