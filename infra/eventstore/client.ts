/**
 * The only file that imports `@eventstore/db-client`: a connection, the calls that the adapter needs, and their
 * conversions.
 *
 * Appends do not use the client's `appendToStream` but make the same gRPC call on the client's connection: the client
 * keeps waiting appends in a module-wide map, and when a connection breaks while its send queue is full, every queued
 * append leaves an unhandled rejection, which ends the Node process. Subscriptions and the read of the last event also
 * make the call directly: the client would pass each event through another stream and parse all of it. `wire.ts` converts
 * the messages of these calls.
 */
import { setMaxListeners } from 'node:events';
import {
  type AllStreamResolvedEvent,
  BACKWARDS,
  convertToCommandError,
  END,
  EventStoreDBClient,
  FORWARDS,
  type ResolvedEvent,
  START,
} from '@eventstore/db-client';
import sharedMessages from '@eventstore/db-client/generated/shared_pb.js';
import streamsService from '@eventstore/db-client/generated/streams_grpc_pb.js';
import streamsMessages from '@eventstore/db-client/generated/streams_pb.js';
import type { LoggedEvent, Position } from '../../shared/ports/event-log.ts';
import { settledWithin } from '../../shared/waiting.ts';
import type { PreparedAppend } from '../event-log/prepared.ts';
import { rememberSize } from '../event-log/size.ts';
import { classify, createGate, StoreFailure } from './failure.ts';
import type { OwnEvents } from './own.ts';
import { gatherPage, type Page, type PageOptions, type Place } from './page.ts';
import { appendMessage, type ReadMessage, type Recorded, readMessage, readResponse } from './wire.ts';

type StreamsCalls = InstanceType<typeof streamsService.StreamsClient>;
type CallArguments = Required<Parameters<StreamsCalls['batchAppend']>>;
type Resolved = ResolvedEvent | AllStreamResolvedEvent;
type BatchResponse = InstanceType<typeof streamsMessages.BatchAppendResp>;
type ReadRequest = InstanceType<typeof streamsMessages.ReadReq>;

/** Private members of the client, from which its own calls are built. */
interface ClientInternals {
  GRPCStreamCreator<Call>(
    service: typeof streamsService.StreamsClient,
    name: string,
    create: (calls: StreamsCalls) => Call,
  ): () => Promise<Call>;
  callArguments(options: object, call: { deadline: number }): CallArguments;
  getChannel(): Promise<{ close(): void }>;
  /** Called without await for each call that failed; rejects when no node of a cluster can be found. */
  handleError: (calls: unknown, error: unknown) => Promise<void>;
}

/** The server's response to an append. `position` is missing for an event that the server is still indexing. */
export interface AppendResponse {
  readonly revision: number;
  readonly position: Position | undefined;
}

/** The call that carries all appends of a connection. */
export interface BatchCall {
  /** Sends one append; its response carries the same correlation id. */
  send(correlationId: string, append: PreparedAppend): void;
  /** Sends no more appends; the call ends when all have been answered. */
  end(): void;
  /** Cancels the call. Appends in flight may be written nevertheless. */
  cancel(): void;
}

export interface BatchListener {
  answered(correlationId: string, response: AppendResponse | StoreFailure): void;
  /** Called once, when the call ends for any reason. */
  ended(failure: StoreFailure): void;
}

/** The last event of $all. */
export interface LastEvent {
  readonly position: Position;
  /** False for system events and events of other applications. */
  readonly isOurs: boolean;
}

export interface SubscriptionListener {
  /** The server has accepted the subscription. */
  confirmed(): void;
  event(event: LoggedEvent): void;
  /** Everything up to this position has been sent; ordered with the events. */
  checkpoint(position: Position): void;
  /** The end of the log has been reached; ordered with the events. */
  caughtUp(): void;
  fellBehind(): void;
  /** The subscription has ended. */
  failed(failure: StoreFailure): void;
}

export interface Connection {
  /** Undefined when calls may be made; otherwise resolves when it is time to try the server again. */
  closed(): Promise<unknown> | undefined;
  openBatch(listener: BatchListener): Promise<BatchCall>;
  readStream(stream: string, options: PageOptions): Promise<Page>;
  readAll(options: PageOptions): Promise<Page>;
  /** Undefined when the log is empty. @param timeoutMs time limit, milliseconds */
  readLast(timeoutMs: number): Promise<LastEvent | undefined>;
  /**
   * Subscribes to $all after this position; the server filters out events of others.
   *
   * @param own events that need not be parsed
   * @returns a function that ends it
   */
  subscribe(after: Position, own: Pick<OwnEvents, 'take'>, listener: SubscriptionListener): () => void;
  close(): Promise<void>;
}

