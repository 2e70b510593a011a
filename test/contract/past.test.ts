/**
 * Responses as of a position are those that the service gave at the time: every GET with a past is asked again and again
 * while random commands run, and once more afterwards, as of each of these positions.
 */
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import fc from 'fast-check';
import { hasPast } from '../../api/http/route.ts';
import { routes } from '../../api/routes/index.ts';
import { createLogIndex } from '../../infra/log-index/log-index.ts';
import { diffBetween } from '../../queries/history/diff.ts';
import type { RecordChange } from '../../shared/contract/history/diff.ts';
import { hiddenUrl } from '../../shared/secrets.ts';
import { writeHistory } from '../support/history.ts';
import { runs } from '../support/runs.ts';
import { call, type Reply, send, startTestService, TEST_ADMIN, type TestService } from '../support/service.ts';
import { cookieOf } from '../support/worlds/auth.ts';

const realNow = Date.now;
/** The clock of the service. */
let clock = 0;

/** Forms in which a route with a past is asked; others are asked without a query. */
const FORMS: Readonly<Record<string, readonly string[]>> = {
  '/api/agents': ['', '?limit=3&offset=1', '?status=busy', '?show_hidden=true', '?role=coder'],
  '/api/agents/{id}/diagnostics': ['?privileged=1', '?hours=1&privileged=1', '?privileged=1&evidence=1&limit=3'],
  '/api/agents/{id}/attribution': ['?privileged=1', '?hours=2&privileged=1&evidence=1'],
  '/api/agents/comms': ['', '?limit=2'],
  '/api/chat/messages': ['', '?limit=2&offset=1'],
  '/api/projects': ['', '?includeArchived=1'],
  '/api/mentions': ['?q=a'],
  '/api/tasks/outcomes': ['', '?timeframe=all'],
  '/api/tasks/regression': ['?beta_start=1700000000'],
  '/api/tasks': ['', '?status=in_progress', '?priority=high&sort=updated_at&order=asc', '?limit=2&offset=1'],
  '/api/tasks/{id}': ['', '?include=history&history_limit=2'],
  '/api/quality-review': ['?taskIds=1,2,3', '?taskId=1'],
  '/api/alerts': ['', '?evidence=1'],
  '/api/tokens': [
    '?action=list',
    '?action=stats&timeframe=day',
    '?action=trends',
    '?action=agent-costs',
    '?action=stats&timeframe=all',
    '?action=agent-costs&evidence=1&limit=3',
    '?action=task-costs&evidence=1&limit=1000',
  ],
  '/api/tokens/by-agent': ['', '?days=1', '?evidence=1&limit=3'],
  '/api/exec-approvals': ['?action=allowlist'],
  '/api/cron': ['', '?action=logs'],
  '/api/activities': ['', '?stats=true&hours=2', '?type=task_created', '?limit=3&offset=2'],
  '/api/audit': ['', '?limit=3'],
  '/api/notifications': ['?recipient=admin', '?recipient=ann'],
  '/api/search': ['?q=report', '?q=task&limit=3'],
  '/api/status': ['?action=gateway'],
};

/** Calls with fields that are not in the log, which responses about the past lack: names of these fields. */
const PARTLY: Readonly<Record<string, RegExp>> = {
  '/api/agents/{id}/keys': /^last_used_at$/,
  '/api/webhooks': /^(last_fired_at|last_status|consecutive_failures|circuit_open|\w+_deliveries)$/,
  '/api/github/sync': /^poller$/,
  '/api/status': /^(uptime|memory|disk)$/,
  '/api/status?action=dashboard': /^(uptime|memory|disk|backup|dbSizeBytes)$/,
  '/api/status?action=capabilities': /^processUser$/,
};

/** The routes whose responses about the past are the same as those of the time. An export is recorded: see below. */
const ASKED = routes
  .filter(hasPast)
  .map(({ path }) => path)
  .filter((path) => path !== '/api/export' && (path in FORMS || !(path in PARTLY)));

