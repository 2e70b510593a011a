/** The task: the state of its stream, the checks shared by all decisions, and its creation and deletion. */
import type { ProjectDirectory } from '../../queries/projects/projects.ts';
import type { TaskProjects } from '../../queries/projects/tickets.ts';
import type { Reads } from '../../queries/reads.ts';
import { activeCron } from '../../shared/contract/tasks/recurrence.ts';
import type { CreateTask, TaskRecord, UpdateTask } from '../../shared/contract/tasks/tasks.ts';
import { AppError, notFound } from '../../shared/errors.ts';
import { type EventDraft, type EventOf, firstOf } from '../../shared/events/define.ts';
import {
  type IssueFace,
  type TaskFace,
  taskIssueGone,
  taskLinked,
  taskSynced,
} from '../../shared/events/github/links.ts';
import type { Actor } from '../../shared/events/metadata.ts';
import { notificationRaised } from '../../shared/events/monitoring/notifications.ts';
import { GATEKEEPER, taskReviewed } from '../../shared/events/quality/reviews.ts';
import {
  taskReviewAbandoned,
  taskReviewAccepted,
  taskReviewRequested,
  taskVerdictGiven,
} from '../../shared/events/quality/verdicts.ts';
import { taskBranched, taskPullOpened } from '../../shared/events/tasks/branches.ts';
import { taskStatusChanged, taskUpdated } from '../../shared/events/tasks/changes.ts';
import { taskAssigned, taskCommented } from '../../shared/events/tasks/comments.ts';
import {
  taskDispatchAccepted,
  taskDispatchCompleted,
  taskDispatched,
  taskDispatchFailed,
  taskWithheld,
} from '../../shared/events/tasks/dispatch.ts';
import { fieldsAfter, type TaskChange, taskChange } from '../../shared/events/tasks/evolution.ts';
import { taskAssigneeRenamed, taskClaimed, taskRequeued } from '../../shared/events/tasks/queue.ts';
import { taskRecurred } from '../../shared/events/tasks/recurrence.ts';
import { taskRouted } from '../../shared/events/tasks/routing.ts';
import { taskSubscribed } from '../../shared/events/tasks/subscriptions.ts';
import {
  NO_SOURCE,
  placeOf,
  projectFields,
  type TaskData,
  type TaskPlace,
  type TaskSource,
  taskCreated,
  taskDeleted,
  taskMoved,
  taskRecord,
  taskStream,
} from '../../shared/events/tasks/tasks.ts';
import { looksLike } from '../../shared/names.ts';
import { restored } from '../../shared/secrets.ts';
import { seconds } from '../../shared/time.ts';
import { writerName } from '../agents/prompts.ts';
import { type AnyDefinition, defineDecider, type Evolving, type Fold, on } from '../decider.ts';
import type { CommandContext, Commands } from '../handler.ts';
import type { Room } from '../limits.ts';
import { mentionedIn } from '../mentions.ts';
import { type Ticket, takeTicket } from '../projects/tickets.ts';
import { reserveId } from '../record-ids.ts';
import { isSame, withAssigneeId } from './assignments.ts';
import { withFollower, withFollowers } from './subscriptions.ts';

export { taskStream };

