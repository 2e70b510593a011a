/** What is asked about agents themselves: lists, records, texts, the silent ones, and an import's preview. */
import { expect } from 'chai';
import { projections } from '../../../projections/index.ts';
import { agentIds, agentRecord, findAgent, listAgents, withTaskStats } from '../../../queries/agents/agents.ts';
import { silentAgents } from '../../../queries/agents/liveness.ts';
import { agentMemory } from '../../../queries/agents/memory.ts';
import { agentSoul } from '../../../queries/agents/souls.ts';
import { previewSync } from '../../../queries/agents/sync.ts';
import { NO_TASKS } from '../../../queries/tasks/assignments.ts';
import { gatewayConfigChanged } from '../../../shared/events/admin/gateway-config.ts';
import { agentHidden } from '../../../shared/events/agents/agents.ts';
import { agentMemoryFieldsSet, agentMemoryWritten } from '../../../shared/events/agents/memory.ts';
import { agentSoulChanged } from '../../../shared/events/agents/souls.ts';
import { sample } from '../../support/kit.ts';
import { agentRegisteredAs, readModels, secondsOf, type Told } from '../../support/rows.ts';

const document = (agents: readonly object[]) =>
  sample(gatewayConfigChanged, { document: { agents: { list: agents } }, cause: 'update', updated_keys: ['*'] });
const ada = { agent_id: 1, name: 'ada' };
const elsewhere = { workspace: 2, tenant: 2 };

