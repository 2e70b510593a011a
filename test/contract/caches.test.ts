/**
 * Every route with a cache, asked by every kind of caller: what is cached for one is never the response of another. A
 * request with `Cache-Control: no-cache` gets a response that was computed for it.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { expect } from 'chai';
import { fieldsOf } from '../../api/http/route.ts';
import { routes } from '../../api/routes/index.ts';
import { projections } from '../../projections/index.ts';
import { schemaOf } from '../../projections/projection.ts';
import type { Identity } from '../../shared/identity.ts';
import { fixture } from '../support/fixture.ts';
import { bodyOf, type Reply } from '../support/service.ts';
import { PASSWORD, startAuthWorld } from '../support/worlds/auth.ts';

const cached = routes.flatMap((route) => (route.cache ? [{ ...route, cache: route.cache }] : []));

const COLD = { 'cache-control': 'no-cache' };

/** One kind of caller. */
interface Caller {
  readonly as: string;
  readonly headers?: Record<string, string>;
}

/** Queries without which a route shows nothing that differs between callers. */
const QUERIES: Readonly<Record<string, readonly string[]>> = {
  // Entries of others are written by what this test does.
  '/api/audit': ['action=agent_created'],
  '/api/quality-review': ['taskId={task}', 'taskIds={task},{other}'],
  '/api/notifications': ['recipient=ada', 'recipient=mia'],
  '/api/notifications/deliver': ['', 'agent=ada'],
  // The display name of a user.
  '/api/chat/conversations': ['', 'agent=Olga O'],
  '/api/chat/messages': ['', 'from_agent=Olga O'],
  '/api/tokens': ['action=list', 'action=stats', 'action=task-costs', 'action=agent-costs'],
  '/api/agents/{id}/attribution': ['', 'privileged=1'],
  '/api/agents/{id}/diagnostics': ['', 'privileged=1'],
};

