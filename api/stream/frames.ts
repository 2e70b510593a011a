/**
 * Frames as they are sent: what an event gives the stream, serialised once for all clients.
 *
 * A frame's SSE id is the log position of its event; where one event gives several frames, those before the last are
 * `<position>.<n>`, so that a client that was cut between two of them misses and doubles nothing.
 */
import type { Logger } from 'pino';
import { EventUnreadableError } from '../../shared/event-store.ts';
import { catalogue } from '../../shared/events/catalogue.ts';
import type { DomainEvent } from '../../shared/events/define.ts';
import { type Role, reaches } from '../../shared/identity.ts';
import type { LoggedEvent, Position } from '../../shared/ports/event-log.ts';
import { framesOf, maskedFrame } from '../../shared/records.ts';
import type { StreamSource } from './source.ts';

/** A place in the stream: everything up to `position`, and `frames` frames of the event after it that is named. */
export interface StreamCursor {
  readonly position: Position;
  /** Frames already received of the event at `position`; undefined: all of them. */
  readonly frames?: number;
}

/** Parses `Last-Event-ID` or `?since=`. undefined when it is none of ours. */
export function parseCursor(text: string): StreamCursor | undefined {
  const match = /^(\d{1,16})(?:\.(\d{1,4}))?$/.exec(text.trim());
  if (!match) return undefined;
  const position = Number(match[1]);
  if (!Number.isSafeInteger(position)) return undefined;
  return match[2] === undefined ? { position } : { position, frames: Number(match[2]) };
}

export interface Frame {
  readonly type: string;
  /** Callers below it do not get the frame. */
  readonly role: Role;
  /** As it is sent. Shared by all clients: must not be changed. */
  readonly bytes: Buffer;
  /** For those who must not see secrets, where that is another text. */
  readonly masked?: Buffer;
}

/** What a client gets of a frame. */
export type Piece = Pick<Frame, 'bytes'>;

export interface EventFrames {
  readonly position: Position;
  readonly workspace: number;
  readonly frames: readonly Frame[];
  /** Bytes of all frames, in every form. */
  readonly size: number;
}

/** Who listens, and to what. */
export interface Audience {
  readonly workspace: number;
  readonly role: Role;
  /** Types of frames; undefined: all. */
  readonly kinds: ReadonlySet<string> | undefined;
  /** Where the stream is taken up again. */
  readonly after: StreamCursor | undefined;
}

/** The frames of an event that this client may have, wants, and does not have yet. */
export function framesFor({ workspace, role, kinds, after }: Audience, event: EventFrames): readonly Piece[] {
  if (event.workspace !== workspace) return [];
  const skip = after?.position === event.position ? (after.frames ?? 0) : 0;
  return event.frames
    .slice(skip)
    .filter((frame) => reaches(role, frame.role) && (kinds === undefined || kinds.has(frame.type)))
    .map((frame) => (role === 'admin' ? frame : { bytes: frame.masked ?? frame.bytes }));
}

export interface Framing {
  /** Could this event give frames to anybody in the workspace? What cannot need not be read. */
  concerns(logged: LoggedEvent, workspace: number): boolean;
  /** Undefined when the event gives none. @throws what `StreamSource.decode` throws when the event cannot be read now */
  frames(logged: LoggedEvent): Promise<EventFrames | undefined>;
}

export function createFraming(source: Pick<StreamSource, 'decode'>, log: Logger): Framing {
  const telling = new Set(
    [...catalogue.values()]
      .filter(({ frames, notification, activity }) => frames ?? notification ?? activity)
      .map(({ type }) => type),
  );
  return {
    concerns: ({ type, meta }, workspace) => telling.has(type) && meta.workspace === workspace,
    async frames(logged) {
      const definition = catalogue.get(logged.type);
      if (!definition) return undefined;
      let event: DomainEvent;
      try {
        event = await source.decode(logged);
      } catch (error) {
        if (!(error instanceof EventUnreadableError)) throw error;
        // The read models report it as stuck; the stream goes on with what can be read.
        log.error({ err: error, position: logged.position }, 'an event cannot be streamed');
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
