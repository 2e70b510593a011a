/** Agents, given events, when a command is decided, then events: pure. */
import { expect } from 'chai';
import fc from 'fast-check';
import {
  type AgentState,
  agentConfigDecider,
  agentDecider,
  decideDelete,
  decideUpdate,
  decideVisibility,
} from '../../../commands/agents/agents.ts';
import { decideHeartbeat, decideWake } from '../../../commands/agents/heartbeat.ts';
import { decideClearMemory, decideMemory, MAX_MEMORY } from '../../../commands/agents/memory.ts';
import { agentNameKind, sessionKeyKind } from '../../../commands/agents/names.ts';
import {
  decideRegister,
  decideReturn,
  type Registration,
  selfRegistration,
} from '../../../commands/agents/registration.ts';
import { decideSoul } from '../../../commands/agents/souls.ts';
import { decideSilence } from '../../../commands/policies/agents/liveness.ts';
import { createStates } from '../../../commands/states.ts';
import { AppError } from '../../../shared/errors.ts';
import {
  agentDeleted,
  agentDetailsChanged,
  agentHidden,
  agentShown,
  agentStatusChanged,
} from '../../../shared/events/agents/agents.ts';
import { agentHeartbeatReceived, agentWoken } from '../../../shared/events/agents/heartbeat.ts';
import { agentKeyIssued, agentKeyRevoked } from '../../../shared/events/agents/keys.ts';
import { agentMemoryCleared, agentMemoryWritten } from '../../../shared/events/agents/memory.ts';
import { agentRegistered, agentReturned } from '../../../shared/events/agents/registration.ts';
import { agentSoulChanged } from '../../../shared/events/agents/souls.ts';
import { nameClaimVoided, nameReleased } from '../../../shared/events/claims.ts';
import type { EventDraft } from '../../../shared/events/define.ts';
import { eventsOf } from '../../support/kit.ts';

type Draft = EventDraft<string, object>;

const registration: Registration = {
  name: 'ada',
  role: 'coder',
  status: 'offline',
  sessionKey: 'key-1',
  soulContent: 'soul',
  config: { model: 'm' },
  template: null,
  runtimeType: null,
  source: 'manual',
  via: 'operator',
  framework: null,
  capabilities: [],
};
const registered = agentRegistered.draft({ agentId: 7, ...registration });
const ada = { agentId: 7, name: 'ada' };
/** The time of the n-th event, Unix ms. */
const at = (n: number) => eventsOf([...Array.from({ length: n }, () => registered)]).at(-1)?.meta.at as number;

const given = (...drafts: readonly Draft[]): AgentState =>
  eventsOf(drafts).reduce(
    (state, event) => agentDecider.evolve(state, { ...event, at: event.meta.at }),
    agentDecider.initial,
  );
const types = (drafts: readonly EventDraft[]) => drafts.map((draft) => draft.type);

function refused(act: () => unknown, status: number): AppError {
  try {
    act();
  } catch (error) {
    if (error instanceof AppError && error.status === status) return error;
    throw error;
  }
  throw new Error(`was not refused with ${status}`);
}

const status = (to: string, more: object = {}) =>
  agentStatusChanged.draft({
    ...ada,
    from: 'offline',
    to,
    cause: 'update',
    lastActivity: null,
    seen: false,
    announced: false,
    ...more,
  });
const details = (changes: object, more: object = {}) =>
  agentDetailsChanged.draft({ ...ada, changes, via: 'id', writeToGateway: false, status: null, ...more });
const heartbeat = { connectionId: null, workItemsCount: 0, workItemTypes: [], tokenUsage: null };