/** The task state that is cached between commands: all of it, because events of changes contain the whole task. */
export interface TaskState {
  /** 0 before the task is created and after it is deleted. */
  readonly id: number;
  readonly task: TaskData;
  /** Unix seconds. */
  readonly created_at: number;
  readonly updated_at: number;
  /** Subscribers, in the order in which they subscribed. */
  readonly subscribers: readonly string[];
  /** Ids of subscribers that are agents, by name. */
  readonly followers: Readonly<Record<string, number>>;
  readonly comments: { readonly count: number; readonly characters: number };
  /** Whether the newest review by the gatekeeper was an approval. */
  readonly approved: boolean;
  /** The pending request to the agent runner; null: none, or the task has been moved since. */
  readonly asked: Asked | null;
  /** Whether its agent claimed it from the shared queue; false: it was assigned. */
  readonly claimed: boolean;
  /** How often it was asked. */
  readonly runs: number;
  /** Rejections by automatic reviews since the last approval. */
  readonly rejections: number;
  /** Automatic reviews without a verdict since the last verdict. */
  readonly abandoned: number;
  /** Of a recurring task: the last due minute, Unix seconds, and the task created for it. */
  readonly recurred: { readonly due_at: number; readonly child_id: number } | null;
  /** GitHub data of the record; null if there is none. */
  readonly source: TaskSource | null;
  /** Task and issue at their last agreement; null if the task has no issue. */
  readonly agreed: Agreed | null;
  /** Authors of the texts that agents read; null: none, or unknown. */
  readonly writers: Writers;
  /** Approximate number of characters in texts and metadata. */
  readonly size: number;
}

type Writers = Readonly<Record<'title' | 'description' | 'tags' | 'resolution', string | null>>;

export interface Asked {
  readonly what: 'dispatch' | 'review';
  /** Number of the request, from 1. */
  readonly run: number;
  /** The agent whose work is requested; null: no particular agent. */
  readonly agent_id: number | null;
  /** The runner has accepted the request; its end is reported later. */
  readonly accepted: boolean;
}

export interface Agreed {
  readonly issue_updated_at: string;
  readonly issue: IssueFace;
  readonly face: TaskFace;
  /** GitHub no longer has the issue. */
  readonly gone?: true;
}

/** In the order of the schema, in which responses show the fields. */
const NOTHING: TaskData = {
  title: '',
  description: null,
  status: 'inbox',
  priority: 'medium',
  project_id: 0,
  project_ticket_no: 0,
  assigned_to: null,
  created_by: '',
  due_date: null,
  estimated_hours: null,
  actual_hours: null,
  outcome: null,
  error_message: null,
  resolution: null,
  feedback_rating: null,
  feedback_notes: null,
  retry_count: 0,
  completed_at: null,
  tags: [],
  metadata: {},
  dispatch_attempts: 0,
};

const initial: TaskState = {
  id: 0,
  task: NOTHING,
  created_at: 0,
  updated_at: 0,
  subscribers: [],
  followers: {},
  comments: { count: 0, characters: 0 },
  approved: false,
  asked: null,
  claimed: false,
  runs: 0,
  rejections: 0,
  abandoned: 0,
  recurred: null,
  source: null,
  agreed: null,
  writers: { title: null, description: null, tags: null, resolution: null },
  size: 0,
};

export { GATEKEEPER };

/** Whether a text reads as the gatekeeper's name. */
export const readsAsGatekeeper = (name: string): boolean => looksLike(name, GATEKEEPER);

/** Maximum number of subscribers of a task; later ones are not added. */
export const MAX_SUBSCRIBERS = 500;

const followedBy = (state: TaskState, names: readonly (string | null)[]): readonly string[] => {
  const known = new Set(state.subscribers);
  const others = new Set(names.filter((name): name is string => name !== null && name !== '' && !known.has(name)));
  return others.size === 0 ? state.subscribers : [...state.subscribers, ...others].slice(0, MAX_SUBSCRIBERS);
};

/** The id of an agent that acts under this name. */
const idsOf = (by: Actor | undefined, name: string): Readonly<Record<string, number>> =>
  by?.type === 'agent' && by.name === name && by.id > 0 ? { [name]: by.id } : {};

/** Characters of the JSON around the fields of a task, including its short fields. */
const BESIDES_TEXTS = 1_000;

const sizeOf = ({
  title,
  description,
  error_message,
  resolution,
  feedback_notes,
  tags,
  metadata,
}: TaskData): number => {
  let size = BESIDES_TEXTS + title.length;
  for (const text of [description, error_message, resolution, feedback_notes]) size += text?.length ?? 0;
  // Most tasks have neither tags nor metadata; serialising both took as long as the rest of a fold.
  for (const json of [tags, metadata]) if (Object.keys(json).length > 0) size += JSON.stringify(json).length;
  return size;
};

