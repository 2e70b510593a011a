import { expect } from 'chai';
import { tokenBatchResponse, tokenReportResponse } from '../../../shared/contract/tokens/reports.ts';
import { byAgentResponse, tokenListResponse } from '../../../shared/contract/tokens/usage.ts';
import { ledgerStream, tokenPageFilled, tokensReported } from '../../../shared/events/tokens/reports.ts';
import { DAY_MS } from '../../../shared/time-buckets.ts';
import { fixture } from '../../support/fixture.ts';
import { conforms } from '../../support/worlds/agents.ts';
import { startTasksWorld } from '../../support/worlds/tasks.ts';
import { usage } from '../../support/worlds/tokens.ts';

const PATH = '/api/tokens';
const BATCH = '/api/tokens/batch';

let ids = 0;
const freshId = () => `report-${++ids}`;

describe('reports of tokens', () => {
  const world = fixture(startTasksWorld);

  const { ask } = world;
  const report = async (fields: object = {}, headers: Record<string, string> = {}) =>
    conforms(tokenReportResponse, await ask('POST', PATH, usage(fields), undefined, headers)).record;
  const batch = async (reports: readonly object[], headers: Record<string, string> = {}) =>
    conforms(tokenBatchResponse, await ask('POST', BATCH, { reports }, undefined, headers));
  const list = async () => conforms(tokenListResponse, await ask('GET', PATH));
  const total = async () => (await list()).total;

  describe('POST /api/tokens', () => {
    it('records the agent, the model, the token counts and the cost', async () => {
      const { id: agentId, name } = await world.create();
      const { id: taskId } = await world.task();
      const before = Date.now();
      const record = await report({ sessionId: ` ${name}:web:1 `, taskId, operation: ' review ', duration: 12.5 });
      expect(record.timestamp).to.be.within(before, Date.now());
      expect(record).to.deep.equal({
        id: record.id,
        model: 'anthropic/claude-opus-4-6',
        sessionId: `${name}:web:1`,
        agentId,
        agentName: name,
        timestamp: record.timestamp,
        inputTokens: 1_000,
        outputTokens: 100,
        cacheReadTokens: 0,
        cacheWriteTokens: 0,
        totalTokens: 1_100,
        cost: 0.0075,
        price: 'built-in',
        operation: 'review',
        taskId,
        workspaceId: 1,
        duration: 12.5,
      });
      expect((await list()).usage[0]).to.deep.equal(record);
    });

    it('prices cached tokens apart from the others, at a tenth and 1.25 times the input price', async () => {
      const million = 1_000_000;
      const counts = { inputTokens: million, outputTokens: million };
      const record = await report({ ...counts, cacheReadTokens: 2 * million, cacheWriteTokens: 4 * million });
      expect(record).to.deep.include({ cacheReadTokens: 2 * million, cacheWriteTokens: 4 * million });
      expect(record.totalTokens).to.equal(8 * million);
      expect(record.cost).to.equal(5 + 25 + 2 * 0.5 + 4 * 6.25);
      const model = world.fresh('cached');
      const price = { model, input: 1, output: 2, cache_read: 0.5, cache_write: 3 };
      expect((await ask('PUT', '/api/tokens/prices', price)).body.price).to.deep.include(price);
      const own = await report({ model, ...counts, cacheReadTokens: million, cacheWriteTokens: million });
      expect(own).to.deep.include({ cost: 6.5, price: 'own' });
    });

    it('counts a report that is three days late on its day, in sums and time lines', async () => {
      const { id: agentId, name } = await world.create();
      const { id: taskId } = await world.task();
      const now = Date.now();
      const used = now - 3 * DAY_MS;
      const fields = { sessionId: `${name}:cli`, taskId, model: world.fresh('late') };
      const at = (await ask('GET', PATH)).headers.get('x-signalbox-position');
      const trendsBefore = (await ask('GET', `${PATH}?action=trends`)).body;
      expect((await report({ ...fields, timestamp: used })).timestamp).to.equal(used);
      expect((await report({ ...fields, timestamp: Math.floor(used / 1_000) })).timestamp, 'seconds').to.equal(
        Math.floor(used / 1_000) * 1_000,
      );
      expect((await report({ ...fields, timestamp: used / 1_000 })).timestamp, 'as Python gives them').to.equal(used);
      const stats = async (timeframe: string, more = '') =>
        (await ask('GET', `${PATH}?action=stats&timeframe=${timeframe}${more}`)).body.agents[name];
      expect(await stats('day')).to.equal(undefined);
      expect(await stats('week')).to.deep.include({ requestCount: 3 });
      expect(await stats('all', `&as_of=${at}`), 'before it was recorded').to.equal(undefined);
      const date = new Date(used).toISOString().slice(0, 10);
      const dayOf = (one: { timeline: unknown }) => one.timeline;
      const agents = (await ask('GET', `${PATH}?action=agent-costs&timeframe=week`)).body.agents;
      expect(dayOf(agents[name])).to.deep.equal([{ date, cost: 0.0135, tokens: 3_300 }]);
      const { tasks } = (await ask('GET', `${PATH}?action=task-costs&timeframe=week`)).body;
      const task = tasks.find((one: { taskId: number }) => one.taskId === taskId);
      expect(dayOf(task)).to.deep.equal([{ date, cost: 0.0135, tokens: 3_300 }]);
      expect((await ask('GET', `${PATH}?action=trends`)).body, 'the last day').to.deep.equal(trendsBefore);
      const { id: newest } = await report();
      expect((await list()).usage[0]?.id, 'newest first').to.equal(newest);
      const older = conforms(tokenListResponse, await ask('GET', `${PATH}?before=${used + 1}`)).usage;
      expect(older.slice(0, 3).map((one: { agentName: string }) => one.agentName)).to.deep.equal([name, name, name]);
      const attribution = (await ask('GET', `/api/agents/${agentId}/attribution?hours=100&section=cost&privileged=1`))
        .body;
      expect(attribution.cost.daily_trend.map((one: { date: string }) => one.date)).to.deep.equal([date]);
      const byAgent = conforms(byAgentResponse, await ask('GET', '/api/tokens/by-agent?days=7')).agents;
      expect(byAgent.find((one: { agent: string }) => one.agent === name)?.last_active).to.equal(
        new Date(used).toISOString(),
      );
    });

    it('refuses a time beyond its bounds with the field, and records nothing', async () => {
      const before = await total();
      const now = Date.now();
      for (const timestamp of [now - 91 * DAY_MS, (now + 3_600_000) / 1_000, 0]) {
        const { status, body } = await ask('POST', PATH, usage({ timestamp }));
        expect({ status, error: body.error }).to.have.property('status', 400);
        expect(body.error).to.match(
          /^timestamp: must be from 90 days ago to 5 minutes ahead, in Unix seconds or milli/,
        );
        const many = await ask('POST', BATCH, { reports: [usage(), usage({ timestamp })] });
        expect(many.status).to.equal(400);
        expect(many.body.details[0]).to.match(/^reports\.1\.timestamp: must be from 90 days/);
      }
      for (const timestamp of ['2026-11-26T10:00:00Z', -1, 1e14, {}, true])
        expect((await ask('POST', PATH, usage({ timestamp }))).body.error, String(timestamp)).to.match(
          /^timestamp: must/,
        );
      expect(await total()).to.equal(before);
      expect((await report({ timestamp: now - 90 * DAY_MS + 60_000 })).timestamp).to.equal(now - 90 * DAY_MS + 60_000);
      // In a workspace of its own: it is the newest report of the next minutes.
      const as = await world.world.makeSession({ username: 'ahead', role: 'operator', workspace: 9, tenant: 9 });
      const ahead = now + 4 * 60_000;
      expect((await ask('POST', PATH, usage({ timestamp: ahead }), as)).body.record?.timestamp).to.equal(ahead);
      expect((await ask('GET', `${PATH}?action=stats&timeframe=hour`, undefined, as)).body.recordCount).to.equal(1);
      expect((await report({ timestamp: null })).timestamp).to.be.within(now, Date.now());
    });

    it('a report with an id and a time can be repeated, and with another time is a different one', async () => {
      const body = { id: freshId(), timestamp: Date.now() - 2 * DAY_MS };
      const first = await report(body);
      expect(await report(body)).to.deep.equal(first);
      const other = await ask('POST', PATH, usage({ ...body, timestamp: body.timestamp + 1_000 }));
      expect({ status: other.status, code: other.body.code }).to.deep.equal({
        status: 409,
        code: 'TOKEN_REPORT_DIFFERS',
      });
    });

    it('applies defaults to omitted fields', async () => {
      const record = await report({ operation: null, duration: null, id: null });
      expect(record).to.deep.include({
        operation: 'chat_completion',
        taskId: null,
        agentId: null,
        agentName: 'nobody',
      });
      expect(record).not.to.have.property('duration');
      expect((await report({ sessionId: ':x' })).agentName).to.equal('unknown');
    });

    it('accepts a task id as number or text, and ignores an invalid one', async () => {
      const { id } = await world.task();
      expect((await report({ taskId: String(id) })).taskId).to.equal(id);
      for (const taskId of [null, 0, -1, 1.5, '', 'x', '9'.repeat(40), 999_999, {}, [], true, 1e300]) {
        expect((await report({ taskId })).taskId, JSON.stringify(taskId)).to.equal(null);
      }
    });

    it('accepts the largest possible counts', async () => {
      // In a workspace of its own: sums of such numbers are rounded.
      const as = await world.world.makeSession({ username: 'spender', role: 'operator', workspace: 8, tenant: 8 });
      const most = Number.MAX_SAFE_INTEGER;
      const body = conforms(
        tokenReportResponse,
        await ask('POST', PATH, usage({ inputTokens: most, outputTokens: 0 }), as),
      );
      expect(body.record.totalTokens).to.equal(most);
      conforms(tokenReportResponse, await ask('POST', PATH, usage({ inputTokens: 0, outputTokens: most }), as));
      const { summary } = (await ask('GET', `${PATH}?action=stats`, undefined, as)).body;
      expect(summary.totalTokens).to.be.closeTo(2 ** 54, 2);
    });

    it('accepts texts of any script up to their limits', async () => {
      const record = await report({
        id: '試'.repeat(128),
        model: '試'.repeat(200),
        sessionId: '験'.repeat(512),
        operation: '"'.repeat(100),
      });
      expect((await list()).usage[0]).to.deep.equal(record);
    });

    it('rejects an invalid report with the reason', async () => {
      const before = await total();
      const wrong: [object, RegExp][] = [
        [{ model: ' ' }, /model/],
        [{ model: 'm'.repeat(201) }, /model/],
        [{ model: undefined }, /model/],
        [{ model: 'a\0' }, /model/],
        [{ sessionId: '' }, /sessionId/],
        [{ sessionId: 's'.repeat(513) }, /sessionId/],
        [{ inputTokens: -1 }, /inputTokens/],
        [{ inputTokens: 1.5 }, /inputTokens/],
        [{ inputTokens: '1' }, /inputTokens/],
        [{ outputTokens: undefined }, /outputTokens/],
        [{ cacheReadTokens: -1 }, /cacheReadTokens/],
        [{ cacheWriteTokens: 0.5 }, /cacheWriteTokens/],
        [{ cacheReadTokens: Number.MAX_SAFE_INTEGER }, /sum/],
        [{ inputTokens: Number.MAX_SAFE_INTEGER, outputTokens: 1 }, /sum/],
        [{ operation: '' }, /operation/],
        [{ operation: 'o'.repeat(101) }, /operation/],
        [{ duration: -1 }, /duration/],
        [{ duration: 604_800_001 }, /duration/],
        [{ id: '' }, /id/],
        [{ id: 'i'.repeat(129) }, /id/],
        [{ id: 'a\n' }, /id/],
      ];
      for (const [fields, says] of wrong) {
        await world.refused('POST', PATH, usage(fields), 400, says);
        await world.refused('POST', BATCH, { reports: [usage(), usage(fields)] }, 400, /reports\.1\./);
      }
      await world.refused('POST', BATCH, { reports: [] }, 400, /reports/);
      await world.refused('POST', BATCH, { reports: Array.from({ length: 1_001 }, () => usage()) }, 400, /reports/);
      expect(await total()).to.equal(before);
    });

    it('treats the same id as the same report, even at another price', async () => {
      const id = freshId();
      const first = await report({ id });
      expect(first.id).to.equal(id);
      const before = await total();
      await ask('PUT', '/api/tokens/prices', { model: 'anthropic/claude-opus-4-6', input: 9, output: 9 });
      expect(await report({ id })).to.deep.equal(first);
      await ask('DELETE', '/api/tokens/prices', { model: 'anthropic/claude-opus-4-6' });
      expect(await total()).to.equal(before);
      const reply = await world.refused('POST', PATH, usage({ id, inputTokens: 1 }), 409, /different report/);
      expect(reply.body.code).to.equal('TOKEN_REPORT_DIFFERS');
      // A report that was made without an id can be repeated by the one it got.
      const { id: given2 } = await report();
      await report({ id: given2 });
      expect(await total()).to.equal(before + 1);
    });

    it('assigns a report to the agent that the caller speaks for, if the session names none', async () => {
      const { id, name } = await world.create();
      const other = await world.create();
      const as = { 'x-agent-name': name };
      expect(await report({ sessionId: 'some session' }, as)).to.deep.include({ agentId: id, agentName: name });
      expect(await report({ sessionId: `${other.name}:cli` }, as)).to.deep.include({ agentId: other.id });
      expect(await report({ sessionId: 'x' }, { 'x-agent-name': 'stranger' })).to.deep.include({ agentId: null });
    });
  });

  describe('a batch', () => {
    it('is recorded in one append, in its order', async () => {
      const reports = Array.from({ length: 300 }, (_, n) => usage({ id: freshId(), inputTokens: n }));
      const before = await total();
      const { recorded, repeated, ids: answered } = await batch(reports);
      expect({ recorded, repeated }).to.deep.equal({ recorded: 300, repeated: 0 });
      expect(answered).to.deep.equal(reports.map(({ id }) => id));
      const { usage: newest, total: after } = await list();
      expect(after).to.equal(before + 300);
      expect(newest.map((one: { inputTokens: number }) => one.inputTokens)).to.deep.equal(
        Array.from({ length: 100 }, (_, n) => 299 - n),
      );
      const { store } = world.world.service.core;
      const events = await store.readStream(ledgerStream(1, 1));
      const holding = events.filter(({ data }) => JSON.stringify(data).includes(`"${reports[0]?.id}"`));
      expect(holding.map(({ data }) => (data.reports as unknown[]).length)).to.deep.equal([300]);
    });

    it('is rejected with the id of a different report', async () => {
      const id = freshId();
      await report({ id });
      const other = usage({ id: freshId() });
      await world.refused('POST', BATCH, { reports: [other, usage({ id, model: 'x' })] }, 409, new RegExp(id));
      const twice = freshId();
      await world.refused('POST', BATCH, { reports: [usage({ id: twice }), usage({ id: twice, model: 'x' })] }, 409);
      expect(await batch([other, usage({ id: twice })])).to.deep.include({ recorded: 2 });
    });

    it('adds each report once if it overlaps with concurrent batches', async () => {
      const before = await total();
      const reports = Array.from({ length: 400 }, () => usage({ id: freshId() }));
      const parts = Array.from({ length: 12 }, (_, n) => reports.slice(n * 25, n * 25 + 125));
      const answers = await Promise.all(parts.map((part) => batch(part)));
      expect(answers.reduce((sum, { recorded }) => sum + recorded, 0)).to.equal(400);
      expect(await total()).to.equal(before + 400);
    });

    it('continues on a new ledger page, and reports on earlier pages are still recognized', async () => {
      const before = await total();
      const reports = Array.from({ length: 6_000 }, () => usage({ id: freshId() }));
      const parts = Array.from({ length: 6 }, (_, n) => reports.slice(n * 1_000, (n + 1) * 1_000));
      await Promise.all(parts.map((part) => batch(part)));
      const ends = [parts[0], parts[5]] as const;
      const again = await Promise.all(ends.map((part) => batch(part as typeof reports)));
      expect(again.map(({ repeated }) => repeated)).to.deep.equal([1_000, 1_000]);
      expect(await total()).to.equal(before + 6_000);
      const { store } = world.world.service.core;
      const first = await store.readStream(ledgerStream(1, 1));
      expect(first.at(-1)?.type).to.equal(tokenPageFilled.type);
      const last = await store.readStream(ledgerStream(1, 2));
      expect(last[0]?.type).to.equal(tokensReported.type);
    });

    it('needs several appends for long texts', async () => {
      const reports = Array.from({ length: 700 }, () =>
        usage({ id: freshId(), sessionId: `${'験'.repeat(500)}:${ids}`, model: '試'.repeat(200) }),
      );
      const before = await total();
      const { ids: answered, ...counts } = await batch(reports);
      expect(counts).to.deep.equal({ success: true, recorded: 700, repeated: 0 });
      expect(answered).to.deep.equal(reports.map(({ id }) => id));
      const { ids: nameless } = await batch(reports.map(({ id: _, ...one }) => one));
      expect(new Set(nameless).size).to.equal(700);
      expect(await total()).to.equal(before + 1_400);
    });
  });

  it('a heartbeat reports tokens for its own agent', async () => {
    const { id, name } = await world.create();
    const token_usage = { model: 'gpt-x', inputTokens: 3, outputTokens: 4, cacheReadTokens: 10, cacheWriteTokens: 20 };
    await ask('POST', `/api/agents/${id}/heartbeat`, { token_usage });
    const { usage: newest } = await list();
    expect(newest[0]).to.deep.include({
      agentId: id,
      agentName: name,
      sessionId: `${name}:cli`,
      operation: 'heartbeat',
    });
    // 3 and 4 at 3 and 15 dollars for a million, 10 at 0.3 and 20 at 3.75.
    expect(newest[0]).to.deep.include({ cacheReadTokens: 10, cacheWriteTokens: 20, cost: 0.000147, price: 'default' });
    const row = conforms(byAgentResponse, await ask('GET', '/api/tokens/by-agent?days=1')).agents.find(
      (one: { agent_id: number }) => one.agent_id === id,
    );
    expect(row).to.deep.include({
      agent: name,
      request_count: 1,
      session_count: 1,
      total_tokens: 37,
      estimated_cost: 0.000147,
    });
  });
});
