/** Agents, given events, when a command is decided, then events: pure. */
import { expect } from 'chai';
import {
  type AgentState,
  agentConfigDecider,
  agentDecider,
  decideDelete,
  decideUpdate,
  decideVisibility,
} from '../../../commands/agents/agents.ts';
import { decideHeartbeat, decideWake } from '../../../commands/agents/heartbeat.ts';
import { decideClearMemory, decideMemory } from '../../../commands/agents/memory.ts';
import { claimsFor, sessionKeyKind } from '../../../commands/agents/names.ts';
import { decideRegister, decideReturn } from '../../../commands/agents/registration.ts';
import { decideSoul } from '../../../commands/agents/souls.ts';
import { createStates } from '../../../commands/states.ts';
import { agentHidden, agentShown } from '../../../shared/events/agents/agents.ts';
import { agentHeartbeatReceived, agentWoken } from '../../../shared/events/agents/heartbeat.ts';
import { agentKeyIssued, agentKeyRevoked } from '../../../shared/events/agents/keys.ts';
import { agentMemoryCleared, agentMemoryWritten } from '../../../shared/events/agents/memory.ts';
import { agentRegistered, agentReturned } from '../../../shared/events/agents/registration.ts';
import { agentSoulChanged } from '../../../shared/events/agents/souls.ts';
import { nameClaimVoided, nameReleased } from '../../../shared/events/claims.ts';
import { ada, deleted, details, given, registered, registration, status } from '../../support/agent.ts';
import { eventsOf, sample, timeOf } from '../../support/kit.ts';

const heartbeat = { connection_id: null, work_items_count: 0, work_item_types: [], tokenUsage: null };

describe('agent: state', () => {
  it('starts with the registered fields', () => {
    expect(given(registered).state).to.deep.include({
      registered: true,
      deleted: false,
      id: 7,
      name: 'ada',
      role: 'coder',
      status: 'offline',
      session_key: 'key-1',
      configVersion: 1,
      soulLength: 4,
      memoryLength: 0,
      aliveAt: timeOf(1),
    });
  });

  it('is idle after a heartbeat, a wake-up and a return', () => {
    const signs = [
      sample(agentHeartbeatReceived, { ...ada, last_activity: 'x' }),
      agentWoken.draft({ ...ada, reason: null, last_activity: 'x' }),
      agentReturned.draft(ada),
    ];
    for (const sign of signs) {
      expect(given(registered, status('busy'), sign).state).to.deep.include({ status: 'idle', aliveAt: timeOf(3) });
    }
  });

  it('counts a status set by a caller as a sign of life, but not one set by the sweep', () => {
    expect(given(registered, status('busy')).state.aliveAt).to.equal(timeOf(2));
    expect(given(registered, status('offline', { cause: 'sweep' })).state.aliveAt).to.equal(timeOf(1));
    const repeated = details({}, { via: 'name', status: 'offline' });
    expect(given(registered, repeated).state.aliveAt).to.equal(timeOf(2));
    for (const more of [{}, { via: 'name' }, { status: 'offline' }])
      expect(given(registered, details({ role: 'x' }, more)).state.aliveAt, JSON.stringify(more)).to.equal(timeOf(1));
  });

  it('reflects changed fields', () => {
    const state = given(
      registered,
      details({ name: 'eve', role: 'lead', session_key: null, runtime_type: 'codex', soul_content: null, config: {} }),
    ).state;
    expect(state).to.deep.include({ name: 'eve', role: 'lead', session_key: null, runtime_type: 'codex' });
    expect(state).to.deep.include({ soulLength: 0, configVersion: 2 });
    const others = given(registered, details({ runtime_type: 'codex' }), details({ config: {} })).state;
    expect(others).to.include({ session_key: 'key-1', runtime_type: 'codex', soulLength: 4, configVersion: 2 });
  });

  it('includes lengths of texts, keys and visibility', () => {
    const key = { key_id: 3, agent_id: 7, agent_name: 'ada' };
    const issued = sample(agentKeyIssued, { ...key, name: 'k', prefix: 'p', created_by: 'x' });
    const state = given(
      registered,
      agentSoulChanged.draft({ ...ada, soul_content: 'longer soul', template: null, previous_length: 4 }),
      agentMemoryWritten.draft({ ...ada, text: 'abc', append: false, size: 3 }),
      agentHidden.draft(ada),
      issued,
      issued,
    ).state;
    expect(state).to.deep.include({ soulLength: 11, memoryLength: 3, hidden: true, keys: { 3: null } });
    const after = given(
      registered,
      issued,
      agentKeyRevoked.draft(key),
      agentHidden.draft(ada),
      agentShown.draft(ada),
      agentMemoryWritten.draft({ ...ada, text: 'abc', append: false, size: 3 }),
      agentMemoryCleared.draft(ada),
    ).state;
    expect(after).to.deep.include({ keys: {}, hidden: false, memoryLength: 0 });
  });

  it('stays small, because it stores no texts', () => {
    const long = 'x'.repeat(50_000);
    const state = given(
      agentRegistered.draft({ agent_id: 7, ...registration, soul_content: long, config: { long } }),
      details({ soul_content: long, config: { long } }),
      agentMemoryWritten.draft({ ...ada, text: long, append: false, size: long.length }),
    ).state;
    expect(JSON.stringify(state).length).to.be.below(1_000);
  });

  it('ignores unknown events', () => {
    expect(given(registered, { type: 'SomethingElse', data: {} }).state).to.deep.equal(given(registered).state);
  });

  it('keeps the config separately, with the same event count', () => {
    const config = eventsOf([registered, details({ role: 'x' }), details({ config: { a: 1 } })]).reduce(
      (state, event) => agentConfigDecider.evolve(state, { ...event, at: 0 }),
      agentConfigDecider.initial,
    );
    expect(config).to.deep.equal({ version: 2, config: { a: 1 } });
    expect(given(registered, details({ role: 'x' }), details({ config: { a: 1 } })).state.configVersion).to.equal(2);
  });
});

