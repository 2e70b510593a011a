/** A hub behind a real HTTP server, on a log that tests control: headers of requests say who listens. */

import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { Registry } from 'prom-client';
import type { HeldCredential, Known } from '../../api/auth/known.ts';
import type { CredentialCheck } from '../../api/auth/recheck.ts';
import { parseCursor } from '../../api/stream/frames.ts';
import { createStreamHub, type StreamHub } from '../../api/stream/hub.ts';
import type { StreamLimits } from '../../api/stream/limits.ts';
import type { Past } from '../../api/stream/past.ts';
import { sourceOf } from '../../api/stream/source.ts';
import { createLogger } from '../../infra/logging.ts';
import { UnknownPositionError } from '../../shared/errors.ts';
import type { DomainEvent } from '../../shared/events/define.ts';
import type { Metadata } from '../../shared/events/metadata.ts';
import { type Identity, ROLES, type Role } from '../../shared/identity.ts';
import type { LoggedEvent, ReadAllOptions } from '../../shared/ports/event-log.ts';
import { NAMES } from './kit.ts';
import { listen } from './listen.ts';
import { testOrigin } from './world.ts';

/** When events of the log happened, Unix ms. */
export const LOGGED_AT = 1_750_000_000_000;

export const logged = (
  position: number,
  { type, data }: { readonly type: string; readonly data: object },
  workspace = 1,
  more: { readonly stream?: string; readonly revision?: number; readonly meta?: Partial<Metadata> } = {},
): LoggedEvent => ({
  id: randomUUID(),
  type,
  stream: more.stream ?? `hub-${workspace}-${position}`,
  revision: more.revision ?? 0,
  position,
  data: data as LoggedEvent['data'],
  meta: { ...testOrigin, workspace, at: LOGGED_AT, number: position, version: 1, ...more.meta },
});

/** A log that tests control. What is after `followed` has been written, but this process has not followed it yet. */
export class HandLog {
  events: LoggedEvent[] = [];
  followed = 0;
  /** Thrown by followers. */
  broken: Error | undefined;
  /** Awaited by every read. */
  reading: () => Promise<void> = async () => {};
  /** Awaited before an event can be read, as its key may have to be; undefined: it can be read at once. */
  opening: (() => Promise<void>) | undefined;
  /** Bytes of JSON in pages whose readers have not requested the next one yet. */
  readonly out = { now: 0, most: 0, readers: 0, mostReaders: 0 };
  #moved = () => {};

  follow(position: number): void {
    this.followed = position;
    this.#moved();
  }

  /** Wakes followers, for `broken` and for the end. */
  wake(): void {
    this.#moved();
  }

  source() {
    const hand = this;
    return sourceOf({
      decode: (event) => {
        const open = event as unknown as DomainEvent;
        return hand.opening ? hand.opening().then(() => open) : open;
      },
      log: {
        head: async () => hand.followed,
        async *readAll({
          from = 0,
          direction,
          limit = 1_000,
          maxBytes = Number.POSITIVE_INFINITY,
        }: ReadAllOptions = {}) {
          await hand.reading();
          const last = hand.events.at(-1)?.position ?? 0;
          if (from > last) throw new UnknownPositionError(from);
          const backwards = direction === 'backwards';
          const found = hand.events.filter(({ position }) => (backwards ? position < from : position > from));
          if (backwards) found.reverse();
          const page: LoggedEvent[] = [];
          let bytes = 0;
          for (const event of found.slice(0, limit)) {
            const size = JSON.stringify(event.data).length;
            if (page.length > 0 && bytes + size > maxBytes) break;
            page.push(event);
            bytes += size;
          }
          if (page.length === 0) return;
          hand.out.now += bytes;
          hand.out.readers++;
          hand.out.most = Math.max(hand.out.most, hand.out.now);
          hand.out.mostReaders = Math.max(hand.out.mostReaders, hand.out.readers);
          try {
            yield page;
          } finally {
            hand.out.now -= bytes;
            hand.out.readers--;
          }
        },
        async *readStream(stream, { from = 0 } = {}) {
          await hand.reading();
          const found = hand.events.filter((event) => event.stream === stream && event.revision >= from);
          if (found.length > 0) yield found;
        },
        async *follow({ after, signal }) {
          signal.addEventListener('abort', () => hand.wake());
          for (let at = after; !signal.aborted; ) {
            if (hand.broken) throw hand.broken;
            const fresh = hand.events.filter(({ position }) => position > at && position <= hand.followed);
            at = hand.followed;
            if (fresh.length > 0) yield { events: fresh, position: at, caughtUp: true };
            else {
              await new Promise<void>((resolve) => {
                hand.#moved = resolve;
              });
            }
          }
        },
      },
    });
  }
}