/** Time limit of closing the connection, milliseconds. */
const CLOSED_WITHIN_MS = 1_000;
/** Calls require the leader, because a follower may be behind. */
const requiresLeader = true;
/** The server reports its position after every 32 times this many events that it has filtered out. */
const CHECKPOINT_INTERVAL = 4;

/**
 * @param url `esdb://[user:password@]host:port[,…][?tls=false&…]`, or `kurrentdb://…`; `esdb+discover://` for clusters
 * @param prefix of our streams on the server; only this file knows about it
 * @param late receives errors that arrive after the end of a call, when no caller waits any more
 * @throws Error when the string is malformed (the message does not repeat it, because it may contain a password)
 */
export function connect(url: string, prefix: string, late: (error: unknown, what: string) => void): Connection {
  const client = clientFor(url);
  const internals = client as unknown as ClientInternals;
  const { handleError } = internals;
  // A rejection without a handler ends the process. The calls that look for a node fail themselves.
  internals.handleError = (...failed) => handleError(...failed).catch((error) => late(error, 'find a node'));
  const closing = new AbortController();
  // Every read of the last event adds a listener for as long as it lasts.
  setMaxListeners(0, closing.signal);
  const gate = createGate(closing.signal);
  const read = (service: StreamsCalls, request: ReadRequest) =>
    service.makeServerStreamRequest<ReadRequest, Buffer>(
      READ,
      (one) => Buffer.from(one.serializeBinary()),
      asIs,
      request,
      ...internals.callArguments({ requiresLeader }, { deadline: Infinity }),
    );
  const conversion = { event: (resolved: Resolved) => loggedEvent(resolved, prefix), place: placeOf };

  return {
    closed: () => gate.closed(),

    async openBatch(listener) {
      await gate.closed();
      let over = false;
      const end = (failure: StoreFailure) => {
        if (over) return;
        over = true;
        gate.failed();
        listener.ended(failure);
      };
      const open = internals.GRPCStreamCreator(streamsService.StreamsClient, 'batchAppend', (service) => {
        // The call outlives every append, so it has no deadline.
        const call = service.makeBidiStreamRequest<Buffer, Buffer>(
          BATCH_APPEND,
          asIs,
          asIs,
          ...internals.callArguments({ requiresLeader }, { deadline: Infinity }),
        );
        call.on('data', (bytes: Buffer) => {
          if (over) return;
          try {
            const [correlationId, result] = responseOf(bytes);
            if (result instanceof StoreFailure && result.kind === 'unavailable') gate.failed();
            else gate.worked();
            listener.answered(correlationId, result);
          } catch (error) {
            end(classify(error));
            call.cancel();
          }
        });
        call.on('error', (error: Error) => end(classify(convertToCommandError(error))));
        call.on('end', () => end(new StoreFailure('unavailable', 'the server ended the append call')));
        return call;
      });
      const call = await open().catch((error: unknown) => {
        gate.failed();
        throw classify(error);
      });
      return {
        // The number of appends in flight already bounds what is written, so waiting for 'drain' would add nothing.
        send: (correlationId, append) => {
          call.write(appendMessage(correlationId, prefix + append.stream, append));
        },
        end: () => {
          call.end();
        },
        cancel() {
          end(new StoreFailure('unavailable', 'the server did not respond, so the call was cancelled'));
          call.cancel();
        },
      };
    },

    readStream(stream, { from, backwards, count, ...options }) {
      const read = client.readStream(prefix + stream, {
        fromRevision: from === 'start' ? START : from === 'end' ? END : BigInt(from),
        direction: backwards ? BACKWARDS : FORWARDS,
        maxCount: count,
        requiresLeader,
      });
      return gatherPage<Resolved>(read, conversion, options, gate, late);
    },

    readAll({ from, backwards, count, ...options }) {
      const read = client.readAll({
        fromPosition: from === 'start' ? START : from === 'end' ? END : wirePosition(from),
        direction: backwards ? BACKWARDS : FORWARDS,
        maxCount: count,
        requiresLeader,
      });
      return gatherPage<Resolved>(read, conversion, options, gate, late);
    },

    readLast(timeoutMs) {
      return new Promise((resolve, reject) => {
        let last: LastEvent | undefined;
        let settled = false;
        const settle = (act: () => void) => {
          if (settled) return;
          settled = true;
          clearTimeout(timer);
          closing.signal.removeEventListener('abort', abandon);
          act();
        };
        const fail = (error: unknown) =>
          settle(() => {
            const failure = classify(error);
            if (failure.kind === 'unavailable') gate.failed();
            reject(failure);
          });
        // Also covers finding a node of the cluster, which takes the client up to minutes.
        const abandon = () => {
          settle(() => reject(new StoreFailure('unavailable', 'the server did not respond to the read in time')));
          opened.then((call) => call.cancel()).catch((error: unknown) => late(error, 'cancel a read'));
        };
        const open = internals.GRPCStreamCreator(streamsService.StreamsClient, 'read', (service) => {
          const call = read(service, LAST_EVENT);
          call.on('data', (bytes: Buffer) => {
            try {
              last ??= lastEvent(readMessage(bytes), prefix);
            } catch (error) {
              fail(error);
            }
          });
          call.on('error', (error: Error) => fail(convertToCommandError(error)));
          // Also follows an error.
          call.on('end', () =>
            settle(() => {
              gate.worked();
              resolve(last);
            }),
          );
          return call;
        });
        const timer = setTimeout(abandon, timeoutMs);
        closing.signal.addEventListener('abort', abandon, { once: true });
        const opened = open();
        opened.catch(fail);
      });
    },

    subscribe(after, own, listener) {
      let over = false;
      const receive = (message: ReadMessage) => {
        switch (message.kind) {
          case 'confirmed':
            return listener.confirmed();
          case 'caught up':
            return listener.caughtUp();
          case 'fell behind':
            return listener.fellBehind();
          case 'checkpoint':
            if (Number.isSafeInteger(message.position)) listener.checkpoint(message.position);
            return;
          case 'event': {
            const event = followedEvent(message.event, prefix, own);
            if (event) listener.event(event);
            else listener.checkpoint(positionOf(message.event.position));
          }
        }
      };
      const open = internals.GRPCStreamCreator(streamsService.StreamsClient, 'read', (service) => {
        const call = read(service, subscriptionRequest(after, prefix));
        call.on('data', (bytes: Buffer) => {
          if (over) return;
          try {
            receive(readMessage(bytes));
          } catch (error) {
            fail(error);
          }
        });
        call.on('error', (error: Error) => fail(convertToCommandError(error)));
        call.on('end', () => fail(new StoreFailure('unavailable', 'the server ended the subscription')));
        return call;
      });
      const opened = open();
      const unsubscribe = () => {
        if (over) return;
        over = true;
        opened.then(
          // Not from within its own events: grpc/grpc-node#1464.
          (call) => setImmediate(() => call.cancel()),
          (error: unknown) => late(error, 'unsubscribe'),
        );
      };
      const fail = (error: unknown) => {
        if (over) return;
        unsubscribe();
        const failure = classify(error);
        if (failure.kind === 'unavailable') gate.failed();
        listener.failed(failure);
      };
      opened.catch(fail);
      return unsubscribe;
    },

    async close() {
      closing.abort();
      await client.dispose();
      // Disposing cancels calls but does not close the connection. There is none while the client looks for a node.
      const channelClosed = internals.getChannel().then(
        (channel) => channel.close(),
        (error: unknown) => late(error, 'close the connection'),
      );
      await settledWithin(CLOSED_WITHIN_MS, channelClosed);
    },
  };
}

