/** The working memory on a log in memory: its text, and the keys beside it. */
import { expect } from 'chai';
import fc from 'fast-check';
import { agentDecider, agentStream } from '../../../commands/agents/agents.ts';
import { agentMemoryDecider, decideMemory, MAX_MEMORY, writeMemory } from '../../../commands/agents/memory.ts';
import { agentMemoryCleared, agentMemoryFieldsSet, agentMemoryWritten } from '../../../shared/events/agents/memory.ts';
import { MASK } from '../../../shared/secrets.ts';
import { ada, given, registered } from '../../support/agent.ts';
import { agentsMemory } from '../../support/agents-memory.ts';
import { outcomeOf, sample } from '../../support/kit.ts';

const NOW = Date.UTC(2026, 10, 21, 20, 15);

describe('writing the working memory', () => {
  const open = async () => {
    const agents = agentsMemory();
    const id = await agents.make('ada');
    const write = (request: Partial<Parameters<typeof writeMemory>[3]>, of = id) =>
      writeMemory(
        agents.commands,
        agents.context(),
        of,
        { text: '', append: false, fields: {}, ...request },
        () => NOW,
      );
    const fields = async () => (await agents.world.process().load(agentMemoryDecider, agentStream(1, id))).state.fields;
    const types = () => agents.world.written().map(({ type }) => type);
    return { agents, id, write, fields, types };
  };

  it('replaces text and keys, and removes the keys if none are given', async () => {
    const { agents, id, write, fields } = await open();
    await write({ text: 'one', fields: { mood: 'calm', plan: 1 } });
    expect(await fields()).to.deep.equal({ mood: 'calm', plan: 1 });
    expect(await agents.stateOf(id)).to.include({ memoryLength: 3, memoryFields: 24 });
    await write({ text: 'two', fields: { plan: 2 } });
    expect(await fields()).to.deep.equal({ plan: 2 });
    await write({ text: 'three' });
    expect(await fields()).to.deep.equal({});
    expect(await agents.stateOf(id)).to.include({ memoryLength: 5, memoryFields: 0 });
    const before = agents.world.written().length;
    await write({ text: 'four' });
    expect(agents.world.written(), 'no keys were there').to.have.length(before + 1);
  });

  it('appends text under a heading with the time, and merges keys', async () => {
    const { agents, id, write, fields } = await open();
    await write({ text: 'one', fields: { mood: 'calm', plan: 1 } });
    await write({ text: 'two', append: true, fields: { plan: 2 } });
    expect(await fields()).to.deep.equal({ mood: 'calm', plan: 2 });
    const added = agents.events('AgentMemoryWritten').at(-1);
    expect(added?.data).to.include({ text: '\n\n## 2026-11-21T20:15:00.000Z\ntwo', append: true });
    await write({ text: 'three', append: true });
    expect(await fields(), 'adding without keys').to.deep.equal({ mood: 'calm', plan: 2 });
    expect((await agents.stateOf(id)).memoryFields).to.equal(24);
    expect(agents.events('AgentMemoryFieldsSet').map(({ data }) => data.announced)).to.deep.equal([true, true]);
    await write({ append: true, fields: { plan: 3 } });
    expect(agents.events('AgentMemoryFieldsSet').at(-1)?.data).to.include({ announced: false, append: true });
  });

  it('replaces a mask with the secret that it hides', async () => {
    const { write, fields } = await open();
    await write({ fields: { token: 'secret', plan: 1 } });
    await write({ fields: { token: MASK, plan: 2 } });
    expect(await fields()).to.deep.equal({ token: 'secret', plan: 2 });
    expect(await outcomeOf(write({ fields: { password: MASK } }))).to.equal('400');
  });

  it('is retried if the keys change meanwhile, and finally rejected', async () => {
    const { agents, id, write, fields } = await open();
    let changes = 0;
    const meddle = (times: number, draft: () => Parameters<typeof agents.commands.record>[2][number]) => {
      changes = 0;
      agents.world.beforeAppend = async (stream) => {
        if (changes >= times) return;
        changes++;
        const { beforeAppend } = agents.world;
        agents.world.beforeAppend = async () => undefined;
        await agents.world.process().record(stream, agents.context(), [draft()]);
        agents.world.beforeAppend = beforeAppend;
      };
    };
    const set = () =>
      sample(agentMemoryFieldsSet, { agent_id: id, name: 'ada', fields: { other: changes }, announced: true });
    meddle(2, set);
    await write({ append: true, fields: { plan: 1 } });
    expect(await fields()).to.deep.equal({ other: 2, plan: 1 });
    meddle(1, () => agentMemoryCleared.draft({ agent_id: id, name: 'ada' }));
    await write({ append: true, fields: { late: 1 } });
    expect(await fields()).to.deep.equal({ late: 1 });
    meddle(1_000, set);
    expect(await outcomeOf(write({ append: true, fields: { plan: 2 } }))).to.equal('BUSY');
    expect(changes, 'tries').to.equal(8);
  });

  it('limits the total size of keys and text', async () => {
    const { write, types } = await open();
    await write({ text: 'x'.repeat(MAX_MEMORY - 20_000) });
    const before = types().length;
    expect(await outcomeOf(write({ append: true, fields: { notes: 'y'.repeat(20_000) } }))).to.equal('413');
    expect(types()).to.have.length(before);
  });

  it('returns 404 for an unknown agent', async () => {
    const { write } = await open();
    expect(await outcomeOf(write({ text: 'x' }, 99))).to.equal('404');
    expect(await outcomeOf(write({ append: true, fields: { a: 1 } }, 99))).to.equal('404');
  });
});

describe('agent: memory', () => {
  it('can be replaced', () => {
    expect(decideMemory(given(registered).state, 'abc', false, 0)[0]?.data).to.deep.equal({
      ...ada,
      text: 'abc',
      append: false,
      size: 3,
    });
    expect(decideMemory(given(registered).state, '', false, 0)[0]?.data).to.deep.include({ text: '', size: 0 });
  });

  it('is appended to under a heading with the time', () => {
    const written = agentMemoryWritten.draft({ ...ada, text: 'abc', append: false, size: 3 });
    expect(decideMemory(given(registered).state, 'x', true, 0)[0]?.data).to.deep.include({
      text: '## 1970-01-01T00:00:00.000Z\nx',
      size: 29,
    });
    expect(decideMemory(given(registered, written).state, 'x', true, 0)[0]?.data).to.deep.include({
      text: '\n\n## 1970-01-01T00:00:00.000Z\nx',
      size: 34,
    });
    given(registered, written).when(decideMemory, '', true, 0).then();
  });

  it('is limited in length', () => {
    const full = 'x'.repeat(MAX_MEMORY);
    expect(decideMemory(given(registered).state, full, false, 0)).to.have.length(1);
    given(registered).when(decideMemory, `${full}x`, false, 0).thenRefuses(413);
    const written = agentMemoryWritten.draft({ ...ada, text: full, append: false, size: MAX_MEMORY });
    given(registered, written).when(decideMemory, 'x', true, 0).thenRefuses(413);
  });

  it('always knows the total size of its texts', () => {
    const steps = fc.array(fc.record({ text: fc.string(), append: fc.boolean() }), { maxLength: 12 });
    fc.assert(
      fc.property(steps, (writes) => {
        let state = given(registered).state;
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
