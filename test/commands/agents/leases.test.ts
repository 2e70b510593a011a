/** Summaries of heartbeats that changed nothing: each is in the log once, wherever a process stops. */
import { expect } from 'chai';
import {
  afterSummary,
  decideSummary,
  livenessStream,
  type SummaryParts,
  summaryDecider,
  sumUpHeartbeats,
} from '../../../commands/agents/leases.ts';
import { heartbeatSummarySchedule } from '../../../commands/schedules/agents/leases.ts';
import { unavailable } from '../../../shared/errors.ts';
import { heartbeatsReceived } from '../../../shared/events/agents/heartbeat.ts';
import type { EventOf } from '../../../shared/events/define.ts';
import type { ClosedLease } from '../../../shared/ports/agents/leases.ts';
import { failureOf, givenFor } from '../../support/kit.ts';
import { leasesMemory } from '../../support/leases-memory.ts';
import { memoryWorld } from '../../support/memory-world.ts';

type Summary = EventOf<typeof heartbeatsReceived>['data'];

describe('the summary of a window', () => {
  const given = givenFor(summaryDecider);
  const lease = (agent: number, more: Partial<ClosedLease> = {}): ClosedLease => ({
    ...{ agent, beats: 1, first: 100, last: 100, connection: null, connectionAt: null },
    ...more,
  });
  const part = (window: number, at: number, agents: Summary['agents'] = [[1, 1, 0, 0]]) =>
    heartbeatsReceived.draft({ window, part: at, from: 100, to: 100, agents, connections: [] });

  it('counts seconds from its first heartbeat, and names connections', () => {
    const connected = lease(2, { beats: 3, first: 90, last: 120, connection: 'c', connectionAt: 110 });
    given()
      .when(decideSummary, { window: 5, part: 0 }, [lease(1), connected])
      .then(
        heartbeatsReceived.draft({
          ...{ window: 5, part: 0, from: 90, to: 120 },
          agents: [
            [1, 1, 10, 10],
            [2, 3, 0, 30],
          ],
          connections: [[2, 'c', 20]],
        }),
      );
  });

  it('is appended once: each part of each window', () => {
    given(part(5, 0))
      .when(decideSummary, { window: 5, part: 0 }, [lease(1)])
      .then();
    given(part(5, 0))
      .when(decideSummary, { window: 5, part: 1 }, [lease(1)])
      .then(part(5, 1));
    given(part(5, 0), part(5, 1), part(6, 0))
      .when(decideSummary, { window: 5, part: 1 }, [lease(1)])
      .then();
    given(part(5, 0))
      .when(decideSummary, { window: 4, part: 0 }, [lease(1)])
      .then(part(4, 0));
  });

  it('is remembered for a limited number of windows', () => {
    const { state } = given(...Array.from({ length: 2_100 }, (_, n) => part(n + 1, 0)));
    expect(state.windows).to.have.length(2_048);
    expect(state.windows.at(-1)).to.deep.equal({ window: 2_100, parts: 1 });
  });
});

