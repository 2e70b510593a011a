/** States of streams between commands. */
import { expect } from 'chai';
import { agentDecider, agentStream } from '../../commands/agents/agents.ts';
import { nameDecider } from '../../commands/claims.ts';
import { createStates, type States } from '../../commands/states.ts';
import { nameClaimed, nameReleased } from '../../shared/events/claims.ts';
import type { DomainEvent } from '../../shared/events/define.ts';
import { eventsOf, registeredAgent } from '../support/kit.ts';

describe('states of streams', () => {
  it('of as many agents as a workspace may have are kept between their heartbeats', async () => {
    const [registered] = eventsOf([registeredAgent({ agent_id: 1, name: 'ada' })]);
    let reads = 0;
    const states = createStates(
      {
        readStream: async () => {
          reads++;
          return registered ? [registered] : [];
        },
      },
      undefined,
    );
    for (let round = 0; round < 2; round++)
      for (let id = 1; id <= 10_000; id++) await states.recent(agentDecider, agentStream(1, id));
    expect(reads).to.equal(10_000);
  });

  describe('that are read again', () => {
    const STREAM = 'name-1-ada';
    const claim = (owner: string) => nameClaimed.draft({ kind: 'name', name: 'ada', owner });
    const release = (owner: string) => nameReleased.draft({ kind: 'name', name: 'ada', owner });
    const all: readonly DomainEvent[] = eventsOf([
      claim('agent-1-1'),
      release('agent-1-1'),
      claim('agent-1-2'),
      release('agent-1-2'),
    ]).map((event) => ({ ...event, stream: STREAM }));

    let log: DomainEvent[];
    /** Where each read of the stream began. */
    let reads: number[];
    /** Runs while a read is on its way back. */
    let meanwhile: () => void;
    let seen: boolean;
    let states: States;

    /** Another process appends; `saw` is called only if this process has seen it. */
    const append = (process: 'seen' | 'unseen') => {
      const event = all[log.length] as DomainEvent;
      log.push(event);
      if (process === 'seen') states.saw(log.length, [event]);
    };
    const ownerNow = async () => ((await states.read(nameDecider, STREAM, 0)).state as { owner?: string }).owner;

    beforeEach(() => {
      log = [];
      reads = [];
      meanwhile = () => undefined;
      seen = true;
      const readStream = async (_: string, from = 0) => {
        reads.push(from);
        const events = log.slice(from);
        meanwhile();
        return events;
      };
      states = createStates({ readStream }, undefined, async () => seen);
      states.saw(0, []);
      append('seen');
    });

    it('come from the cache if every event was seen, also those of a stream without events', async () => {
      log = [];
      expect([await ownerNow(), await ownerNow()]).to.deep.equal([undefined, undefined]);
      append('seen');
      expect([await ownerNow(), await ownerNow()]).to.deep.equal(['agent-1-1', 'agent-1-1']);
      expect(reads).to.deep.equal([0, 0]);
    });

    it('are read if not every event was seen', async () => {
      await ownerNow();
      append('unseen');
      seen = false;
      expect(await ownerNow()).to.equal(undefined);
      expect(reads).to.deep.equal([0, 1]);
    });

    it('are read from the first event that they lack', async () => {
      await ownerNow();
      append('seen');
      append('seen');
      expect(await ownerNow()).to.equal('agent-1-2');
      expect(reads).to.deep.equal([0, 1]);
    });

    it('are not taken for current if an event came while they were read', async () => {
      meanwhile = () => {
        meanwhile = () => undefined;
        append('seen');
      };
      await ownerNow();
      expect(await ownerNow()).to.equal(undefined);
      expect(reads).to.deep.equal([0, 1]);
    });

    it('are not cached if they were dropped while they were read', async () => {
      for (const drop of [() => states.forget(STREAM), () => states.saw(0, [])]) {
        states.forget(STREAM);
        reads = [];
        meanwhile = () => {
          meanwhile = () => undefined;
          drop();
        };
        await ownerNow();
        await ownerNow();
        expect(reads).to.deep.equal([0, 0]);
      }
    });

    it('are read anew when the log has been replaced by another one', async () => {
      append('seen');
      expect(await ownerNow()).to.equal(undefined);
      log = [];
      states.saw(0, []);
      append('seen');
      expect(await ownerNow()).to.equal('agent-1-1');
      expect(reads).to.deep.equal([0, 0]);
    });

    it('include the events that this process appends, whether or not it has seen them', async () => {
      await ownerNow();
      const kept = await states.load(nameDecider, STREAM, undefined, true);
      reads = [];
      const appended = all.slice(1, 2);
      states.advance(nameDecider, STREAM, kept, appended);
      log.push(...appended);
      await states.track(nameDecider, STREAM, kept, Promise.resolve({ position: 2, events: appended }));
      expect(await ownerNow()).to.equal(undefined);
      expect(reads, 'as a recent state').to.deep.equal([]);
      // Another state of the stream, whose last event was appended unseen, by a process that had not read it.
      append('seen');
      const last = all.slice(3, 4);
      const kept2 = await states.load(nameDecider, STREAM, undefined, true);
      states.advance(nameDecider, STREAM, kept2, last);
      log.push(...last);
      await states.track(nameDecider, STREAM, kept2, Promise.resolve({ position: 4, events: last }));
      reads = [];
      expect(await ownerNow()).to.equal(undefined);
      expect(reads).to.deep.equal([2]);
    });

    it('may lack events as recent states, but none that was seen', async () => {
      const recent = async () => ((await states.recent(nameDecider, STREAM)).state as { owner?: string }).owner;
      await recent();
      append('unseen');
      expect(await recent()).to.equal('agent-1-1');
      append('seen');
      expect(await recent()).to.equal('agent-1-2');
      expect(reads).to.deep.equal([0, 1]);
    });
  });
});
