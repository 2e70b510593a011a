/**
 * The live stream: one follower of the log per process, each event turned into frames once, any number of clients.
 *
 * A client that asks for earlier events, or that reads too slowly for the live buffer, is fed from the log, page by
 * page, until it has caught up. What all clients together make the process hold is bounded in bytes (`limits.ts`).
 */
import type { ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { Gauge, type Registry } from 'prom-client';
import { UnknownPositionError } from '../../shared/errors.ts';
import type { Identity } from '../../shared/identity.ts';
import type { LoggedEvent, Position } from '../../shared/ports/event-log.ts';
import type { HeldCredential } from '../auth/known.ts';
import type { CredentialCheck } from '../auth/recheck.ts';
import { createBudget } from './budget.ts';
import { type Connection, openConnection } from './connection.ts';
import { type Audience, createFraming, type EventFrames, framesFor, type StreamCursor } from './frames.ts';
import { createTurnstile, ownerOf, STREAM_LIMITS, type StreamLimits } from './limits.ts';
import type { StreamSource } from './source.ts';
import { type Watched, watchCredentials } from './watch.ts';

const HEARTBEAT_MS = 30_000;
const HEARTBEAT = Buffer.from(': heartbeat\n\n');
/** Pauses after an event that cannot be read now, milliseconds. */
const RETRY = { firstMs: 100, lastMs: 2_000 };
/** Pause when the log has moved on but its reader does not show it yet, milliseconds. */
const NOTHING_MS = 50;

interface Client extends Audience {
  readonly connection: Connection;
  /** Live events are written at once; false while it is fed from the log. */
  live: boolean;
  /** Not live: the client has everything up to here. Live: everything up to here or to the tail, whichever is later. */
  position: Position;
  /** Bytes of live frames that wait in the connection. */
  liveBytes: number;
}

export interface StreamRequest {
  readonly identity: Identity;
  readonly credential: HeldCredential;
  /** Address of the client. */
  readonly ip: string;
  /** Types of frames; undefined: all. */
  readonly kinds: ReadonlySet<string> | undefined;
  /** undefined: from now on. */
  readonly after: StreamCursor | undefined;
}

export interface StreamHub {
  readonly clients: number;
  /** Bytes held for all clients: pages that are being read, and frames that wait in connections. */
  readonly held: number;
  /**
   * Writes the stream to `res` until either side ends it.
   *
   * @throws before anything is written: AppError 429 or 503 when there are too many; UnknownPositionError when the log
   *   does not have `after`
   */
  serve(res: ServerResponse, request: StreamRequest): Promise<void>;
  /** Ends all streams; clients reconnect elsewhere. */
  end(): void;
  close(): Promise<void>;
}

export function createStreamHub(parts: {
  source: StreamSource;
  credentials: CredentialCheck;
  log: Logger;
  metrics: Registry;
  now?: () => number;
  limits?: Partial<StreamLimits>;
  /** See `watchCredentials`. */
  watch?: { readonly everyMs?: number; readonly uncheckedMs?: number };
}): StreamHub {
  const { source, log, now = Date.now } = parts;
  const limits: StreamLimits = { ...STREAM_LIMITS, ...parts.limits };
  const clients = new Set<Client>();
  const turnstile = createTurnstile(limits);
  const framing = createFraming(source, log);
  const budget = createBudget({ ...limits, bytes: limits.catchUpBytes });
  const watch = watchCredentials({ check: parts.credentials, log, now, ...parts.watch });
  const closing = new AbortController();
  /** How many writes of an event wait, while any does. */
  const waitingLive = new Map<EventFrames, number>();
  let liveBytes = 0;
  /** Position up to which live events have been handed out. */
  let tail: Position | undefined;
  let running: Promise<void> | undefined;
  let started: Promise<void> | undefined;

  const held = () => liveBytes + budget.held;
  const gauges: readonly (readonly [name: string, help: string, value: () => number])[] = [
    ['signalbox_stream_clients', 'Open event streams', () => clients.size],
    ['signalbox_stream_held_bytes', 'Bytes held for open event streams', held],
  ];
  for (const [name, help, value] of gauges) {
    new Gauge({
      name,
      help,
      registers: [parts.metrics],
      collect() {
        this.set(value());
      },
    });
  }

  // --- Live -----------------------------------------------------------------------------------------------------------

  function start(): Promise<void> {
    started ??= (async () => {
      tail = await source.head();
      running = follow(tail).catch((error) => {
        log.error({ err: error }, 'the log cannot be followed; clients have to resume');
        started = undefined;
        for (const { connection } of clients) connection.drop();
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
        for await (const { events } of source.follow({ after: tail, signal: closing.signal })) {
          for (const logged of events) {
            await handOut(logged);
            tail = logged.position;
          }
        }
      } catch (error) {
        if (closing.signal.aborted) return;
        if (error instanceof UnknownPositionError) throw error;
        log.warn({ err: error, position: tail }, 'live events wait: the next one cannot be read now; trying again');
        if (tail > before) wait = RETRY.firstMs;
        await sleep(wait, undefined, { signal: closing.signal }).catch(() => undefined);
      }
    }
  }

  async function handOut(logged: LoggedEvent): Promise<void> {
    const concerned = ({ live, workspace }: Client) => live && framing.concerns(logged, workspace);
    if (![...clients].some(concerned)) return;
    const event = await framing.frames(logged);
    if (!event) return;
    for (const client of clients) {
      // A client can have come from a process that was further on.
      if (client.live && logged.position > client.position) writeLive(client, event);
    }
  }

  function writeLive(client: Client, event: EventFrames): void {
    const frames = framesFor(client, event);
    if (frames.length === 0) return;
    const { connection } = client;
    const late = connection.waitingSince !== undefined && Date.now() - connection.waitingSince > limits.stallMs / 3;
    if (late || (connection.waiting > 0 && connection.waiting + event.size > limits.clientBytes)) {
      // What is written in between would make a client that has stopped reading look alive.
      client.live = false;
      client.position = Math.max(client.position, tail ?? 0);
      feed(client);
      return;
    }
    if (!waitingLive.has(event)) makeRoom(event.size);
    for (const { bytes } of frames) {
      client.liveBytes += bytes.length;
      hold(event);
      connection.send(bytes, () => {
        client.liveBytes -= bytes.length;
        release(event);
      });
    }
  }

  /** The frames of an event are shared by all connections that they wait in. */
  function hold(event: EventFrames): void {
    const count = waitingLive.get(event) ?? 0;
    if (count === 0) liveBytes += event.size;
    waitingLive.set(event, count + 1);
  }

  function release(event: EventFrames): void {
    const left = (waitingLive.get(event) ?? 1) - 1;
    if (left > 0) {
      waitingLive.set(event, left);
      return;
    }
    waitingLive.delete(event);
    liveBytes -= event.size;
  }

  /** Cuts off whoever has kept live frames waiting the longest, until there is room. */
  function makeRoom(bytes: number): void {
    while (liveBytes + bytes > limits.liveBytes) {
      let slowest: Client | undefined;
      for (const client of clients) {
        const since = client.connection.waitingSince;
        if (client.liveBytes > 0 && since !== undefined && since < (slowest?.connection.waitingSince ?? Infinity)) {
          slowest = client;
        }
      }
      if (!slowest) return;
      log.warn({ held: liveBytes }, 'a stream was cut off to make room: its client reads the slowest');
      slowest.connection.drop();
    }
  }

  // --- Catching up ----------------------------------------------------------------------------------------------------

  /** Feeds a client from the log until it has caught up with the live events, then makes it live. */
  function feed(client: Client): void {
    catchUp(client).catch((error: unknown) => {
      log.warn({ err: error }, 'a stream could not be fed from the log; the client has to resume');
      client.connection.drop();
    });
  }

  async function catchUp(client: Client): Promise<void> {
    const { connection } = client;
    for (;;) {
      // Nothing is read before all that was written has left: a client holds one page at most.
      await connection.drained();
      const leave = await budget.enter(connection.closed);
      if (!leave) return;
      const before = client.position;
      try {
        await feedPage(client);
      } finally {
        leave();
      }
      if (connection.closed.aborted) return;
      // No await between the comparison and the switch: the follower cannot run in between.
      if (client.position >= (tail ?? 0)) {
        client.live = true;
        return;
      }
      if (client.position === before) await sleep(NOTHING_MS, undefined, { signal: connection.closed }).catch(() => {});
    }
  }

  async function feedPage(client: Client): Promise<void> {
    const { connection } = client;
    let written = 0;
    for (const logged of await source.page(client.position, limits.pageBytes)) {
      // What is behind the tail comes live.
      if (logged.position > (tail ?? 0)) return;
      const event = framing.concerns(logged, client.workspace) ? await framing.frames(logged) : undefined;
      if (connection.closed.aborted) return;
      const frames = event ? framesFor(client, event) : [];
      const size = frames.reduce((sum, { bytes }) => sum + bytes.length, 0);
      // Frames can be larger than their events: then the rest is read again.
      if (written > 0 && written + size > limits.pageBytes) return;
      for (const { bytes } of frames) {
        budget.hold(bytes.length);
        connection.send(bytes, () => budget.free(bytes.length));
      }
      written += size;
      client.position = logged.position;
    }
  }

  // --- Clients --------------------------------------------------------------------------------------------------------

  const heartbeat = setInterval(() => {
    for (const { connection } of clients) if (connection.waiting === 0) connection.send(HEARTBEAT);
  }, HEARTBEAT_MS);
  heartbeat.unref();

  return {
    get clients() {
      return clients.size;
    },
    get held() {
      return held();
    },
    async serve(res, { identity, credential, ip, kinds, after }) {
      const leave = turnstile.enter(ownerOf(identity, ip, limits));
      const connection = openConnection(res, limits.stallMs, () =>
        log.info({ caller: identity.username, ip }, 'a stream was cut off: its client does not read'),
      );
      connection.closed.addEventListener('abort', leave, { once: true });
      let position: Position;
      try {
        await start();
        if (after) await source.checkPosition(after.position);
        // A cursor inside an event starts before that event; the frames received are not written again.
        position =
          after?.frames !== undefined ? await source.positionBefore(after.position) : (after?.position ?? tail ?? 0);
      } catch (error) {
        leave();
        throw error;
      }
      if (connection.closed.aborted) return;
      const { workspace, role } = identity;
      const client: Client = { workspace, role, kinds, after, connection, position, live: !after, liveBytes: 0 };
      const watched: Watched = { identity, credential, end: (comment) => connection.end(comment) };
      connection.closed.addEventListener(
        'abort',
        () => {
          clients.delete(client);
          watch.remove(watched);
        },
        { once: true },
      );
      res.writeHead(200, {
        'Content-Type': 'text/event-stream',
        'Cache-Control': 'no-cache, no-transform',
        Connection: 'keep-alive',
        'X-Accel-Buffering': 'no',
      });
      // The first frame carries no id: it is no event, and must not move a client's Last-Event-ID.
      const connected = { type: 'connected', data: null, timestamp: now() };
      connection.send(Buffer.from(`data: ${JSON.stringify(connected)}\n\n`));
      clients.add(client);
      watch.add(watched);
      if (!client.live) feed(client);
    },
    end() {
      for (const { connection } of clients) connection.end();
    },
    async close() {
      clearInterval(heartbeat);
      closing.abort();
      for (const { connection } of clients) connection.drop();
      await watch.close();
      await running;
    },
  };
}