describe('agent: unique names', () => {
  const voided = nameClaimVoided.draft({ kind: 'name', name: 'ada' });
  const holdsName = (state: AgentState, key: string) => claimsFor(1, { name: 'x' })[0]?.kind.holds(state, key, 1);

  it('are held from registration until deletion or renaming', () => {
    expect(holdsName(given().state, 'ada')).to.equal('not yet');
    expect(holdsName(given(registered).state, 'ada')).to.equal('yes');
    expect(holdsName(given(registered).state, 'eve')).to.equal('not yet');
    expect(holdsName(given(registered, details({ name: 'eve' })).state, 'ada')).to.equal('not yet');
    expect(holdsName(given(registered, deleted).state, 'ada')).to.equal('never');
    expect(sessionKeyKind.holds(given(registered).state, 'key-1', 'all')).to.equal('yes');
    expect(sessionKeyKind.holds(given(registered, details({ session_key: null })).state, 'key-1', 'all')).to.equal(
      'not yet',
    );
  });

  it('are never held by a stream whose claim was voided before it registered', () => {
    expect(holdsName(given(voided).state, 'ada')).to.equal('never');
    given(voided).when(decideRegister, 7, registration).thenRefuses(409);
  });

  it('are being released from the change until the release is recorded', () => {
    const renamed = given(registered, details({ name: 'eve', session_key: 'key-2' })).state;
    const once = { times: 1, since: timeOf(2) };
    expect(renamed.givenUpNames).to.deep.equal({ 'name:ada': once, 'session_key:key-1': once });
    expect(given(registered, details({ name: 'ada' })).state.givenUpNames).to.deep.equal({});
    const released = nameReleased.draft({ kind: 'name', name: 'ada', owner: 'agent-1-7' });
    const over = [registered, details({ name: 'eve' }), released];
    expect(given(...over).state.givenUpNames).to.deep.equal({ 'name:ada': { times: 1, since: null } });
    // The count stays: a request that rests on an earlier claim sees that it was given up in between.
    expect(given(...over, voided).state.givenUpNames).to.deep.equal({ 'name:ada': { times: 2, since: timeOf(4) } });
  });
});