describe('agent queries', () => {
  const models = readModels(projections, () => [
    agentRegisteredAs(1, 'ada', {
      session_key: 'key',
      config: { model: 'm' },
      soul_content: 'calm',
      runtime_type: 'codex',
    }),
    agentRegisteredAs(2, 'bob', { status: 'offline' }),
    agentRegisteredAs(3, 'cyn', { role: 'lead', source: 'gateway' }),
    agentRegisteredAs(4, 'dan'),
    agentHidden.draft({ agent_id: 4, name: 'dan' }),
    [agentRegisteredAs(5, 'ada', { role: 'spy' }), elsewhere],
    agentMemoryWritten.draft({ ...ada, text: 'note', append: false, size: 4 }),
    agentMemoryFieldsSet.draft({ ...ada, fields: { mood: 'calm' }, size: 4, append: false, announced: true }),
    agentSoulChanged.draft({ ...ada, soul_content: 'curious', template: null, previous_length: 4 }),
  ]);

  const record = {
    id: 1,
    name: 'ada',
    role: 'coder',
    status: 'idle',
    session_key: 'key',
    soul_content: 'curious',
    working_memory: 'note',
    config: { model: 'm' },
    last_seen: null,
    last_activity: null,
    created_at: secondsOf(1),
    updated_at: secondsOf(9),
    source: 'manual',
    hidden: 0,
    runtime_type: 'codex',
    content_hash: null,
    workspace_path: null,
    workspace_id: 1,
  };
  const list = (query: object = {}) =>
    listAgents(models.reads, 1, { limit: 50, offset: 0, ...query } as Parameters<typeof listAgents>[2]);
  const namesOf = async (query?: object) => (await list(query)).agents.map(({ name }) => name);

  it('list whole records with task counts, newest first, without hidden agents', async () => {
    const { agents, ...rest } = await list();
    expect(agents.map(({ name }) => name)).to.deep.equal(['cyn', 'bob', 'ada']);
    expect(agents[2]).to.deep.equal({ ...record, taskStats: NO_TASKS });
    expect(rest).to.deep.equal({ total: 3, page: 1, limit: 50 });
  });

  it('filter the list by status and role, include hidden agents on request, and page it', async () => {
    expect(await namesOf({ status: 'offline' })).to.deep.equal(['bob']);
    expect(await namesOf({ role: 'lead' })).to.deep.equal(['cyn']);
    for (const show_hidden of ['true', '1'])
      expect(await namesOf({ show_hidden })).to.deep.equal(['dan', 'cyn', 'bob', 'ada']);
    expect(await namesOf({ show_hidden: 'false' })).to.deep.equal(['cyn', 'bob', 'ada']);
    const { agents, ...rest } = await list({ limit: 2, offset: 2 });
    expect(agents.map(({ name }) => name)).to.deep.equal(['ada']);
    expect(rest).to.deep.equal({ total: 3, page: 2, limit: 2 });
    expect(await list({ role: 'nobody' })).to.deep.equal({ agents: [], total: 0, page: 1, limit: 50 });
  });

  it('list agents registered in the same second by id, newest first', async () => {
    const place = { workspace: 7, at: 1_700_000_000_000 };
    await models.tell(...[31, 33, 32].map((id) => [agentRegisteredAs(id, `same-${id}`), place] as const));
    const { agents } = await listAgents(models.reads, 7, { limit: 2, offset: 0 } as Parameters<typeof listAgents>[2]);
    expect(agents.map(({ id }) => id)).to.deep.equal([33, 32]);
  });

  it('find a record by id or name in its own workspace', async () => {
    for (const ref of [{ id: 1 }, { name: 'ada' }])
      expect(await agentRecord(models.reads, 1, ref)).to.deep.equal(record);
    expect(await agentRecord(models.reads, 2, { id: 1 })).to.equal(undefined);
    expect(await agentRecord(models.reads, 2, { name: 'ada' })).to.include({ id: 5, role: 'spy' });
    expect(await withTaskStats(models.reads, 1, [record])).to.deep.equal([{ ...record, taskStats: NO_TASKS }]);
  });

  it('find an agent without its texts, and several agents by name', async () => {
    const { id, name, role, status, session_key, created_at } = record;
    const found = { id, name, role, status, session_key, created_at };
    for (const ref of [{ id: 1 }, { name: 'ada' }]) expect(await findAgent(models.reads, 1, ref)).to.deep.equal(found);
    expect(await findAgent(models.reads, 2, { id: 1 })).to.equal(undefined);
    expect(await agentIds(models.reads, 1, ['ada', 'dan', 'nobody'])).to.deep.equal(
      new Map([
        ['ada', 1],
        ['dan', 4],
      ]),
    );
    expect(await agentIds(models.reads, 2, ['ada', 'dan'])).to.deep.equal(new Map([['ada', 5]]));
  });

  it('return memory and persona with the time of their last change, or of the registration', async () => {
    const { id, name, role } = record;
    expect(await agentMemory(models.reads, 1, { id: 1 })).to.deep.equal({
      id,
      name,
      role,
      working_memory: 'note',
      memory_fields: { mood: 'calm' },
      memory_updated_at: secondsOf(8),
    });
    expect(await agentSoul(models.reads, 1, { name: 'ada' })).to.deep.equal({
      id,
      name,
      role,
      soul_content: 'curious',
      soul_updated_at: secondsOf(9),
    });
    expect(await agentMemory(models.reads, 1, { id: 2 })).to.include({
      working_memory: '',
      memory_updated_at: secondsOf(2),
    });
    expect(await agentSoul(models.reads, 1, { id: 2 })).to.include({
      soul_content: null,
      soul_updated_at: secondsOf(2),
    });
    expect(await agentMemory(models.reads, 2, { id: 1 })).to.equal(undefined);
    expect(await agentSoul(models.reads, 2, { id: 1 })).to.equal(undefined);
  });

  it('find inactive agents of all workspaces: not offline, and without a sign of life since a time', async () => {
    const among = async (since: number) =>
      (await silentAgents(models.reads, since)).filter(({ workspace }) => workspace <= 2);
    expect(await among(secondsOf(3))).to.deep.equal([
      { workspace: 1, tenant: 1, id: 1, name: 'ada' },
      { workspace: 1, tenant: 1, id: 3, name: 'cyn' },
    ]);
    expect((await among(secondsOf(6))).map(({ workspace, id }) => [workspace, id])).to.deep.equal([
      [1, 1],
      [1, 3],
      [1, 4],
      [2, 5],
    ]);
  });

  it('preview an import: it creates new agents, updates different ones and keeps the others', async () => {
    const none = { inConfig: 0, newAgents: [], updatedAgents: [] };
    expect(await previewSync(models.reads, 2)).to.deep.equal({ ...none, inMC: 1, onlyInMC: ['ada'] });
    await models.tell(
      document([
        { id: 'ada', name: 'ada', identity: { theme: 'coder' }, model: 'm' },
        { id: 'bob', name: 'bob', model: 'other', identity: { theme: 'coder' } },
        { id: 'cyn', name: 'cyn', identity: { theme: 'coder' } },
        { id: 'eve', name: 'eve' },
      ]),
    );
    expect(await previewSync(models.reads, 1)).to.deep.equal({
      inConfig: 4,
      inMC: 4,
      newAgents: ['eve'],
      updatedAgents: ['ada', 'bob', 'cyn'],
      onlyInMC: ['dan'],
    });
  });

  it('preview no update of an agent that has the role and the fields of the document', async () => {
    const workspace = { workspace: 4 };
    const [plain, own] = [{ model: 'm' }, { model: 'm', own: 1 }];
    const cases = [
      { name: 'gus', role: 'lead', config: own, entry: plain, differs: true },
      { name: 'ivy', role: 'lead', config: plain, entry: plain, differs: true },
      // Fields that are not the gateway's do not count.
      { name: 'jon', role: 'agent', config: own, entry: plain, differs: false },
      { name: 'kim', role: 'agent', config: own, entry: { model: 'n' }, differs: true },
    ];
    await models.tell(
      ...cases.map(({ name, role, config }, n): Told => [agentRegisteredAs(41 + n, name, { role, config }), workspace]),
      [document(cases.map(({ name, entry }) => ({ id: name, ...entry }))), workspace],
    );
    const { updatedAgents, ...counts } = await previewSync(models.reads, 4);
    expect(counts).to.include({ inConfig: 4, inMC: 4 });
    expect(updatedAgents).to.deep.equal(cases.flatMap(({ name, differs }) => (differs ? name : [])));
  });
});