/** Fields that count for the size of a state. */
const SIZED: readonly (keyof TaskData)[] = [
  ...(['title', 'description', 'error_message', 'resolution', 'feedback_notes', 'tags', 'metadata'] as const),
];

function askedAfter({ asked, task }: TaskState, change: TaskChange, now: TaskData): Asked | null {
  if (change.asked === 'accepted') return asked && { ...asked, accepted: true };
  if (change.asked === null) return null;
  return asked !== null && now.status === task.status && isSame(now, task) ? asked : null;
}

/** What an event changes of the record and of the request to the runner. */
function changed(state: TaskState, event: Omit<Evolving, 'by'>): Partial<TaskState> {
  const change = taskChange(event);
  const fields = fieldsAfter(state.task.metadata, change);
  const task = { ...state.task, ...fields };
  if (task.assignee_id === undefined) delete task.assignee_id;
  const { source, recurred, quiet } = change;
  return {
    task,
    followers: withFollower(state.followers, task),
    claimed: state.claimed && isSame(task, state.task),
    asked: askedAfter(state, change, task),
    updated_at: quiet ? state.updated_at : seconds(event.at),
    source: source ? { ...(state.source ?? NO_SOURCE), ...source } : state.source,
    recurred: recurred ?? state.recurred,
    size: SIZED.some((name) => fields[name] !== undefined) ? sizeOf(task) : state.size,
  };
}

/** Folds events that `taskChange` knows. @param more what they change besides, for decisions alone */
const changes = <const D extends AnyDefinition>(
  definitions: readonly D[],
  more?: (state: TaskState, data: EventOf<D>['data'], by: Actor | undefined) => Partial<TaskState>,
): Fold<TaskState> =>
  on(definitions, (state: TaskState, event) =>
    Object.assign({}, state, changed(state, event), more?.(state, event.data, event.by)),
  );

/** A request to the runner. */
const asking = (asked: Omit<Asked, 'accepted'>): Partial<TaskState> => ({
  asked: { ...asked, accepted: false },
  runs: asked.run,
});

const GITHUB = 'GitHub';

/** The authors of texts after one author wrote some of them. */
const writtenBy = (writers: Writers, writer: string | null, texts: readonly (keyof Writers)[]): Writers =>
  texts.length === 0 ? writers : { ...writers, ...Object.fromEntries(texts.map((text) => [text, writer])) };

/** Author of the first texts of a task. A task created on a schedule repeats texts of its recurring task. */
function firstWriter(
  { source, parent_task_id: parentTaskId }: EventOf<typeof taskCreated>['data'],
  by: Actor | undefined,
): string | null {
  if (source === 'github') return GITHUB;
  if (source === 'recurrence') return parentTaskId === undefined ? 'a cron job' : `recurring task ${parentTaskId}`;
  return by ? writerName(by) : null;
}

const TEXTS = ['title', 'description', 'tags', 'resolution'] as const;

/** The texts that were taken from the issue when a task and its issue were compared. */
function pulledTexts(agreed: Agreed | null, now: Agreed): (keyof Writers)[] {
  const { face, issue } = now;
  return [
    ...(face.title === agreed?.face.title ? [] : (['title'] as const)),
    ...(face.description_hash === agreed?.face.description_hash ? [] : (['description'] as const)),
    ...(JSON.stringify(issue.labels) === JSON.stringify(agreed?.issue.labels) ? [] : (['tags'] as const)),
  ];
}

