/**
 * A key of an agent that reads as much as it can, over twelve connections: large records, lists of them, many small
 * responses, reports, the past, the log, exports and MCP tools. A reader in another tenant gets all its responses, and not
 * much later than before. Rate limits are on.
 *
 * It measures time, so it runs with TEST_RUNS=many only, as in CI. READS_SECONDS: how long each attack takes, 3 by default. READS_REPORT=1 prints what was measured.
 */
import { rm } from 'node:fs/promises';
import { expect } from 'chai';
import { closing } from '../support/fixture.ts';
import { needs, needsServer } from '../support/needs.ts';
import { type Asked, startReads } from '../support/reads-load.ts';
import { bodyOf, call, freshDatabase } from '../support/service.ts';
import { KEY, type ServiceProcess, startProcess } from '../support/service-process.ts';
import { dataDirectory } from '../support/template.ts';
import { cookieOf, PASSWORD } from '../support/worlds/auth.ts';

const CONNECTIONS = 12;
const SECONDS = Number(process.env.READS_SECONDS ?? 3);
/** Large records of each kind; a page of them is larger than a page may be. */
const LARGE = 25;
/** Where a reader may wait, milliseconds: for a response, and for the main thread alone. */
const MOST = { response: 200, hold: 200 };

const range = (count: number) => Array.from({ length: count }, (_, n) => n);
const LINE = 'It says: "look at this, and say what you see" (see https://example.org/a?b=c).\n';
const textOf = (length: number) => LINE.repeat(Math.ceil(length / LINE.length)).slice(0, length);
/** Many texts, in each of which masking has to look for several kinds of credentials. */
const CONFIG = Object.fromEntries(
  range(1_500).map((n) => [`setting_${n}`, `https://host-${n}.example.org/path?a=none&n=${n} token: x${n} [] {} = :`]),
);

type Ask = (method: string, path: string, body?: unknown) => ReturnType<typeof bodyOf>;
const asking =
  (service: Pick<ServiceProcess, 'url'>, headers: Record<string, string>): Ask =>
  async (method, path, body) =>
    bodyOf(await call(service, method, path, body, { 'x-api-key': '', ...headers }), 200, 201);
const each = async (count: number, make: (n: number) => Promise<unknown>) => {
  for (const n of range(Math.ceil(count / 10))) await Promise.all(range(10).map((m) => make(n * 10 + m)));
};

const TOOLS_LIST = { jsonrpc: '2.0', id: 1, method: 'tools/list' };

/** What a key reads. */
interface Attack {
  readonly key: string;
  readonly reads: readonly Asked[];
}

interface Filled {
  /** The reader's session, and what it reads. */
  readonly cookie: string;
  readonly paths: readonly string[];
  readonly attacks: Readonly<Record<string, Attack>>;
}

