import { expect } from 'chai';
import { agentsProjection } from '../../../projections/agents/agents.ts';
import { agentDeleted, agentHidden, agentShown } from '../../../shared/events/agents/agents.ts';
import { agentHeartbeatReceived, agentWoken } from '../../../shared/events/agents/heartbeat.ts';
import { agentMemoryCleared, agentMemoryFieldsSet, agentMemoryWritten } from '../../../shared/events/agents/memory.ts';
import { agentReturned } from '../../../shared/events/agents/registration.ts';
import { agentSoulChanged } from '../../../shared/events/agents/souls.ts';
import { seconds } from '../../../shared/time.ts';
import { ada, details, status } from '../../support/agent.ts';
import { type Draft, eventsOf, registeredAgent, rowsAfter as rowsOf } from '../../support/kit.ts';

const registered = (more: object = {}) =>
  registeredAgent({
    ...ada,
    role: 'coder',
    session_key: 'key-1',
    soul_content: 'soul',
    config: { model: 'm' },
    runtime_type: 'codex',
    ...more,
  });
/** Unix seconds of the n-th applied event. */
const at = (n: number) =>
  seconds(eventsOf([...Array.from({ length: n }, () => registered())]).at(-1)?.meta.at as number);

/** The one agent's rows after these events. */
function rowsAfter(...drafts: readonly Draft[]) {
  const { agents, agent_texts: texts } = rowsOf(agentsProjection, eventsOf(drafts));
  return { agent: agents[0], texts: texts[0], count: agents.length + texts.length };
}

