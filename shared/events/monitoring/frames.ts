/** The frames that an event produces in the live stream: its own, its notification's, its activity's. */
import { masked } from '../../secrets.ts';
import type { DomainEvent, EventDefinition, FrameDraft } from '../define.ts';
import { activityOf } from './activities.ts';
import { notificationOf } from './notifications.ts';

/** All frames of an event, in the order in which they are sent. */
export function framesOf(definition: EventDefinition, event: DomainEvent): readonly FrameDraft[] {
  const frames: FrameDraft[] = [...(definition.frames?.(event) ?? [])];
  const notification = notificationOf(definition, event);
  if (notification) frames.push({ type: 'notification.created', data: { ...notification } });
  const activity = activityOf(definition, event);
  if (activity) frames.push({ type: 'activity.created', data: { metadata: activity.data, ...activity } });
  return frames.map((frame) => ({ ...frame, data: { ...frame.data, workspace_id: event.meta.workspace } }));
}

/** The data of a frame, for callers who may not see secrets. */
export function maskedFrame({ data, secrets = [] }: FrameDraft): FrameDraft['data'] {
  const given = Object.fromEntries(secrets.filter((key) => key in data).map((key) => [key, data[key]]));
  return { ...data, ...(masked(given) as typeof given) };
}
