/**
 * The live stream: one follower of the log per process, each event turned into frames and serialised once, any number
 * of clients.
 *
 * A frame's SSE id is the log position of its event; where one event gives several frames, those before the last are
 * `<position>.<n>`, so that a client that was cut between two of them misses and doubles nothing. A client that asks
 * for earlier events, or that reads too slowly for the live buffer, is fed from the log until it has caught up.
 */
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { Gauge, type Registry } from 'prom-client';
import { UnknownPositionError } from '../../shared/errors.ts';
import { type EventStore, EventUnreadableError } from '../../shared/event-store.ts';
import { catalogue } from '../../shared/events/catalogue.ts';
import type { DomainEvent } from '../../shared/events/define.ts';
import { BEGINNING, type LoggedEvent, type Position } from '../../shared/ports/event-log.ts';
import { framesOf, maskedFrame } from '../../shared/records.ts';

const HEARTBEAT_MS = 30_000;
/** Pauses after an event that cannot be read now, milliseconds. */
const RETRY = { firstMs: 100, lastMs: 2_000 };
/** Bytes that may wait in a client's connection before it is fed from the log instead of live. */
const CLIENT_BUFFER = 1_000_000;
/** Open streams per process. */
export const MAX_CLIENTS = 5_000;

/** A place in the stream: everything up to `position`, and `frames` frames of the event after it that is named. */
export interface StreamCursor {
  readonly position: Position;
  /** Frames already received of the event at `position`; undefined: all of them. */
  readonly frames?: number;
}

interface Frames {
  readonly position: Position;
  readonly workspace: number;
  readonly frames: readonly {
    readonly type: string;
    readonly text: string;
    /** For those who must not see secrets, where that is another text. */
    readonly masked?: string;
  }[];
}

interface Client {
  readonly res: ServerResponse;
  readonly workspace: number;
  readonly kinds: ReadonlySet<string> | undefined;
  /** Secrets are not masked. */
  readonly seesSecrets: boolean;
  /** The client has everything up to here. */
  position: Position;
  /** ... and these frames of one event behind it. */
  readonly received: StreamCursor | undefined;
  /** Live events are written at once; false while it is fed from the log. */
  live: boolean;
  readonly closed: AbortSignal;
}

export interface StreamHub {
  readonly clients: number;
  /**
   * Writes the stream to `res` until either side ends it. `after` undefined: from now on.
   *
   * @throws UnknownPositionError, before anything is written, when the log does not have `after`
   */
  serve(
    res: ServerResponse,
    options: {
      workspace: number;
      kinds: ReadonlySet<string> | undefined;
      after: StreamCursor | undefined;
      seesSecrets?: boolean;
    },
  ): Promise<void>;
  /** Ends all streams; clients reconnect elsewhere. */
  end(): void;
  close(): Promise<void>;
}

/** Parses `Last-Event-ID` or `?since=`. undefined when it is none of ours. */
export function parseCursor(text: string): StreamCursor | undefined {
  const match = /^(\d{1,16})(?:\.(\d{1,4}))?$/.exec(text.trim());
  if (!match) return undefined;
  const position = Number(match[1]);
  if (!Number.isSafeInteger(position)) return undefined;
  return match[2] === undefined ? { position } : { position, frames: Number(match[2]) };
}