describe('agent: state', () => {
  it('starts with what was registered', () => {
    expect(given(registered)).to.deep.include({
      registered: true,
      deleted: false,
      id: 7,
      name: 'ada',
      role: 'coder',
      status: 'offline',
      sessionKey: 'key-1',
      configVersion: 1,
      soulLength: 4,
      memoryLength: 0,
      aliveAt: at(1),
    });
  });

  it('is idle after a heartbeat, a wake-up and a return', () => {
    const signs = [
      agentHeartbeatReceived.draft({
        ...ada,
        lastActivity: 'x',
        connectionId: null,
        workItemsCount: 0,
        workItemTypes: [],
      }),
      agentWoken.draft({ ...ada, reason: null, lastActivity: 'x' }),
      agentReturned.draft(ada),
    ];
    for (const sign of signs) {
      expect(given(registered, status('busy'), sign)).to.deep.include({ status: 'idle', aliveAt: at(3) });
    }
  });

  it('counts a status set by somebody as a sign of life, but not the sweep', () => {
    expect(given(registered, status('busy')).aliveAt).to.equal(at(2));
    expect(given(registered, status('offline', { cause: 'sweep' })).aliveAt).to.equal(at(1));
    const repeated = details({}, { via: 'name', status: 'offline' });
    expect(given(registered, repeated).aliveAt).to.equal(at(2));
    for (const more of [{}, { via: 'name' }, { status: 'offline' }])
      expect(given(registered, details({ role: 'x' }, more)).aliveAt, JSON.stringify(more)).to.equal(at(1));
  });

  it('follows changed fields', () => {
    const state = given(
      registered,
      details({ name: 'eve', role: 'lead', sessionKey: null, runtimeType: 'codex', soulContent: null, config: {} }),
    );
    expect(state).to.deep.include({ name: 'eve', role: 'lead', sessionKey: null, runtimeType: 'codex' });
    expect(state).to.deep.include({ soulLength: 0, configVersion: 2 });
    const others = given(registered, details({ runtimeType: 'codex' }), details({ config: {} }));
    expect(others).to.include({ sessionKey: 'key-1', runtimeType: 'codex', soulLength: 4, configVersion: 2 });
  });

  it('includes lengths of texts, keys and visibility', () => {
    const key = { keyId: 3, agentId: 7, agentName: 'ada' };
    const issued = agentKeyIssued.draft({
      ...key,
      name: 'k',
      prefix: 'p',
      scopes: [],
      createdBy: 'x',
      expiresAt: null,
    });
    const state = given(
      registered,
      agentSoulChanged.draft({ ...ada, soulContent: 'longer soul', template: null, previousLength: 4 }),
      agentMemoryWritten.draft({ ...ada, text: 'abc', append: false, size: 3 }),
      agentHidden.draft(ada),
      issued,
      issued,
    );
    expect(state).to.deep.include({ soulLength: 11, memoryLength: 3, hidden: true, keys: { 3: 'active' } });
    const after = given(
      registered,
      issued,
      agentKeyRevoked.draft(key),
      agentHidden.draft(ada),
      agentShown.draft(ada),
      agentMemoryWritten.draft({ ...ada, text: 'abc', append: false, size: 3 }),
      agentMemoryCleared.draft(ada),
    );
    expect(after).to.deep.include({ keys: { 3: 'revoked' }, hidden: false, memoryLength: 0 });
  });

  it('stays small, because it contains no texts', () => {
    const long = 'x'.repeat(50_000);
    const state = given(
      agentRegistered.draft({ agentId: 7, ...registration, soulContent: long, config: { long } }),
      details({ soulContent: long, config: { long } }),
      agentMemoryWritten.draft({ ...ada, text: long, append: false, size: long.length }),
    );
    expect(JSON.stringify(state).length).to.be.below(1_000);
  });

  it('ignores unknown events', () => {
    expect(given(registered, { type: 'SomethingElse', data: {} })).to.deep.equal(given(registered));
  });

  it('keeps the config beside it, with the same count', () => {
    const config = eventsOf([registered, details({ role: 'x' }), details({ config: { a: 1 } })]).reduce(
      (state, event) => agentConfigDecider.evolve(state, { ...event, at: 0 }),
      agentConfigDecider.initial,
    );
    expect(config).to.deep.equal({ version: 2, config: { a: 1 } });
    expect(given(registered, details({ role: 'x' }), details({ config: { a: 1 } })).configVersion).to.equal(2);
  });
});

describe('agent: unique names', () => {
  const deleted = agentDeleted.draft({ ...ada, role: 'coder', removeWorkspace: false });
  const voided = nameClaimVoided.draft({ kind: 'agent_name', name: 'ada' });

  it('are held from the registration to the deletion or the next name', () => {
    expect(agentNameKind.holds(given(), 'ada')).to.equal('not yet');
    expect(agentNameKind.holds(given(registered), 'ada')).to.equal('yes');
    expect(agentNameKind.holds(given(registered), 'eve')).to.equal('not yet');
    expect(agentNameKind.holds(given(registered, details({ name: 'eve' })), 'ada')).to.equal('not yet');
    expect(agentNameKind.holds(given(registered, deleted), 'ada')).to.equal('never');
    expect(sessionKeyKind.holds(given(registered), 'key-1')).to.equal('yes');
    expect(sessionKeyKind.holds(given(registered, details({ sessionKey: null })), 'key-1')).to.equal('not yet');
  });

  it('are never held by a stream whose claim was voided before it registered', () => {
    expect(agentNameKind.holds(given(voided), 'ada')).to.equal('never');
    refused(() => decideRegister(given(voided), 7, registration), 409);
  });

  it('are being given up from the change until the release is known', () => {
    const renamed = given(registered, details({ name: 'eve', sessionKey: 'key-2' }));
    const once = { times: 1, since: at(2) };
    expect(renamed.givenUpNames).to.deep.equal({ 'agent_name:ada': once, 'session_key:key-1': once });
    expect(given(registered, details({ name: 'ada' })).givenUpNames).to.deep.equal({});
    const released = nameReleased.draft({ kind: 'agent_name', name: 'ada', owner: 'agent-1-7' });
    const over = [registered, details({ name: 'eve' }), released];
    expect(given(...over).givenUpNames).to.deep.equal({ 'agent_name:ada': { times: 1, since: null } });
    // The count stays: a request that rests on an earlier claim sees that it was given up in between.
    expect(given(...over, voided).givenUpNames).to.deep.equal({ 'agent_name:ada': { times: 2, since: at(4) } });
  });
});

