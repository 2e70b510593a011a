import { expect } from 'chai';
import { sweepLiveness } from '../../../commands/schedules/agents/liveness.ts';
import { silentAgents } from '../../../queries/agents/liveness.ts';
import { fixture } from '../../support/fixture.ts';
import { startAgentsWorld } from '../../support/worlds/agents.ts';

describe('the inactivity sweep', () => {
  const world = fixture(startAgentsWorld);

  const { ask, create, get, activities } = world;
  const core = () => world.world.service.core;

  const sweep = (minutesFromNow: number) =>
    sweepLiveness({
      commands: core().commands,
      silentAgents: (since) => silentAgents(core().reads, since),
      timeoutMinutes: 10,
      now: () => Date.now() + minutesFromNow * 60_000,
    });

  it('sets inactive agents offline once, and sends a notification', async () => {
    const [silent, offline] = [await create({ status: 'busy' }), await create()];
    expect(await sweep(5)).to.deep.equal([]);
    expect(await get(silent.id)).to.include({ status: 'busy' });
    const notOffline = await silentAgents(core().reads, Number.MAX_SAFE_INTEGER);
    const ours = notOffline.filter(({ workspace }) => workspace === 1).map(({ name }) => name);
    const marked = await sweep(11);
    expect(marked).to.include(silent.name).and.not.include(offline.name);
    expect(await get(silent.id)).to.include({ status: 'offline', last_seen: null });
    expect(await sweep(12)).to.deep.equal([]);
    const [activity] = await activities('agent_status_change', silent.id);
    expect(activity).to.include({ actor: 'heartbeat' });
    const [entry, ...more] = await world.world.audit('heartbeat_check');
    expect(more).to.have.length(0);
    const oursMarked = ours.filter((name) => marked.includes(name));
    expect(entry).to.deep.include({
      actor: 'scheduler',
      detail: { marked_offline: oursMarked, marked_offline_count: oursMarked.length },
    });
    await world.stream.until(() =>
      world.stream.frames.some(({ type, data }) => type === 'notification.created' && data.source_id === silent.id),
    );
    const told = world.stream.frames.find(
      ({ type, data }) => type === 'notification.created' && data.source_id === silent.id,
    );
    expect(told?.data).to.include({ recipient: 'system', type: 'heartbeat', source_type: 'agent' });
    await ask('POST', `/api/agents/${silent.id}/heartbeat`, {});
    expect(await get(silent.id)).to.include({ status: 'idle' });
  });

  it('decides on the log, not on an outdated read model', async () => {
    const { id, name } = await create({ status: 'busy' });
    const { commands } = core();
    const stale = [{ tenant: 1, workspace: 1, id, name }];
    const marked = await sweepLiveness({
      commands,
      silentAgents: async () => stale,
      timeoutMinutes: 10,
      now: Date.now,
    });
    expect(marked).to.deep.equal([]);
    await ask('DELETE', `/api/agents/${id}`);
    const later = { commands, silentAgents: async () => stale, timeoutMinutes: 10, now: () => Date.now() + 1e9 };
    expect(await sweepLiveness(later)).to.deep.equal([]);
  });
});