/** Makes a tenant with small records, the reader's, and large records of the default tenant. */
async function fill(service: ServiceProcess): Promise<Filled> {
  const house = asking(service, { 'x-api-key': KEY });
  const { tenant } = await house('POST', '/api/super/tenants', {
    slug: 'acme',
    display_name: 'Acme',
    gateway_port: 2_000,
  });
  const amy = { username: 'amy', display_name: 'Amy', password: PASSWORD, role: 'admin' };
  await house('POST', '/api/auth/users', { ...amy, workspace_id: tenant.workspace_id });
  const signedIn = await call(service, 'POST', '/api/auth/login', amy, { 'x-api-key': '' });
  const cookie = cookieOf(signedIn);
  const reader = asking(service, { cookie });
  const paths = ['/api/agents?limit=50', '/api/tasks?limit=50', '/api/activities?limit=50', '/api/chat/conversations'];
  await each(20, async (n) => {
    const { agent } = await reader('POST', '/api/agents', { name: `a${n}`, role: 'coder', config: { model: 'm' } });
    const { task } = await reader('POST', '/api/tasks', { title: `Task ${n}`, description: LINE });
    paths.push(`/api/agents/${agent.id}`, `/api/tasks/${task.id}`);
  });

  const { agent } = await house('POST', '/api/agents', { name: 'eve', role: 'coder' });
  const keyOf = async (scope: string): Promise<string> =>
    (await house('POST', `/api/agents/${agent.id}/keys`, { name: scope, scopes: [scope] })).api_key;
  const [key, admin] = [await keyOf('operator'), await keyOf('admin')];
  const eve = asking(service, { 'x-api-key': key });
  const { task: commented } = await eve('POST', '/api/tasks', { title: 'commented', assigned_to: 'eve' });
  const records: string[] = [];
  await each(LARGE, async (n) => {
    const task = { title: `t${n}`, assigned_to: 'eve', metadata: { text: textOf(180_000) } };
    records.push(`/api/tasks/${(await eve('POST', '/api/tasks', task)).task.id}`);
    const other = { name: `e${n}`, role: 'coder', config: CONFIG, soul_content: textOf(49_000) };
    records.push(`/api/agents/${(await house('POST', '/api/agents', other)).agent.id}`);
    await house('POST', '/api/chat/messages', { content: textOf(49_000), conversation_id: 'all' });
    await house('POST', '/api/agents/message', { from: `e${n}`, to: 'eve', content: textOf(49_000) });
    await house('POST', `/api/tasks/${commented.id}/comments`, { content: textOf(99_000) });
    await house('POST', `/api/tasks/${commented.id}/comments`, { content: textOf(99_000) });
  });
  for (const n of range(12)) await eve('PUT', `/api/tasks/${commented.id}`, { metadata: { n, text: textOf(180_000) } });
  await each(300, (n) => eve('POST', '/api/tasks', { title: `s${n}`, metadata: { text: textOf(3_000) } }));
  const { headers } = await call(service, 'GET', '/api/tasks?limit=1', undefined, { 'x-api-key': KEY });
  const position = headers.get('x-signalbox-position');
  const reports = (n: number): Asked[] => [
    ...[`/api/agents/${agent.id}/attribution?hours=${n + 1}`, `/api/agents/${agent.id}/diagnostics?hours=${n + 1}`],
    ...['/api/standup', '/api/workload', '/api/tokens?action=stats', '/api/tasks/outcomes', '/api/search?q=look'],
    ...[`/api/tasks?limit=5&offset=${n}&as_of=${position}`, `/api/agents?limit=2&offset=${n}&as_of=${position}`],
  ];
  const large = (n: number): Asked[] => [
    ...records,
    ...[`/api/tasks?limit=200&offset=${300 + n}`, `/api/agents?limit=200&offset=${n}`],
    ...[`/api/agents/comms?limit=200&offset=${n}`, `/api/chat/messages?limit=200&offset=${n}&conversation_id=all`],
    ...[`/api/projects/1/tasks?limit=200&offset=${n}`, `/api/tasks?limit=200&sort=updated_at&offset=${300 + n}`],
    `/api/tasks/${commented.id}?include=history&history_limit=100&history_before=${1_000 + n}`,
    ...[`/api/tasks/${commented.id}/comments`, `/api/notifications?recipient=eve&limit=200&offset=${n}`],
  ];
  const small = (n: number): Asked[] => [
    ...[`/api/tasks?limit=15&offset=${n}`, `/api/tasks?limit=14&sort=priority&offset=${n}`],
    ...[`/api/activities?limit=30&offset=${n}`, `/api/activities?limit=20&since=1&offset=${n}`],
  ];
  const log = (n: number): Asked[] => [
    ...[`/api/history/events?limit=200&type=${n % 2 ? 'TaskCreated' : 'AgentRegistered'}`, '/api/history/timeline'],
    ...[`/api/history/diff?from=${n}&to=${position}&limit=200`, `/api/audit?limit=200&offset=${n}`],
    ...['/api/export?type=all', '/api/events?since=0'],
  ];
  const tools = (n: number): Asked[] => [
    { tool: 'list_tasks', arguments: { limit: 200, offset: 300 + n, full_texts: true } },
    { tool: 'list_agents', arguments: { limit: 200, offset: n, full_texts: true } },
    { tool: 'list_comments', arguments: { id: commented.id, full_texts: true } },
  ];
  return {
    cookie,
    paths,
    attacks: {
      'large responses': { key, reads: range(LARGE).flatMap(large) },
      'small responses and reports': { key, reads: range(LARGE).flatMap((n) => [...small(n), ...reports(n)]) },
      'the log, exports and tools': { key: admin, reads: range(LARGE).flatMap((n) => [...log(n), ...tools(n)]) },
    },
  };
}

const quantile = (sorted: readonly number[], share: number) => sorted[Math.floor(sorted.length * share)] as number;

