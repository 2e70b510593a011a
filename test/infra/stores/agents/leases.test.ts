/** Leases of agents: the store and the one in memory, which stands for it in tests of commands, behave alike. */
import { expect } from 'chai';
import { createLeases } from '../../../../infra/stores/agents/leases.ts';
import { catalogue } from '../../../../shared/events/catalogue.ts';
import type { Leases } from '../../../../shared/ports/agents/leases.ts';
import { fixture } from '../../../support/fixture.ts';
import { registeredAgent } from '../../../support/kit.ts';
import { leasesMemory } from '../../../support/leases-memory.ts';
import { onEveryDatabase, openView, testOrigin } from '../../../support/world.ts';

/** Agents of a workspace of their own for each test. */
let workspaces = 100;

function behaves(open: () => Leases): void {
  const start = () => {
    const leases = open();
    const workspace = ++workspaces;
    const place = (agent: number) => ({ tenant: 1, workspace, agent });
    const beat = (agent: number, at: number, connection: string | null = null) =>
      leases.renew({ ...place(agent), at, connection });
    /** Closes the windows, and opens them again. */
    const sumUp = async () => {
      await leases.close(workspace);
      const all = [];
      for (const window of await leases.closed(workspace)) {
        all.push(...(await leases.leasesOf(window, 0, 10)));
        await leases.settle(window);
      }
      return all;
    };
    return { leases, workspace, place, beat, sumUp };
  };

  it('count heartbeats by agent, with the first and the last of a window', async () => {
    const { beat, sumUp } = start();
    for (const at of [100, 104, 102]) await beat(2, at);
    await beat(1, 103);
    const none = { connection: null, connectionAt: null };
    expect(await sumUp()).to.deep.equal([
      { agent: 1, beats: 1, first: 103, last: 103, ...none },
      { agent: 2, beats: 3, first: 100, last: 104, ...none },
    ]);
    expect(await sumUp()).to.deep.equal([]);
    await beat(2, 110);
    expect(await sumUp()).to.deep.equal([{ agent: 2, beats: 1, first: 110, last: 110, ...none }]);
  });

  it('count all of many at once', async () => {
    const { beat, sumUp } = start();
    const all = await Promise.all(Array.from({ length: 60 }, (_, n) => beat((n % 3) + 1, 100 + n)));
    expect(all).to.deep.equal(all.map(() => true));
    expect((await sumUp()).map(({ agent, beats, first, last }) => [agent, beats, first, last])).to.deep.equal([
      [1, 20, 100, 157],
      [2, 20, 101, 158],
      [3, 20, 102, 159],
    ]);
  });

  it('keep a closed window as it was, and count on in the next one', async () => {
    const { leases, workspace, beat, sumUp } = start();
    await beat(1, 100);
    await leases.close(workspace);
    const [window, ...more] = await leases.closed(workspace);
    expect(more).to.deep.equal([]);
    await beat(1, 101);
    await beat(2, 101);
    await leases.close(workspace);
    const windows = await leases.closed(workspace);
    expect(windows).to.have.length(2);
    expect(windows[0], 'oldest first').to.deep.equal(window);
    const beats = async (one: (typeof windows)[number] | undefined) =>
      one && (await leases.leasesOf(one, 0, 10)).map((lease) => [lease.agent, lease.beats, lease.last]);
    expect(await beats(windows[0])).to.deep.equal([[1, 1, 100]]);
    expect(await beats(windows[1])).to.deep.equal([[2, 1, 101]]);
    for (const one of windows) await leases.settle(one);
    expect((await sumUp()).map(({ agent, beats, first }) => [agent, beats, first])).to.deep.equal([[1, 1, 101]]);
  });

  it('are paged by agent', async () => {
    const { leases, workspace, beat } = start();
    for (const agent of [3, 1, 2]) await beat(agent, 100);
    await leases.close(workspace);
    const [window] = await leases.closed(workspace);
    if (!window) throw new Error('no window');
    expect((await leases.leasesOf(window, 0, 2)).map(({ agent }) => agent)).to.deep.equal([1, 2]);
    expect((await leases.leasesOf(window, 2, 2)).map(({ agent }) => agent)).to.deep.equal([3]);
  });

  it('close the window of one agent', async () => {
    const { leases, workspace, place, beat } = start();
    expect(await leases.closeOne(place(1)), 'without heartbeats').to.equal(undefined);
    await beat(1, 100);
    await beat(2, 100);
    const window = await leases.closeOne(place(1));
    expect(await leases.closed(workspace)).to.deep.equal([window]);
    expect(await leases.closeOne(place(1)), 'closed').to.equal(undefined);
  });

  it('refuse heartbeats while they are revoked, and are revoked only from silent agents', async () => {
    const { leases, place, beat, sumUp } = start();
    await beat(1, 100);
    expect(await leases.revoke(place(1), 99)).to.equal(undefined);
    expect(await beat(1, 101)).to.equal(true);
    expect(await leases.revoke(place(1), 101)).to.equal(101);
    expect(await leases.revoke(place(2), 101), 'of an agent without a lease').to.equal(0);
    for (const agent of [1, 2]) expect(await beat(agent, 102)).to.equal(false);
    await leases.grant(place(1));
    expect(await beat(1, 103)).to.equal(true);
    expect((await sumUp()).map(({ agent, beats }) => [agent, beats])).to.deep.equal([[1, 3]]);
  });

  it('take another connection only after a summary of the earlier one', async () => {
    const { leases, place, beat, sumUp } = start();
    await beat(1, 100, 'a');
    expect(await beat(1, 101, 'b')).to.equal(false);
    expect(await beat(1, 102)).to.equal(true);
    expect(await leases.revoke(place(1), 101, 'a'), 'another heartbeat is none of the connection').to.equal(102);
    await leases.grant(place(1));
    const connections = async () => (await sumUp()).map((one) => [one.connection, one.connectionAt]);
    expect(await connections()).to.deep.equal([['a', 100]]);
    await beat(1, 103);
    expect(await beat(1, 104, 'b')).to.equal(true);
    expect(await leases.revoke(place(1), 103, 'b')).to.equal(undefined);
    expect(await connections()).to.deep.equal([['b', 104]]);
    const both = await Promise.all([beat(2, 100, 'a'), beat(2, 101, 'b'), beat(2, 102)]);
    expect(both, 'at once').to.deep.equal([true, false, true]);
    expect(await connections()).to.deep.equal([['a', 100]]);
    await beat(1, 105);
    expect(await connections(), 'it was not named in this window').to.deep.equal([[null, null]]);
  });
}

