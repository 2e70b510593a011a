/**
 * Turns events into the frames that are sent, serialised once for all clients.
 *
 * A frame's SSE id is the log position of its event. If an event has several frames, those before the last have
 * `<position>.<n>`, so that a client cut off between two of them neither misses a frame nor gets one twice.
 */
import type { Logger } from 'pino';
import { EventUnreadableError } from '../../shared/errors.ts';
import { catalogue } from '../../shared/events/catalogue.ts';
import type { DomainEvent } from '../../shared/events/define.ts';
import {
  type FrameNames,
  framesOf,
  maskedFrame,
  NOTIFICATION,
  shownFrames,
  taskOf,
} from '../../shared/events/monitoring/frames.ts';
import { type Role, reaches, seesTask, type TaskOwners, type TaskView } from '../../shared/identity.ts';
import type { LoggedEvent, Position } from '../../shared/ports/event-log.ts';
import { createOwners } from './owners.ts';
import type { StreamSource } from './source.ts';

/** A place in the stream: after the event at `position`, or after only some of its frames. */
export interface StreamCursor {
  readonly position: Position;
  /** How many frames of the event at `position` the client has; undefined when it has all of them. */
  readonly frames?: number;
}

/** Parses `Last-Event-ID` or `?since=`; undefined if it is not an id of this stream. */
export function parseCursor(text: string): StreamCursor | undefined {
  const match = /^(\d{1,16})(?:\.(\d{1,4}))?$/.exec(text.trim());
  if (!match) return undefined;
  const position = Number(match[1]);
  if (!Number.isSafeInteger(position)) return undefined;
  return match[2] === undefined ? { position } : { position, frames: Number(match[2]) };
}

export interface Frame {
  readonly type: string;
  /** The lowest role that gets the frame. */
  readonly role: Role;
  /** The frame as sent. Shared by all clients, so it must not be modified. */
  readonly bytes: Buffer;
  /** The recipient, if the frame is about a notification. */
  readonly recipient?: string;
}

export interface EventFrames {
  readonly position: Position;
  /** When it happened, Unix ms. */
  readonly at: number;
  readonly workspace: number;
  /** The task that the frames are about; null: a task with unknown owners. */
  readonly task?: number | null;
  /** The owners of that task at that time. Undefined: no task, or not looked up; no caller then gets the frames as an owner. */
  readonly owners?: TaskOwners;
  readonly frames: readonly Frame[];
  /** Bytes of all frames. */
  readonly size: number;
}

/** A client, and the frames that it asked for. */
export interface Audience {
  readonly role: Role;
  /** The client's workspace, and the tasks in it that the client may see. */
  readonly view: TaskView;
  /** The client gets only the notifications of this recipient; undefined: those of every recipient. */
  readonly recipient: string | undefined;
  /** Types of frames; undefined for all. */
  readonly kinds: ReadonlySet<string> | undefined;
  /** Where the client resumes. */
  readonly after: StreamCursor | undefined;
  /** The client gets no earlier events, Unix ms. */
  readonly notBefore: number;
  /** The client gets no earlier notifications, because they are for an earlier owner of its name. */
  readonly ownAfter: Position;
}

/** A frame about a notification goes to its recipient, every other frame about a task to those who may see the task. */
function isFor(client: Audience, { task, owners, position }: EventFrames, frame: Frame): boolean {
  const { view, recipient, ownAfter } = client;
  if (frame.recipient === undefined) return task === undefined || view.agent === null || isOwner(view, owners);
  // People find delivered notifications in the chat as well.
  const only = view.agent?.name ?? (frame.type === NOTIFICATION ? recipient : undefined);
  return only === undefined || (frame.recipient === only && position > ownAfter);
}

const isOwner = (view: TaskView, owners: TaskOwners | undefined): boolean =>
  owners !== undefined && seesTask(view, owners);

/** Whether this client gets the frames only if the task is its own, so that the owners must be looked up. */
export const needsOwners = ({ view }: Audience, event: EventFrames): boolean =>
  view.agent !== null && view.workspace === event.workspace && typeof event.task === 'number';

/** The frames of an event that this client may see, wants, and does not have yet. */
export function framesFor(client: Audience, event: EventFrames): readonly Frame[] {
  const { role, view, kinds, after, notBefore } = client;
  if (event.workspace !== view.workspace || event.at < notBefore) return [];
  const skip = after?.position === event.position ? (after.frames ?? 0) : 0;
  return event.frames
    .slice(skip)
    .filter((frame) => reaches(role, frame.role) && (kinds === undefined || kinds.has(frame.type)))
    .filter((frame) => isFor(client, event, frame));
}

export interface Framing {
  /** Whether this event could have frames for any client in the workspace. If not, it need not be decoded. */
  concerns(logged: LoggedEvent, workspace: number): boolean;
  /** Undefined when the event has no frames. @throws what `StreamSource.decode` throws for an event that cannot be read now */
  frames(logged: LoggedEvent): Promise<EventFrames | undefined>;
  /** The same frames with the owners of their task. @throws what `StreamSource.stream` throws */
  owned(event: EventFrames): Promise<EventFrames>;
}

export function createFraming(
  source: Pick<StreamSource, 'decode' | 'stream'>,
  log: Logger,
  names: FrameNames,
): Framing {
  const owners = createOwners(source);
  const typesWithFrames = new Set(
    [...catalogue.values()]
      .filter(({ frames, notification, activity }) => frames ?? notification ?? activity)
      .map(({ type }) => type),
  );
  return {
    concerns: ({ type, meta }, workspace) => typesWithFrames.has(type) && meta.workspace === workspace,
    async frames(logged) {
      const definition = catalogue.get(logged.type);
      if (!definition) return undefined;
      let event: DomainEvent;
      try {
        event = await source.decode(logged);
      } catch (error) {
        if (!(error instanceof EventUnreadableError)) throw error;
        // Read models that need this event report that they are stuck; the stream skips it and continues.
        log.error({ err: error, position: logged.position }, 'skipped an event that cannot be read');
        return undefined;
      }
      const drafts = await shownFrames(framesOf(definition, event), event, names);
      if (drafts.length === 0) return undefined;
      const { position, meta } = event;
      const frames = drafts.map((draft, index): Frame => {
        const { type, role = 'viewer', recipient } = draft;
        const id = index === drafts.length - 1 ? `${position}` : `${position}.${index + 1}`;
        // Clients may resume long afterwards, so no frame has secrets, for admins neither.
        const data = draft.secrets ? maskedFrame(draft) : draft.data;
        const bytes = Buffer.from(`id: ${id}\ndata: ${JSON.stringify({ type, data, timestamp: meta.at })}\n\n`);
        return {
          type,
          role,
          bytes,
          ...(recipient !== undefined && { recipient }),
        };
      });
      const task = taskOf(event, drafts);
      const size = frames.reduce((sum, { bytes }) => sum + bytes.length, 0);
      return { position, at: meta.at, workspace: meta.workspace, frames, size, ...(task !== undefined && { task }) };
    },
    async owned(event) {
      if (typeof event.task !== 'number') return event;
      const found = await owners.at(event.workspace, event.task, event.position);
      return found ? { ...event, owners: found } : event;
    },
  };
}
