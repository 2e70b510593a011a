/**
 * The live stream: one follower of the log per process turns each event into frames once, for any number of clients.
 *
 * A client that asks for earlier events, or reads too slowly for live delivery, is fed from the log page by page until it
 * has caught up. The memory held for all clients together is bounded (`limits.ts`).
 */
import type { ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import { Gauge, type Registry } from 'prom-client';
import { UnknownPositionError } from '../../shared/errors.ts';
import type { FrameNames } from '../../shared/events/monitoring/frames.ts';
import { type Identity, onlyRecipientOf, taskViewOf } from '../../shared/identity.ts';
import { BEGINNING, type LoggedEvent, type Position } from '../../shared/ports/event-log.ts';
import { createBackOff, createOutage, nextPiece, pause } from '../../shared/waiting.ts';
import type { HeldCredential } from '../auth/known.ts';
import type { CredentialCheck } from '../auth/recheck.ts';
import { createBudget } from './budget.ts';
import { type Connection, openConnection } from './connection.ts';
import { type Audience, createFraming, type EventFrames, framesFor, needsOwners, type StreamCursor } from './frames.ts';
import { createTurnstile, ownerOf, STREAM_LIMITS, type StreamLimits } from './limits.ts';
import type { Past } from './past.ts';
import type { StreamSource } from './source.ts';
import { type Watched, watchCredentials } from './watch.ts';

/** Below the shortest idle time-out of common proxies and polyfills, milliseconds. */
const HEARTBEAT_MS = 15_000;
const HEARTBEAT = Buffer.from(': heartbeat\n\n');
/** Pauses before retrying an event that could not be read, milliseconds. */
const RETRY = { firstMs: 100, lastMs: 2_000 };
/** Pause when the log has moved on but a read does not return the new events yet, milliseconds. */
const NOTHING_MS = 50;
/** Bytes of frames of an event after which other requests have their turn. */
const LARGE = 50_000;

interface Client extends Audience {
  readonly connection: Connection;
  /** True while live events are written at once; false while the client is fed from the log. */
  live: boolean;
  /** The client has everything up to here; a live client also has everything up to the tail. */
  position: Position;
  /** Bytes of live frames waiting in this connection. */
  liveBytes: number;
}

export interface StreamRequest {
  readonly identity: Identity;
  readonly credential: HeldCredential;
  /** Address of the client. */
  readonly ip: string;
  /** Types of frames; undefined for all. */
  readonly kinds: ReadonlySet<string> | undefined;
  /** Where to resume; undefined to start with the next event. */
  readonly after: StreamCursor | undefined;
  /** The limit of how far back it may resume; undefined: the beginning of the log. */
  readonly past?: Past | undefined;
}

export interface StreamHub {
  readonly clients: number;
  /** Bytes held for all clients: pages being read, and frames waiting in connections. */
  readonly held: number;
  /**
   * Writes the stream to `res` until either side ends it.
   *
   * @throws before anything is written: AppError 429 or 503 when too many streams are open; UnknownPositionError when the
   *   log does not have `after`
   */
  serve(res: ServerResponse, request: StreamRequest): Promise<void>;
  /** Ends all streams, so that clients reconnect elsewhere. */
  end(): void;
  close(): Promise<void>;
}

function everyInterval(ms: number, run: () => void): { cancel(): void } {
  const timer = setInterval(run, ms);
  timer.unref();
  return { cancel: () => clearInterval(timer) };
}

export function createStreamHub(parts: {
  source: StreamSource;
  credentials: CredentialCheck;
  names: FrameNames;
  log: Logger;
  metrics: Registry;
  now?: () => number;
  limits?: Partial<StreamLimits>;
  /** Calls back at an interval until it is cancelled. Default: the process's timers. */
  every?: (ms: number, run: () => void) => { cancel(): void };
  /** See `watchCredentials`. */
  watch?: { readonly everyMs?: number; readonly uncheckedMs?: number };
}): StreamHub {
  const { source, log, now = Date.now, every = everyInterval } = parts;
  const limits: StreamLimits = { ...STREAM_LIMITS, ...parts.limits };
  const clients = new Set<Client>();
  const turnstile = createTurnstile(limits);
  const framing = createFraming(source, log, parts.names);
  const budget = createBudget({ ...limits, bytes: limits.catchUpBytes });
  const watch = watchCredentials({ check: parts.credentials, log, now, ...parts.watch });
  const closing = new AbortController();
  /** Pending writes per event; events without any are removed. */
  const waitingLive = new Map<EventFrames, number>();
  let liveBytes = 0;
  /** Position up to which live events have been delivered. */
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
        log.error({ err: error }, 'cannot follow the log; clients have to resume');
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
   * Follows the log until the hub is closed. Retries events that are temporarily unreadable, for example while the key
   * store is unavailable.
   *
   * @throws UnknownPositionError when the log is not the one followed before
   */
  async function follow(after: Position): Promise<void> {
    tail = after;
    const backOff = createBackOff(RETRY);
    const outage = createOutage(
      log,
      'live events are held up: cannot read the next one; retrying',
      'live events flow again',
    );
    while (!closing.signal.aborted) {
      try {
        for await (const { events } of source.follow({ after: tail, signal: closing.signal })) {
          for (const logged of events) {
            await deliver(logged);
            backOff.reset();
            outage.worked();
          }
        }
      } catch (error) {
        if (closing.signal.aborted) return;
        if (error instanceof UnknownPositionError) throw error;
        outage.failed(error, { position: tail });
        await pause(backOff.next(), closing.signal, { ref: true });
      }
    }
  }

  async function deliver(logged: LoggedEvent): Promise<void> {
    const concerned = ({ live, view }: Client) => live && framing.concerns(logged, view.workspace);
    const found = [...clients].some(concerned) ? await framing.frames(logged) : undefined;
    const needed = found && [...clients].some((client) => needsOwners(client, found));
    const event = needed ? await framing.owned(found) : found;
    for (const client of clients) {
      // The process that the client used before may have been further ahead.
      if (event && client.live && logged.position > client.position) writeLive(client, event);
    }
    // In the same turn as the look at the clients: one that becomes live in between would miss the event.
    tail = logged.position;
  }

  function writeLive(client: Client, event: EventFrames): void {
    const frames = framesFor(client, event);
    if (frames.length === 0) return;
    const { connection } = client;
    const late = connection.waitingSince !== undefined && Date.now() - connection.waitingSince > limits.stallMs / 3;
    if (late || (connection.waiting > 0 && connection.waiting + event.size > limits.clientBytes)) {
      // Feed the client from the log, which waits for its connection to drain: with more writes, a client that has
      // stopped reading would look alive.
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

  /** Connections share the frames of an event, so the frames count once. */
  function hold(event: EventFrames): void {
    const count = waitingLive.get(event) ?? 0;
    if (count === 0) liveBytes += event.size;
    waitingLive.set(event, count + 1);
  }

  function release(event: EventFrames): void {
    const pending = (waitingLive.get(event) ?? 1) - 1;
    if (pending > 0) {
      waitingLive.set(event, pending);
      return;
    }
    waitingLive.delete(event);
    liveBytes -= event.size;
  }

  /** Cuts off the clients whose live frames have waited longest, until there is room. */
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
      log.warn({ held: liveBytes }, 'closed the stream of the slowest reader to make room');
      slowest.connection.drop();
    }
  }

  // --- Catching up ----------------------------------------------------------------------------------------------------

  /** Feeds a client from the log until it has caught up with the live events, then makes it live. */
  function feed(client: Client): void {
    catchUp(client).catch((error: unknown) => {
      log.warn({ err: error }, 'could not feed a stream from the log; its client has to resume');
      client.connection.drop();
    });
  }

  async function catchUp(client: Client): Promise<void> {
    const { connection } = client;
    for (;;) {
      // Wait until everything written has been sent, so that a client holds one page at most.
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
      // There must be no await between the comparison and the switch, so that the follower cannot run in between.
      if (client.position >= (tail ?? 0)) {
        client.live = true;
        return;
      }
      if (client.position === before) await pause(NOTHING_MS, connection.closed, { ref: true });
    }
  }

  async function feedPage(client: Client): Promise<void> {
    const { connection } = client;
    let written = 0;
    for (const logged of await source.page(client.position, limits.pageBytes)) {
      // Events after the tail arrive live.
      if (logged.position > (tail ?? 0)) return;
      const found = framing.concerns(logged, client.view.workspace) ? await framing.frames(logged) : undefined;
      const event = found && needsOwners(client, found) ? await framing.owned(found) : found;
      if (connection.closed.aborted) return;
      const frames = event ? framesFor(client, event) : [];
      const size = frames.reduce((sum, { bytes }) => sum + bytes.length, 0);
      // Frames can be larger than their events; then the next page starts with the rest.
      if (written > 0 && written + size > limits.pageBytes) return;
      for (const { bytes } of frames) {
        budget.hold(bytes.length);
        connection.send(bytes, () => budget.free(bytes.length));
      }
      written += size;
      client.position = logged.position;
      if (size > LARGE) await nextPiece();
    }
  }

  /** Whether the log has events after this position that the client may no longer resume from. */
  async function leavesOut({ after, notBefore }: Past, position: Position): Promise<boolean> {
    const [first] = await source.page(position, 1);
    return first !== undefined && (first.position <= after || Number(first.meta.at) < notBefore);
  }

  // --- Clients --------------------------------------------------------------------------------------------------------

  const heartbeat = every(HEARTBEAT_MS, () => {
    for (const { connection } of clients) if (connection.waiting === 0) connection.send(HEARTBEAT);
  });

  return {
    get clients() {
      return clients.size;
    },
    get held() {
      return held();
    },
    async serve(res, { identity, credential, ip, kinds, after: asked, past }) {
      const leave = turnstile.enter(ownerOf(identity, ip, limits));
      const connection = openConnection(res, limits.stallMs, () =>
        log.info({ caller: identity.username, ip }, 'closed a stream because its client has stopped reading'),
      );
      connection.closed.addEventListener('abort', leave, { once: true });
      let position: Position;
      let isCut = false;
      try {
        await start();
        if (asked) await source.checkPosition(asked.position);
        // To resume inside an event, start before it and skip the frames that the client already has.
        position =
          asked?.frames !== undefined ? await source.positionBefore(asked.position) : (asked?.position ?? tail ?? 0);
        isCut = asked !== undefined && past !== undefined && (await leavesOut(past, position));
        if (isCut) position = Math.max(position, past?.after ?? 0);
      } catch (error) {
        leave();
        throw error;
      }
      if (connection.closed.aborted) return;
      const client: Client = {
        role: identity.role,
        view: taskViewOf(identity),
        recipient: onlyRecipientOf(identity)?.name,
        kinds,
        after: asked,
        notBefore: asked && past ? past.notBefore : 0,
        ownAfter: asked && past ? past.ownAfter : BEGINNING,
        connection,
        position,
        live: !asked,
        liveBytes: 0,
      };
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
      // The first frame is not an event, so it has no id and leaves the client's Last-Event-ID alone.
      const data = isCut && past ? { from: past.from } : null;
      const connected = { type: 'connected', data, timestamp: now() };
      connection.send(Buffer.from(`data: ${JSON.stringify(connected)}\n\n`));
      clients.add(client);
      watch.add(watched);
      if (!client.live) feed(client);
    },
    end() {
      for (const { connection } of clients) connection.end();
    },
    async close() {
      heartbeat.cancel();
      closing.abort();
      for (const { connection } of clients) connection.drop();
      await watch.close();
      await running;
    },
  };
}