describe('agent: snapshots', () => {
  it('of an older version are ignored', async () => {
    const events = eventsOf([registered, details({ name: 'eve' })]);
    const { givenUpNames: left, ...rest } = given(registered);
    const old = { revision: 0, position: 1, at: at(1), state: { ...rest, left } };
    const states = createStates(
      { readStream: async (_, from = 0) => events.slice(from) },
      { find: async (_, kind) => (['agent.1', 'agent.2'].includes(kind) ? old : undefined), save: () => undefined },
    );
    const { state } = await states.read(agentDecider, 'agent-1-7');
    expect(state).to.deep.equal(given(registered, details({ name: 'eve' })));
  });
});

describe('agent: registration', () => {
  it('makes an agent once', () => {
    expect(decideRegister(given(), 7, registration)).to.deep.equal([registered]);
    refused(() => decideRegister(given(registered), 7, registration), 409);
  });

  it('by the agent itself puts its capabilities into its config', () => {
    const self = selfRegistration({ name: 'bot', framework: 'crewai', capabilities: ['a', 'b'] });
    expect(self).to.deep.include({ status: 'idle', role: 'agent', via: 'self' });
    expect(self.config).to.deep.equal({ capabilities: ['a', 'b'], framework: 'crewai' });
    expect(selfRegistration({ name: 'bot', framework: null, capabilities: [] }).config).to.deep.equal({});
  });

  it('again is recorded as a return', () => {
    expect(decideReturn(given(registered))).to.deep.equal([agentReturned.draft(ada)]);
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
      refused(() => decide(given()), 404);
      const deleted = agentDeleted.draft({ ...ada, role: 'coder', removeWorkspace: false });
      refused(() => decide(given(registered, deleted)), 404);
    });
  }
});

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
    const tokenUsage = { model: 'm', inputTokens: 1, outputTokens: 2, taskId: null };
    const drafts = decideHeartbeat(given(registered, status('idle')), { ...heartbeat, tokenUsage });
    expect(types(drafts)).to.deep.equal(['AgentHeartbeatReceived', 'TokenUsageReported']);
    expect(drafts[1]?.data).to.deep.equal({ agentId: 7, agentName: 'ada', sessionId: 'ada:cli', ...tokenUsage });
  });
});

describe('agent: update', () => {
  const update = (fields: object, via: 'name' | 'id' = 'id', state = given(registered)) =>
    decideUpdate(state, fields, { via });

  it('leaves out fields that do not change', () => {
    expect(
      update({ name: 'ada', role: 'coder', sessionKey: 'key-1', status: 'offline', runtimeType: null }),
    ).to.deep.equal([]);
    const [only] = update({ name: 'ada', role: 'lead' });
    expect(only?.data).to.deep.include({ name: 'ada', changes: { role: 'lead' }, via: 'id', status: null });
  });

  it('gives the status an event of its own, which another event of the append announces', () => {
    const [first, second] = update({ status: 'wild', role: 'lead' });
    expect(first?.data).to.deep.include({ from: 'offline', to: 'wild', cause: 'update', seen: false, announced: true });
    expect(second?.data).to.deep.include({ changes: { role: 'lead' }, status: 'wild' });
    expect(update({ status: 'wild' })[0]?.data).to.deep.include({ announced: false });
  });

  it('by name counts a status as a sign of life, even an unchanged one', () => {
    expect(update({ status: 'busy', lastActivity: 'a' }, 'name').map((draft) => draft.data)).to.deep.equal([
      { ...ada, from: 'offline', to: 'busy', cause: 'update', lastActivity: 'a', seen: true, announced: false },
    ]);
    expect(update({ status: 'offline' }, 'name').map((draft) => draft.data)).to.deep.equal([
      { ...ada, changes: {}, via: 'name', writeToGateway: false, status: 'offline' },
    ]);
  });

  it('keeps an activity without a status', () => {
    expect(update({ lastActivity: 'thinking' }, 'name')[0]?.data).to.deep.include({
      changes: { lastActivity: 'thinking' },
    });
  });
});

