/** Heartbeats with what is waiting for their agents, which may have been read some time ago. */
import { expect } from 'chai';
import { agentDecider, agentStream, decideDelete } from '../../../commands/agents/agents.ts';
import {
  decideHeartbeat,
  decideWake,
  type Heartbeat,
  isRoutine,
  recordHeartbeat,
} from '../../../commands/agents/heartbeat.ts';
import type { Inbox } from '../../../queries/agents/heartbeat.ts';
import type { AgentRef } from '../../../shared/contract/agents/agents.ts';
import { agentDetailsChanged } from '../../../shared/events/agents/agents.ts';
import { agentHeartbeatReceived } from '../../../shared/events/agents/heartbeat.ts';
import type { EventDraft } from '../../../shared/events/define.ts';
import type { TaskView } from '../../../shared/identity.ts';
import { ada, deleted, details, given, registered, status } from '../../support/agent.ts';
import { agentsMemory } from '../../support/agents-memory.ts';
import { type Draft, failureOf, outcomeOf, sample } from '../../support/kit.ts';
import { leasesMemory } from '../../support/leases-memory.ts';

/** Tokens that a heartbeat reports. */
const tokenUsage = {
  ...{ id: 'r', model: 'm', input_tokens: 1, output_tokens: 2, cache_read_tokens: 3, cache_write_tokens: 4 },
  ...{ task_id: null, cost: 0.5, price: 'own' as const },
};

