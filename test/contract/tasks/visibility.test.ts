/**
 * An agent's key sees the tasks that are assigned to its agent or that its agent created, and nothing of others. Tasks of
 * another agent hold a word wherever a task, its comments, its reviews or its branch can hold one. Every GET of the
 * description is called: the word must be found by an operator, so that the test can fail, and never by the agent.
 */
import { expect } from 'chai';
import type { OpenApiDocument } from '../../../api/openapi.ts';
import { type FakeGithub, GITHUB_TOKEN, startFakeGithub } from '../../support/github.ts';
import { operationsOf, readsOf, type Values } from '../../support/requests.ts';
import { bodyOf, type Reply } from '../../support/service.ts';
import { type OpenStream, openStream } from '../../support/stream.ts';
import { type AuthWorld, startAuthWorld } from '../../support/worlds/auth.ts';

/** In bob's tasks, in unassigned tasks, and in those that ann sees. */
const HIDDEN = 'quetzal9x';
const OWN = 'ocelot9x';
/** Finds the word in a search; a response that repeats the question does not hold the word itself. */
const PART = HIDDEN.slice(0, -1);

/** Reads in which an operator finds the word. */
const SHOWING = [
  'GET /api/activities',
  'GET /api/agents/comms',
  'GET /api/agents/{id}/heartbeat',
  'GET /api/chat/conversations',
  'GET /api/chat/messages',
  'GET /api/chat/messages/{id}',
  'GET /api/notifications',
  'GET /api/projects/{id}/tasks',
  'GET /api/quality-review',
  'GET /api/search',
  'GET /api/tasks',
  'GET /api/tasks/outcomes',
  'GET /api/tasks/queue',
  'GET /api/tasks/{id}',
  'GET /api/tasks/{id}/branch',
  'GET /api/tasks/{id}/comments',
  'GET /api/tokens',
];

const textOf = ({ body }: Pick<Reply, 'body'>): string => (typeof body === 'string' ? body : JSON.stringify(body));