/** Those that any agent may ask. */
const OPEN = [
  '/api/agents',
  '/api/tasks',
  '/api/tasks/{id}',
  '/api/activities',
  '/api/search',
  '/api/projects/{id}/tasks',
];

interface Recorded {
  readonly url: string;
  readonly as: Record<string, string>;
  readonly position: number;
  readonly status: number;
  readonly body: string;
}

describe('reads as of a position', function () {
  this.timeout(300_000);
  let world: TestService;
  const names: string[] = [];
  const ids = { agents: [] as number[], tasks: [] as number[] };

  before(async () => {
    clock = realNow();
    Date.now = () => clock;
    world = await startTestService();
  });
  after(async () => {
    Date.now = realNow;
    await world?.close();
  });

  const ask = async (method: string, path: string, body?: unknown, as?: string): Promise<Reply> => {
    clock += 1_237;
    return call(world, method, path, body, as === undefined ? {} : { 'x-api-key': as });
  };
  const get = async (url: string, as: Record<string, string>) => {
    const response = await send(world, 'GET', url, as);
    return { status: response.statusCode as number, body: await text(response), headers: response.headers };
  };
  const pick = <T>(items: readonly T[], n: number): T => items[n % items.length] as T;

  /** Commands; each is given a number. Some are refused, as they depend on what there is. */
  const commands: readonly ((n: number) => Promise<unknown>)[] = [
    async (n) => {
      const { body } = await ask('POST', '/api/agents', {
        name: `agent-${n}-${ids.agents.length}`,
        role: pick(['coder', 'tester'], n),
      });
      ids.agents.push(body.agent.id);
      names.push(body.agent.name);
    },
    async (n) => {
      const { body } = await ask('POST', '/api/tasks', {
        title: `task ${n} reports`,
        description: 'a text @ann',
        priority: pick(['low', 'medium', 'high'], n),
        ...(n % 2 === 0 && { assigned_to: pick(names, n) }),
      });
      if (body.task) ids.tasks.push(body.task.id);
    },
    (n) =>
      ask('PUT', `/api/agents/${pick(ids.agents, n)}`, {
        status: pick(['busy', 'idle', 'error'], n),
        last_activity: `does ${n}`,
      }),
    (n) =>
      ask('PUT', `/api/agents/${pick(ids.agents, n)}/memory`, { working_memory: `line ${n}`, append: n % 3 === 0 }),
    (n) => ask('PUT', `/api/agents/${pick(ids.agents, n)}/soul`, { soul_content: `You are number ${n}.` }),
    (n) =>
      ask('POST', `/api/agents/${pick(ids.agents, n)}/heartbeat`, {
        token_usage: { model: 'm', inputTokens: n % 999, outputTokens: 5 },
      }),
    (n) =>
      ask('PUT', `/api/tasks/${pick(ids.tasks, n)}`, {
        title: `renamed ${n}`,
        status: pick(['in_progress', 'review', 'inbox'], n),
      }),
    (n) => ask('PUT', `/api/tasks/${pick(ids.tasks, n)}`, { priority: pick(['low', 'high'], n), tags: [`t${n % 5}`] }),
    (n) => ask('POST', `/api/tasks/${pick(ids.tasks, n)}/comments`, { content: `comment ${n} for @ann` }),
    (n) => ask('DELETE', `/api/tasks/${pick(ids.tasks, n)}`),
    (n) => ask('DELETE', `/api/agents/${pick(ids.agents.slice(2), n) ?? 0}`),
    (n) =>
      ask('POST', '/api/quality-review', {
        taskId: pick(ids.tasks, n),
        reviewer: 'aegis',
        status: pick(['approved', 'rejected'], n),
        notes: 'seen',
      }),
    (n) =>
      ask('POST', '/api/tokens', {
        model: pick(['m', 'claude-3-opus'], n),
        sessionId: `s${n % 3}`,
        inputTokens: n % 1_000,
        outputTokens: 7,
      }),
    (n) =>
      ask('POST', '/api/chat/messages', {
        from: 'admin',
        to: pick(['ann', `agent-${n}-0`], n),
        content: `message ${n}`,
        conversation_id: `c${n % 3}`,
      }),
    (n) => ask('PATCH', `/api/chat/messages/${1 + (n % 5)}`, { read: true }),
    () => ask('PUT', '/api/notifications', { recipient: 'ann', markAllRead: true }),
    (n) => ask('POST', '/api/projects', { name: `project ${n}`, ticket_prefix: `P${n % 90}` }),
    (n) => ask('PATCH', '/api/projects/1', { description: `text ${n}` }),
    (n) => ask('POST', '/api/workflows', { name: `flow ${n}`, task_prompt: 'do it', model: 'sonnet' }),
    (n) =>
      ask('POST', '/api/alerts', {
        name: `rule ${n}`,
        entity_type: 'agent',
        condition_field: 'status',
        condition_operator: 'equals',
        condition_value: 'error',
        action_type: 'notification',
      }),
    () => ask('POST', '/api/alerts', { action: 'evaluate' }),
    (n) => ask('PUT', '/api/settings', { settings: { 'retention.activities_days': 1 + (n % 30) } }),
    () => ask('POST', '/api/standup', {}),
    () => ask('POST', '/api/cleanup', {}),
    (n) =>
      ask('POST', '/api/auth/users', {
        username: `person${n}`,
        password: 'a long enough password',
        display_name: `Person ${n}`,
        role: 'viewer',
      }),
    (n) => ask('POST', '/api/connect', { tool_name: 'tool', agent_name: `tool-agent-${n % 3}` }),
    (n) => ask('POST', '/api/workspaces', { name: `Room ${n}`, slug: `room-${n}` }),
    (n) => ask('POST', '/api/gateways', { name: `gate ${n}`, host: '192.0.2.9', port: 1_000 + (n % 999) }),
    (n) =>
      ask('POST', '/api/cron', { action: 'add', jobName: `job ${n}`, schedule: '0 4 * * *', command: 'say hello' }),
    (n) =>
      writeHistory(world.service.core.store, {
        events: 12,
        agents: 2,
        seed: n,
        tick: () => {
          clock += 311;
        },
      }),
  ];

  /** The end of the log, once everything that is recorded after its response is there. */
  const settled = async () => {
    await world.service.securityEvents?.drain();
    for await (const [last] of world.service.core.store.log.readAll({ direction: 'backwards', limit: 1 }))
      if (last) return { position: last.position, at: Number(last.meta.at) };
    throw new Error('the log has no events');
  };

  /** Responses that show the end of the log, at the time of its last event. Jobs and policies may write meanwhile. */
  const record = async (urls: readonly string[], as: Record<string, string>): Promise<Recorded[]> => {
    for (;;) {
      const { position, at } = await settled();
      clock = at;
      const replies = await Promise.all(urls.map(async (url) => ({ url, ...(await get(url, as)) })));
      for (const { url, status, body } of replies) expect(status, `${url} ${body}`).to.be.below(500);
      const given = replies.filter(({ status }) => status < 400);
      const isExact = given.every(({ headers }) => Number(headers['x-signalbox-position']) === position);
      if (isExact && (await settled()).position === position)
        return given.map(({ url, status, body }) => ({ url, as, position, status, body }));
    }
  };

  /** Asked at the same time. */
  const inGroups = <T>(all: readonly T[]): T[][] =>
    Array.from({ length: Math.ceil(all.length / 8) }, (_, at) => all.slice(8 * at, 8 * at + 8));

  const first = async () => {
    for await (const [event] of world.service.core.store.log.readAll({ limit: 1 })) return event?.position;
    return undefined;
  };

  const urls = (paths: readonly string[]): string[] =>
    paths.flatMap((path) => {
      const forms = FORMS[path] ?? [''];
      const owners = path.startsWith('/api/agents/') ? ids.agents : path.startsWith('/api/tasks/') ? ids.tasks : [1, 2];
      const some = path.includes('{id}')
        ? [owners[0], owners.at(-1), owners.at(-3)].filter((id) => id !== undefined)
        : [0];
      return some.flatMap((id) => forms.map((form) => path.replace('{id}', String(id)) + form));
    });

  it('omit only fields that are not in the log', async () => {
    const { id } = (await ask('POST', '/api/agents', { name: 'keeper', role: 'coder' })).body.agent;
    const key = (await ask('POST', `/api/agents/${id}/keys`, { name: 'first', scopes: ['viewer'] })).body;
    await ask('POST', '/api/webhooks', { name: 'hook', url: 'https://example.org/hook', events: ['agent.error'] });
    const syncedProject = async (name: string) => {
      const { body } = await ask('POST', '/api/projects', { name, ticket_prefix: name.toUpperCase() });
      const sync = { github_repo: `ada/${name}`, github_sync_enabled: true };
      expect((await ask('PATCH', `/api/projects/${body.project.id}`, sync)).status).to.equal(200);
    };
    await syncedProject('synced');
    const cookie = cookieOf(await ask('POST', '/api/auth/login', TEST_ADMIN));
    const urls = Object.entries(PARTLY).map(([path, lacks]) => [path.replace('{id}', String(id)), lacks] as const);
    expect((await get('/api/agents', { 'x-api-key': key.api_key })).status).to.equal(200);
    const { position, at } = await settled();
    clock = at;
    const present = new Map<string, string>();
    for (const [url] of urls) present.set(url, (await get(url, { cookie })).body);

    await ask('DELETE', `/api/agents/${id}/keys`, { key_id: key.key.id });
    await ask('POST', '/api/webhooks', { name: 'later', url: 'https://example.org/later', events: ['agent.error'] });
    await syncedProject('later');
    const session = { session_key: 'later', runtime_type: 'claude' };
    expect((await ask('PUT', `/api/agents/${id}`, session)).status).to.equal(200);
    for (const [url, lacks] of urls) {
      const missing: string[] = [];
      // A use of a key is a change of its record, too.
      const unused = (name: string, value: unknown) => {
        if (name === 'url') return hiddenUrl(String(value));
        return name === 'updated_at' ? undefined : value;
      };
      const logged = JSON.parse(present.get(url) ?? '', (name, value) => {
        if (!lacks.test(name)) return unused(name, value);
        missing.push(name);
        return undefined;
      });
      const past = await get(`${url}${url.includes('?') ? '&' : '?'}as_of=${position}`, { cookie });
      expect([past.status, JSON.parse(past.body, unused)], url).to.deep.equal([200, logged]);
      expect(missing.length, `fields that ${url} lacks`).to.be.above(0);
      expect((await get(url, { cookie })).body, `${url} has changed since`).not.to.equal(present.get(url));
    }
  });

  it('return a user’s past profile; keys have no profile', async () => {
    const cookie = cookieOf(await ask('POST', '/api/auth/login', TEST_ADMIN));
    const { position } = await settled();
    const before = await get('/api/auth/me', { cookie });
    await ask('PUT', '/api/auth/users', { id: JSON.parse(before.body).user.id, display_name: 'Somebody Else' });
    expect((await get(`/api/auth/me?as_of=${position}`, { cookie })).body).to.equal(before.body);
    expect((await get('/api/auth/me', { cookie })).body).to.include('Somebody Else');
    expect((await get(`/api/auth/me?as_of=${await first()}`, { cookie })).status).to.equal(404);
    const { status, body } = await ask('GET', `/api/auth/me?as_of=${position}`);
    expect([status, body.error]).to.deep.equal([400, 'as_of: keys have no profile that is kept. Leave as_of out.']);
  });

  it('accept a position or a time, and return the position', async () => {
    const cookie = cookieOf(await ask('POST', '/api/auth/login', TEST_ADMIN));
    const { body: made } = await ask('POST', '/api/agents', { name: 'first', role: 'coder' });
    const { id } = made.agent;
    const { position, at } = await settled();
    await ask('PUT', `/api/agents/${id}`, { status: 'busy' });
    const url = `/api/agents/${id}`;
    const past = await get(`${url}?as_of=${position}`, { cookie });
    expect(JSON.parse(past.body).agent.status).to.equal('offline');
    expect(past.headers).to.include({
      'x-signalbox-position': String(position),
      'x-signalbox-as-of': String(position),
      'cache-control': 'private, no-cache',
    });
    expect(past.headers.vary).to.match(/Cookie/);
    const again = await get(`${url}?as_of=${position}`, { cookie, 'if-none-match': String(past.headers.etag) });
    expect([again.status, again.body]).to.deep.equal([304, '']);
    const byTime = await get(`${url}?as_of=${new Date(at).toISOString()}`, { cookie });
    expect([byTime.body, byTime.headers['x-signalbox-as-of']]).to.deep.equal([past.body, String(position)]);
    const missing = await get(`${url}?as_of=${await first()}`, { cookie });
    expect(missing.status).to.equal(404);
    expect(missing.headers['cache-control']).to.equal('no-store');
  });

  it('reject positions that are not in the log, and routes without a past', async () => {
    const { position } = await settled();
    const refusal = async (path: string) => {
      const { status, body } = await ask('GET', path);
      return `${status} ${body.error}`;
    };
    const range = /^400 as_of: must be a position from \d+ to \d+, or a time in RFC 3339 from [\dT:.Z-]+ to now/;
    for (const asOf of ['', 'x', '-1', '1.5', '2026-01-01', '1&as_of=2', '99999999999999999999'])
      expect(await refusal(`/api/agents?as_of=${asOf}`), asOf).to.match(range);
    for (const asOf of ['0', String(position + 1_000_000), '1999-01-01T00:00:00Z', '2999-01-01T00:00:00Z'])
      expect(await refusal(`/api/agents?as_of=${asOf}`), asOf).to.match(range);
    expect(await refusal('/api/scheduler?as_of=1')).to.equal(
      '400 as_of: this is the state of the processes. Leave as_of out.',
    );
    expect(await refusal('/api/status?action=health&as_of=1')).to.match(
      /^400 as_of: this is the state of the processes/,
    );
    expect(await refusal('/api/status?action=models&as_of=1')).to.match(/^400 as_of: the catalogue is part/);
    expect(await refusal('/api/exec-approvals?as_of=1')).to.match(/^400 as_of: what waits is asked for/);
    const { status, body } = await ask('POST', '/api/agents?as_of=1', { name: 'never', role: 'coder' });
    expect([status, body.error]).to.deep.equal([400, 'as_of: a write has no past. Leave as_of out.']);
    const { pool } = world.service.core.database;
    await pool.query(`UPDATE service.checkpoints SET history_from = ${position} WHERE projection = 'agents'`);
    expect(await refusal(`/api/agents?as_of=${position - 1}`)).to.match(
      /^409 as_of: the past of agents goes back to position \d+ only, .* run: signalbox rebuild --history agents$/,
    );
    await pool.query("UPDATE service.checkpoints SET history_from = 0 WHERE projection = 'agents'");
    expect(await refusal(`/api/agents?as_of=${await first()}`), 'of a caller who may not see it now').to.match(/^200/);
    expect((await ask('GET', '/api/agents?as_of=1', undefined, 'wrong')).status).to.equal(401);
  });

  it('can be exported, and the export is recorded', async () => {
    const exported = async (query = '') => {
      const { body } = await ask('GET', `/api/export?type=agents&format=json${query}`);
      return { at: body.exported_at, names: body.data.map(({ name }: { name: string }) => name) };
    };
    const { position, at } = await settled();
    const { names: then } = await exported();
    await ask('POST', '/api/agents', { name: 'later', role: 'coder' });
    expect((await exported()).names).to.include('later');
    const count = async () => (await ask('GET', '/api/audit?action=data_export')).body.total;
    const before = await count();
    expect(await exported(`&as_of=${position}`)).to.deep.equal({ at: new Date(at).toISOString(), names: then });
    expect(await count()).to.equal(before + 1);
  });

  it('can be compared by records, fields and the events that changed them', async () => {
    const diff = async (query: string) => (await ask('GET', `/api/history/diff?${query}`)).body;
    const kept = (await ask('POST', '/api/tasks', { title: 'kept' })).body.task.id;
    const gone = (await ask('POST', '/api/tasks', { title: 'gone' })).body.task.id;
    const { position: from, at } = await settled();
    await ask('PUT', `/api/tasks/${kept}`, { title: 'renamed' });
    await ask('PUT', `/api/tasks/${kept}`, { title: 'renamed again', priority: 'high' });
    await ask('DELETE', `/api/tasks/${gone}`);
    const added = (await ask('POST', '/api/tasks', { title: 'added' })).body.task.id;
    const { position: to } = await settled();
    await ask('PUT', `/api/tasks/${added}`, { title: 'later' });

    const found = await diff(`from=${from}&to=${to}&resource=tasks`);
    expect([found.from, found.to, found.next_cursor]).to.deep.equal([from, to, null]);
    const outline = found.changes.map(({ id, change, events }: RecordChange) => [id, change, events.length]);
    expect(outline).to.deep.equal([
      [kept, 'changed', 2],
      [gone, 'removed', 1],
      [added, 'added', 1],
    ]);
    const [changed, removed, made] = found.changes;
    expect(changed.fields.title).to.deep.equal({ before: 'kept', after: 'renamed again' });
    expect(changed.fields.priority).to.deep.equal({ before: 'medium', after: 'high' });
    expect(changed.fields).not.to.have.any.keys('id', 'workspace_id', 'position', 'created_at');
    expect(removed.fields.title).to.deep.equal({ before: 'gone', after: null });
    expect(made.fields.title).to.deep.equal({ before: null, after: 'added' });
    const causes = [];
    for (const id of changed.events) causes.push((await ask('GET', `/api/history/events/${id}`)).body);
    expect(causes.map(({ type }) => type)).to.deep.equal(['TaskUpdated', 'TaskUpdated']);
    expect(causes[0].position).to.be.above(from);

    const time = new Date(at).toISOString();
    expect(await diff(`from=${time}&to=${to}&resource=tasks&id=${gone}`)).to.deep.equal({
      ...found,
      changes: [removed],
    });
    const whole = await diff(`from=${from}&to=${to}`);
    const pages: RecordChange[] = [];
    for (let cursor = ''; ; ) {
      const page = await diff(`from=${from}&to=${to}&limit=1${cursor && `&cursor=${cursor}`}`);
      expect(page.changes.length).to.be.at.most(1);
      pages.push(...page.changes);
      if (page.next_cursor === null) break;
      cursor = page.next_cursor;
    }
    expect(pages).to.deep.equal(whole.changes);
    expect((await diff(`from=${to}&to=${to}`)).changes).to.deep.equal([]);

    const since = await diff(`from=0&to=${to}&resource=tasks&limit=200`);
    expect(since.from).to.equal(0);
    expect(since.changes.map(({ change }: RecordChange) => change))
      .to.include('added')
      .and.not.to.include('changed');
    expect(since.changes.map(({ id }: RecordChange) => id))
      .to.include.members([kept, added])
      .and.not.to.include(gone);
    const users = await diff(`from=0&to=${to}&resource=users&id=1`);
    const [born] = users.changes;
    const first = (await ask('GET', `/api/history/events/${born.events[0]}`)).body;
    expect([born.change, first.type, first.revision]).to.deep.equal(['added', 'UserCreated', 0]);

    const { database, eventLog, reads } = world.service.core;
    const index = createLogIndex({ database, eventLog, timeoutMs: 10_000 });
    const elsewhere = await diffBetween(
      index,
      { reads, workspace: 77, from, to },
      { limit: 50, id: undefined, cursor: undefined },
    );
    expect(elsewhere.changes, 'of another workspace').to.deep.equal([]);

    for (const [query, reason] of [
      [`from=${to}&to=${from}`, /^from: must not be after to/],
      [`from=x&to=${to}`, /^from: must be 0 \(before the first event\), a position from/],
      ['from=0&to=0', /^to: must be a position from/],
      [`from=${from}&to=999999999999`, /^to: must be a position from/],
      [`from=${from}`, /^to: /],
      [`from=${from}&to=${to}&resource=x`, /^resource: /],
      [`from=${from}&to=${to}&id=x`, /^id: /],
      [`from=${from}&to=${to}&cursor=x-1`, /^cursor: /],
    ] as const) {
      const { status, body } = await ask('GET', `/api/history/diff?${query}`);
      expect(`${status} ${body.error}`, query).to.match(new RegExp(`^400 ${reason.source.slice(1)}`));
    }
  });

  it('match the responses that were given at that time', async () => {
    await ask('POST', '/api/auth/users', {
      username: 'ann',
      password: 'a long enough password',
      display_name: 'Ann',
      role: 'viewer',
    });
    const [create, task] = commands as [(typeof commands)[0], (typeof commands)[0]];
    for (let n = 0; n < 4; n++) {
      await create(n);
      await task(n);
    }
    const agentKey = (await ask('POST', `/api/agents/${ids.agents[0]}/keys`, { name: 'own', scopes: ['viewer'] })).body
      .api_key;
    expect(agentKey).to.be.a('string');
    // Not the global key, each use of which is an event.
    const cookie = cookieOf(await ask('POST', '/api/auth/login', TEST_ADMIN));
    const callers: readonly { readonly as: Record<string, string>; readonly asked: readonly string[] }[] = [
      { as: { cookie }, asked: ASKED },
      // Refusals are events.
      { as: { 'x-api-key': agentKey }, asked: OPEN },
    ];
    await ask('POST', '/api/super/tenants', { slug: 'past', display_name: 'Past', gateway_port: 2_000 });
    const recorded: Recorded[] = [];
    const steps = fc.sample(
      fc.tuple(
        fc.oneof(fc.integer({ min: 1, max: 9 }), fc.nat({ max: commands.length - 1 })),
        fc.nat({ max: 100_000 }),
      ),
      {
        numRuns: 120,
        seed: Number(process.env.SEED ?? 7),
      },
    );
    const round = runs(60, 12);
    for (const [step, [which, n]] of steps.entries()) {
      await commands[which]?.(n);
      if (step % round !== round - 1) continue;
      const stood = clock;
      for (const { as, asked } of callers)
        for (const group of inGroups(urls(asked))) recorded.push(...(await record(group, as)));
      clock = stood;
    }
    clock += 3 * 86_400_000;
    expect(recorded.length).to.be.above(250);
    const responded = new Set(recorded.map(({ url }) => url.replace(/\?.*/, '').replace(/\/\d+/, '/{id}')));
    expect(
      ASKED.filter((path) => !responded.has(path)),
      'routes in need of a form',
    ).to.deep.equal([]);
    const bodies = new Map<string, Set<string>>();
    for (const { url, body } of recorded) bodies.set(url, (bodies.get(url) ?? new Set()).add(body));
    const changed = [...bodies.values()].filter((all) => all.size > 1);
    expect(changed.length, 'responses that change').to.be.above(40);
    const different: string[] = [];
    // What was deleted since is shown to admins only.
    let deleted = 0;
    for await (const page of world.service.core.eventLog.readAll())
      for (const { type, position } of page) if (type.endsWith('Deleted')) deleted = position;
    const comparable = recorded.filter(({ as, position }) => 'cookie' in as || position >= deleted);
    expect(
      comparable.some(({ as }) => !('cookie' in as)),
      'of callers who are not admins',
    ).to.equal(true);
    const compare = async ({ url, as, position, status, body }: Recorded) => {
      const past = await get(`${url}${url.includes('?') ? '&' : '?'}as_of=${position}`, as);
      expect(Number(past.headers['x-signalbox-as-of']), `${url}: ${past.body}`).to.equal(position);
      if (past.status !== status || past.body !== body) different.push(`${url} at ${position}:\n${body}\n${past.body}`);
    };
    for (const group of inGroups(comparable)) await Promise.all(group.map(compare));
    expect(different.length, different.slice(0, 4).join('\n')).to.equal(0);
  });
});
