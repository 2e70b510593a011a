/**
 * Turns events into the frames that are sent, serialised once for all clients.
 *
 * A frame's SSE id is the log position of its event. Where an event gives several frames, those before the last have
 * `<position>.<n>`, so that a client cut off between two of them neither misses a frame nor gets one twice.
 */
import type { Logger } from 'pino';
import { EventUnreadableError } from '../../shared/event-store.ts';
import { catalogue } from '../../shared/events/catalogue.ts';
import type { DomainEvent } from '../../shared/events/define.ts';
import { framesOf, maskedFrame } from '../../shared/events/monitoring/frames.ts';
import { type Role, reaches } from '../../shared/identity.ts';
import type { LoggedEvent, Position } from '../../shared/ports/event-log.ts';
import type { StreamSource } from './source.ts';

/** A place in the stream: after the event at `position`, or after only some of its frames. */
export interface StreamCursor {
  readonly position: Position;
  /** How many frames of the event at `position` the client has; undefined when it has all of them. */
  readonly frames?: number;
}

/** Parses `Last-Event-ID` or `?since=`. Undefined when it is not an id of ours. */
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
  /** The frame for callers who must not see secrets, where it differs. */
  readonly masked?: Buffer;
}

/** The form of a frame that a client gets. */
export type Piece = Pick<Frame, 'bytes'>;

export interface EventFrames {
  readonly position: Position;
  readonly workspace: number;
  readonly frames: readonly Frame[];
  /** Bytes of all frames, in both forms. */
  readonly size: number;
}

/** Who is listening, and to what. */
export interface Audience {
  readonly workspace: number;
  readonly role: Role;
  /** Types of frames; undefined for all. */
  readonly kinds: ReadonlySet<string> | undefined;
  /** Where the client resumes. */
  readonly after: StreamCursor | undefined;
}

/** The frames of an event that this client may see, wants, and does not have yet. */
export function framesFor({ workspace, role, kinds, after }: Audience, event: EventFrames): readonly Piece[] {
  if (event.workspace !== workspace) return [];
  const skip = after?.position === event.position ? (after.frames ?? 0) : 0;
  return event.frames
    .slice(skip)
    .filter((frame) => reaches(role, frame.role) && (kinds === undefined || kinds.has(frame.type)))
    .map((frame) => (role === 'admin' ? frame : { bytes: frame.masked ?? frame.bytes }));
}

export interface Framing {
  /** Whether this event could give frames to anybody in the workspace. If not, it need not be decoded. */
  concerns(logged: LoggedEvent, workspace: number): boolean;
  /** Undefined when the event has no frames. @throws what `StreamSource.decode` throws for an event that cannot be read now */
  frames(logged: LoggedEvent): Promise<EventFrames | undefined>;
}

export function createFraming(source: Pick<StreamSource, 'decode'>, log: Logger): Framing {
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
        // Read models that need this event report that they are stuck; the stream skips it and goes on.
        log.error({ err: error, position: logged.position }, 'skipped an event that cannot be read');
        return undefined;
      }
      const drafts = framesOf(definition, event);
      if (drafts.length === 0) return undefined;
      const { position, meta } = event;
      const frames = drafts.map((draft, index): Frame => {
        const { type, role = 'viewer' } = draft;
        const id = index === drafts.length - 1 ? `${position}` : `${position}.${index + 1}`;
        const bytesOf = (data: object) =>
          Buffer.from(`id: ${id}\ndata: ${JSON.stringify({ type, data, timestamp: meta.at })}\n\n`);
        const bytes = bytesOf(draft.data);
        const masked = draft.secrets && bytesOf(maskedFrame(draft));
        return { type, role, bytes, ...(masked && !masked.equals(bytes) && { masked }) };
      });
      const size = frames.reduce((sum, { bytes, masked }) => sum + bytes.length + (masked?.length ?? 0), 0);
      return { position, workspace: meta.workspace, frames, size };
    },
  };
}
