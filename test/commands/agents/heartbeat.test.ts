/** Heartbeats with what is waiting for their agents, which may have been read some time ago. */
import { expect } from 'chai';
import { agentStream } from '../../../commands/agents/agents.ts';
import { decideHeartbeat, decideWake, recordHeartbeat, type Waiting } from '../../../commands/agents/heartbeat.ts';
import type { AgentRef } from '../../../shared/contract/agents/agents.ts';
import { forbidden, invalid } from '../../../shared/errors.ts';
import { agentDetailsChanged } from '../../../shared/events/agents/agents.ts';
import type { EventDraft } from '../../../shared/events/define.ts';
import { given, registered, status } from '../../support/agent.ts';
import { agentsMemory } from '../../support/agents-memory.ts';
import { outcomeOf } from '../../support/kit.ts';

describe('a recorded heartbeat', () => {
  const workItems = [
    { type: 'notifications', count: 2 },
    { type: 'urgent_activities', count: 3 },
  ];
  const open = async () => {
    const agents = agentsMemory();
    const id = await agents.make('ada', { status: 'busy' });
    const asked: unknown[] = [];
    /** What the next looks find; the last one stays. */
    const finds: ({ inbox: Waiting; kept: boolean } | undefined)[] = [
      { inbox: { agent: { id, name: 'ada' }, workItems }, kept: false },
    ];
    const inboxes = {
      async find(workspace: number, ref: AgentRef) {
        asked.push(['find', workspace, ref]);
        return finds.length > 1 ? finds.shift() : finds[0];
      },
      forget(workspace: number, ref: AgentRef) {
        asked.push(['forget', workspace, ref]);
      },
    };
    const beat = (ref: AgentRef, mayBeat: (agent: Waiting['agent']) => void = () => undefined) =>
      recordHeartbeat(
        agents.commands,
        agents.context(),
        inboxes,
        ref,
        { connectionId: 'c', tokenUsage: null },
        mayBeat,
      );
    const rename = (name: string) =>
      agents.world.process().record(agentStream(1, id), agents.context(), [
        agentDetailsChanged.draft({
          agentId: id,
          name: 'ada',
          changes: { name },
          via: 'id',
          writeToGateway: false,
          status: null,
        }),
      ]);
    return { agents, id, finds, asked, beat, rename };
  };

  it('says how much was waiting, and gives it', async () => {
    const { agents, id, beat, asked } = await open();
    expect(await beat({ id })).to.deep.equal({ agent: { id, name: 'ada' }, workItems });
    expect(agents.events('AgentHeartbeatReceived').map(({ data }) => data)).to.deep.equal([
      {
        agentId: id,
        name: 'ada',
        lastActivity: 'Heartbeat received',
        connectionId: 'c',
        workItemsCount: 5,
        workItemTypes: ['notifications', 'urgent_activities'],
      },
    ]);
    expect(agents.events('AgentStatusChanged')[0]?.data).to.include({ from: 'busy', to: 'idle', cause: 'heartbeat' });
    expect(asked).to.deep.equal([['find', 1, { id }]]);
  });

  it('of nobody, or refused to the caller, is not recorded', async () => {
    const { agents, id, finds, beat, asked } = await open();
    const refuse = () => {
      throw forbidden('not yours');
    };
    expect(await outcomeOf(beat({ id }, refuse))).to.equal('403');
    finds[0] = undefined;
    expect(await outcomeOf(beat({ id: 99 }))).to.equal('404');
    expect(agents.events('AgentHeartbeatReceived')).to.deep.equal([]);
    expect(asked, 'looked once each').to.have.length(2);
  });

  it('by name is not recorded for an agent that has another name by now; by id it is', async () => {
    const { agents, id, beat, rename } = await open();
    await rename('eve');
    expect(await outcomeOf(beat({ name: 'ada' }))).to.equal('404');
    expect(agents.events('AgentHeartbeatReceived')).to.deep.equal([]);
    await beat({ id });
    expect(agents.events('AgentHeartbeatReceived')[0]?.data.name).to.equal('eve');
  });

  it('looks again when what was kept is of an agent that was renamed', async () => {
    const { agents, id, finds, asked, beat, rename } = await open();
    await rename('eve');
    finds.splice(
      0,
      1,
      { inbox: { agent: { id, name: 'ada' }, workItems }, kept: true },
      { inbox: { agent: { id, name: 'eve' }, workItems: [] }, kept: false },
    );
    expect(await beat({ id })).to.deep.equal({ agent: { id, name: 'eve' }, workItems: [] });
    expect(asked.slice(0, 3)).to.deep.equal([
      ['find', 1, { id }],
      ['forget', 1, { id }],
      ['find', 1, { id }],
    ]);
    expect(agents.events('AgentHeartbeatReceived').map(({ data }) => data.workItemsCount)).to.deep.equal([0]);
  });

  it('looks again when the caller may not speak for the agent that was kept, and not for other refusals', async () => {
    const { id, finds, asked, beat } = await open();
    const kept = { inbox: { agent: { id, name: 'ada' }, workItems }, kept: true };
    finds.splice(0, 1, kept, { ...kept, kept: false });
    let refusals = 1;
    await beat({ id }, () => {
      if (refusals-- > 0) throw forbidden('not yours');
    });
    expect(asked.map((one) => (one as string[])[0])).to.deep.equal(['find', 'forget', 'find']);
    finds.splice(0, 9, kept);
    asked.length = 0;
    const refuse = () => {
      throw invalid('no');
    };
    expect(await outcomeOf(beat({ id }, refuse))).to.equal('400');
    const fail = () => {
      throw new Error('broken');
    };
    expect(await beat({ id }, fail).catch((error: Error) => error.message)).to.equal('broken');
    expect(asked).to.have.length(2);
  });

  it('is one step of its request, however often it looks', async () => {
    const { agents, id, finds, rename } = await open();
    await rename('eve');
    const kept = { inbox: { agent: { id, name: 'ada' }, workItems }, kept: true };
    finds.splice(0, 1, kept, { inbox: { agent: { id, name: 'eve' }, workItems }, kept: false });
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
    const inboxes = { find: async () => (finds.length > 1 ? finds.shift() : finds[0]), forget: () => undefined };
    const heartbeat = { connectionId: null, tokenUsage: null };
    await recordHeartbeat(agents.commands, context, inboxes, { id }, heartbeat, () => undefined);
    expect(steps).to.deep.equal([0, 0]);
  });
});