describe('summing up heartbeats', () => {
  /** Agents of two workspaces, and several processes. */
  function open() {
    const world = memoryWorld();
    const leases = leasesMemory();
    const place = (agent: number, workspace = 1) => ({ tenant: 1, workspace, agent });
    const beat = (agent: number, at: number, connection: string | null = null, workspace = 1) =>
      leases.renew({ ...place(agent, workspace), at, connection });
    const shown = { reach: async () => undefined };
    const parts = (readModels: SummaryParts['readModels'] = shown, commands = world.process()) => ({
      commands,
      leases,
      readModels,
    });
    const summed = (workspace = 1) =>
      world
        .written()
        .filter(({ stream }) => stream === livenessStream(workspace))
        .map(({ data }) => data as unknown as Summary);
    /** Heartbeats of an agent according to the log. */
    const beats = (agent: number, workspace = 1) =>
      summed(workspace)
        .flatMap(({ agents }) => agents)
        .reduce((sum, [id, count]) => sum + (id === agent ? count : 0), 0);
    return { world, leases, place, beat, parts, summed, beats };
  }

  it('appends one event for each workspace with heartbeats', async () => {
    const { beat, parts, summed } = open();
    await beat(2, 100);
    await beat(1, 101);
    await beat(2, 103);
    await beat(9, 50, null, 4);
    expect(await sumUpHeartbeats(parts())).to.equal(3);
    expect(summed()).to.have.length(1);
    expect(summed()[0]).to.deep.include({ from: 100, to: 103 });
    expect(summed()[0]?.agents).to.deep.equal([
      [1, 1, 1, 1],
      [2, 2, 0, 3],
    ]);
    expect(summed(4)[0]?.agents).to.deep.equal([[9, 1, 0, 0]]);
    expect(await sumUpHeartbeats(parts())).to.equal(0);
    expect(summed()).to.have.length(1);
  });

  it('is scheduled every five minutes, whatever the settings of the sweep', async () => {
    const { beat, parts, beats } = open();
    await beat(1, 100);
    const schedule = heartbeatSummarySchedule(parts());
    expect(schedule.enabled).to.equal(undefined);
    expect(schedule.everyMs).to.equal(300_000);
    expect(await schedule.run(false, new AbortController().signal)).to.equal('1 agent has sent heartbeats.');
    expect(beats(1)).to.equal(1);
  });

  it('appends at most 1,000 agents in an event', async () => {
    const { beat, parts, summed } = open();
    for (let agent = 1; agent <= 2_001; agent++) await beat(agent, 100);
    expect(await sumUpHeartbeats(parts())).to.equal(2_001);
    expect(summed().map(({ part, agents }) => [part, agents.length])).to.deep.equal([
      [0, 1_000],
      [1, 1_000],
      [2, 1],
    ]);
  });

  it('resumes what another process has left behind: before an append, between two, after the last one', async () => {
    for (const appends of [0, 1, 2]) {
      const { world, beat, parts, beats } = open();
      for (let agent = 1; agent <= 1_001; agent++) await beat(agent, 100);
      let left = appends;
      const die = async () => {
        if (left-- === 0) throw new Error('killed');
      };
      world.beforeAppend = die;
      // The last one dies before the window is opened again.
      const readModels = { reach: () => Promise.reject(new Error('killed')) };
      expect(await failureOf(sumUpHeartbeats(parts(readModels))), `${appends} appends`).to.include('killed');
      world.beforeAppend = async () => undefined;
      await beat(1, 200);
      await sumUpHeartbeats(parts());
      expect([beats(1), beats(2), beats(1_001)], `${appends} appends`).to.deep.equal([2, 1, 1]);
    }
  });

  it('is done once by two processes at the same time', async () => {
    const { beat, parts, beats } = open();
    for (let agent = 1; agent <= 50; agent++) await beat(agent, 100);
    await Promise.all([sumUpHeartbeats(parts()), sumUpHeartbeats(parts()), sumUpHeartbeats(parts())]);
    for (let agent = 1; agent <= 50; agent++) expect(beats(agent)).to.equal(1);
  });

  it('keeps a window whose summary reads do not show, and its later heartbeats', async () => {
    const { leases, beat, parts, beats } = open();
    await beat(1, 100);
    const behind = { reach: () => Promise.reject(unavailable('behind')) };
    await sumUpHeartbeats(parts(behind));
    expect(await leases.closed('all')).to.have.length(1);
    await beat(1, 200);
    await sumUpHeartbeats(parts(behind));
    expect(beats(1)).to.equal(1);
    await sumUpHeartbeats(parts());
    expect(beats(1)).to.equal(2);
    expect(await leases.closed('all')).to.deep.equal([]);
  });

  it('waits once for reads, however many workspaces there are', async () => {
    const { leases, world, beat, parts, beats } = open();
    for (let workspace = 1; workspace <= 20; workspace++) await beat(1, 100, null, workspace);
    const waits: (number | undefined)[] = [];
    const reach = async (_types: unknown, { position }: { readonly position?: number } = {}) => {
      waits.push(position);
      return undefined;
    };
    await sumUpHeartbeats(parts({ reach }));
    expect(waits).to.deep.equal([world.written().length]);
    expect([beats(1, 1), beats(1, 20)]).to.deep.equal([1, 1]);
    expect(await leases.closed('all')).to.deep.equal([]);
  });

  it('names both connections of an agent that has connected again', async () => {
    const { beat, parts, summed } = open();
    expect(await beat(1, 100, 'a')).to.equal(true);
    expect(await beat(1, 101, 'b'), 'the log does not have the other one').to.equal(false);
    expect(await beat(1, 102)).to.equal(true);
    await sumUpHeartbeats(parts());
    expect(await beat(1, 103, 'b')).to.equal(true);
    await sumUpHeartbeats(parts());
    expect(summed().map(({ from, connections }) => connections.map(([, id, at]) => [id, from + at]))).to.deep.equal([
      [['a', 100]],
      [['b', 103]],
    ]);
  });

  describe('of an agent that is deleted', () => {
    it('comes before its deletion, and waits for no read model', async () => {
      const { world, leases, beat, place, parts, beats } = open();
      await beat(1, 100);
      await beat(2, 100);
      const { commands } = parts();
      await afterSummary({ commands, leases }, place(1), async () => expect(beats(1)).to.equal(1));
      expect(beats(2)).to.equal(0);
      expect(await leases.closed('all'), 'closed windows').to.deep.equal([]);
      await sumUpHeartbeats(parts());
      expect([beats(1), beats(2)]).to.deep.equal([1, 1]);
      expect(world.written()).to.have.length(2);
    });

    it('stays for the schedule when the deletion fails', async () => {
      const { leases, beat, place, parts, beats } = open();
      await beat(1, 100);
      const failing = afterSummary({ commands: parts().commands, leases }, place(1), () =>
        Promise.reject(new Error('killed')),
      );
      expect(await failureOf(failing)).to.include('killed');
      expect(await leases.closed('all')).to.have.length(1);
      await sumUpHeartbeats(parts());
      expect(await leases.closed('all')).to.deep.equal([]);
      expect(beats(1)).to.equal(1);
    });
  });
});