/** Paths of the calls whose messages `wire.ts` converts. */
const READ = '/event_store.client.streams.Streams/Read';
const BATCH_APPEND = '/event_store.client.streams.Streams/BatchAppend';
const asIs = (bytes: Buffer): Buffer => bytes;

const { Options: ReadOptions } = streamsMessages.ReadReq;
const EMPTY = new sharedMessages.Empty();
const readOptions = () => new ReadOptions().setUuidOption(new ReadOptions.UUIDOption().setString(EMPTY));

const LAST_EVENT: ReadRequest = new streamsMessages.ReadReq().setOptions(
  readOptions()
    .setAll(new ReadOptions.AllOptions().setEnd(EMPTY))
    .setReadDirection(ReadOptions.ReadDirection.BACKWARDS)
    .setCount('1')
    .setNoFilter(EMPTY),
);

function subscriptionRequest(after: Position, prefix: string): ReadRequest {
  const { AllOptions, FilterOptions, SubscriptionOptions } = ReadOptions;
  const all = new AllOptions();
  const commit = String(after);
  if (after === 0) all.setStart(EMPTY);
  else all.setPosition(new ReadOptions.Position().setCommitPosition(commit).setPreparePosition(commit));
  const filter = new FilterOptions().setCount(EMPTY).setCheckpointintervalmultiplier(CHECKPOINT_INTERVAL);
  if (prefix === '') filter.setEventType(new FilterOptions.Expression().setRegex('^[^$].*'));
  else filter.setStreamIdentifier(new FilterOptions.Expression().setPrefixList([prefix]));
  return new streamsMessages.ReadReq().setOptions(
    readOptions().setAll(all).setSubscription(new SubscriptionOptions()).setFilter(filter),
  );
}