export const taskDecider = defineDecider<TaskState>({
  kind: 'task',
  // Comments make these streams long. Up to 6, creators and those who comment followed it by their display names; up to 7,
  // it was not known who wrote its texts; up to 8, they had the name of the project.
  snapshotVersion: 9,
  initial,
  sizeOf: ({ size, subscribers }) => size + subscribers.length * 30,
  complete: async (drafts, state, look) => withFollowers(await withAssigneeId(drafts, state, look), state, look),
  folds: [
    on(taskCreated, (_, { data, at, by }) => {
      const { task_id: taskId, task, source } = data;
      const writer = firstWriter(data, by);
      return {
        ...initial,
        id: taskId,
        task,
        created_at: seconds(at),
        updated_at: seconds(at),
        subscribers: followedBy(initial, [source === 'api' ? task.created_by : null, task.assigned_to]),
        followers: withFollower(source === 'api' ? idsOf(by, task.created_by) : {}, task),
        writers: { title: writer, description: writer, tags: writer, resolution: writer },
        size: sizeOf(task),
      };
    }),
    changes([
      ...[
        taskStatusChanged,
        taskAssigned,
        taskAssigneeRenamed,
        taskMoved,
        taskRequeued,
        taskRecurred,
        taskBranched,
        taskPullOpened,
      ],
      ...[taskDispatchAccepted, taskDispatchFailed, taskWithheld, taskReviewAccepted],
    ]),
    changes([taskUpdated], (state, { task, before, changed: names }, by) => ({
      subscribers:
        before.assigned_to === undefined || before.assigned_to === task.assigned_to
          ? state.subscribers
          : followedBy(state, [task.assigned_to]),
      writers: writtenBy(
        state.writers,
        by ? writerName(by) : null,
        TEXTS.filter((text) => names.includes(text)),
      ),
    })),
    changes([taskClaimed], (state, { agent, before }) => ({
      subscribers: followedBy(state, [agent]),
      claimed: before.assigned_to === null || state.claimed,
    })),
    changes([taskRouted], (state, { agent }) => ({ subscribers: followedBy(state, [agent]) })),
    changes([taskReviewed], (state, { reviewer, status }) => {
      const approved = reviewer === GATEKEEPER ? status === 'approved' : state.approved;
      return { approved, rejections: approved ? 0 : state.rejections, abandoned: 0 };
    }),
    changes([taskDispatched], (_, { run, agent_id }) => asking({ what: 'dispatch', run, agent_id })),
    changes([taskDispatchCompleted], ({ writers }, { agent }) => ({
      writers: writtenBy(writers, `agent ${agent}`, ['resolution']),
    })),
    changes([taskReviewRequested], (_, { run }) => asking({ what: 'review', run, agent_id: null })),
    changes([taskVerdictGiven], (state, { status }) => {
      const approved = status === 'approved';
      return { approved, rejections: approved ? 0 : state.rejections + 1, abandoned: 0 };
    }),
    changes([taskReviewAbandoned], ({ abandoned }) => ({ abandoned: abandoned + 1 })),
    changes([taskLinked, taskSynced], (state, data) => {
      const { issue_updated_at, issue, face } = data;
      const agreed = { issue_updated_at, issue, face };
      const pulled = 'direction' in data && data.direction === 'pull' ? pulledTexts(state.agreed, agreed) : [];
      return { agreed, writers: writtenBy(state.writers, GITHUB, pulled) };
    }),
    on(taskIssueGone, (state) => (state.agreed ? { ...state, agreed: { ...state.agreed, gone: true } } : state)),
    on(taskSubscribed, (state, { data }) => ({
      ...state,
      subscribers: followedBy(state, data.names),
      followers: data.agents ? { ...state.followers, ...data.agents } : state.followers,
    })),
    on(taskCommented, (state, { data: { content, author }, by }) => {
      const { count, characters } = state.comments;
      return {
        ...state,
        followers: { ...state.followers, ...idsOf(by, author) },
        comments: { count: count + 1, characters: characters + content.length },
      };
    }),
    on(taskDeleted, () => initial),
  ],
});

/** The state of a task that exists. @throws AppError 404 */
export function existing(state: TaskState): TaskState {
  if (state.id === 0) throw notFound('Task');
  return state;
}