describe('contract: caches', function () {
  this.timeout(240_000);
  const callers = new Map<string, Caller>();
  const ids: Record<string, number[]> = {};
  let task = 0;
  let other = 0;

  async function done(as: string, method: string, path: string, body?: unknown) {
    return bodyOf(await world.ask(method, path, { as, body }), 200, 201);
  }

  /** Records of every kind, with secrets in them. @param mark in their texts */
  async function fill(as: string, mark: string) {
    const config = { token: 'sk-live-0123456789abcdef', note: mark };
    const agents: number[] = [];
    for (const name of ['ada', 'bob']) {
      const { agent } = await done(as, 'POST', '/api/agents', { name, role: mark, config, soul_content: mark });
      agents.push(agent.id);
      await done(as, 'PUT', `/api/agents/${agent.id}/memory`, { working_memory: `${mark} of ${name}` });
    }
    const { project } = await done(as, 'POST', '/api/projects', { name: `Project ${mark}`, ticket_prefix: mark });
    const tasks: number[] = [];
    for (const assigned_to of ['ada', 'bob']) {
      const fields = { title: `${mark} ${assigned_to}`, assigned_to, project_id: project.id, metadata: config };
      const made = await done(as, 'POST', '/api/tasks', fields);
      tasks.push(made.task.id);
      const path = `/api/tasks/${made.task.id}`;
      await done(as, 'POST', `${path}/comments`, { content: mark === 'house' ? 'for @bob and @mia' : 'for @bob' });
      await done(as, 'POST', '/api/quality-review', { taskId: made.task.id, status: 'rejected', notes: mark });
      const used = { model: 'm', sessionId: `${assigned_to}:cli`, inputTokens: 7, outputTokens: 7 };
      await done(as, 'POST', '/api/tokens', { ...used, taskId: made.task.id });
    }
    const [, ended] = tasks;
    await done(as, 'POST', '/api/quality-review', { taskId: ended, status: 'approved', notes: mark });
    await done(as, 'PUT', `/api/tasks/${ended}`, { status: 'done', outcome: 'success' });
    await done(as, 'POST', '/api/agents/message', { from: 'ada', to: 'bob', content: mark });
    await done(as, 'POST', '/api/chat/messages', { content: mark, recipient: 'ada', metadata: config });
    const rule = { name: mark, entity_type: 'task', condition_field: 'title', condition_operator: 'equals' };
    const action_config = { url: 'https://example.org/hook', secret: 'not for all' };
    await done(as, 'POST', '/api/alerts', { ...rule, condition_value: 'never', action_config });
    const { template } = await done(as, 'POST', '/api/workflows', { name: mark, task_prompt: mark });
    const steps = [{ template_id: template.id }, { template_id: template.id }];
    const { pipeline } = await done(as, 'POST', '/api/pipelines', { name: mark, steps });
    await done(as, 'POST', '/api/pipelines/run', { action: 'start', pipeline_id: pipeline.id });
    await done(as, 'PATCH', '/api/chat/session-prefs', { key: `local:${mark}`, name: mark });
    await done(as, 'PUT', '/api/tokens/prices', { model: mark, input: 1, output: 1 });
    await done(as, 'PUT', '/api/gateway-config', { agents: { list: [{ id: mark, name: mark }] }, note: mark });
    await done(as, 'POST', '/api/standup', {});
    return { agents, project: project.id as number, tasks };
  }

  const world = fixture(() =>
    startAuthWorld({
      MC_DISABLE_RATE_LIMIT: '1',
      MC_AGENT_TIMEOUT_MINUTES: '0',
      MC_CONNECTION_TIMEOUT_MINUTES: '0',
    }),
  );
  before(async () => {
    const house = world.adminKey;
    const user = async (
      username: string,
      role: 'admin' | 'operator' | 'viewer',
      place = { workspace: 1, tenant: 1 },
    ) => {
      await world.makeUser({ username, display_name: username === 'olga' ? 'Olga O' : username, role, ...place });
      return { as: await world.signIn(username, PASSWORD) };
    };
    callers.set('key of the deployment', { as: house });
    callers.set('admin', await user('ann', 'admin'));
    const operator = await user('olga', 'operator');
    callers.set('operator', operator);
    callers.set('operator for ada', { ...operator, headers: { 'x-agent-name': 'ada' } });
    callers.set('viewer', await user('vic', 'viewer'));
    // Its name is that of a recipient of notifications.
    callers.set('viewer who is notified', await user('mia', 'viewer'));
    const { workspace } = await done(house, 'POST', '/api/workspaces', { name: 'Strict' });
    const strict = await user('sam', 'admin', { workspace: workspace.id, tenant: 1 });
    callers.set('strict-workspace admin', strict);
    const { tenant } = await done(house, 'POST', '/api/super/tenants', {
      ...{ slug: 'acme', display_name: 'Acme', gateway_port: 2_000 },
    });
    const place = { workspace: tenant.workspace_id as number, tenant: tenant.id as number };
    const acme = await user('amy', 'admin', place);
    callers.set('admin of another tenant', acme);
    callers.set('viewer of another tenant', await user('avi', 'viewer', place));

    const own = await fill(house, 'house');
    const theirs = await fill(acme.as, 'acme');
    await fill(strict.as, 'strict');
    await done(strict.as, 'PUT', `/api/workspaces/${workspace.id}`, { name: 'Strict', isolation: 'strict' });
    await done(house, 'PUT', '/api/settings', { settings: { 'custom.colour': 'red' } });
    await done(house, 'POST', '/api/gateways', { name: 'first', url: 'http://127.0.0.1:9', token: 'secret' });
    const [ada = 0, bob = 0] = own.agents;
    callers.set('key of ada', { as: await world.makeKey(ada, ['operator']) });
    callers.set('key of bob', { as: await world.makeKey(bob, ['viewer']) });
    callers.set('key of ada, admin', { as: await world.makeKey(ada, ['admin']) });
    const [far = 0] = theirs.agents;
    callers.set('key of another tenant’s ada', {
      as: await world.makeKey(far, ['operator'], place.workspace, place.tenant),
    });
    [task = 0, other = 0] = own.tasks;
    // For its report.
    const { as: speaker } = callers.get('key of ada') as Caller;
    await done(speaker, 'POST', `/api/tasks/${task}/comments`, { content: 'on it' });
    Object.assign(ids, {
      agents: [ada, bob, far],
      projects: [own.project, theirs.project],
      tasks: [task, other, ...theirs.tasks.slice(0, 1)],
      workspaces: [1, workspace.id, place.workspace],
      'provision-jobs': [1],
    });
    await askAll();
  });

  const urls = () =>
    cached.flatMap(({ path }) => {
      const kind = /\/([\w-]+)\/\{id\}/.exec(path)?.[1];
      const paths = kind === undefined ? [path] : (ids[kind] ?? []).map((id) => path.replace('{id}', String(id)));
      expect(paths, `${path}: add ids of its kind to this test`).not.to.deep.equal([]);
      const filled = (query: string) => query.replace('{task}', String(task)).replace('{other}', String(other));
      return paths.flatMap((one) => (QUERIES[path] ?? ['']).map((query) => ({ path, url: `${one}?${filled(query)}` })));
    });

  const ask = (url: string, { as, headers = {} }: Caller, more: Record<string, string> = {}) =>
    world.ask('GET', url, { as, headers: { ...headers, ...more } });
  /** Reports about a window that ends now say when that is. */
  const shownBy = ({ status, body }: Reply): string =>
    JSON.stringify([status, body], (key, value) =>
      /^(since|until|from|to|generated_at|seconds_by_status)$/.test(key) ? 0 : value,
    );

  /** By path: the read models that its responses without a cache have read, directly or through shared data. */
  const read = new Map<string, Set<string>>();

  /** Notes in `read` what `work` reads. */
  async function noting(work: () => Promise<void>): Promise<void> {
    const { positions } = world.service.core;
    const nameOf = new Map(projections.map((one) => [schemaOf(one), one.name]));
    const reading = new AsyncLocalStorage<Set<string>>();
    const note = (names: Iterable<string>) => {
      for (const name of names) reading.getStore()?.add(name);
    };
    const { reachSchemas, stamp } = positions;
    positions.reachSchemas = (schemas, at) => {
      note(schemas.map((schema) => nameOf.get(schema) ?? schema));
      return reachSchemas.call(positions, schemas, at);
    };
    positions.stamp = (models, ...more) => {
      note(models);
      return stamp.call(positions, models, ...more);
    };
    const originals = cached.map(({ cache }) => [cache, cache.respond] as const);
    try {
      for (const { path, cache } of cached) {
        const { respond } = cache;
        const own = read.get(path) ?? new Set<string>();
        read.set(path, own);
        Object.assign(cache, {
          respond: (call: Parameters<typeof respond>[0]) => reading.run(own, () => respond(call)),
        });
      }
      await work();
    } finally {
      for (const [cache, respond] of originals) Object.assign(cache, { respond });
      Object.assign(positions, { reachSchemas, stamp });
    }
  }

  /** Paths whose responses differ between callers. */
  const differs = new Set<string>();
  /** Responses that differ from those without caches. */
  const wrong: string[] = [];

  /** Asks each URL without caches, and then in both ways that may meet the response of another caller. */
  async function askAll(): Promise<void> {
    for (const { path, url } of urls()) {
      const cold = new Map<string, string>();
      await noting(async () => {
        for (const [name, caller] of callers) cold.set(name, shownBy(await ask(url, caller, COLD)));
      });
      if (new Set(cold.values()).size > 1) differs.add(path);
      const check = async (how: string, [name, caller]: [string, Caller], more?: Record<string, string>) => {
        const reply = await ask(url, caller, more);
        if (shownBy(reply) !== cold.get(name))
          wrong.push(`${url} as ${name}, ${how}: ${shownBy(reply)} instead of ${cold.get(name)}`);
        if (reply.status === 200) expect(reply.headers.get('etag'), `${url} is cached`).to.be.a('string');
      };
      // Each gets what the last caller with the same key has left, so a key that callers share wrongly shows here.
      for (const each of callers) await check('after others', each);
      await Promise.all([...callers].map((each) => check('with others', each, COLD)));
    }
  }

  it('give each caller the same response as without them, regardless of earlier or concurrent callers', () => {
    expect(wrong.join('\n')).to.equal('');
    const same = new Set(cached.map(({ path }) => path).filter((path) => !differs.has(path)));
    expect([...same], 'these need records that callers see differently').to.deep.equal([]);
  });

  // A model that the cache does not name could change without ending the cached response.
  it('name exactly the read models that their responses read, directly or through data shared between requests', () => {
    for (const { path, cache } of cached) {
      const own = [...(read.get(path) ?? [])];
      // The cache adds it itself for callers that see the tasks of one agent.
      const implied = cache.caller.includes('agentName') && !cache.models.includes('tasks') ? ['tasks'] : [];
      expect(
        own.filter((one) => !implied.includes(one)),
        path,
      ).to.have.members([...new Set(cache.models)]);
    }
  });

  it('can read only declared fields of a caller', () => {
    const identity: Identity = {
      ...{ kind: 'user', id: 7, username: 'ann', displayName: 'Ann', role: 'admin', tenant: 1, workspace: 2 },
      ...{ seesSecrets: true, agentName: null, agentId: null, session: 'hash' },
    };
    const some = fieldsOf(identity, ['workspace', 'role']);
    expect(some).to.deep.equal({ workspace: 2, role: 'admin' });
    // @ts-expect-error Reading another field does not compile.
    expect(some.agentName).to.equal(undefined);
  });
});