export const identityOf = (headers: Readonly<Record<string, unknown>>): Identity => {
  const role = ROLES.find((one) => one === headers['x-role']) ?? ('viewer' satisfies Role);
  const agentId = headers['x-agent-id'];
  return {
    kind: headers['x-kind'] === 'global-key' ? 'global-key' : agentId === undefined ? 'user' : 'agent-key',
    id: Number(headers['x-user'] ?? 1),
    username: 'listener',
    displayName: 'Listener',
    role,
    seesSecrets: role === 'admin',
    tenant: 1,
    workspace: Number(headers['x-workspace'] ?? 1),
    agentName: headers['x-agent-name'] === undefined ? null : String(headers['x-agent-name']),
    agentId: agentId === undefined ? null : Number(agentId),
    session: null,
  };
};

/** Credentials that tests control: each request is authorized by one whose hash is its `x-user`. */
export class HandCredentials {
  stamp = 1;
  /** What has changed, by credential; undefined: the credential has ended. */
  readonly changed = new Map<string, Partial<Identity> | undefined>();
  readonly expiresAt = new Map<string, number>();
  readonly asked: number[] = [];
  broken: Error | undefined;
  readonly identities = new Map<string, Identity>();

  check(): CredentialCheck {
    return {
      stamp: async () => {
        if (this.broken) throw this.broken;
        return `${this.stamp}`;
      },
      lookUp: async (held: readonly HeldCredential[]) => {
        this.asked.push(held.length);
        return held.map((one): Known | undefined => {
          const name = 'username' in one ? one.username : one.hash;
          const identity = this.identities.get(name);
          if (!identity || (this.changed.has(name) && !this.changed.get(name))) return undefined;
          const expiresAt = this.expiresAt.get(name) ?? Number.POSITIVE_INFINITY;
          return { identity: { ...identity, ...this.changed.get(name) }, expiresAt, key: undefined, anyAgent: false };
        });
      },
    };
  }
}

export interface HubServer {
  readonly hub: StreamHub;
  readonly log: HandLog;
  readonly credentials: HandCredentials;
  readonly url: string;
  readonly port: number;
  /** Requests so far. */
  readonly asked: () => number;
  /** Answers in progress. */
  readonly responses: Set<ServerResponse>;
  close(): Promise<void>;
}

export async function startHub(
  options: {
    limits?: Partial<StreamLimits>;
    now?: () => number;
    watch?: { everyMs?: number; uncheckedMs?: number };
    every?: Parameters<typeof createStreamHub>[0]['every'];
    /** Of every client. */
    past?: Past;
  } = {},
): Promise<HubServer> {
  const log = new HandLog();
  const credentials = new HandCredentials();
  const hub = createStreamHub({
    source: log.source(),
    credentials: credentials.check(),
    names: NAMES,
    log: createLogger('silent'),
    metrics: new Registry(),
    ...options,
  });
  const responses = new Set<ServerResponse>();
  let asked = 0;
  const server = await listen((req, res) => {
    asked++;
    responses.add(res);
    res.once('close', () => responses.delete(res));
    const id = req.headers['last-event-id'];
    const identity = identityOf(req.headers);
    const hash = `${identity.id}`;
    credentials.identities.set(hash, identity);
    hub
      .serve(res, {
        identity,
        credential: { kind: 'session', hash },
        ip: String(req.headers['x-ip'] ?? '192.0.2.1'),
        kinds: undefined,
        after: typeof id === 'string' ? parseCursor(id) : undefined,
        past: options.past,
      })
      .catch((error: Error & { status?: number }) => {
        res.writeHead(error.status ?? 400).end(error.name);
      });
  });
  const { port } = server;
  return {
    hub,
    log,
    credentials,
    url: `http://127.0.0.1:${port}`,
    port,
    asked: () => asked,
    responses,
    async close() {
      log.wake();
      await hub.close();
      await server.close();
    },
  };
}

/** Requests the stream and never reads it. */
export function deafClient(port: number, headers: Readonly<Record<string, string>> = {}): Socket {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  socket.pause();
  const lines = Object.entries({ host: 'localhost', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`GET /api/events HTTP/1.1\r\n${lines.join('')}\r\n`);
  return socket;
}