/** Reads one after the other. Times in milliseconds. */
async function readFor(service: ServiceProcess, seconds: number, { cookie, paths }: Pick<Filled, 'cookie' | 'paths'>) {
  const times: number[] = [];
  const statuses = new Set<number>();
  const headers = { 'x-api-key': '', 'cache-control': 'no-cache', cookie };
  const end = performance.now() + seconds * 1_000;
  for (let n = 0; performance.now() < end; n++) {
    const begun = performance.now();
    statuses.add((await call(service, 'GET', paths[n % paths.length] as string, undefined, headers)).status);
    times.push(performance.now() - begun);
  }
  times.sort((a, b) => a - b);
  return { statuses: [...statuses], count: times.length, p50: quantile(times, 0.5), p99: quantile(times, 0.99) };
}

/** The longest time since the last call in which the main thread handled one thing only, milliseconds. */
async function longestHold(service: ServiceProcess): Promise<number> {
  const { body } = await call(service, 'GET', '/metrics', undefined, { 'x-api-key': KEY });
  return Number(/^nodejs_eventloop_lag_max_seconds (\S+)/m.exec(body as string)?.[1]) * 1_000;
}

/** Attacks a service that was just started. @returns what is too slow; undefined: nothing */
async function attack(service: ServiceProcess, name: string, filled: Filled): Promise<string | undefined> {
  const { key, reads } = filled.attacks[name] as Attack;
  await readFor(service, 1, filled);
  // Loads the modules for tools.
  await call(service, 'POST', '/mcp', TOOLS_LIST, { 'x-api-key': key, accept: 'application/json, text/event-stream' });
  await longestHold(service);
  const before = await readFor(service, 1, filled);
  const idle = await longestHold(service);
  const load = startReads({ url: service.url, key, reads, connections: CONNECTIONS });
  const during = await readFor(service, SECONDS, filled);
  const hold = await longestHold(service);
  const { counts, bytes } = await load.stop();
  if (process.env.READS_REPORT) console.log(name, { before, during, idle, hold, mb: bytes / 1e6, counts });
  expect(during.statuses, `${name}: statuses of the reader`).to.deep.equal([200]);
  const statuses = new Set(Object.values(counts).flatMap((one) => Object.keys(one)));
  expect(['200', '429'], `${name}: ${JSON.stringify(counts)}`).to.include.members([...statuses]);
  const most = { p99: Math.max(MOST.response, 8 * before.p99), hold: Math.max(MOST.hold, 8 * idle) };
  return during.p99 > most.p99 || hold > most.hold
    ? `${name}: ${JSON.stringify({ p99: during.p99, hold, most, before, idle })}`
    : undefined;
}

async function attacked(env: Record<string, string>): Promise<void> {
  const directory = await dataDirectory();
  try {
    const seeding = await startProcess(directory, env);
    let filled: Awaited<ReturnType<typeof fill>>;
    try {
      filled = await fill(seeding);
    } finally {
      await seeding.stop();
    }
    for (const name of Object.keys(filled.attacks)) {
      // Other tests run at the same time and take the processor away; three attempts in a row do not fail for that reason.
      const slow: string[] = [];
      for (let found: string | undefined = ''; found !== undefined; ) {
        await using service = closing(await startProcess(directory, { ...env, MC_DISABLE_RATE_LIMIT: '0' }));
        found = await attack(service, name, filled);
        if (found) slow.push(found);
        expect(slow, slow.join('\n')).to.have.length.below(3);
      }
    }
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

describe('reads of one key', function () {
  this.timeout(240_000);
  const { SERVICE_NODE_ARGS } = process.env;
  // Other tests turn optimisation off, because their processes end soon.
  before(function () {
    needs('TEST_RUNS=many', process.env.TEST_RUNS === 'many', this);
    process.env.SERVICE_NODE_ARGS = '--no-warnings';
  });
  after(() => {
    process.env.SERVICE_NODE_ARGS = SERVICE_NODE_ARGS;
    if (SERVICE_NODE_ARGS === undefined) delete process.env.SERVICE_NODE_ARGS;
  });

  it('delay a reader in another tenant little, on the embedded default', () => attacked({}));

  it('delay a reader in another tenant little, on PostgreSQL', async function () {
    needsServer('TEST_DATABASE_URL', this);
    await using fresh = closing(await freshDatabase());
    await attacked({ DATABASE_URL: fresh.url });
  });
});