describe('agent: snapshots', () => {
  it('are ignored if they have an older version', async () => {
    const events = eventsOf([registered, details({ name: 'eve' })]);
    const { givenUpNames: left, ...rest } = given(registered).state;
    const old = { revision: 0, position: 1, at: timeOf(1), state: { ...rest, left } };
    const states = createStates(
      { readStream: async (_, from = 0) => events.slice(from) },
      { find: async (_, kind) => (['agent.1', 'agent.2'].includes(kind) ? old : undefined), save: () => undefined },
    );
    const { state } = await states.read(agentDecider, 'agent-1-7', 0);
    expect(state).to.deep.equal(given(registered, details({ name: 'eve' })).state);
  });
});

describe('agent: every decision', () => {
  const decisions: Record<string, (state: AgentState) => unknown> = {
    heartbeat: (state) => decideHeartbeat(state, heartbeat),
    return: decideReturn,
    'wake-up': (state) => decideWake(state, null),
    soul: (state) => decideSoul(state, 'x', null),
    memory: (state) => decideMemory(state, 'x', false, 0),
    'clearing the memory': decideClearMemory,
    hiding: (state) => decideVisibility(state, true),
    update: (state) => decideUpdate(state, { role: 'x' }, { via: 'id' }),
    deletion: (state) => decideDelete(state, false),
  };
  for (const [name, decide] of Object.entries(decisions)) {
    it(`${name}: 404 for an agent that never existed or was deleted`, () => {
      given().when(decide).thenRefuses(404);
      given(registered, deleted).when(decide).thenRefuses(404);
    });
  }
});

describe('agent: update', () => {
  const update = (fields: object, via: 'name' | 'id' = 'id', state = given(registered).state) =>
    decideUpdate(state, fields, { via });

  it('omits unchanged fields', () => {
    expect(
      update({ name: 'ada', role: 'coder', session_key: 'key-1', status: 'offline', runtime_type: null }),
    ).to.deep.equal([]);
    const [only] = update({ name: 'ada', role: 'lead' });
    expect(only?.data).to.deep.include({ name: 'ada', changes: { role: 'lead' }, via: 'id', status: null });
  });

  it('records the status in its own event, announced by another event of the same append', () => {
    const [first, second] = update({ status: 'wild', role: 'lead' });
    expect(first?.data).to.deep.include({ from: 'offline', to: 'wild', cause: 'update', seen: false, announced: true });
    expect(second?.data).to.deep.include({ changes: { role: 'lead' }, status: 'wild' });
    expect(update({ status: 'wild' })[0]?.data).to.deep.include({ announced: false });
  });

  it('by name counts a status as a sign of life, even if it is unchanged', () => {
    expect(update({ status: 'busy', last_activity: 'a' }, 'name').map((draft) => draft.data)).to.deep.equal([
      { ...ada, from: 'offline', to: 'busy', cause: 'update', last_activity: 'a', seen: true, announced: false },
    ]);
    expect(update({ status: 'offline' }, 'name').map((draft) => draft.data)).to.deep.equal([
      { ...ada, changes: {}, via: 'name', write_to_gateway: false, status: 'offline' },
    ]);
  });

  it('keeps an activity without a status', () => {
    expect(update({ last_activity: 'thinking' }, 'name')[0]?.data).to.deep.include({
      changes: { last_activity: 'thinking' },
    });
  });
});

describe('agent: visibility, deletion', () => {
  it('hides and shows an agent once', () => {
    const hidden = agentHidden.draft(ada);
    given(registered).when(decideVisibility, true).then(hidden);
    given(registered, hidden).when(decideVisibility, true).then();
    given(registered, hidden).when(decideVisibility, false).then(agentShown.draft(ada));
  });

  it('records the deleted agent', () => {
    expect(decideDelete(given(registered, details({ name: 'eve', role: 'lead' })).state, true)[0]?.data).to.deep.equal({
      agent_id: 7,
      name: 'eve',
      role: 'lead',
      remove_workspace: true,
    });
  });
});