describe('a recorded heartbeat', () => {
  const workItems: Inbox['workItems'] = [
    { type: 'notifications', count: 2, items: [] },
    { type: 'urgent_activities', count: 3, items: [] },
  ];
  const operator = { workspace: 1, role: 'operator', kind: 'global-key', agentId: null, agentName: null } as const;
  /** @param fail what the read of an inbox throws */
  const open = async (fail?: Error) => {
    const agents = agentsMemory();
    const id = await agents.make('ada', { status: 'busy' });
    const asked: Inbox['agent'][] = [];
    const seen: [TaskView['agent'], number][] = [];
    /** What happens while the next inboxes are read. */
    const whileRead: (() => Promise<unknown>)[] = [];
    const inboxes = {
      async find({ agent: bound }: TaskView, agent: Inbox['agent'], since: number): Promise<Inbox> {
        asked.push(agent);
        seen.push([bound, since]);
        if (fail) throw fail;
        await whileRead.shift()?.();
        return { agent, workItems, pendingTasks: [], messages: [], until: Number.MAX_SAFE_INTEGER };
      },
    };
    const leases = leasesMemory();
    const parts = { commands: agents.commands, inboxes, leases, eachIsEvent: async () => true, now: Date.now };
    /** @param agentName the agent that the caller speaks for */
    const beat = (ref: AgentRef, agentName: string | null = null, context = agents.context()) => {
      const caller = { identity: { ...operator, agentName }, arrivedAt: 5 };
      return recordHeartbeat(parts, context, caller, ref, { connection_id: 'c', tokenUsage: null });
    };
    /** A heartbeat with tokens, where only changes are events. */
    const report = (context = agents.context()) => {
      const caller = { identity: { ...operator, agentName: null }, arrivedAt: 5 };
      const changes = { ...parts, eachIsEvent: async () => false };
      return recordHeartbeat(changes, context, caller, { id }, { connection_id: null, tokenUsage });
    };
    const rename = (name: string) =>
      agents.world
        .process()
        .record(agentStream(1, id), agents.context(), [
          sample(agentDetailsChanged, { agent_id: id, name: 'ada', changes: { name }, via: 'id' }),
        ]);
    const beats = () => leases.rows.get(`1 ${id}`)?.beats ?? 0;
    return { agents, id, asked, seen, beat, report, beats, leases, rename, whileRead };
  };

  it('returns the number of waiting items and the items', async () => {
    const { agents, id, beat, asked } = await open();
    const found = await beat({ id });
    expect(found.agent).to.include({ id, name: 'ada' });
    expect(found.workItems).to.equal(workItems);
    expect(agents.events('AgentHeartbeatReceived').map(({ data }) => data)).to.deep.equal([
      {
        agent_id: id,
        name: 'ada',
        last_activity: 'Heartbeat received',
        connection_id: 'c',
        work_items_count: 5,
        work_item_types: ['notifications', 'urgent_activities'],
      },
    ]);
    expect(agents.events('AgentStatusChanged')[0]?.data).to.include({ from: 'busy', to: 'idle', cause: 'heartbeat' });
    expect(asked.map((agent) => agent.id)).to.deep.equal([id]);
  });

  it('reads what its caller may see, as of the arrival of the request', async () => {
    const { id, seen, beat } = await open();
    await beat({ id }, 'ada');
    await beat({ id });
    const ada = { name: 'ada', id: null };
    expect(seen).to.deep.equal([
      [ada, 5],
      [null, 5],
    ]);
  });

  it('is not recorded for an unknown agent, or for a caller that speaks for another one', async () => {
    const { agents, id, beat, asked } = await open();
    expect(await outcomeOf(beat({ id }, 'eve'))).to.equal('403');
    expect(await outcomeOf(beat({ id: 99 }))).to.equal('404');
    expect(await outcomeOf(beat({ name: 'nobody' }))).to.equal('404');
    expect(agents.events('AgentHeartbeatReceived')).to.deep.equal([]);
    expect(asked, 'inboxes that were read').to.deep.equal([]);
  });

  it('is not recorded if the inbox cannot be read', async () => {
    const { agents, id, beat } = await open(new Error('broken'));
    expect(await failureOf(beat({ id }))).to.equal('broken');
    expect(agents.events('AgentHeartbeatReceived')).to.deep.equal([]);
  });

  it('by name is not recorded for an agent that has been renamed; by id it is', async () => {
    const { agents, id, beat, rename } = await open();
    await beat({ name: 'ada' });
    await rename('eve');
    expect(await outcomeOf(beat({ name: 'ada' }))).to.equal('404');
    await beat({ id });
    expect(agents.events('AgentHeartbeatReceived').map(({ data }) => data.name)).to.deep.equal(['ada', 'eve']);
  });

  it('follows an agent that another process has renamed, and checks the caller under the new name', async () => {
    const { agents, id, asked, beat, rename } = await open();
    await beat({ id });
    await rename('eve');
    expect((await beat({ id })).agent.name).to.equal('eve');
    expect(asked.map(({ name }) => name)).to.deep.equal(['ada', 'ada', 'eve']);
    await rename('zoe');
    await beat({ id }, 'zoe');
    expect(agents.events('AgentHeartbeatReceived').map(({ data }) => data.name)).to.deep.equal(['ada', 'eve', 'zoe']);
  });

  it('by id is recorded for an agent that is renamed while its inbox is read, more than once', async () => {
    const { agents, id, beat, rename, asked, whileRead } = await open();
    await beat({ id });
    for (const name of ['eve', 'zoe', 'ida']) whileRead.push(() => rename(name));
    expect((await beat({ id })).agent.name).to.equal('ida');
    expect(asked.slice(1).map(({ name }) => name)).to.deep.equal(['ada', 'eve', 'zoe', 'ida']);
    expect(agents.events('AgentHeartbeatReceived').map(({ data }) => data.name)).to.deep.equal(['ada', 'ida']);
  });

  it('is rejected for an agent that another process has deleted', async () => {
    const { agents, id, beat } = await open();
    await beat({ id });
    await agents.world
      .process()
      .execute(agentDecider, agentStream(1, id), agents.context(), (state) => decideDelete(state, false));
    for (const ref of [{ id }, { name: 'ada' }]) expect(await outcomeOf(beat(ref))).to.equal('404');
    expect(agents.events('AgentHeartbeatReceived')).to.have.length(1);
  });

  it('is a single step of its request, however many reads it needs', async () => {
    const { agents, id, beat, rename } = await open();
    await beat({ id });
    await rename('eve');
    const steps: number[] = [];
    const context = {
      ...agents.context(),
      intents: {
        recorded: [],
        async record(step: number) {
          steps.push(step);
        },
      },
    };
    await beat({ id }, null, context);
    expect(steps).to.deep.equal([0, 0]);
    expect(context).to.not.have.property('step');
  });

  it('that only reports tokens renews the lease, and the report is its event', async () => {
    const { agents, report, beats } = await open();
    await report();
    expect(beats(), 'the agent was busy').to.equal(0);
    await report();
    expect(beats()).to.equal(1);
    expect(agents.events('AgentHeartbeatReceived')).to.have.length(1);
    expect(agents.events('TokensReported')).to.have.length(2);
  });

  it('that only reports tokens is an event when the sweep has revoked the lease, and the report is recorded once', async () => {
    const { agents, id, report, beats, leases } = await open();
    await report();
    await leases.revoke({ tenant: 1, workspace: 1, agent: id }, Number.MAX_SAFE_INTEGER);
    const steps: number[] = [];
    const intents = {
      recorded: [],
      async record(step: number) {
        steps.push(step);
      },
    };
    await report({ ...agents.context(), intents } as ReturnType<typeof agents.context>);
    expect(steps, 'two appends').to.deep.equal([0, 1]);
    expect(agents.events('AgentHeartbeatReceived')).to.have.length(2);
    expect(agents.events('TokensReported')).to.have.length(2);
    await report();
    expect(beats(), 'the lease was granted again').to.equal(1);
  });

  it('that only reports tokens reports them once, even if the agent is renamed before its lease is renewed', async () => {
    const { agents, id, report, leases, rename } = await open();
    await report();
    const renew = leases.renew;
    leases.renew = async (beat) => {
      leases.renew = renew;
      await leases.revoke(beat, Number.MAX_SAFE_INTEGER);
      await rename('eve');
      return renew(beat);
    };
    await report();
    expect(agents.events('TokensReported')).to.have.length(2);
    expect(agents.events('AgentHeartbeatReceived').map(({ data }) => data.name)).to.deep.equal(['ada', 'eve']);
    expect(agents.events('AgentHeartbeatReceived')[1]?.data.agent_id).to.equal(id);
  });

  it('that only reports tokens leaves no lease to an agent that is deleted before it is renewed', async () => {
    const { agents, id, report, leases, beats } = await open();
    await report();
    Object.assign(leases, { seesLog: true });
    const renew = leases.renew;
    leases.renew = async (beat) => {
      const { unlessMoved } = beat;
      if (unlessMoved === undefined) return renew(beat);
      const other = agents.world.process();
      await other.execute(agentDecider, unlessMoved.stream, agents.context(), (state) => decideDelete(state, false));
      const { revision } = await other.load(agentDecider, unlessMoved.stream);
      return revision === unlessMoved.revision && renew(beat);
    };
    await report();
    expect(beats()).to.equal(0);
    expect(agents.events('AgentDeleted').map(({ data }) => data.agent_id)).to.deep.equal([id]);
    expect(agents.events('TokensReported')).to.have.length(2);
    expect(agents.events('AgentHeartbeatReceived'), 'the first one').to.have.length(1);
  });
});

