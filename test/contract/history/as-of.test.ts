/**
 * Responses as of a position are those that the service gave at the time: every GET with a past is asked again and again
 * while random commands run, and once more afterwards, as of each of these positions.
 */
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import fc from 'fast-check';
import { hasPast } from '../../../api/http/route.ts';
import { routes } from '../../../api/routes/index.ts';
import { writeHistory } from '../../support/history.ts';
import { call, type Reply, send, startTestService, TEST_ADMIN, type TestService } from '../../support/service.ts';
import { cookieOf } from '../../support/worlds/auth.ts';

const realNow = Date.now;
/** The clock of the service. */
let clock = 0;

/** Each route with a past, in the forms in which it is asked. Braces are ids that commands have made. */
const ASKED: Readonly<Record<string, readonly string[]>> = {
  '/api/auth/users': [''],
  '/api/auth/access-requests': [''],
  '/api/tokens/rotate': [''],
  '/api/agents': ['', '?limit=3&offset=1', '?status=busy', '?show_hidden=true', '?role=coder'],
  '/api/agents/{id}': [''],
  '/api/agents/{id}/diagnostics': ['', '?hours=1'],
  '/api/agents/{id}/attribution': ['?privileged=1', '?hours=2&privileged=1&evidence=1'],
  '/api/agents/{id}/heartbeat': [''],
  '/api/agents/{id}/memory': [''],
  '/api/agents/{id}/soul': [''],
  '/api/agents/comms': ['', '?limit=2'],
  '/api/agents/sync': [''],
  '/api/chat/conversations': [''],
  '/api/chat/messages': ['', '?limit=2&offset=1'],
  '/api/chat/messages/{id}': [''],
  '/api/connect': [''],
  '/api/claude/sessions': [''],
  '/api/chat/session-prefs': [''],
  '/api/projects': ['', '?includeArchived=1'],
  '/api/projects/{id}': [''],
  '/api/projects/{id}/tasks': [''],
  '/api/projects/{id}/agents': [''],
  '/api/mentions': ['?q=a'],
  '/api/tasks/outcomes': ['', '?timeframe=all'],
  '/api/tasks/regression': ['?beta_start=1700000000'],
  '/api/workflows': [''],
  '/api/pipelines': [''],
  '/api/pipelines/run': [''],
  '/api/tasks': ['', '?status=in_progress', '?priority=high&sort=updated_at&order=asc', '?limit=2&offset=1'],
  '/api/tasks/{id}': ['', '?include=history&history_limit=2'],
  '/api/tasks/{id}/comments': [''],
  '/api/tasks/{id}/branch': [''],
  '/api/quality-review': ['?taskIds=1,2,3', '?taskId=1'],
  '/api/alerts': [''],
  '/api/tokens': [
    '?action=list',
    '?action=stats&timeframe=day',
    '?action=trends',
    '?action=agent-costs',
    '?action=stats&timeframe=all',
  ],
  '/api/tokens/by-agent': ['', '?days=1'],
  '/api/tokens/prices': [''],
  '/api/gateway-config': [''],
  '/api/gateways': [''],
  '/api/gateways/health/history': [''],
  '/api/exec-approvals': ['?action=allowlist'],
  '/api/cron': ['', '?action=logs'],
  '/api/cleanup': [''],
  '/api/settings': [''],
  '/api/super/tenants': [''],
  '/api/super/provision-jobs': [''],
  '/api/super/provision-jobs/{id}': [''],
  '/api/workspaces': [''],
  '/api/workspaces/{id}': [''],
  '/api/activities': ['', '?stats=true&hours=2', '?type=task_created', '?limit=3&offset=2'],
  '/api/audit': ['', '?limit=3'],
  '/api/notifications': ['?recipient=admin', '?recipient=ann'],
  '/api/notifications/deliver': [''],
  '/api/search': ['?q=report', '?q=task&limit=3'],
  '/api/standup': [''],
  '/api/workload': [''],
};

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
    },
    async (n) => {
      const { body } = await ask('POST', '/api/tasks', {
        title: `task ${n} reports`,
        description: 'a text @ann',
        priority: pick(['low', 'medium', 'high'], n),
        ...(n % 2 === 0 && { assigned_to: `agent-${n % 7}-0` }),
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
    await world.service.incidents?.drain();
    for await (const [last] of world.service.core.store.log.readAll({ direction: 'backwards', limit: 1 }))
      if (last) return { position: last.position, at: Number(last.meta.at) };
    throw new Error('the log has no events');
  };

  const urls = (paths: readonly string[]): string[] =>
    paths.flatMap((path) => {
      const forms = ASKED[path] ?? [];
      const owners = path.startsWith('/api/agents/') ? ids.agents : path.startsWith('/api/tasks/') ? ids.tasks : [1, 2];
      const some = path.includes('{id}')
        ? [owners[0], owners.at(-1), owners.at(-3)].filter((id) => id !== undefined)
        : [0];
      return some.flatMap((id) => forms.map((form) => path.replace('{id}', String(id)) + form));
    });

  it('asks every route that has a past', () => {
    const all = routes.filter(hasPast).map(({ path }) => path);
    // An export is recorded: see below.
    expect(all.filter((path) => path !== '/api/export').toSorted()).to.deep.equal(Object.keys(ASKED).toSorted());
  });

  it('are those that were given then', async () => {
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
      { as: { cookie }, asked: Object.keys(ASKED) },
      // Refusals are events.
      { as: { 'x-api-key': agentKey }, asked: OPEN },
    ];
    const { core } = world.service;
    const recorded: Recorded[] = [];
    const steps = fc.sample(fc.tuple(fc.nat({ max: commands.length - 1 }), fc.nat({ max: 100_000 })), {
      numRuns: 90,
      seed: Number(process.env.SEED ?? 7),
    });
    for (const [step, [which, n]] of steps.entries()) {
      await commands[which]?.(n);
      if (step % 9 !== 8) continue;
      const { position, at } = await settled();
      const stood = clock;
      clock = at;
      for (const { as, asked } of callers) {
        for (const url of urls(asked)) {
          const { status, body, headers } = await get(url, as);
          expect(status, `${url} ${body}`).to.be.below(500);
          if (status >= 400) continue;
          expect(Number(headers['x-signalbox-position']), url).to.equal(position);
          recorded.push({ url, as, position, status, body });
        }
      }
      clock = stood;
      expect(await core.eventLog.head(), 'nothing else has happened').to.equal(position);
    }
    clock += 3 * 86_400_000;
    expect(recorded.length).to.be.above(500);
    const different: string[] = [];
    for (const { url, as, position, status, body } of recorded) {
      const past = await get(`${url}${url.includes('?') ? '&' : '?'}as_of=${position}`, as);
      expect(Number(past.headers['x-signalbox-as-of']), `${url}: ${past.body}`).to.equal(position);
      if (past.status !== status || past.body !== body) different.push(`${url} at ${position}:\n${body}\n${past.body}`);
    }
    expect(different.length, different.slice(0, 4).join('\n')).to.equal(0);
  });
});
