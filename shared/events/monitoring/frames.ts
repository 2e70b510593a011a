/** The frames that an event produces in the live stream: its own, its notification's, its activity's. */

import { withName } from '../../names.ts';
import type { ReadAt } from '../../ports/read-models.ts';
import { masked } from '../../secrets.ts';
import { seconds } from '../../time.ts';
import type { DomainEvent, EventDefinition, FrameDraft } from '../define.ts';
import type { Metadata } from '../metadata.ts';
import { projectFields, type TaskProject, taskOfStream } from '../tasks/tasks.ts';
import { activityOf, peopleOfActivity } from './activities.ts';
import { notificationOf } from './notifications.ts';

/** The frame of a notification. */
export const NOTIFICATION = 'notification.created';

/** All frames of an event, in the order in which they are sent. */
export function framesOf(definition: EventDefinition, event: DomainEvent): readonly FrameDraft[] {
  const frames: FrameDraft[] = [...(definition.frames?.(event) ?? [])];
  const notification = notificationOf(definition, event);
  if (notification) {
    const by = definition.notification?.(event)?.by;
    const { recipient } = notification;
    frames.push({ type: NOTIFICATION, data: { ...notification }, recipient, ...(by && { people: [by] }) });
  }
  const activity = activityOf(definition, event);
  if (activity) {
    const people = peopleOfActivity(activity);
    frames.push({ type: 'activity.created', data: { metadata: activity.data, ...activity }, people });
  }
  const recipient = definition.recipient?.(event);
  return frames.map((frame) => ({
    ...frame,
    ...(recipient !== undefined && { recipient }),
    data: { ...frame.data, workspace_id: event.meta.workspace },
  }));
}

/**
 * The task that the frames of an event are about. Null: a task whose owners are not known, such as a task of another
 * system that an adapter reports about. Undefined: none.
 *
 * It follows from the stream and the data of the event, so that an event about a task cannot omit it.
 */
export function taskOf(event: DomainEvent, frames: readonly FrameDraft[]): number | null | undefined {
  const own = taskOfStream(event.stream);
  if (own !== undefined) return own;
  const { task_id: taskId } = event.data;
  if (typeof taskId === 'number') return taskId;
  return frames.some(({ type }) => type.startsWith('task.')) ? null : undefined;
}

/** How a name in a record is displayed. @param at when the record was written, Unix seconds */
export type ShownAs = (name: string, at: number) => string;

/** Lookups of names that frames show. */
export interface FrameNames {
  readonly people: { of(workspace: number, names: readonly string[]): Promise<ShownAs> };
  readonly projects: { at(workspace: number, at: ReadAt): Promise<(id: number) => Promise<TaskProject | undefined>> };
}

/** The frames with display names of users, and tasks with the names of their projects. */
export async function shownFrames(
  drafts: readonly FrameDraft[],
  event: Pick<DomainEvent, 'position'> & { readonly meta: Pick<Metadata, 'workspace' | 'at'> },
  names: FrameNames,
): Promise<readonly FrameDraft[]> {
  const { workspace, at } = event.meta;
  const frames = await Promise.all(drafts.map((draft) => ticketed(draft, event, names)));
  const people = frames.flatMap((frame) => frame.people ?? []);
  if (people.length === 0) return frames;
  const shownAs = await names.people.of(
    workspace,
    people.map(({ username }) => username),
  );
  const written = seconds(at);
  return frames.map((frame) => {
    const shown: Record<string, unknown> = {};
    for (const { key, username } of frame.people ?? []) {
      const text = frame.data[key];
      // A task may be older than the event about it.
      const since = typeof frame.data.created_at === 'number' ? frame.data.created_at : written;
      if (typeof text === 'string') shown[key] = withName(text, username, shownAs(username, since));
    }
    return { ...frame, data: { ...frame.data, ...shown } };
  });
}

/** Milliseconds. */
const RECENT = 1_000;

async function ticketed(
  frame: FrameDraft,
  { position, meta }: Parameters<typeof shownFrames>[1],
  { projects }: FrameNames,
): Promise<FrameDraft> {
  if (!frame.ticket) return frame;
  const { project_id, project_ticket_no } = frame.ticket;
  // A recent response of the store is enough if it includes this event: not every event needs a query.
  const projectOf = await projects.at(meta.workspace, { since: performance.now() - RECENT, position });
  return { ...frame, data: { ...frame.data, ...projectFields(await projectOf(project_id), project_ticket_no) } };
}

/** The data of a frame without its secrets. */
export function maskedFrame({ data, secrets = [] }: FrameDraft): FrameDraft['data'] {
  const given = Object.fromEntries(secrets.filter((key) => key in data).map((key) => [key, data[key]]));
  return { ...data, ...(masked(given) as typeof given) };
}