export function createStreamHub(parts: { store: EventStore; log: Logger; metrics: Registry }): StreamHub {
  const { store, log } = parts;
  const clients = new Set<Client>();
  const closing = new AbortController();
  /** Position up to which live events have been handed out. */
  let tail: Position | undefined;
  let running: Promise<void> | undefined;
  let started: Promise<void> | undefined;

  new Gauge({
    name: 'signalbox_stream_clients',
    help: 'Open event streams',
    registers: [parts.metrics],
    collect() {
      this.set(clients.size);
    },
  });

  async function framesFor(logged: LoggedEvent): Promise<Frames | undefined> {
    const definition = catalogue.get(logged.type);
    if (!definition) return undefined;
    let event: DomainEvent;
    try {
      event = await store.decode(logged);
    } catch (error) {
      if (!(error instanceof EventUnreadableError)) throw error;
      // The read models report it as stuck; the stream goes on with what can be read.
      log.error({ err: error, position: logged.position }, 'an event cannot be streamed');
      return undefined;
    }
    const drafts = framesOf(definition, event);
    if (drafts.length === 0) return undefined;
    return {
      position: event.position,
      workspace: event.meta.workspace,
      frames: drafts.map((draft, index) => {
        const id = index === drafts.length - 1 ? `${event.position}` : `${event.position}.${index + 1}`;
        const { type, data } = draft;
        const textOf = (shown: object) =>
          `id: ${id}\ndata: ${JSON.stringify({ type, data: shown, timestamp: event.meta.at })}\n\n`;
        return { type, text: textOf(data), ...(draft.secrets && { masked: textOf(maskedFrame(draft)) }) };
      }),
    };
  }

  /** Writes what of an event the client wants and does not have. */
  function write(client: Client, { position, workspace, frames }: Frames): void {
    if (workspace === client.workspace) {
      const skip = client.received?.position === position ? (client.received.frames ?? 0) : 0;
      let text = '';
      for (const frame of frames.slice(skip)) {
        if (client.kinds && !client.kinds.has(frame.type)) continue;
        text += client.seesSecrets ? frame.text : (frame.masked ?? frame.text);
      }
      if (text !== '') client.res.write(text);
    }
    client.position = position;
  }

  function start(): Promise<void> {
    started ??= (async () => {
      tail = await store.log.head();
      running = follow(tail).catch((error) => {
        log.error({ err: error }, 'the log cannot be followed; clients have to resume');
        started = undefined;
        for (const client of clients) client.res.destroy();
      });
    })().catch((error) => {
      started = undefined;
      throw error;
    });
    return started;
  }

  /**
   * Follows until the hub is closed. What cannot be read now, as keys while their store is away, is tried again.
   *
   * @throws UnknownPositionError when the log is not the one that was followed
   */
  async function follow(after: Position): Promise<void> {
    tail = after;
    for (let wait = RETRY.firstMs; !closing.signal.aborted; wait = Math.min(wait * 2, RETRY.lastMs)) {
      const before: Position = tail;
      try {
        await followFrom(tail);
      } catch (error) {
        if (closing.signal.aborted) return;
        if (error instanceof UnknownPositionError) throw error;
        log.warn({ err: error, position: tail }, 'live events wait: the next one cannot be read now; trying again');
        if (tail > before) wait = RETRY.firstMs;
        await sleep(wait, undefined, { signal: closing.signal }).catch(() => undefined);
      }
    }
  }

  async function followFrom(after: Position): Promise<void> {
    for await (const step of store.log.follow({ after, signal: closing.signal })) {
      for (const logged of step.events) {
        if (clients.size > 0) {
          const frames = await framesFor(logged);
          for (const client of clients) {
            // A client can have come from a process that was further on.
            if (!client.live || logged.position <= client.position) continue;
            if (client.res.writableLength > CLIENT_BUFFER) {
              client.live = false;
              feed(client).catch(() => client.res.destroy());
            } else if (frames) write(client, frames);
            else client.position = logged.position;
          }
        }
        tail = logged.position;
      }
    }
  }

  /** Feeds a client from the log until it has caught up with the live events, then makes it live. */
  async function feed(client: Client): Promise<void> {
    try {
      while (!client.closed.aborted) {
        reading: for await (const batch of store.log.readAll({ from: client.position })) {
          for (const logged of batch) {
            // What is behind the tail comes live.
            if (logged.position > (tail ?? 0)) break reading;
            const frames = await framesFor(logged);
            if (frames) write(client, frames);
            else client.position = logged.position;
            if (client.res.writableLength > CLIENT_BUFFER) await drained(client);
            if (client.closed.aborted) return;
          }
        }
        // No await between the comparison and the switch: the follower cannot run in between.
        if (client.position >= (tail ?? 0)) {
          client.live = true;
          return;
        }
      }
    } catch (error) {
      log.warn({ err: error }, 'a stream could not be fed from the log; the client has to resume');
      client.res.destroy();
    }
  }

  /** @throws UnknownPositionError */
  async function checkPosition(position: Position): Promise<void> {
    for await (const _ of store.log.readAll({ from: position, limit: 0 })) return;
  }

  async function positionBefore(position: Position): Promise<Position> {
    for await (const [event] of store.log.readAll({ direction: 'backwards', from: position, limit: 1 })) {
      if (event) return event.position;
    }
    return BEGINNING;
  }

  function drained(client: Client): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        client.res.off('drain', done);
        client.closed.removeEventListener('abort', done);
        resolve();
      };
      client.res.once('drain', done);
      client.closed.addEventListener('abort', done, { once: true });
    });
  }

  const heartbeat = setInterval(() => {
    for (const client of clients) if (client.res.writableLength === 0) client.res.write(': heartbeat\n\n');
  }, HEARTBEAT_MS);
  heartbeat.unref();

  return {
    get clients() {
      return clients.size;
    },
    async serve(res, { workspace, kinds, after, seesSecrets = false }) {
      const closed = new AbortController();
      res.once('close', () => closed.abort());
      await start();
      if (after) await checkPosition(after.position);
      // A cursor inside an event starts before that event; the frames received are not written again.
      const received = after?.frames === undefined ? undefined : after;
      const position = received ? await positionBefore(received.position) : (after?.position ?? tail ?? 0);
      if (closed.signal.aborted) return;
      const client: Client = {
        res,
        workspace,
        kinds,
        seesSecrets,
        position,
        received,
        live: !after,
        closed: closed.signal,
      };
      closed.signal.addEventListener('abort', () => clients.delete(client), { once: true });
      res.writeHead(200, {
        'Content-Type': 'text/event-stream',
        'Cache-Control': 'no-cache, no-transform',
        Connection: 'keep-alive',
        'X-Accel-Buffering': 'no',
      });
      // The first frame carries no id: it is no event, and must not move a client's Last-Event-ID.
      res.write(`data: ${JSON.stringify({ type: 'connected', data: null, timestamp: Date.now() })}\n\n`);
      clients.add(client);
      if (!client.live) feed(client).catch(() => client.res.destroy());
    },
    end() {
      for (const client of clients) client.res.end();
    },
    async close() {
      clearInterval(heartbeat);
      closing.abort();
      for (const client of clients) client.res.destroy();
      await running;
    },
  };
}
