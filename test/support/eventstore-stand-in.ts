/**
 * A stand-in for an EventStoreDB server, for tests only: it speaks the client's gRPC services from memory, behaves as
 * a real 23.10 was measured to, and fails on request. It stores nothing and checks no credentials.
 *
 * The gRPC server sits behind a TCP relay of its own, so that connections can be dropped, frozen and refused while the
 * server and its memory stay.
 */
import net from 'node:net';
import * as grpc from '@grpc/grpc-js';
import { append, batchAppend } from './eventstore-stand-in/appends.ts';
import { createSwitches, faultsOf } from './eventstore-stand-in/faults.ts';
import { createMemory, type Memory } from './eventstore-stand-in/memory.ts';
import {
  clusterOf,
  featuresService,
  gossipService,
  streamsService,
  supportedMethods,
} from './eventstore-stand-in/protocol.ts';
import { read } from './eventstore-stand-in/reads.ts';

export interface StandInOptions {
  /** Default: any free one. */
  readonly port?: number;
  /** Live events that wait for a subscriber before it is dropped as too slow; default 32, as measured. */
  readonly liveQueue?: number;
  /** False imitates a server that is too old to say that a subscription has caught up. */
  readonly saysCaughtUp?: boolean;
}

export interface EventStoreStandIn {
  /** Connection string for the client. */
  readonly url: string;
  readonly port: number;
  readonly memory: Memory;
  /** Connections that are open now. */
  connections(): number;
  /** Breaks every connection, as a network does; new ones are accepted at once. */
  dropConnections(): void;
  /** Keeps connections open and moves no byte, as SIGSTOP does to a server. */
  freeze(): void;
  thaw(): void;
  /** Delays the answer of every append by this many milliseconds; 0 for none. */
  delayAppends(ms: number): void;
  /** So many of the next appends are applied but not answered: in silence, or because all connections are dropped. */
  loseAnswers(count: number, how: 'silence' | 'connection'): void;
  /** Refuses appends, reads and subscriptions the way a starting server does. */
  setReady(ready: boolean): void;
  /** Refuses appends alone, and says of its cluster that it has no leader. */
  setLeader(there: boolean): void;
  /** Refuses the next reads and subscriptions with these gRPC status codes. */
  refuseReads(...codes: number[]): void;
  /** Calls refused as not ready so far. */
  refusals(): number;
  /** Calls that asked for the members of the cluster so far. */
  lookUps(): number;
  /** Subscriptions that are open now. */
  subscriptions(): number;
  /** Subscriptions dropped as too slow so far. */
  slowDrops(): number;
  /** Makes the subscriptions that are open now fall silent without an error. */
  muteSubscriptions(): void;
  /** Ends the server: connections break, new ones are refused. The memory stays for `start`. */
  halt(): Promise<void>;
  /** Starts again on the same port with the same memory. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

export async function startEventStoreStandIn(options: StandInOptions = {}): Promise<EventStoreStandIn> {
  const memory = createMemory();
  const switches = createSwitches();
  const sockets = new Set<net.Socket>();
  let lookUps = 0;
  const dropConnections = () => {
    for (const socket of sockets) socket.destroy();
  };
  const faults = faultsOf(switches, dropConnections);
  const settings = { liveQueue: options.liveQueue ?? 32, saysCaughtUp: options.saysCaughtUp ?? true };

  const server = new grpc.Server({ 'grpc.max_receive_message_length': 17 * 1024 * 1024 });
  server.addService(streamsService.StreamsService as unknown as grpc.ServiceDefinition, {
    append: append(memory, faults),
    batchAppend: batchAppend(memory, faults),
    read: read(memory, faults, settings),
  });
  server.addService(featuresService.ServerFeaturesService as unknown as grpc.ServiceDefinition, {
    getSupportedMethods: (_call: unknown, respond: grpc.sendUnaryData<ReturnType<typeof supportedMethods>>) =>
      respond(null, supportedMethods()),
  });
  server.addService(gossipService.GossipService as unknown as grpc.ServiceDefinition, {
    read: (_call: unknown, respond: grpc.sendUnaryData<ReturnType<typeof clusterOf>>) => {
      lookUps++;
      respond(null, clusterOf(port, !switches.noLeader));
    },
  });
  const inner = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (error, port) =>
      error ? reject(error) : resolve(port),
    );
  });

  let frozen = false;
  const pipes = new Set<{ near: net.Socket; far: net.Socket }>();
  const relay = net.createServer((near) => {
    const far = net.connect(inner, '127.0.0.1');
    const pipe = { near, far };
    pipes.add(pipe);
    for (const [socket, peer] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('data', (bytes) => {
        if (!peer.write(bytes)) {
          socket.pause();
          peer.once('drain', () => frozen || socket.resume());
        }
      });
      socket.on('error', (error) => faults.note(error));
      socket.on('close', () => {
        sockets.delete(socket);
        pipes.delete(pipe);
        peer.destroy();
      });
      if (frozen) socket.pause();
    }
  });
  const listen = (port: number) =>
    new Promise<number>((resolve, reject) => {
      relay.once('error', reject);
      relay.listen(port, '127.0.0.1', () => {
        relay.off('error', reject);
        resolve((relay.address() as net.AddressInfo).port);
      });
    });
  const halt = async () => {
    if (!relay.listening) return;
    const closed = new Promise<void>((resolve) => relay.close(() => resolve()));
    dropConnections();
    await closed;
    memory.restart();
  };
  const port = await listen(options.port ?? 0);

  return {
    url: `esdb://127.0.0.1:${port}?tls=false`,
    port,
    memory,
    connections: () => pipes.size,
    dropConnections,
    freeze() {
      frozen = true;
      for (const socket of sockets) socket.pause();
    },
    thaw() {
      frozen = false;
      for (const socket of sockets) socket.resume();
    },
    delayAppends(ms) {
      switches.delayMs = ms;
    },
    loseAnswers(count, how) {
      switches.losing = Array.from({ length: count }, () => how);
    },
    setLeader(there) {
      switches.noLeader = !there;
    },
    setReady(ready) {
      switches.notReady = !ready;
    },
    refuseReads: (...codes) => {
      switches.readStatuses.push(...codes);
    },
    refusals: () => switches.counts.refusals,
    lookUps: () => lookUps,
    subscriptions: () => switches.counts.subscriptions,
    slowDrops: () => switches.counts.slowDrops,
    muteSubscriptions() {
      switches.muted++;
    },
    halt,
    async start() {
      frozen = false;
      await listen(port);
    },
    async stop() {
      await halt();
      server.forceShutdown();
    },
  };
}