describe('contract: task visibility for agents', function () {
  this.timeout(120_000);
  let github: FakeGithub;
  let world: AuthWorld;
  let operator: string;
  /** Of ann. */
  let key: string;
  let live: { readonly ann: OpenStream; readonly operator: OpenStream };
  let values: Values;
  let project: number;
  let ids: { readonly bob: number; readonly ann: number };
  /** A task of bob with all fields, a done task, and an unassigned task. */
  let hidden: { readonly full: number; readonly done: number; readonly nobodys: number };
  /** Tasks that are assigned to ann, and created by ann for bob. */
  let own: { readonly assigned: number; readonly created: number };
  const opened: OpenStream[] = [];

  async function done(as: string, method: string, path: string, body?: unknown) {
    return bodyOf(await world.ask(method, path, { as, body }), 200, 201);
  }
  const asAdmin = (method: string, path: string, body?: unknown) => done(world.adminKey, method, path, body);
  const asAnn = (method: string, path: string, body?: unknown) => done(key, method, path, body);
  const refused = async (method: string, path: string, body?: unknown) => {
    const reply = await world.ask(method, path, { as: key, body });
    expect(reply.status, `${method} ${path}: ${textOf(reply)}`).to.equal(403);
    expect(textOf(reply)).not.to.include(HIDDEN);
  };
  const listen = async (headers: Record<string, string>, query = '') => {
    const stream = await openStream(`${world.url}/api/events${query}`, headers);
    opened.push(stream);
    return stream;
  };

  /** A task that holds the word wherever it can. */
  async function fill(word: string, fields: object): Promise<number> {
    const { task } = await asAdmin('POST', '/api/tasks', {
      title: `${word} of ann`,
      description: `${word} @ann-friend`,
      project_id: project,
      due_date: 1_700_000_000,
      tags: [word],
      metadata: { note: word, implementation_repo: word },
      ...fields,
    });
    const path = `/api/tasks/${task.id}`;
    const { comment } = await done(operator, 'POST', `${path}/comments`, { content: `${word} @bob` });
    await asAdmin('POST', `${path}/comments`, { content: word, parent_id: comment.id });
    await asAdmin('POST', '/api/quality-review', { taskId: task.id, status: 'rejected', notes: word });
    await asAdmin('POST', `${path}/branch`);
    await asAdmin('POST', `${path}/branch`, { action: 'create-pr', title: word });
    await asAdmin('POST', `${path}/broadcast`, { message: word });
    const texts = { error_message: word, resolution: word, feedback_notes: word };
    await asAdmin('PUT', path, { ...texts, title: `${word} of ann, changed` });
    await asAdmin('POST', '/api/tokens', {
      ...{ model: 'm', sessionId: 'bob:cli', inputTokens: 7, outputTokens: 7, taskId: task.id },
    });
    return task.id;
  }

  before(async () => {
    github = await startFakeGithub();
    github.repo('acme/roof');
    world = await startAuthWorld({
      GITHUB_API_URL: github.url,
      GITHUB_TOKEN,
      GITHUB_SYNC_INTERVAL_MS: '86400000',
      MC_AGENT_TIMEOUT_MINUTES: '0',
    });
    operator = await world.makeSession({ username: 'olga', role: 'operator' });
    const agent = async (name: string) =>
      (await asAdmin('POST', '/api/agents', { name, role: 'coder', session_key: `session-${name}` })).agent.id;
    ids = { bob: await agent('bob'), ann: await agent('ann') };
    await agent('ann-friend');
    key = await world.makeKey(ids.ann, ['operator']);
    live = { ann: await listen({ 'x-api-key': key }), operator: await listen({ cookie: operator }) };
    const made = await asAdmin('POST', '/api/projects', {
      name: 'Roof',
      ticket_prefix: 'RF',
      github_repo: 'acme/roof',
    });
    project = made.project.id;

    own = {
      assigned: await fill(OWN, { assigned_to: 'ann' }),
      created: (await asAnn('POST', '/api/tasks', { title: `${OWN} created`, assigned_to: 'bob', project_id: project }))
        .task.id,
    };
    hidden = {
      full: await fill(HIDDEN, { assigned_to: 'bob' }),
      done: await fill(HIDDEN, { assigned_to: 'bob' }),
      nobodys: (await asAdmin('POST', '/api/tasks', { title: HIDDEN, description: HIDDEN, status: 'backlog' })).task.id,
    };
    await asAdmin('POST', '/api/quality-review', { taskId: hidden.done, status: 'approved', notes: HIDDEN });
    const { task: gone } = await asAdmin('POST', '/api/tasks', { title: `${HIDDEN} gone`, assigned_to: 'bob' });
    await asAdmin('DELETE', `/api/tasks/${gone.id}`);
    await asAdmin('PUT', '/api/tasks', { tasks: [{ id: hidden.full, status: 'assigned' }] });
    await asAdmin('PUT', '/api/tasks', { tasks: [{ id: hidden.full, status: 'in_progress' }] });
    await asAdmin('PUT', '/api/tasks', { tasks: [{ id: hidden.full, status: 'assigned' }] });
    // Into the inboxes of bob and ann.
    await asAdmin('POST', '/api/notifications/deliver', { limit: 1_000 });

    const newest = async (path: string, list: string, at = 0) => (await asAdmin('GET', path))[list].at(at).id;
    const review = (await asAdmin('GET', `/api/quality-review?taskId=${hidden.full}`)).reviews[0];
    values = {
      numbers: [
        hidden.full,
        await newest(`/api/tasks/${hidden.full}/comments`, 'comments'),
        review.id,
        project,
        ids.bob,
        await newest('/api/chat/messages?to_agent=bob&limit=200', 'messages', -1),
        await newest('/api/notifications?recipient=bob', 'notifications'),
      ],
      ids: new Map([
        ['tasks', [hidden.full]],
        ['agents', [ids.bob]],
        ['projects', [project]],
      ]),
      names: ['bob', 'ann', 'system', PART, String(hidden.full), `${hidden.full},${hidden.done}`],
    };
  });
  after(async () => {
    for (const stream of opened) stream.close();
    await world?.close();
    await github?.close();
  });

  /** The path of an operation with the record that holds the word. */
  function pathOf(path: string): string | undefined {
    const { numbers } = values;
    const record = { tasks: hidden.full, agents: ids.bob, projects: project, chat: numbers[5] };
    const id = record[/^\/api\/(\w+)\//.exec(path)?.[1] as keyof typeof record];
    return id === undefined ? undefined : path.replace('{id}', String(id));
  }

  /**
   * Calls every GET, until the word is found or the first calls have been refused for the role of the caller, which is
   * checked before anything is read. Gives the names of those that have it, and how many calls had a response.
   */
  async function walk(as: string): Promise<{ readonly found: string[]; readonly answered: number }> {
    const found = new Set<string>();
    let answered = 0;
    const operations = operationsOf((await asAdmin('GET', '/api/docs')) as OpenApiDocument);
    for (const operation of operations.filter(({ method, isStream }) => method === 'GET' && !isStream)) {
      const requests = [...readsOf(operation, values, { own: pathOf(operation.path) })];
      for (let at = 0; at < requests.length && !found.has(operation.name); at += 8) {
        const refused = await Promise.all(
          requests.slice(at, at + 8).map(async ({ path }) => {
            const reply = await world.ask('GET', path, { as });
            expect(reply.status, path).to.be.below(500);
            if (reply.status === 200) answered++;
            if (textOf(reply).includes(HIDDEN)) found.add(operation.name);
            return reply.status === 403 && textOf(reply).includes('This call requires the role admin');
          }),
        );
        if (refused.every(Boolean)) break;
      }
    }
    return { found: [...found].sort(), answered };
  }

  it('an operator finds tasks of every agent in every read of tasks', async () => {
    expect((await walk(operator)).found).to.deep.equal(SHOWING);
  });

  it('an agent finds no task that is neither assigned to it nor created by it, in any read', async () => {
    // What an operator has asked for before is in the cache.
    const { found, answered } = await walk(key);
    expect(found).to.deep.equal([]);
    expect(answered).to.be.greaterThan(200);
  });

  it('requests for hidden tasks and their subresources are rejected', async () => {
    for (const id of [hidden.full, hidden.done, hidden.nobodys]) {
      for (const path of ['', '?include=history', '/comments', '/branch'])
        await refused('GET', `/api/tasks/${id}${path}`);
      await refused('GET', `/api/quality-review?taskId=${id}`);
      await refused('POST', `/api/tasks/${id}/broadcast`, { message: 'hello' });
      await refused('POST', `/api/tasks/${id}/branch`);
      await refused('POST', `/api/tasks/${id}/comments`, { content: 'hello' });
    }
    const { latest } = await asAnn('GET', `/api/quality-review?taskIds=${hidden.full},${own.assigned}`);
    expect(latest[hidden.full]).to.equal(null);
    expect(latest[own.assigned]).to.include({ status: 'rejected' });
    for (const recipient of ['bob', 'olga']) {
      await refused('GET', `/api/notifications?recipient=${recipient}`);
      await refused('GET', `/api/notifications/deliver?agent=${recipient}`);
      await refused('PUT', '/api/notifications', { recipient, markAllRead: true });
      await refused('POST', '/api/notifications', { action: 'mark-delivered', agent: recipient });
      await refused('POST', '/api/notifications', { action: 'mark_all_read', recipient });
      await refused('POST', '/api/notifications/deliver', { agent_filter: recipient, dry_run: true });
    }
  });

  it('POST responses hide those tasks as well, while stored standup numbers count all tasks', async () => {
    const waiting = [own.created, own.assigned].map((id) => ({ id, status: 'assigned' }));
    await asAdmin('PUT', '/api/tasks', { tasks: waiting });
    const assignments = (agentId: string) => ({ framework: 'generic', action: 'assignments', payload: { agentId } });
    // Every agent may claim an unassigned task, and sees it once it has claimed it.
    await asAdmin('POST', '/api/tasks', { title: HIDDEN, priority: 'low' });
    const shown = textOf({ body: await asAdmin('POST', '/api/adapters', assignments('ann')) });
    expect(shown).to.include(HIDDEN).and.to.include(OWN);
    const offered = textOf({ body: await asAnn('POST', '/api/adapters', assignments('ann')) });
    expect(offered).to.include(OWN).and.not.include(HIDDEN);
    await refused('POST', '/api/adapters', assignments('bob'));
    const all = (await asAdmin('POST', '/api/standup', {})).standup;
    expect(textOf({ body: all })).to.include(HIDDEN);
    const report = (await asAnn('POST', '/api/standup', {})).standup;
    expect(textOf({ body: report }))
      .to.include(OWN)
      .and.not.include(HIDDEN);
    expect(report.overdueTasks.map(({ id }: { id: number }) => id)).to.deep.equal([own.assigned]);
    expect((await asAdmin('GET', '/api/standup')).history[0].summary).to.deep.equal(all.summary);
    expect(textOf({ body: await asAnn('POST', '/api/agents/ann/heartbeat', {}) }))
      .to.include(OWN)
      .and.not.include(HIDDEN);
    const delivered = await asAnn('POST', '/api/notifications/deliver', { dry_run: true });
    expect(textOf({ body: delivered })).not.to.include(HIDDEN);
  });

  it('an agent finds its assigned and created tasks, with correct totals and pages', async () => {
    const both = [own.created, own.assigned];
    const list = async (query: string) => {
      const { tasks, total } = await asAnn('GET', `/api/tasks${query}`);
      return [total, ...tasks.map(({ id }: { id: number }) => id)];
    };
    expect(await list('')).to.deep.equal([2, ...both]);
    expect(await list('?limit=1&offset=1')).to.deep.equal([2, own.assigned]);
    expect(await list('?status=done')).to.deep.equal([0]);
    expect(await list(`?project_id=${project}&sort=updated_at&order=asc&limit=1`)).to.deep.equal([2, own.created]);
    expect(await list('?assigned_to=ann')).to.deep.equal([1, own.assigned]);
    expect(await list('?assigned_to=bob'), 'the name of another agent is no filter').to.deep.equal([2, ...both]);
    const { tasks } = await asAnn('GET', `/api/projects/${project}/tasks`);
    expect(tasks.map(({ id }: { id: number }) => id)).to.deep.equal(both);
    for (const id of both) expect((await asAnn('GET', `/api/tasks/${id}?include=history`)).history).to.not.be.empty;
    expect((await asAnn('GET', `/api/tasks/${own.assigned}/comments`)).total).to.equal(2);
    expect((await asAnn('GET', `/api/tasks/${own.assigned}/branch`)).branch).to.include(OWN);
    expect((await asAnn('GET', `/api/quality-review?taskId=${own.assigned}`)).reviews).to.have.length(1);
    const found = await asAnn('GET', `/api/search?q=${OWN}&type=task`);
    expect(found.results.map(({ id }: { id: number }) => id)).to.have.members(both);
    expect((await asAnn('GET', '/api/tokens?action=task-costs')).tasks).to.have.length(1);
  });

  it('activities about its tasks, and those not about tasks, are counted and listed', async () => {
    const { activities, total, hasMore } = await asAnn('GET', '/api/activities?limit=500');
    expect(activities).to.have.length(total);
    expect(hasMore).to.equal(false);
    const all = (await asAdmin('GET', '/api/activities?limit=500')).activities;
    type Row = { id: number; entity_type: string; entity_id: number; data: { task_id?: number } | null };
    const isOwn = ({ entity_type, entity_id, data }: Row) => {
      const both = [own.assigned, own.created];
      if (entity_type === 'task') return both.includes(entity_id);
      if (entity_type === 'comment') return both.includes(data?.task_id ?? 0);
      return true;
    };
    const seen = (all as (Row & { description: string })[])
      .filter(isOwn)
      .filter((one) => one.entity_type !== 'notification' || one.description.endsWith(' to ann'));
    expect(activities.map(({ id }: Row) => id)).to.deep.equal(seen.map(({ id }) => id));
    expect(new Set(seen.map(({ entity_type }) => entity_type))).to.include.keys(
      'task',
      'comment',
      'agent',
      'notification',
    );
    const pages: number[] = [];
    for (let offset = 0; offset < total; offset += 7) {
      const page = await asAnn('GET', `/api/activities?limit=7&offset=${offset}`);
      pages.push(...page.activities.map(({ id }: Row) => id));
    }
    expect(pages).to.deep.equal(seen.map(({ id }) => id));
    const counted = (await asAnn('GET', '/api/activities?stats=1')).activityByType;
    expect(counted.reduce((sum: number, { count }: { count: number }) => sum + count, 0)).to.equal(total);
  });

  it('a newly assigned task becomes visible, and a reassigned one is hidden', async () => {
    const { task } = await asAdmin('POST', '/api/tasks', { title: 'passed on', assigned_to: 'bob' });
    const reads = [`/api/tasks/${task.id}`, `/api/tasks/${task.id}/comments`, `/api/quality-review?taskId=${task.id}`];
    const listed = async () => (await asAnn('GET', '/api/search?q=passed&type=task')).count;
    const statuses = () => Promise.all(reads.map(async (path) => (await world.ask('GET', path, { as: key })).status));
    expect([await statuses(), await listed()]).to.deep.equal([[403, 403, 403], 0]);
    await asAdmin('PUT', `/api/tasks/${task.id}`, { assigned_to: 'ann' });
    expect([await statuses(), await listed()]).to.deep.equal([[200, 200, 200], 1]);
    await asAdmin('PUT', `/api/tasks/${task.id}`, { assigned_to: 'bob' });
    expect([await statuses(), await listed()]).to.deep.equal([[403, 403, 403], 0]);
  });

  it('the event stream contains all frames of its own tasks and none of others, live or resuming', async () => {
    const { agent } = await asAdmin('POST', '/api/agents', { name: 'marker', role: 'coder' });
    const isLast = (stream: OpenStream) => () =>
      stream.frames.some(({ type, data }) => type === 'agent.created' && data.id === agent.id);
    const resumed = {
      ann: await listen({ 'x-api-key': key }, `?since=${await issuedAt()}`),
      operator: await listen({ cookie: operator }, '?since=0'),
    };
    for (const [name, stream] of [...Object.entries(live), ...Object.entries(resumed)]) {
      await stream.until(isLast(stream));
      const text = JSON.stringify(stream.frames);
      expect(text).to.include(OWN);
      if (name === 'ann') expect(text).not.to.include(HIDDEN);
      else expect(text).to.include(HIDDEN);
    }
    const sent = (stream: OpenStream) => stream.frames.map(({ id }) => id);
    expect(sent(resumed.ann)).to.deep.equal(sent(live.ann));
    const about = live.ann.frames.filter(({ type }) => type.startsWith('task.')).map(({ data }) => data.id);
    expect([...new Set(about)])
      .to.include.members([own.assigned, own.created])
      .and.not.include(hidden.full);
  });

  /** Position at which ann's key was issued, which is where its past begins. */
  async function issuedAt(): Promise<number> {
    const { eventLog } = world.service.core;
    for await (const events of eventLog.readAll())
      for (const { type, position } of events) if (type === 'AgentKeyIssued') return position;
    throw new Error('no key was issued');
  }
});
