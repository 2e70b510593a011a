/** The live stream, where what it needs is away for a moment. */
import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import { Registry } from 'prom-client';
import { createStreamHub } from '../../api/stream/hub.ts';
import { sourceOf } from '../../api/stream/source.ts';
import type { Logger } from '../../infra/logging.ts';
import type { EventStore } from '../../shared/event-store.ts';
import { agentDeleted } from '../../shared/events/agents/agents.ts';
import type { DomainEvent } from '../../shared/events/define.ts';
import { eventsOf, NAMES } from '../support/kit.ts';
import { identityOf } from '../support/stream-hub.ts';
import { until } from '../support/until.ts';

describe('stream hub during an outage', () => {
  it('waits for an unreadable event, then sends it and later events once', async () => {
    const events = eventsOf(
      [1, 2, 3].map((agentId) =>
        agentDeleted.draft({ agent_id: agentId, name: `agent ${agentId}`, hadSession: false } as never),
      ),
    );
    let failures = 0;
    let begin = () => {};
    const begun = new Promise<void>((resolve) => {
      begin = resolve;
    });
    const store = {
      log: {
        head: async () => 0,
        async *follow({ after, signal }: { after: number; signal: AbortSignal }) {
          await begun;
          const rest = events.filter((event) => event.position > after);
          yield { events: rest, position: 3, caughtUp: true };
          await new Promise((resolve) => signal.addEventListener('abort', resolve));
        },
      },
      async decode(event: DomainEvent) {
        if (event.position === 2 && failures++ < 3) throw new Error('connect ECONNREFUSED');
        return event;
      },
    } as unknown as EventStore;
    const lines: string[] = [];
    const write = (_about: object, line: string) => lines.push(line);
    const hub = createStreamHub({
      source: sourceOf(store),
      credentials: { stamp: async () => '', lookUp: async () => [] },
      names: NAMES,
      log: { info: write, warn: write, error: write } as unknown as Logger,
      metrics: new Registry(),
    });
    let text = '';
    const response = Object.assign(new EventEmitter(), {
      req: { socket: new EventEmitter() },
      writeHead: () => response,
      setTimeout: () => response,
      write(piece: Buffer, done: () => void) {
        text += piece.toString();
        setImmediate(done);
        return true;
      },
      destroy: () => response.emit('close'),
    });
    await hub.serve(response as unknown as ServerResponse, {
      identity: identityOf({}),
      credential: { kind: 'session', hash: '' },
      ip: '192.0.2.1',
      kinds: undefined,
      after: undefined,
    });
    begin();
    await until('the last event has come', () => text.includes('id: 3\n'));
    expect([...text.matchAll(/^id: (.*)$/gm)].map(([, id]) => id)).to.deep.equal(['1.1', '1', '2.1', '2', '3.1', '3']);
    expect(failures).to.be.greaterThan(3);
    expect(lines, 'the outage is logged once, and its end').to.deep.equal([
      'live events are held up: cannot read the next one; retrying',
      'live events flow again',
    ]);
    await hub.close();
  });
});
