/**
 * A response is one snapshot: under 16 writers its parts agree with each other, and it is what `as_of` its position gives
 * afterwards.
 */
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import type { AgentCostsResponse } from '../../shared/contract/tokens/usage.ts';
import { runs } from '../support/runs.ts';
import { call, send, startTestService, type TestService } from '../support/service.ts';

const WRITERS = 16;
/** Reads of each URL. */
const ROUNDS = runs(3, 8);

/** Responses from one and from several statements and read models. */
const URLS = [
  '/api/tokens?action=agent-costs',
  '/api/tokens?action=list&limit=200',
  '/api/tokens?action=stats&timeframe=all',
  '/api/tokens?action=trends',
  '/api/tokens/by-agent?days=1',
  '/api/agents?limit=200',
  '/api/agents/1',
  '/api/agents/1/diagnostics?privileged=1',
  '/api/agents/1/attribution?privileged=1',
  '/api/agents/comms',
  '/api/tasks?limit=100',
  '/api/tasks/1',
  '/api/tasks/1/comments',
  '/api/tasks/outcomes',
  '/api/activities?limit=100',
  '/api/activities?stats=true',
  '/api/audit?limit=50',
  '/api/chat/messages?limit=50',
  '/api/chat/conversations',
  '/api/mentions?q=a',
  '/api/notifications?recipient=ann',
  '/api/search?q=task',
  '/api/projects',
];

interface Seen {
  readonly url: string;
  readonly position: number;
  readonly body: string;
}

describe('responses under writers', function () {
  this.timeout(120_000);
  const realNow = Date.now;
  let world: TestService;
  let clock = 0;
  const seen: Seen[] = [];

  const get = async (url: string) => {
    const response = await send(world, 'GET', url, { 'x-api-key': world.adminKey });
    return { status: response.statusCode, headers: response.headers, body: await text(response) };
  };
  const ask = (method: string, path: string, body: unknown) => call(world, method, path, body);

  /** One change, by the n-th writer in its turn. */
  async function write(n: number, turn: number): Promise<void> {
    const kinds = [
      () =>
        ask('POST', '/api/tokens', {
          model: 'claude-3-opus',
          sessionId: `agent-${(n % 4) + 1}:s${turn}`,
          inputTokens: 100 + turn,
          outputTokens: 7,
        }),
      () => ask('POST', '/api/tasks', { title: `task ${n} ${turn}`, assigned_to: `agent-${(n % 4) + 1}` }),
      () => ask('PUT', `/api/agents/${(n % 4) + 1}`, { status: ['busy', 'idle'][turn % 2] }),
      () => ask('POST', '/api/tasks/1/comments', { content: `comment ${n} ${turn} for @ann` }),
      () => ask('POST', '/api/chat/messages', { from: 'admin', to: `agent-${(n % 4) + 1}`, content: `to ${turn}` }),
      () => ask('PUT', '/api/tasks/1', { priority: ['low', 'high'][turn % 2], description: `${n} ${turn}` }),
    ];
    const { status } = await (kinds[(n + turn) % kinds.length] as (typeof kinds)[0])();
    expect(status).to.be.below(500);
  }

  before(async () => {
    clock = realNow();
    Date.now = () => clock;
    world = await startTestService();
    await ask('POST', '/api/auth/users', { username: 'ann', password: 'a long enough password', role: 'operator' });
    for (let n = 1; n <= 4; n++) await ask('POST', '/api/agents', { name: `agent-${n}`, role: 'coder' });
    await ask('POST', '/api/tasks', { title: 'first task' });
    let isOver = false;
    const writers = Array.from({ length: WRITERS }, async (_, n) => {
      for (let turn = 0; !isOver; turn++) await write(n, turn);
    });
    for (let round = 0; round < ROUNDS; round++) {
      await Promise.all(
        URLS.map(async (url) => {
          const { status, headers, body } = await get(url);
          expect(status, `${url} ${body}`).to.equal(200);
          const position = Number(headers['x-signalbox-position']);
          expect(position, `${url} names its position`).to.be.above(0);
          seen.push({ url, position, body });
        }),
      );
    }
    isOver = true;
    await Promise.all(writers);
  });
  after(async () => {
    Date.now = realNow;
    await world?.close();
  });

  const of = (url: string) => seen.filter((one) => one.url.startsWith(url)).map(({ body }) => JSON.parse(body));

  it('have a time line that sums to its totals', () => {
    for (const { agents } of of('/api/tokens?action=agent-costs'))
      for (const { stats, timeline } of Object.values<AgentCostsResponse['agents'][string]>(agents))
        expect(timeline.reduce((sum, { tokens }) => sum + tokens, 0)).to.equal(stats.totalTokens);
  });
  it('have as many rows as their total says', () => {
    for (const { usage, total } of of('/api/tokens?action=list')) expect(usage).to.have.length(Math.min(100, total));
    for (const { agents, total } of of('/api/agents?')) expect(agents).to.have.length(Math.min(200, total));
    for (const { tasks, total } of of('/api/tasks?')) expect(tasks).to.have.length(Math.min(100, total));
  });
  it('are what as_of their position gives', async () => {
    const differing: string[] = [];
    for (const { url, position, body } of seen) {
      const past = await get(`${url}${url.includes('?') ? '&' : '?'}as_of=${position}`);
      if (past.body !== body)
        differing.push(`${url} at ${position}\n  was ${body.slice(0, 2_000)}\n  is  ${past.body.slice(0, 2_000)}`);
    }
    if (process.env.SNAPSHOTS) console.log(`${differing.length} of ${seen.length}\n${differing.join('\n')}`);
    expect(differing.map((one) => one.split('\n')[0])).to.deep.equal([]);
  });

  it('name their position for the log, exports and backups', async () => {
    const { events } = JSON.parse((await get('/api/history/events?limit=1')).body);
    for (const url of [
      '/api/history/events?limit=5',
      `/api/history/events/${events[0].id}`,
      `/api/history/causes/${events[0].id}`,
      '/api/history/timeline?bins=2',
      `/api/history/diff?from=0&to=${events[0].position}`,
      '/api/export?type=tasks&format=csv',
      '/api/tokens?action=export&format=csv',
    ]) {
      const { status, headers } = await get(url);
      expect([status, Number(headers['x-signalbox-position']) > 0], url).to.deep.equal([200, true]);
    }
    const { headers } = await get('/api/backup');
    expect(headers).not.to.have.property('x-signalbox-position');
    expect(Number(headers['x-signalbox-position-at-least'])).to.be.above(0);
  });
  it('of a time show the last event recorded by then, after the clock was set back', async () => {
    const now = clock;
    clock = now + 3_600_000 * 24;
    await ask('POST', '/api/tasks', { title: 'by a wrong clock' });
    clock = now + 60_000;
    await ask('POST', '/api/tasks', { title: 'by the right clock' });
    clock = now + 120_000;
    const at = new Date(now + 60_000).toISOString();
    const past = await get(`/api/tasks?limit=200&as_of=${at}`);
    expect(past.status, past.body).to.equal(200);
    const { tasks } = JSON.parse(past.body);
    expect(tasks.map(({ title }: { title: string }) => title)).to.include('by the right clock');
    const { events } = JSON.parse(
      (await get(`/api/history/events?type=TaskCreated&since=${new Date(now + 30_000).toISOString()}&until=${at}`))
        .body,
    );
    expect(events).to.have.length(1);
  });
});
