/** Activities: filters, paging, statistics, answers from memory. */
import { expect } from 'chai';
import { fixture } from '../../support/fixture.ts';
import { bodyOf, call, startTestService } from '../../support/service.ts';
import { makeAgent } from '../../support/worlds/monitoring.ts';

describe('GET /api/activities', () => {
  const base = fixture(startTestService);

  const agent = (name: string) => makeAgent(base, name);
  before(async () => {
    for (let n = 0; n < 12; n++) {
      const { id } = await agent(`act-${n}`);
      await call(base, 'POST', `/api/agents/${id}/heartbeat`, {});
    }
  });

  it('lists newest first, with metadata and the current state of the entity', async () => {
    const body = bodyOf(await call(base, 'GET', '/api/activities'));
    const [newest] = body.activities;
    expect(newest).to.include({ type: 'agent_heartbeat', entity_type: 'agent', actor: 'act-11', workspace_id: 1 });
    expect(newest.metadata).to.deep.equal({ workItemsCount: 0, workItemTypes: [] });
    expect(newest.data).to.deep.equal(newest.metadata);
    expect(newest.entity).to.include({ type: 'agent', name: 'act-11', status: 'idle' });
    expect(newest.created_at).to.be.closeTo(Date.now() / 1000, 60);
    expect(body.total).to.equal(36);
    expect(body.hasMore).to.equal(false);
  });

  it('filters by one or several types, actor and entity type, and totals follow the filter', async () => {
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

  it('pages through all activities once, from either end, with any page size', async () => {
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

  it('clamps out-of-range paging and rejects invalid filters', async () => {
    const page = async (query: string) => {
      const { status, body } = await call(base, 'GET', `/api/activities?${query}`);
      expect(status, query).to.equal(200);
      return body.activities.map((one: { id: number }) => one.id) as number[];
    };
    const all = await page('limit=500');
    expect(all).to.have.length(36);
    // To 1, to the cap, or to the default of 50, of which there are 36.
    for (const query of ['limit=0', 'limit=-5', 'limit=1']) expect(await page(query), query).to.deep.equal([all[0]]);
    for (const query of ['limit=501', 'limit=99999999999999999999', 'limit=abc', 'limit=1e9', 'limit=2.5', 'limit=']) {
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

  it('returns statistics with ?stats', async () => {
    const { body } = await call(base, 'GET', '/api/activities?stats&hours=2');
    expect(body.timeframe).to.equal('2 hours');
    expect(body.activityByType).to.deep.include({ type: 'agent_created', count: 12 });
    expect(body.topActors[0]).to.deep.equal({ actor: 'api', activity_count: 12 });
    expect(body.timeline.reduce((sum: number, hour: { count: number }) => sum + hour.count, 0)).to.equal(36);
    expect(body.timeline[0].hour).to.match(/^\d{4}-\d\d-\d\dT\d\d:00:00.000Z$/);
  });

  it('is served from the cache until something changes, with an ETag', async () => {
    const first = await call(base, 'GET', '/api/activities?limit=3');
    const etag = first.headers.get('etag') as string;
    const again = await call(base, 'GET', '/api/activities?limit=3', undefined, { 'if-none-match': etag });
    expect(again.status).to.equal(304);
    await agent('etag');
    const body = bodyOf(await call(base, 'GET', '/api/activities?limit=3', undefined, { 'if-none-match': etag }));
    expect(body.activities[0].metadata.name).to.equal('etag');
  });

  it('finds an actor by its name in either Unicode form', async () => {
    const { id } = await agent('e\u0301lodie');
    await call(base, 'POST', `/api/agents/${id}/heartbeat`, {});
    for (const actor of ['e\u0301lodie', 'élodie'])
      expect((await call(base, 'GET', `/api/activities?actor=${encodeURIComponent(actor)}`)).body.total).to.be.above(0);
  });
});