/** The record of a state, as callers see it, without the fields that depend on the project. */
export const recordOf = (state: TaskState, workspace: number) => taskRecord(state.task, { ...state, workspace });

/**
 * Whether the task may become `done`.
 *
 * @param named names the task in the message, for requests about several tasks
 * @throws AppError 403
 */
export function requireApproval({ id, approved }: Pick<TaskState, 'id' | 'approved'>, named = false): void {
  if (approved) return;
  const task = named ? `Task ${id}` : 'This task';
  throw new AppError(
    403,
    `${task} cannot be done before Aegis has approved it: the newest quality review by "${GATEKEEPER}" has to be an approval.`,
  );
}

/** When a task with this new status was completed: the first time that it became `done`. `now`: Unix seconds. */
export const completedAtOf = (task: TaskData, status: string, now: number): number | null =>
  status === 'done' ? (task.completed_at ?? now) : task.completed_at;

/** Fields of every event about the task. */
export const ofTask = ({ id, task }: Pick<TaskState, 'id' | 'task'>) => ({ task_id: id, title: task.title });

/** Fields of every event that moves the task to another status or assignee. */
export const moved = (state: Pick<TaskState, 'id' | 'task'>, changes: Partial<TaskPlace>) => {
  const before = placeOf(state.task);
  return { ...ofTask(state), before, after: { ...before, ...changes } };
};

/** Adds subscribers to a task; no event when all names already subscribe. */
export function decideSubscribe(state: TaskState, names: readonly string[]): EventDraft[] {
  const added = followedBy(existing(state), names).slice(state.subscribers.length);
  return added.length === 0 ? [] : [taskSubscribed.draft({ ...ofTask(state), names: added })];
}

/** A notification about a task. `by`: the name at the beginning of the message. */
export const notice = (
  taskId: number,
  told: Pick<Notice, 'recipient' | 'type' | 'title' | 'message'> & Partial<Pick<Notice, 'by'>>,
): EventDraft => notificationRaised.draft({ source_type: 'task', source_id: taskId, by: null, ...told });
type Notice = EventOf<typeof notificationRaised>['data'];

/** The assignee in this text; null: none. */
export const assigneeOf = (text: string | undefined): string | null => text?.trim() || null;

const assignmentNotice = (taskId: number, title: string, recipient: string): EventDraft =>
  notice(taskId, {
    recipient,
    type: 'assignment',
    title: 'Task assigned',
    message: `You have been assigned the task "${title}".`,
  });

const mentionNotice = (taskId: number, title: string, recipient: string, by: string): EventDraft =>
  notice(taskId, {
    recipient,
    type: 'mention',
    title: 'You were mentioned',
    message: `${by} mentioned you in the task "${title}".`,
    by,
  });

/** Subscribes the mentioned users and agents to the task, and notifies all but the author. */
export function tellMentioned(
  state: Pick<TaskState, 'id' | 'task' | 'subscribers'>,
  mentioned: readonly string[],
  by: string,
): EventDraft[] {
  const { id, task, subscribers } = state;
  const names = mentioned.filter((name) => !subscribers.includes(name));
  const room = MAX_SUBSCRIBERS - subscribers.length;
  const told = mentioned.filter((name) => name !== by);
  return [
    ...(names.length > 0 && room > 0 ? [taskSubscribed.draft({ ...ofTask(state), names: names.slice(0, room) })] : []),
    ...told.map((recipient) => mentionNotice(id, task.title, recipient, by)),
  ];
}

/** Notifies the assignee, even if it assigned itself. */
export const tellAssignee = (taskId: number, { title, assigned_to: assignedTo }: TaskData): EventDraft[] =>
  assignedTo === null ? [] : [assignmentNotice(taskId, title, assignedTo)];

export interface NewTask {
  readonly fields: CreateTask;
  readonly created_by: string;
  readonly ticket: Ticket;
  /** The users and agents that the description mentions. */
  readonly mentioned: readonly string[];
}

