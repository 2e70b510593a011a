/** The hub on a log by hand: what a client gets whose process is behind another one, or whose log is gone. */
import { randomUUID } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect } from 'chai';
import { Registry } from 'prom-client';
import { createStreamHub, parseCursor, type StreamHub } from '../../api/stream/hub.ts';
import { createLogger } from '../../infra/logging.ts';
import { UnknownPositionError } from '../../shared/errors.ts';
import type { EventStore } from '../../shared/event-store.ts';
import { agentRegistered } from '../../shared/events/agent.ts';
import type { DomainEvent } from '../../shared/events/define.ts';
import type { EventLog, LoggedEvent, ReadAllOptions } from '../../shared/ports/event-log.ts';
import { openStream } from '../support/stream.ts';
import { eventually, testOrigin } from '../support/world.ts';

/** Gives two frames: `<position>.1` and `<position>`. */
const registered = (position: number): LoggedEvent => ({
  id: randomUUID(),
  type: agentRegistered.type,
  stream: `agent-1-${position}`,
  revision: 0,
  position,
  data: {
    agentId: position,
    name: `agent-${position}`,
    role: 'tester',
    status: 'offline',
    sessionKey: null,
    soulContent: null,
    config: {},
    template: null,
    runtimeType: null,
    source: 'manual',
    via: 'operator',
    framework: null,
    capabilities: [],
  },
  meta: { ...testOrigin, at: 1_750_000_000_000, number: position, version: 1 },
});

describe('stream hub', () => {
  /** What all processes have written. */
  const events = [1, 2, 3, 4, 5].map(registered);
  let server: Server;
  let hub: StreamHub;
  let url: string;
  /** This process has followed the log up to here; raising it delivers what is behind. */
  let followed: number;
  let moved: () => void;
  let broken: Error | undefined;
  /** Awaited by every read. */
  let reading: () => Promise<void>;

  beforeEach(async () => {
    followed = 3;
    broken = undefined;
    moved = () => {};
    reading = async () => {};
    const log: Partial<EventLog> = {
      head: async () => followed,
      async *readAll({ from = 0, direction, limit = 100 }: ReadAllOptions = {}) {
        await reading();
        if (from > events.length) throw new UnknownPositionError(from);
        const found =
          direction === 'backwards'
            ? events.filter(({ position }) => position < from).reverse()
            : events.filter(({ position }) => position > from);
        if (found.length > 0) yield found.slice(0, limit);
      },
      async *follow({ after, signal }) {
        signal.addEventListener('abort', () => moved());
        for (let at = after; !signal.aborted; ) {
          if (broken) throw broken;
          const fresh = events.filter(({ position }) => position > at && position <= followed);
          at = followed;
          if (fresh.length > 0) yield { events: fresh, position: at, caughtUp: true };
          else {
            await new Promise<void>((resolve) => {
              moved = resolve;
            });
          }
        }
      },
    };
    const store = { log, decode: (event: LoggedEvent) => event as unknown as DomainEvent } as unknown as EventStore;
    hub = createStreamHub({ store, log: createLogger('silent'), metrics: new Registry() });
    server = createServer((req, res) => {
      const id = req.headers['last-event-id'];
      const after = typeof id === 'string' ? parseCursor(id) : undefined;
      hub.serve(res, { workspace: 1, kinds: undefined, after }).catch((error: Error) => {
        res.writeHead(400).end(error.name);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterEach(async () => {
    moved();
    await hub.close();
    await new Promise((resolve) => server.close(resolve));
  });

  const follow = (position: number) => {
    followed = position;
    moved();
  };

  for (const [id, expected] of [
    ['4', ['5.1', '5']],
    ['4.1', ['4', '5.1', '5']],
    ['5', []],
    ['3', ['4.1', '4', '5.1', '5']],
    ['2.1', ['2', '3.1', '3', '4.1', '4', '5.1', '5']],
  ] as const) {
    it(`a client that comes with ${id} from a process that was further on gets nothing twice`, async () => {
      const stream = await openStream(url, { 'last-event-id': id });
      await eventually('it is served', () => hub.clients === 1);
      follow(4);
      follow(5);
      events.push(registered(events.length + 1));
      follow(events.length);
      const end = `${events.length}`;
      await stream.until(() => stream.frames.at(-1)?.id === end);
      const ids = stream.frames.map((frame) => frame.id);
      expect(ids.slice(0, -2)).to.deep.equal(expected);
      stream.close();
      events.pop();
    });
  }

  it('an id that the log does not have is an error before anything is written', async () => {
    const response = await fetch(url, { headers: { 'last-event-id': '77' } });
    expect([response.status, await response.text()]).to.deep.equal([400, 'UnknownPositionError']);
    expect(hub.clients).to.equal(0);
  });

  it('a client that goes while its id is looked up is not kept', async () => {
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    let asked = false;
    reading = () => {
      asked = true;
      return held;
    };
    const abort = new AbortController();
    const asking = fetch(url, { headers: { 'last-event-id': '2' }, signal: abort.signal }).catch(() => undefined);
    await eventually('it is looked up', () => asked);
    abort.abort();
    await asking;
    await new Promise((resolve) => setTimeout(resolve, 50));
    release();
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(hub.clients).to.equal(0);
  });

  it('when the log cannot be followed any more, streams end, and the next client has it followed anew', async () => {
    const first = await openStream(url, {});
    await eventually('it is served', () => hub.clients === 1);
    broken = new UnknownPositionError(3);
    moved();
    await eventually('its stream ends', () => hub.clients === 0);
    first.close();
    broken = undefined;
    const second = await openStream(url, {});
    await eventually('it is served', () => hub.clients === 1);
    follow(5);
    await second.until(() => second.frames.at(-1)?.id === '5');
    second.close();
  });
});