const heartbeat = { connection_id: null, work_items_count: 0, work_item_types: [], tokenUsage: null };
const types = (drafts: readonly EventDraft[]) => drafts.map((draft) => draft.type);

describe('agent: heartbeat', () => {
  it('is routine when it changes nothing', () => {
    const beaten = sample(agentHeartbeatReceived, {
      ...{ ...ada, last_activity: 'Heartbeat received' },
      ...{ work_items_count: 3, work_item_types: ['mentions', 'assigned_tasks'] },
    });
    const same = { ...heartbeat, work_items_count: 3, work_item_types: ['mentions', 'assigned_tasks'] };
    const routine = (more: readonly Draft[], beat: Heartbeat = same) =>
      isRoutine(given(registered, status('idle'), ...more).state, beat);
    expect(routine([beaten])).to.equal(true);
    expect(routine([]), 'the first one').to.equal(false);
    expect(routine([beaten], { ...same, work_items_count: 2 }), 'less waits').to.equal(false);
    expect(routine([beaten], { ...same, work_item_types: ['mentions'] }), 'something else waits').to.equal(false);
    expect(routine([beaten, status('busy')]), 'another status').to.equal(false);
    expect(routine([beaten, status('busy'), status('idle')]), 'another last activity').to.equal(false);
    expect(routine([beaten, details({ last_activity: 'thinks' })]), 'another last activity').to.equal(false);
    expect(routine([beaten, details({ role: 'lead' })]), 'another role').to.equal(true);
    expect(routine([beaten, decideWake(given(registered).state, null)[0] as Draft]), 'woken').to.equal(false);
    expect(routine([beaten, deleted]), 'deleted').to.equal(false);
    expect(isRoutine(given().state, same), 'not registered').to.equal(false);
  });

  it('is one event for an idle agent', () => {
    expect(types(decideHeartbeat(given(registered, status('idle')).state, heartbeat))).to.deep.equal([
      'AgentHeartbeatReceived',
    ]);
  });

  it('records a status change first, and leaves the frame to the heartbeat', () => {
    const [first, second] = decideHeartbeat(given(registered).state, heartbeat);
    expect(first?.data).to.deep.include({
      from: 'offline',
      to: 'idle',
      cause: 'heartbeat',
      seen: true,
      announced: true,
    });
    expect(second?.type).to.equal('AgentHeartbeatReceived');
  });

  it('carries a token report in the same append', () => {
    const drafts = decideHeartbeat(given(registered, status('idle')).state, { ...heartbeat, tokenUsage });
    expect(types(drafts)).to.deep.equal(['AgentHeartbeatReceived', 'TokensReported']);
    const whose = { agent_id: 7, agent_name: 'ada', session_id: 'ada:cli' };
    const report = { ...whose, ...tokenUsage, operation: 'heartbeat', duration: null, used_at: null };
    expect(drafts[1]?.data).to.deep.equal({ page: null, reports: [report] });
  });
});

describe('agent: wake-up', () => {
  it('is recorded with or without a reason', () => {
    expect(decideWake(given(registered).state, 'look')[0]?.data).to.deep.include({ reason: 'look' });
    expect(decideWake(given(registered).state, null)[0]?.data).to.deep.include({ reason: null });
  });
});