/** Status of a new task. */
const firstStatus = (asked: string | undefined, assignedTo: string | null): string =>
  asked === undefined || asked === 'inbox' ? (assignedTo === null ? 'inbox' : 'assigned') : asked;

/** @throws AppError 400 for masks without a stored value, 403 for a task that would be done at once */
export function decideCreate(taskId: number, { fields, created_by, ticket, mentioned }: NewTask): EventDraft[] {
  const assignedTo = assigneeOf(fields.assigned_to);
  const task: TaskData = {
    ...NOTHING,
    ...ticket,
    ...fieldsOf(fields),
    assigned_to: assignedTo,
    created_by,
    status: firstStatus(fields.status, assignedTo),
    metadata: restored(fields.metadata ?? {}, {}, 'metadata') as TaskData['metadata'],
  };
  if (task.status === 'done') requireApproval({ id: taskId, approved: false });
  const created = taskCreated.draft({ task_id: taskId, task, source: 'api' });
  const told =
    mentioned.length === 0
      ? []
      : tellMentioned(taskDecider.evolve(initial, { at: 0, ...created }), mentioned, created_by);
  return [created, ...told, ...tellAssignee(taskId, task)];
}

/** Fields that are not simply set to the caller's value. */
const DECIDED: ReadonlySet<string> = new Set<keyof UpdateTask>([
  'status',
  'assigned_to',
  'created_by',
  'project_id',
  'metadata',
]);

/** The caller's fields of a task, without those that depend on the state of the task. */
export const fieldsOf = (fields: UpdateTask): Partial<TaskData> =>
  Object.fromEntries(Object.entries(fields).filter(([name, value]) => value !== undefined && !DECIDED.has(name)));

/** The lookups of commands about tasks. */
export interface TaskLookups {
  readonly projects: ProjectDirectory;
  readonly taskProjects: TaskProjects;
  readonly reads: Reads;
  /** The limit of recurring tasks in a workspace. */
  readonly recurring: Room;
}

/**
 * Creates a task.
 *
 * @returns its record
 * @throws AppError 400 for unknown mentions; 403 for one that would be done at once; 409 when there are too many
 *   recurring ones
 */
export function createTask(
  commands: Commands,
  context: CommandContext,
  lookups: Omit<TaskLookups, 'taskProjects'>,
  fields: CreateTask,
  createdBy: string,
): Promise<TaskRecord> {
  const make = () => makeTask(commands, context, lookups, fields, createdBy);
  return activeCron(fields.metadata ?? {}) === null ? make() : lookups.recurring(context, make);
}

async function makeTask(
  commands: Commands,
  context: CommandContext,
  { projects, reads }: Omit<TaskLookups, 'taskProjects'>,
  fields: CreateTask,
  createdBy: string,
): Promise<TaskRecord> {
  const { workspace } = context.origin;
  // Before a number is taken: a refused task leaves no gap in the numbers of its project.
  if (fields.status === 'done') requireApproval({ id: 0, approved: false });
  const { recipients } = await mentionedIn(reads, workspace, fields.description ?? '');
  const [id, { ticket, project }] = await Promise.all([
    reserveId(commands, context, 'task', (one) => taskStream(workspace, one)),
    takeTicket(commands, context, projects, fields.project_id),
  ]);
  const stream = taskStream(workspace, id);
  const decide = () => decideCreate(id, { fields, created_by: createdBy, ticket, mentioned: recipients });
  const executed = await commands.execute(taskDecider, stream, context, decide, { fresh: true });
  const { data, meta } = firstOf(executed.events, taskCreated) as EventOf<typeof taskCreated>;
  const created_at = seconds(meta.at);
  const record = taskRecord(data.task, { id, workspace, created_at, updated_at: created_at });
  return { ...record, ...projectFields(project, ticket.project_ticket_no) };
}

/** @throws AppError 404 */
export function decideDelete(state: TaskState): EventDraft[] {
  return [taskDeleted.draft({ ...ofTask(existing(state)), before: placeOf(state.task) })];
}