describe('leases in memory', () => behaves(leasesMemory));

onEveryDatabase('leases', (name, open) => {
  describe(`leases on ${name}`, function () {
    this.timeout(30_000);
    const place = fixture(open);
    behaves(() => createLeases(place.database.pool));

    it('count no heartbeat that was decided on an earlier state of the agent’s stream', async () => {
      const view = await openView(place.database, [...catalogue.values()], []);
      const leases = createLeases(place.database.pool, { seesLog: true });
      const workspace = ++workspaces;
      const stream = `agent-${workspace}-1`;
      const append = () =>
        view.commands.record(stream, { origin: { ...testOrigin, workspace } }, [
          registeredAgent({ agent_id: 1, name: 'ann' }),
        ]);
      const beat = (revision?: number) =>
        leases.renew({
          ...{ tenant: 1, workspace, agent: 1, at: 100, connection: null },
          ...(revision !== undefined && { unlessMoved: { stream, revision } }),
        });
      try {
        expect(await beat(0), 'no events').to.equal(false);
        await append();
        expect(await beat(0)).to.equal(true);
        await append();
        expect(await beat(0)).to.equal(false);
        expect(await beat(1)).to.equal(true);
        // At once: what one statement cannot count with another one, the next statement does.
        expect(await Promise.all([beat(1), beat(0), beat(1), beat()])).to.deep.equal([true, false, true, true]);
        expect(await Promise.all([beat(), beat(1)])).to.deep.equal([true, true]);
        await leases.close(workspace);
        const [window] = await leases.closed(workspace);
        expect(window && (await leases.leasesOf(window, 0, 1))[0]?.beats).to.equal(7);
      } finally {
        await view.close();
      }
    });

    it('of several processes never wait for each other in a circle', async () => {
      const workspace = ++workspaces;
      const all = [1, 2, 3].map(() => createLeases(place.database.pool));
      let beats = 0;
      let over = false;
      const beating = all.map(async (leases) => {
        for (let round = 0; round < 60; round++) {
          const agents = Array.from({ length: 40 }, (_, n) => n + 1).sort(() => Math.random() - 0.5);
          const renewals = agents.map((agent) =>
            leases.renew({ tenant: 1, workspace, agent, at: 100, connection: null }),
          );
          expect(await Promise.all(renewals)).to.not.include(false);
          beats += agents.length;
        }
      });
      let summed = 0;
      const sumUp = async (leases: Leases) => {
        await leases.close(workspace);
        for (const window of await leases.closed(workspace)) {
          for (const lease of await leases.leasesOf(window, 0, 100)) summed += lease.beats;
          await leases.settle(window);
        }
      };
      const summing = (async () => {
        while (!over) await sumUp(all[0] as Leases);
      })();
      await Promise.all(beating).finally(() => {
        over = true;
      });
      await summing;
      await sumUp(all[0] as Leases);
      expect(summed).to.equal(beats);
    });

    it('change a value with each renewal in a workspace', async () => {
      const leases = createLeases(place.database.pool);
      const [one, other] = [++workspaces, ++workspaces];
      const moves = () => [leases.moves(one), leases.moves(other), leases.moves('all')];
      const before = moves();
      await leases.renew({ tenant: 1, workspace: one, agent: 1, at: 100, connection: null });
      const after = moves();
      expect(after[0]).to.be.above(before[0] as number);
      expect(after[1]).to.equal(before[1]);
      expect(after[2]).to.be.above(before[2] as number);
    });
  });
});