describe('projection agents', () => {
  it('has one row of fields and one of texts per agent', () => {
    expect(rowsAfter(registered())).to.deep.equal({
      count: 2,
      agent: {
        workspace_id: 1,
        id: 7,
        tenant_id: 1,
        name: 'ada',
        role: 'coder',
        status: 'offline',
        session_key: 'key-1',
        last_seen: null,
        last_activity: null,
        created_at: at(1),
        updated_at: at(1),
        alive_at: at(1),
        source: 'manual',
        hidden: 0,
        runtime_type: 'codex',
        position: 1,
      },
      texts: {
        workspace_id: 1,
        id: 7,
        config: { model: 'm' },
        soul_content: 'soul',
        working_memory: '',
        memory_fields: {},
        soul_updated_at: at(1),
        memory_updated_at: null,
        position: 1,
      },
    });
  });

  it('has no persona time for an agent without a persona', () => {
    expect(rowsAfter(registered({ soul_content: null })).texts).to.include({
      soul_content: null,
      soul_updated_at: null,
    });
  });

  it('counts self-registration as a sign of life', () => {
    expect(rowsAfter(registered({ via: 'self', status: 'idle' })).agent).to.include({
      last_seen: at(1),
      status: 'idle',
    });
  });

  it('shows signs of life', () => {
    const heartbeat = { ...ada, last_activity: 'beat', connection_id: null, work_items_count: 0, work_item_types: [] };
    const signs: [Draft, object][] = [
      [agentHeartbeatReceived.draft(heartbeat), { last_activity: 'beat' }],
      [agentWoken.draft({ ...ada, reason: 'r', last_activity: 'woken' }), { last_activity: 'woken' }],
      [agentReturned.draft(ada), { last_activity: null }],
    ];
    for (const [sign, more] of signs) {
      const { agent, texts } = rowsAfter(registered(), status('busy'), sign);
      expect(agent, sign.type).to.include({
        status: 'idle',
        last_seen: at(3),
        alive_at: at(3),
        updated_at: at(3),
        ...more,
      });
      expect(texts, `${sign.type} does not write the texts again`).to.include({ position: 1 });
    }
  });

  it('distinguishes a status that counts as a sign of life from one that does not', () => {
    expect(rowsAfter(registered(), status('busy')).agent).to.include({
      status: 'busy',
      last_seen: null,
      alive_at: at(2),
    });
    expect(rowsAfter(registered(), status('busy', { seen: true, last_activity: 'x' })).agent).to.include({
      last_seen: at(2),
      last_activity: 'x',
    });
    expect(rowsAfter(registered(), status('offline', { cause: 'sweep' })).agent).to.include({
      last_seen: null,
      alive_at: at(1),
      updated_at: at(2),
    });
  });

  it('keeps the last activity if a status has none', () => {
    const { agent } = rowsAfter(registered(), status('busy', { last_activity: 'x' }), status('idle'));
    expect(agent).to.include({ status: 'idle', last_activity: 'x' });
  });

  it('sets the fields of an update and keeps the others', () => {
    const changes = { name: 'eve', session_key: null, last_activity: 'x', config: { a: 1 } };
    const { agent, texts } = rowsAfter(registered(), details(changes));
    expect(agent).to.include({
      name: 'eve',
      role: 'coder',
      session_key: null,
      last_activity: 'x',
      runtime_type: 'codex',
    });
    expect(texts).to.deep.include({ config: { a: 1 }, soul_content: 'soul', soul_updated_at: at(1) });
    expect(rowsAfter(registered(), details({ soul_content: null })).texts).to.deep.include({
      soul_content: null,
      soul_updated_at: at(2),
      config: { model: 'm' },
    });
    expect(rowsAfter(registered(), details({ role: 'lead', runtime_type: null })).agent).to.include({
      role: 'lead',
      runtime_type: null,
      last_seen: null,
    });
  });

  it('counts an unchanged status reported by the agent as a sign of life', () => {
    const { agent } = rowsAfter(registered(), details({}, { via: 'name', status: 'offline' }));
    expect(agent).to.include({ last_seen: at(2), alive_at: at(2) });
  });

  it('does not count a status set by id, or an update by name without a status, as a sign of life', () => {
    for (const more of [
      { via: 'id', status: 'offline' },
      { via: 'name', status: null },
    ]) {
      const { agent } = rowsAfter(registered(), details({ role: 'lead' }, more));
      expect(agent, JSON.stringify(more)).to.include({ last_seen: null, alive_at: at(1), updated_at: at(2) });
    }
  });

  it('does not rewrite the texts for an update of other fields', () => {
    expect(rowsAfter(registered(), details({ role: 'lead' })).texts).to.include({ position: 1 });
  });

  it('stores persona and memory', () => {
    const write = (text: string, append: boolean, size: number) =>
      agentMemoryWritten.draft({ ...ada, text, append, size });
    const { texts, agent } = rowsAfter(
      registered(),
      write('one', false, 3),
      write(' two', true, 7),
      agentSoulChanged.draft({ ...ada, soul_content: 'new', template: null, previous_length: 4 }),
    );
    expect(texts).to.include({ working_memory: 'one two', memory_updated_at: at(3) });
    expect(texts).to.include({ soul_content: 'new', soul_updated_at: at(4) });
    expect(agent).to.include({ updated_at: at(4) });
    expect(rowsAfter(registered(), write('one', false, 3), agentMemoryCleared.draft(ada)).texts).to.include({
      working_memory: '',
      memory_updated_at: at(3),
    });
    expect(rowsAfter(registered(), write('one', false, 3), write('two', false, 3)).texts).to.include({
      working_memory: 'two',
    });
  });

  it('keeps the memory’s extra fields until the memory is cleared', () => {
    const fields = { mood: 'calm' };
    const set = agentMemoryFieldsSet.draft({ ...ada, fields, size: 0, append: false, announced: false });
    const { texts, agent } = rowsAfter(registered(), set);
    expect(texts).to.deep.include({ memory_fields: fields, memory_updated_at: at(2), working_memory: '' });
    expect(agent).to.include({ updated_at: at(2) });
    expect(rowsAfter(registered(), set, agentMemoryCleared.draft(ada)).texts).to.deep.include({ memory_fields: {} });
  });

  it('hides and shows an agent', () => {
    expect(rowsAfter(registered(), agentHidden.draft(ada)).agent).to.include({ hidden: 1 });
    expect(rowsAfter(registered(), agentHidden.draft(ada), agentShown.draft(ada)).agent).to.include({ hidden: 0 });
  });

  it('has no rows of a deleted agent, whatever events follow', () => {
    const deleted = agentDeleted.draft({ ...ada, role: 'coder', remove_workspace: false });
    expect(rowsAfter(registered(), deleted, status('busy')).count).to.equal(0);
  });
});
