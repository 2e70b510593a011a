/** Activities, audit, the event stream, probes, idempotency, bad input: through real HTTP. */
import { request } from 'node:http';
import { connect } from 'node:net';
import { gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { listActivities } from '../../../queries/monitoring/activities.ts';
import { agentMemoryCleared } from '../../../shared/events/agents/agents.ts';
import { call, startTestService, TEST_ADMIN, TEST_KEY, type TestService } from '../../support/service.ts';
import { openStream } from '../../support/stream.ts';
import { until } from '../../support/until.ts';
import { testOrigin } from '../../support/world.ts';

describe('monitoring', () => {
  let base: TestService;
  before(async () => {
    base = await startTestService();
  });
  after(() => base.close());

  const agent = async (name: string, headers = {}) =>
    (await call(base, 'POST', '/api/agents', { name, role: 'coder' }, headers)).body.agent as { id: number };

  describe('GET /api/activities', () => {
    before(async () => {
      for (let n = 0; n < 12; n++) {
        const { id } = await agent(`act-${n}`);
        await call(base, 'POST', `/api/agents/${id}/heartbeat`, {});
      }
    });

    it('lists newest first, with metadata and the entity as it is now', async () => {
      const { status, body } = await call(base, 'GET', '/api/activities');
      expect(status).to.equal(200);
      const [newest] = body.activities;
      expect(newest).to.include({ type: 'agent_heartbeat', entity_type: 'agent', actor: 'act-11', workspace_id: 1 });
      expect(newest.metadata).to.deep.equal({ workItemsCount: 0, workItemTypes: [] });
      expect(newest.data).to.deep.equal(newest.metadata);
      expect(newest.entity).to.include({ type: 'agent', name: 'act-11', status: 'idle' });
      expect(newest.created_at).to.be.closeTo(Date.now() / 1000, 60);
      expect(body.total).to.equal(36);
      expect(body.hasMore).to.equal(false);
    });

    it('filters by one type or several, actor, entity type; totals follow the filter', async () => {
      const totals = async (query: string) => {
        const { body } = await call(base, 'GET', `/api/activities?${query}&limit=500`);
        expect(body.activities).to.have.length(body.total);
        return body.total;
      };
      expect(await totals('type=agent_created')).to.equal(12);
      expect(await totals('type=agent_created,%20agent_heartbeat')).to.equal(24);
      expect(await totals('actor=act-3')).to.equal(2);
      expect(await totals('actor=act-3&type=agent_heartbeat')).to.equal(1);
      expect(await totals('entity_type=agent')).to.equal(36);
      expect(await totals('entity_type=task')).to.equal(0);
      expect(await totals(`since=${Math.floor(Date.now() / 1000) + 10}`)).to.equal(0);
      expect(await totals('since=1&type=agent_created')).to.equal(12);
    });

    it('pages through everything once, from either end, whatever the page size', async () => {
      const all = (await call(base, 'GET', '/api/activities?limit=500')).body.activities.map(
        (one: { id: number }) => one.id,
      );
      for (const limit of [1, 5, 7]) {
        const seen: number[] = [];
        for (let offset = 0; ; offset += limit) {
          const { body } = await call(base, 'GET', `/api/activities?limit=${limit}&offset=${offset}`);
          seen.push(...body.activities.map((one: { id: number }) => one.id));
          if (!body.hasMore) break;
        }
        expect(seen).to.deep.equal(all);
      }
      expect((await call(base, 'GET', '/api/activities?offset=100000')).body.activities).to.deep.equal([]);
    });

    it('pages deep: each page is the same part of the whole list, read from either end', async () => {
      const { commands, reads } = base.service.core;
      const workspace = 77;
      const ids: number[] = [];
      for (let n = 0; n < 5; n++) {
        const drafts = Array.from({ length: 481 }, () => agentMemoryCleared.draft({ agentId: 1, name: 'deep' }));
        const { events } = await commands.record(
          `agent-${workspace}-1`,
          { origin: { ...testOrigin, workspace } },
          drafts,
        );
        ids.unshift(...events.map((event) => event.meta.number).reverse());
      }
      const total = ids.length;
      expect(total).to.equal(2_405);
      for (const offset of [0, 998, 999, 1_000, 1_001, 1_195, 1_202, 1_203, 1_204, 2_000, 2_398, 2_404, 2_405, 9_000]) {
        for (const limit of [1, 7, 200]) {
          const query = { limit, offset, type: undefined, actor: undefined, entity_type: undefined, since: undefined };
          const page = await listActivities(reads, workspace, {
            ...query,
            stats: undefined,
            hours: undefined,
          } as never);
          expect(
            page.activities.map((one) => one.id),
            `${offset} ${limit}`,
          ).to.deep.equal(ids.slice(offset, offset + limit));
          expect(page).to.include({ total, hasMore: offset + limit < total });
        }
      }
    });

    it('clamps absurd paging and refuses what cannot be meant', async () => {
      const page = async (query: string) => {
        const { status, body } = await call(base, 'GET', `/api/activities?${query}`);
        expect(status, query).to.equal(200);
        return body.activities.map((one: { id: number }) => one.id) as number[];
      };
      const all = await page('limit=500');
      expect(all).to.have.length(36);
      // To 1, to the cap, or to the default of 50, of which there are 36.
      for (const query of ['limit=0', 'limit=-5', 'limit=1']) expect(await page(query), query).to.deep.equal([all[0]]);
      for (const query of [
        'limit=501',
        'limit=99999999999999999999',
        'limit=abc',
        'limit=1e9',
        'limit=2.5',
        'limit=',
      ]) {
        expect(await page(query), query).to.deep.equal(all);
      }
      for (const query of ['offset=-1', 'offset=x', 'offset=', 'offset=0']) {
        expect(await page(`${query}&limit=2`), query).to.deep.equal(all.slice(0, 2));
      }
      for (const query of ['offset=35', 'offset=036']) {
        expect(await page(`${query}&limit=2`), query).to.deep.equal(all.slice(Number(query.slice(7))));
      }
      for (const offset of ['1000000000', '99999999999999999999'])
        expect(await page(`offset=${offset}`)).to.deep.equal([]);
      // The list of audit entries says how it was clamped.
      for (const [query, limit, offset] of [
        ['limit=0&offset=-7', 1, 0],
        ['limit=100000', 10_000, 0],
        ['limit=x&offset=99999999999999999999', 100, 1_000_000_000],
      ] as const) {
        expect((await call(base, 'GET', `/api/audit?${query}`)).body, query).to.include({ limit, offset });
      }
      // Agents have a cap of 200; none of the others may be had beyond theirs either.
      for (const [query, limit] of [
        ['limit=0', 1],
        ['limit=201', 200],
        ['limit=many', 50],
      ] as const) {
        expect((await call(base, 'GET', `/api/agents?${query}`)).body, query).to.include({ limit });
      }
      for (const query of ['since=yesterday', 'type=a&type=b', 'stats&hours=0', 'stats&hours=abc']) {
        const { status, body } = await call(base, 'GET', `/api/activities?${query}`);
        expect(status, query).to.equal(400);
        expect(body.details[0]).to.match(/^\w+: ./);
      }
    });

    it('gives statistics with ?stats', async () => {
      const { body } = await call(base, 'GET', '/api/activities?stats&hours=2');
      expect(body.timeframe).to.equal('2 hours');
      expect(body.activityByType).to.deep.include({ type: 'agent_created', count: 12 });
      expect(body.topActors[0]).to.deep.equal({ actor: 'api', activity_count: 12 });
      expect(body.timeline.reduce((sum: number, hour: { count: number }) => sum + hour.count, 0)).to.equal(36);
      expect(body.timeline[0].hour).to.match(/^\d{4}-\d\d-\d\dT\d\d:00:00.000Z$/);
    });

    it('is answered from memory until something changes, with an ETag', async () => {
      const first = await call(base, 'GET', '/api/activities?limit=3');
      const etag = first.headers.get('etag') as string;
      const again = await call(base, 'GET', '/api/activities?limit=3', undefined, { 'if-none-match': etag });
      expect(again.status).to.equal(304);
      await agent('etag');
      const changed = await call(base, 'GET', '/api/activities?limit=3', undefined, { 'if-none-match': etag });
      expect(changed.status).to.equal(200);
      expect(changed.body.activities[0].metadata.name).to.equal('etag');
    });
  });

  describe('GET /api/audit', () => {
    it('tells who did and tried what, from where; denials too', async () => {
      await call(base, 'POST', '/api/auth/login', { username: 'nobody', password: 'wrong' }, { 'x-api-key': '' });
      const { id } = await agent('limited');
      const key = (await call(base, 'POST', `/api/agents/${id}/keys`, { name: 'viewer key' })).body.api_key;
      expect((await call(base, 'GET', '/api/audit', undefined, { 'x-api-key': key })).status).to.equal(403);
      const entries = async (query: string) => (await call(base, 'GET', `/api/audit?${query}`)).body;
      const failed = await entries('action=login_failed');
      expect(failed.entries[0]).to.include({ actor: 'nobody', ip_address: '127.0.0.1' });
      const denied = await until('the denial is recorded', async () => {
        const found = await entries('action=access_denied');
        return found.total > 0 ? found : undefined;
      });
      expect(denied.entries[0]).to.include({ actor: 'agent:limited', ip_address: '127.0.0.1' });
      expect((await entries('action=agent_key_issued')).entries[0].detail).to.include({ name: 'viewer key' });
      expect(JSON.stringify((await entries('limit=1000')).entries)).not.to.contain(key);
    });

    it('pages, filters by time, gives limit and offset back', async () => {
      const { body } = await call(base, 'GET', '/api/audit?limit=2&offset=1');
      expect(body).to.include({ limit: 2, offset: 1 });
      expect(body.entries).to.have.length(2);
      expect((await call(base, 'GET', '/api/audit?until=10')).body.total).to.equal(0);
      expect((await call(base, 'GET', '/api/audit?since=10')).body.total).to.equal(body.total);
    });
  });

  describe('GET /api/events', () => {
    const headers = { 'x-api-key': TEST_KEY };
    const names = (stream: { frames: { type: string; data: { name: string } }[] }) =>
      stream.frames.filter((frame) => frame.type === 'agent.created').map((frame) => frame.data.name);

    it('sends frames with id, workspace and milliseconds, and the headers of a stream', async () => {
      const stream = await openStream(`${base.url}/api/events`, headers);
      expect(stream.headers.get('content-type')).to.equal('text/event-stream');
      expect(stream.headers.get('cache-control')).to.equal('no-cache, no-transform');
      const { id } = await agent('streamed');
      await stream.until(() => stream.frames.length >= 2);
      const [created, activity] = stream.frames;
      expect(created?.type).to.equal('agent.created');
      expect(created?.data).to.include({ id, name: 'streamed', workspace_id: 1 });
      expect(activity?.type).to.equal('activity.created');
      expect(created?.timestamp).to.be.closeTo(Date.now(), 60_000);
      expect(created?.id).to.equal(`${activity?.id}.1`);
      stream.close();
    });

    it('resumes behind any id, between the frames of one event too, without gap or double', async () => {
      const stream = await openStream(`${base.url}/api/events`, headers);
      for (let n = 0; n < 6; n++) await agent(`resume-${n}`);
      await stream.until(() => stream.frames.length >= 12);
      stream.close();
      const ids = stream.frames.map((frame) => frame.id);
      for (let cut = 0; cut < 12; cut++) {
        const resumed = await openStream(`${base.url}/api/events`, { ...headers, 'last-event-id': ids[cut] as string });
        await resumed.until(() => resumed.frames.length >= 11 - cut);
        expect(resumed.frames.slice(0, 11 - cut).map((frame) => frame.id)).to.deep.equal(ids.slice(cut + 1));
        resumed.close();
      }
      const since = await openStream(`${base.url}/api/events?since=${ids[5]}`, headers);
      await since.until(() => since.frames.length >= 6);
      expect(since.frames[0]?.id).to.equal(ids[6]);
      since.close();
    });

    it('from the very beginning: everything that was ever streamed, then live', async () => {
      const stream = await openStream(`${base.url}/api/events?since=0&kind=agent.created`, headers);
      await stream.until(() => names(stream).includes('resume-5'));
      expect(names(stream)[0]).to.equal('act-0');
      await agent('after-all');
      await stream.until(() => names(stream).includes('after-all'));
      expect(new Set(names(stream)).size).to.equal(names(stream).length);
      expect(stream.frames.every((frame) => frame.type === 'agent.created')).to.equal(true);
      stream.close();
    });

    it('a client that does not read falls back to the log and loses nothing', async function () {
      this.timeout(60_000);
      const slow = await new Promise<import('node:http').IncomingMessage>((resolve, reject) => {
        const asked = request(`${base.url}/api/events?kind=chat.message`, { headers }, resolve);
        asked.on('error', reject);
        asked.end();
      });
      slow.pause();
      const { id } = await agent('talkative');
      const content = 'x'.repeat(20_000);
      const sent: number[] = [];
      for (let n = 0; n < 20; n++) {
        const answers = await Promise.all(
          Array.from({ length: 10 }, () =>
            call(base, 'POST', '/api/agents/message', { from: 'tester', to: 'talkative', content }),
          ),
        );
        sent.push(...answers.map((answer) => answer.body.id));
      }
      expect(id).to.be.greaterThan(0);
      let text = '';
      slow.setEncoding('utf8');
      slow.on('data', (chunk) => {
        text += chunk;
      });
      slow.resume();
      const received = () =>
        text.split('\n').filter((line) => line.startsWith('data: ') && line.includes('"chat.message"'));
      await until('all messages arrive', () => received().length >= sent.length, 40_000);
      const got = received().map((line) => JSON.parse(line.slice(6)).data.id);
      expect(got.sort((a, b) => a - b)).to.deep.equal(sent.sort((a, b) => a - b));
      slow.destroy();
    });

    it('refuses a cursor that is none of ours', async () => {
      expect((await call(base, 'GET', '/api/events?since=abc')).status).to.equal(400);
      expect((await call(base, 'GET', '/api/events', undefined, { 'last-event-id': '-3' })).status).to.equal(400);
    });

    it('refuses a cursor of another log, with a sentence that helps', async () => {
      const { eventLog } = base.service.core;
      const positions = new Set<number>();
      for await (const events of eventLog.readAll()) for (const event of events) positions.add(event.position);
      const head = await eventLog.head();
      const between = [head - 1, head - 2].filter((position) => !positions.has(position));
      for (const position of [head + 1_000_000_000, Number.MAX_SAFE_INTEGER, ...between]) {
        for (const id of [`${position}`, `${position}.1`]) {
          const answer = await call(base, 'GET', '/api/events', undefined, { 'last-event-id': id });
          expect(answer.status).to.equal(400);
          expect(answer.body).to.include({ code: 'UNKNOWN_EVENT_ID' });
          expect(answer.body.error).to.match(/^There is no frame .* in this log, .* connect without an id\.$/);
        }
        expect((await call(base, 'GET', `/api/events?since=${position}`)).status).to.equal(400);
      }
    });
  });

  describe('probes', () => {
    it('are public and say what they looked at', async () => {
      const none = { 'x-api-key': '' };
      expect((await call(base, 'GET', '/health/live', undefined, none)).body).to.deep.equal({ status: 'ok' });
      const ready = await call(base, 'GET', '/health/ready', undefined, none);
      expect(ready.status).to.equal(200);
      expect(ready.body.checks).to.include({ database: 'ok', 'projection agents': 'ok' });
      expect((await call(base, 'GET', '/api/health', undefined, none)).body).to.include({ status: 'ok', db: 'ok' });
    });

    it('tell positions and reasons to admins of the default tenant only', async () => {
      const anonymous = await call(base, 'GET', '/health/ready', undefined, { 'x-api-key': '' });
      expect(Object.values(anonymous.body.checks)).to.include('ok').and.not.include.members(['behind', 'stuck']);
      expect(JSON.stringify(anonymous.body)).not.to.match(/position/);
      expect(anonymous.body).not.to.have.property('details');
      const { id } = await agent('probing');
      const { body } = await call(base, 'POST', `/api/agents/${id}/keys`, { scopes: ['operator'] });
      const asAgent = await call(base, 'GET', '/health/ready', undefined, { 'x-api-key': body.api_key });
      expect(asAgent.body).to.deep.equal(anonymous.body);
      const asAdmin = await call(base, 'GET', '/health/ready');
      expect(asAdmin.body.details.event_log).to.match(/^position \d+$/);
    });

    it('metrics speak Prometheus and need a credential', async () => {
      expect((await call(base, 'GET', '/metrics', undefined, { 'x-api-key': '' })).status).to.equal(401);
      const { body } = await call(base, 'GET', '/metrics');
      expect(body).to.match(/^signalbox_projection_position\{projection="agents"\} \d+$/m);
      expect(body).to.match(
        /^signalbox_http_request_seconds_count\{method="GET",route="\/api\/activities",status="200"\} \d+$/m,
      );
    });
  });

  describe('Idempotency-Key', () => {
    const post = (key: string, body: unknown, path = '/api/agents') =>
      call(base, 'POST', path, body, { 'idempotency-key': key });

    it('gives the stored answer for the same key and body, 409 for another body', async () => {
      const body = { name: 'idem', role: 'coder' };
      const first = await post('key-1', body);
      expect(first.status).to.equal(201);
      const again = await post('key-1', body);
      expect(again.status).to.equal(201);
      expect(again.body).to.deep.equal(first.body);
      expect(again.headers.get('idempotency-replayed')).to.equal('true');
      const other = await post('key-1', { ...body, role: 'reviewer' });
      expect(other.status).to.equal(409);
      expect(other.body.code).to.equal('IDEMPOTENCY_KEY_REUSED');
      expect(
        (await call(base, 'GET', '/api/agents?role=coder&limit=200')).body.agents.filter(
          (one: { name: string }) => one.name === 'idem',
        ),
      ).to.have.length(1);
    });

    it('twenty at once run once', async () => {
      const answers = await Promise.all(
        Array.from({ length: 20 }, () => post('key-2', { name: 'idem-2', role: 'coder' })),
      );
      expect(new Set(answers.map((answer) => JSON.stringify(answer.body))).size).to.equal(1);
      expect(answers.every((answer) => answer.status === 201)).to.equal(true);
    });

    it('a refusal leaves the key free, a bad key is refused', async () => {
      expect((await post('key-3', { name: 'idem', role: 'coder' })).status).to.equal(409);
      expect((await post('key-3', { name: 'idem-3', role: 'coder' })).status).to.equal(201);
      expect((await post('key with spaces', { name: 'x', role: 'y' })).status).to.equal(400);
    });

    it('a key issued with it is given again, and stands nowhere in the database', async () => {
      const { id } = await agent('idem-keys');
      const first = await post('key-4', { name: 'k' }, `/api/agents/${id}/keys`);
      const again = await post('key-4', { name: 'k' }, `/api/agents/${id}/keys`);
      expect(again.body).to.deep.equal(first.body);
      const { rows } = await base.service.core.database.pool.query(
        'SELECT encode(box, $1) AS box FROM service.idempotency',
        ['escape'],
      );
      expect(rows.length).to.be.greaterThan(0);
      expect(JSON.stringify(rows)).not.to.contain(first.body.api_key);
    });
  });

  describe('bad input', () => {
    /** As `call`, with a body of bytes. */
    async function send(method: string, path: string, body: string | Buffer, headers: Record<string, string>) {
      const all = new Headers({ 'x-api-key': TEST_KEY, 'content-type': 'application/json', ...headers });
      if (headers['x-api-key'] === '') all.delete('x-api-key');
      const response = await fetch(`${base.url}${path}`, {
        method,
        headers: all,
        body: new Uint8Array(Buffer.from(body)),
      });
      return { status: response.status, body: (await response.json()) as { error: string } };
    }

    it('malformed JSON, wrong types, huge bodies, absurd ids: 4xx with a sentence that helps', async () => {
      const cases: [string, string, unknown, number, RegExp][] = [
        ['POST', '/api/agents', '{"name":', 400, /not valid JSON/],
        ['POST', '/api/agents', '', 400, /JSON body required/],
        ['POST', '/api/agents', [1, 2], 400, /^body: must be an object$/],
        ['POST', '/api/agents', 'null', 400, /^body: must be an object$/],
        ['POST', '/api/agents', { name: 5, role: 'coder' }, 400, /^name: must be a string$/],
        [
          'POST',
          '/api/agents',
          { name: 'x'.repeat(101), role: 'coder' },
          400,
          /^name: must have at most 100 characters$/,
        ],
        [
          'POST',
          '/api/agents',
          { name: 'big', role: 'x', config: { text: 'x'.repeat(3_000_000) } },
          413,
          /larger than 2 MB/,
        ],
        [
          'POST',
          '/api/agents',
          { name: 'big', role: 'x', config: { text: 'x'.repeat(1_500_000) } },
          400,
          /^config: must have at most 200000 characters/,
        ],
        ['GET', '/api/agents/99999999999999999999', undefined, 400, /^id: must be a positive whole number/],
        ['GET', '/api/agents/%E0%A4%A', undefined, 400, /percent-encoding/],
        ['POST', '/api/agents', { name: 'nul\u0000', role: 'x' }, 400, /./],
        ['POST', '/api/agents', { name: 'half\ud800', role: 'x' }, 400, /./],
        ['GET', '/api/activities?actor=%00', undefined, 400, /U\+0000/],
        ['DELETE', '/api/agents/0', undefined, 400, /^id: must be a positive whole number/],
        ['PATCH', '/api/agents', {}, 405, /is not supported here; use GET, POST, PUT/],
        ['GET', '/api/nothing', undefined, 404, /No such endpoint/],
      ];
      for (const [method, path, body, status, sentence] of cases) {
        const reply = await call(base, method, path, body);
        expect(reply.status, `${method} ${path} ${JSON.stringify(body)?.slice(0, 60)}`).to.equal(status);
        expect(reply.body.error, path).to.match(sentence);
      }
    });

    it('bodies that are not what their headers say, nested thousands of levels, packed bombs', async () => {
      const login = '{"username":"a","password":"b"}';
      const bomb = gzipSync(Buffer.alloc(200_000_000, ' '));
      const deep = `${'['.repeat(400_000)}${']'.repeat(400_000)}`;
      const cases: [string | Buffer, Record<string, string>, number, RegExp][] = [
        [bomb, { 'content-encoding': 'gzip' }, 413, /larger than 2 MB/],
        [deep, {}, 400, /nested more than 100 levels/],
        [login, { 'content-encoding': 'gzip' }, 400, /Content-Encoding \(gzip\)/],
        [login, { 'content-encoding': 'deflate' }, 400, /Content-Encoding \(deflate\)/],
        [login, { 'content-encoding': 'br' }, 400, /Content-Encoding \(br\)/],
        [gzipSync(login).subarray(0, -9), { 'content-encoding': 'gzip' }, 400, /Content-Encoding \(gzip\)/],
        [login, { 'content-encoding': 'compress' }, 415, /encoding "compress"/],
        [login, { 'content-type': 'application/json; charset=latin1' }, 415, /charset "LATIN1"/],
        [login, { 'content-type': 'application/json; charset=utf-99' }, 415, /charset "UTF-99"/],
        [login, { 'content-type': 'application/json; charset=utf-99', 'content-encoding': 'gzip' }, 415, /UTF-99/],
        [`{"config":${deep}}`, { 'idempotency-key': 'deep' }, 400, /^config\.0\..* nested more than 100 levels/],
      ];
      const before = process.memoryUsage().rss;
      let openCalls = 0;
      for (const [body, headers, status, sentence] of cases) {
        for (const path of ['/api/agents', '/api/adapters', '/api/agents/message']) {
          const reply = await send('POST', path, body, headers);
          expect(reply.status, `${path} ${JSON.stringify(headers)}`).to.equal(status);
          expect(reply.body.error).to.match(sentence);
          expect((await send('POST', path, body, { ...headers, 'x-api-key': '' })).status).to.equal(401);
        }
        // Anonymous callers are told the same where they are let in; five times a minute.
        if (openCalls++ >= 4) continue;
        const open = await send('POST', '/api/setup', body, { ...headers, 'x-api-key': '' });
        expect(open.status, `setup ${JSON.stringify(headers)}`).to.equal(status);
      }
      expect(process.memoryUsage().rss - before, 'the bomb was not unpacked').to.be.below(150_000_000);
    });

    it('numbers of any length', async () => {
      for (const digits of [
        '9'.repeat(12),
        '9'.repeat(13),
        '9'.repeat(16),
        '9'.repeat(17),
        '9'.repeat(400),
        '-1',
        '1e9',
      ]) {
        for (const path of [
          `/api/activities?since=${digits}`,
          `/api/activities?limit=${digits}&offset=${digits}`,
          `/api/activities?stats=1&hours=${digits}`,
          `/api/audit?since=${digits}&until=${digits}`,
          `/api/agents/comms?since=${digits}`,
          `/api/agents/${digits}`,
          `/api/agents?limit=${digits}&offset=${digits}`,
        ])
          expect((await call(base, 'GET', path)).status, path).to.be.oneOf([200, 400, 404]);
        const { status } = await call(base, 'HEAD', `/api/events?since=${digits}`);
        expect(status, digits).to.be.oneOf([200, 400]);
        for (const [method, path, field] of [
          ['PUT', '/api/auth/users', 'id'],
          ['DELETE', '/api/auth/users', 'id'],
          ['POST', '/api/agents/probing/keys', 'expires_at'],
          ['POST', '/api/agents/probing/keys', 'expires_in_days'],
          ['DELETE', '/api/agents/probing/keys', 'key_id'],
        ])
          for (const value of [digits, Number(digits)]) {
            const reply = await call(base, method as string, path as string, { [field as string]: value });
            expect(reply.status, `${method} ${path} ${digits}`).to.be.below(500);
          }
      }
    });

    it('request targets that cannot be read', async () => {
      const { port } = new URL(base.url);
      const answerTo = async (target: string, method = 'GET') => {
        const socket = connect(Number(port), '127.0.0.1');
        socket.end(`${method} ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
        const text = (await socket.toArray()).join('');
        const [head = '', body = ''] = text.split('\r\n\r\n');
        return { status: Number(head.split(' ')[1]), json: /content-type: application\/json/i.test(head), body };
      };
      for (const target of ['http://[bad/x', 'http://', 'ftp://localhost/x', '*', 'http://a:b/']) {
        const { status, json, body } = await answerTo(target);
        expect([status, json], target).to.deep.equal([400, true]);
        expect(JSON.parse(body).error).to.match(/request target/);
      }
      expect(await answerTo('http://localhost/health/live')).to.deep.include({ status: 200, body: '{"status":"ok"}' });
      for (const target of ['//x', '//[bad/x', '/%', '/api/%ff', '/\\', '/a|b?c=%%%', '/api/agents/%00'])
        expect((await answerTo(target)).status, target).to.be.oneOf([400, 401, 404]);
    });

    it('HEAD is answered as GET without a body, the stream too', async () => {
      for (const path of ['/api/events', '/api/agents', '/health/live', '/api/docs', '/docs']) {
        const head = await call(base, 'HEAD', path);
        expect([head.status, head.body], path).to.deep.equal([200, '']);
      }
      expect((await call(base, 'HEAD', '/api/events')).headers.get('content-type')).to.match(/^text\/event-stream/);
      expect((await call(base, 'HEAD', '/api/events', undefined, { 'x-api-key': '' })).status).to.equal(401);
      expect((await call(base, 'HEAD', '/api/events?since=x')).status).to.equal(400);
    });

    it('answers may be kept only where they say so', async () => {
      const kept = async (method: string, path: string, body?: unknown) =>
        (await call(base, method, path, body)).headers.get('cache-control');
      expect(await kept('POST', '/api/auth/login', TEST_ADMIN)).to.equal('no-store');
      expect(await kept('POST', '/api/auth/login', { username: 'x', password: 'y' })).to.equal('no-store');
      expect(await kept('POST', '/api/agents/probing/keys', {})).to.equal('no-store');
      expect(await kept('GET', '/api/auth/me')).to.equal('no-store');
      expect(await kept('GET', '/api/nothing')).to.equal('no-store');
      expect(await kept('GET', '/api/agents')).to.equal('private, no-cache');
      expect(await kept('GET', '/api/docs')).to.equal('public, max-age=3600');
    });

    it('401 comes before 400 and 404', async () => {
      for (const [method, path] of [
        ['POST', '/api/agents'],
        ['GET', '/api/nothing'],
        ['GET', '/api/agents/1'],
      ] as const) {
        expect(
          (await call(base, method, path, method === 'POST' ? '{' : undefined, { 'x-api-key': '' })).status,
        ).to.equal(401);
      }
    });

    it('an Origin of another host is refused on writes, also on public ones', async () => {
      const reply = await call(
        base,
        'POST',
        '/api/auth/login',
        { username: 'a', password: 'b' },
        { origin: 'https://evil.example' },
      );
      expect(reply.status).to.equal(403);
      expect(reply.body.error).to.match(/CSRF/);
      const evil = { origin: 'https://evil.example' };
      for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'PROPFIND']) {
        const { status, body } = await call(base, method, '/api/auth/me', method === 'PATCH' ? {} : undefined, evil);
        expect([status, body.error], method).to.deep.equal([403, reply.body.error]);
      }
      for (const method of ['GET', 'HEAD', 'OPTIONS'])
        expect((await call(base, method, '/api/auth/me', undefined, evil)).status, method).not.to.equal(403);
      const own = await call(base, 'POST', '/api/agents', { name: 'own-origin', role: 'x' }, { origin: base.url });
      expect(own.status).to.equal(201);
    });
  });
});

describe('host allow-list', () => {
  it('refuses other hosts in plain text, before anything else', async () => {
    const base = await startTestService({ MC_ALLOWED_HOSTS: 'box.example.com,*.inner.example' });
    const status = (host: string) =>
      new Promise<string>((resolve, reject) => {
        const asked = request(`${base.url}/health/live`, { headers: { host } }, (response) => {
          let text = '';
          response.setEncoding('utf8').on('data', (chunk) => {
            text += chunk;
          });
          response.on('end', () => resolve(`${response.statusCode} ${text}`));
        });
        asked.on('error', reject);
        asked.end();
      });
    expect(await status('evil.example')).to.equal('403 Forbidden');
    expect(await status('inner.example')).to.equal('403 Forbidden');
    expect(await status('a.inner.example')).to.match(/^200/);
    expect(await status('BOX.example.com:3000')).to.match(/^200/);
    expect(await status('localhost')).to.match(/^200/);
    await base.close();
  });
});
