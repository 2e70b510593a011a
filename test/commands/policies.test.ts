/** Policies as functions of one event, and the sweep that sets silent agents offline. */
import { expect } from 'chai';
import { agentStream } from '../../commands/agents/agents.ts';
import { definePolicy, jobIdOf, wantJob, whenever } from '../../commands/policies/policy.ts';
import { type SilentAgent, sweepLiveness } from '../../commands/schedules/agents/liveness.ts';
import { conflict, notFound } from '../../shared/errors.ts';
import { agentHidden, agentShown } from '../../shared/events/agents/agents.ts';
import { agentHeartbeatReceived } from '../../shared/events/agents/heartbeat.ts';
import { agentsMemory } from '../support/agents-memory.ts';
import { eventsOf, failureOf, outcomeOf, sample } from '../support/kit.ts';
import { leasesMemory } from '../support/leases-memory.ts';

describe('a policy', () => {
  const kind = { name: 'call' } as never;
  const [hidden, shown] = eventsOf([
    agentHidden.draft({ agent_id: 1, name: 'ada' }),
    agentShown.draft({ agent_id: 1, name: 'ada' }),
  ]);
  if (!hidden || !shown) throw new Error('two events were asked for');
  const reaction = whenever(agentHidden, ({ data }) => [
    wantJob(kind, { of: data.name }),
    wantJob(kind, { of: data.name }, 'second'),
  ]);

  it('creates jobs only for the events that it listens to', () => {
    const policy = definePolicy('tell-somebody', [reaction]);
    expect([...policy.listensTo]).to.deep.equal([agentHidden.type]);
    expect(policy.react(hidden)).to.deep.equal([
      { kind, payload: { of: 'ada' }, key: undefined },
      { kind, payload: { of: 'ada' }, key: 'second' },
    ]);
    expect(policy.react(shown)).to.deep.equal([]);
    expect(jobIdOf(policy, hidden, undefined)).to.equal(`tell-somebody-${hidden.id}`);
    expect(jobIdOf(policy, hidden, 'second')).to.equal(`tell-somebody-${hidden.id}-second`);
  });

  it('has a lower-case name, one reaction per type, and one job per key', () => {
    for (const name of ['Tell', 'tell_somebody', '-tell', 'tell-', '9tell', 'tell somebody'])
      expect(() => definePolicy(name, []), name).to.throw(`"${name}"`);
    for (const name of ['tell', 'tell-2', 'a1-b2-c3']) expect(definePolicy(name, []).name).to.equal(name);
    expect(() => definePolicy('tell', [reaction, reaction])).to.throw('tell: two reactions to one event type');
    const twice = whenever(agentHidden, () => [wantJob(kind, {}), wantJob(kind, {})]);
    expect(() => definePolicy('tell', [twice]).react(hidden)).to.throw('tell: two jobs of one event have the same key');
  });
});

describe('the sweep of inactive agents', () => {
  const START = 1_700_000_000_000;
  const MINUTE = 60_000;
  const open = async () => {
    let now = START;
    const agents = agentsMemory(() => now);
    const ids = [await agents.make('ada'), await agents.make('bob')];
    now = START + 20 * MINUTE;
    const asked: number[] = [];
    const sweep = (silent: readonly Partial<SilentAgent>[], commands = agents.commands) =>
      sweepLiveness({
        commands,
        leases: leasesMemory(),
        silentAgents: async (since) => {
          asked.push(since);
          return silent.map((one) => ({ tenant: 1, workspace: 1, id: 0, name: 'ada', ...one }));
        },
        timeoutMinutes: 10,
        now: () => now,
      });
    return { agents, ids, asked, sweep };
  };

  it('sets agents offline that gave no sign of life for too long, and records which', async () => {
    const { agents, ids, asked, sweep } = await open();
    const [ada, bob] = ids as [number, number];
    await agents.commands.record(agentStream(1, bob), agents.context(), [
      sample(agentHeartbeatReceived, { agent_id: bob, name: 'bob', last_activity: 'x' }),
    ]);
    // The read model is behind: bob has just reported.
    expect(await sweep([{ id: ada }, { id: bob, name: 'bob' }])).to.deep.equal(['ada']);
    expect(asked).to.deep.equal([(START + 10 * MINUTE) / 1_000]);
    expect((await agents.stateOf(ada)).status).to.equal('offline');
    expect((await agents.stateOf(bob)).status).to.equal('idle');
    const [checked] = agents.events('LivenessChecked');
    expect(checked).to.deep.include({ stream: 'liveness-1', data: { marked_offline: ['ada'], count: 1 } });
    expect((checked as { meta?: unknown }).meta).to.deep.include({
      actor: { type: 'system', id: 0, name: 'scheduler' },
      tenant: 1,
      workspace: 1,
      ip: null,
      requestId: null,
    });
    expect(await sweep([{ id: ada }]), 'it is offline already').to.deep.equal([]);
    expect(agents.events('LivenessChecked')).to.have.length(1);
  });

  it('records each workspace separately, in its tenant', async () => {
    const { agents, ids, sweep } = await open();
    const elsewhere = { ...agents.context().origin, tenant: 7, workspace: 5 };
    const written = agents.world.written().find(({ stream }) => stream === agentStream(1, ids[0] as number));
    await agents.commands.record(agentStream(5, 9), { origin: elsewhere }, [
      { type: 'AgentRegistered', data: { ...(written?.data as object), agent_id: 9, name: 'zoe' } } as never,
    ]);
    // Registered just now: it is silent only for a sweep that is later.
    const late = sweepLiveness({
      commands: agents.commands,
      leases: leasesMemory(),
      silentAgents: async () => [
        { tenant: 1, workspace: 1, id: ids[0] as number, name: 'ada' },
        { tenant: 1, workspace: 1, id: ids[1] as number, name: 'bob' },
        { tenant: 7, workspace: 5, id: 9, name: 'zoe' },
      ],
      timeoutMinutes: 10,
      now: () => START + 60 * MINUTE,
    });
    expect(await late).to.deep.equal(['ada', 'bob', 'zoe']);
    expect(agents.events('LivenessChecked').map(({ stream, data }) => [stream, data.count])).to.deep.equal([
      ['liveness-1', 2],
      ['liveness-5', 1],
    ]);
    const runs = agents
      .events('LivenessChecked')
      .map((event) => (event as { meta?: { tenant: number; correlationId: string } }).meta);
    expect(runs.map((meta) => meta?.tenant)).to.deep.equal([1, 7]);
    expect(new Set(runs.map((meta) => meta?.correlationId)), 'one run').to.have.property('size', 1);
    expect(await sweep([])).to.deep.equal([]);
  });

  it('treats an agent that keeps changing as alive, and fails for any other reason', async () => {
    const { agents, ids, sweep } = await open();
    const failing = (error: Error) => ({ ...agents.commands, execute: () => Promise.reject(error) });
    expect(await sweep([{ id: ids[0] as number }], failing(conflict('busy')))).to.deep.equal([]);
    expect(await outcomeOf(sweep([{ id: ids[0] as number }], failing(notFound('Agent'))))).to.equal('404');
    const broken = sweep([{ id: ids[0] as number }], failing(new Error('the disk is full')));
    expect(await failureOf(broken)).to.equal('the disk is full');
  });
});