function lastEvent(message: ReadMessage, prefix: string): LastEvent | undefined {
  if (message.kind !== 'event') return undefined;
  const { position, stream, type } = message.event;
  return { position: positionOf(position), isOurs: isOurs(stream, type, prefix) };
}

/** Converts an event of a subscription; undefined for events that are not ours, as `loggedEvent`. */
function followedEvent(recorded: Recorded, prefix: string, own: Pick<OwnEvents, 'take'>): LoggedEvent | undefined {
  const { id, type, revision } = recorded;
  if (!isOurs(recorded.stream, type, prefix)) return undefined;
  const stream = recorded.stream.slice(prefix.length);
  const { data, meta } = own.take(stream, id, type) ?? parsed(recorded);
  if (!isJsonObject(data) || !isJsonObject(meta)) return undefined;
  const followed = { id, type, data, meta, stream, revision, position: positionOf(recorded.position) };
  rememberSize(followed, recorded.data.length + recorded.meta.length);
  return followed;
}

/** Undefined where something is not JSON. */
function parsed({ contentType, data, meta }: Recorded): { readonly data?: unknown; readonly meta?: unknown } {
  if (contentType !== 'application/json') return {};
  try {
    return { data: JSON.parse(data.toString()), meta: meta.length > 0 ? JSON.parse(meta.toString()) : {} };
  } catch {
    return {};
  }
}

/** Whether an event is neither a system event nor of another prefix. */
const isOurs = (stream: string, type: string, prefix: string): boolean =>
  stream.startsWith(prefix) && !stream.startsWith('$') && !type.startsWith('$');

function clientFor(url: string): EventStoreDBClient {
  try {
    return EventStoreDBClient.connectionString(url.replace(/^kurrent(?:db)?(\+discover)?:\/\//, 'esdb$1://'));
  } catch {
    // The client's own error quotes the string, password included.
    throw new Error(
      'the EventStoreDB connection string is malformed; it looks like esdb://user:password@host:2113?tls=true',
    );
  }
}

function responseOf(bytes: Buffer): [correlationId: string, response: AppendResponse | StoreFailure] {
  const { correlationId, stored } = readResponse(bytes);
  return [correlationId, stored ?? refusalOf(streamsMessages.BatchAppendResp.deserializeBinary(bytes))];
}

function refusalOf(response: BatchResponse): StoreFailure {
  const error = response.getError();
  const details = error?.getDetails();
  switch (details?.getTypeName()) {
    case 'event_store.client.WrongExpectedVersion': {
      const wrong = sharedMessages.WrongExpectedVersion.deserializeBinary(details.getValue_asU8());
      return new StoreFailure('conflict', 'wrong expected version', {
        actual: wrong.hasCurrentStreamRevision() ? Number(wrong.getCurrentStreamRevision()) : -1,
      });
    }
    case 'event_store.client.StreamDeleted':
      return new StoreFailure('deleted', 'the stream is deleted');
    case 'event_store.client.MaximumAppendSizeExceeded':
      return new StoreFailure('too large', 'over the server’s maximum append size');
    default:
      // "Server Is Not Ready" or anything else: the outcome is unknown.
      return new StoreFailure('unavailable', error?.getMessage() ?? 'a response without a result');
  }
}

const wirePosition = (position: Position) => ({ commit: BigInt(position), prepare: BigInt(position) });

function positionOf(commit: bigint | number): Position {
  const position = Number(commit);
  if (!Number.isSafeInteger(position)) {
    throw new Error(`log position ${commit} is out of range; EventStoreDB 22.6 or later is needed`);
  }
  return position;
}

function isJsonObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array);
}

/** Converts an event; undefined for events that are not ours: system events, links, other prefixes and formats. */
function loggedEvent({ event, link }: Resolved, prefix: string): LoggedEvent | undefined {
  if (!event?.position || link || !isOurs(event.streamId, event.type, prefix)) return undefined;
  const meta: unknown = event.metadata ?? {};
  if (!event.isJson || !isJsonObject(event.data) || !isJsonObject(meta)) return undefined;
  return {
    id: event.id,
    type: event.type,
    data: event.data,
    meta,
    stream: event.streamId.slice(prefix.length),
    revision: Number(event.revision),
    position: positionOf(event.position.commit),
  };
}

function placeOf({ event }: Resolved): Place | undefined {
  if (!event?.position) return undefined;
  return { revision: Number(event.revision), position: Number(event.position.commit), created: event.created };
}