describe('agent: memory', () => {
  it('is replaced', () => {
    expect(decideMemory(given(registered), 'abc', false, 0)[0]?.data).to.deep.equal({
      ...ada,
      text: 'abc',
      append: false,
      size: 3,
    });
    expect(decideMemory(given(registered), '', false, 0)[0]?.data).to.deep.include({ text: '', size: 0 });
  });

  it('grows at its end, under a heading with the time', () => {
    const written = agentMemoryWritten.draft({ ...ada, text: 'abc', append: false, size: 3 });
    expect(decideMemory(given(registered), 'x', true, 0)[0]?.data).to.deep.include({
      text: '## 1970-01-01T00:00:00.000Z\nx',
      size: 29,
    });
    expect(decideMemory(given(registered, written), 'x', true, 0)[0]?.data).to.deep.include({
      text: '\n\n## 1970-01-01T00:00:00.000Z\nx',
      size: 34,
    });
    expect(decideMemory(given(registered, written), '', true, 0)).to.deep.equal([]);
  });

  it('has a limit of characters', () => {
    const full = 'x'.repeat(MAX_MEMORY);
    expect(decideMemory(given(registered), full, false, 0)).to.have.length(1);
    refused(() => decideMemory(given(registered), `${full}x`, false, 0), 413);
    const written = agentMemoryWritten.draft({ ...ada, text: full, append: false, size: MAX_MEMORY });
    refused(() => decideMemory(given(registered, written), 'x', true, 0), 413);
  });

  it('always has the total size of its texts', () => {
    const steps = fc.array(fc.record({ text: fc.string(), append: fc.boolean() }), { maxLength: 12 });
    fc.assert(
      fc.property(steps, (writes) => {
        let state = given(registered);
        let memory = '';
        for (const { text, append } of writes) {
          for (const draft of decideMemory(state, text, append, 0)) {
            const data = draft.data as { text: string; append: boolean; size: number };
            memory = data.append ? memory + data.text : data.text;
            expect(data.size).to.equal(memory.length);
            state = agentDecider.evolve(state, { ...draft, at: 0 });
          }
          expect(state.memoryLength).to.equal(memory.length);
          expect(memory.endsWith(text)).to.equal(true);
        }
      }),
    );
  });
});

describe('agent: soul, visibility, wake-up, deletion', () => {
  it('records how long the soul was', () => {
    expect(decideSoul(given(registered), 'new', 'developer')[0]?.data).to.deep.equal({
      ...ada,
      soulContent: 'new',
      template: 'developer',
      previousLength: 4,
    });
  });

  it('hides and shows once', () => {
    const hidden = agentHidden.draft(ada);
    expect(decideVisibility(given(registered), true)).to.deep.equal([hidden]);
    expect(decideVisibility(given(registered, hidden), true)).to.deep.equal([]);
    expect(decideVisibility(given(registered, hidden), false)).to.deep.equal([agentShown.draft(ada)]);
  });

  it('wakes with or without a reason', () => {
    expect(decideWake(given(registered), 'look')[0]?.data).to.deep.include({ reason: 'look' });
    expect(decideWake(given(registered), null)[0]?.data).to.deep.include({ reason: null });
  });

  it('records what was deleted', () => {
    expect(decideDelete(given(registered, details({ name: 'eve', role: 'lead' })), true)[0]?.data).to.deep.equal({
      agentId: 7,
      name: 'eve',
      role: 'lead',
      removeWorkspace: true,
    });
  });
});

describe('agent: liveness', () => {
  const late = at(2) + 1;

  it('sets a silent agent offline', () => {
    expect(decideSilence(given(registered, status('busy')), late)[0]?.data).to.deep.include({
      from: 'busy',
      to: 'offline',
      cause: 'sweep',
      seen: false,
    });
  });

  it('ignores agents that have just reported, are offline, were deleted or never existed', () => {
    const deleted = agentDeleted.draft({ ...ada, role: 'coder', removeWorkspace: false });
    expect(decideSilence(given(registered, status('busy')), at(2))).to.deep.equal([]);
    expect(decideSilence(given(registered), late)).to.deep.equal([]);
    expect(decideSilence(given(registered, status('busy'), deleted), Number.MAX_SAFE_INTEGER)).to.deep.equal([]);
    expect(decideSilence(given(), late)).to.deep.equal([]);
  });
});