const heartbeat = { connectionId: null, workItemsCount: 0, workItemTypes: [], tokenUsage: null };
const types = (drafts: readonly EventDraft[]) => drafts.map((draft) => draft.type);

describe('agent: heartbeat', () => {
  it('is one event for an idle agent', () => {
    expect(types(decideHeartbeat(given(registered, status('idle')), heartbeat))).to.deep.equal([
      'AgentHeartbeatReceived',
    ]);
  });

  it('records a change of the status first, and leaves the frame to the heartbeat', () => {
    const [first, second] = decideHeartbeat(given(registered), heartbeat);
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
    const tokenUsage = { id: 'r', model: 'm', inputTokens: 1, outputTokens: 2, taskId: null, cost: 0.5 };
    const drafts = decideHeartbeat(given(registered, status('idle')), { ...heartbeat, tokenUsage });
    expect(types(drafts)).to.deep.equal(['AgentHeartbeatReceived', 'TokensReported']);
    const whose = { agentId: 7, agentName: 'ada', sessionId: 'ada:cli' };
    const report = { ...whose, ...tokenUsage, operation: 'heartbeat', duration: null };
    expect(drafts[1]?.data).to.deep.equal({ page: null, reports: [report] });
  });
});

describe('agent: wake-up', () => {
  it('wakes with or without a reason', () => {
    expect(decideWake(given(registered), 'look')[0]?.data).to.deep.include({ reason: 'look' });
    expect(decideWake(given(registered), null)[0]?.data).to.deep.include({ reason: null });
  });
});
