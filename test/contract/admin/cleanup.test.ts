/** Retention through HTTP: old rows are removed from lists, totals and searches; a rebuild removes the same; events stay. */
import { expect } from 'chai';
import { cleanUp } from '../../../commands/admin/cleanup.ts';
import { rebuildProjections } from '../../../infra/read-models/rebuild/rebuild.ts';
import { activitiesProjection } from '../../../projections/monitoring/activities.ts';
import { auditProjection } from '../../../projections/monitoring/audit.ts';
import { notificationsProjection } from '../../../projections/monitoring/notifications.ts';
import { searchProjection } from '../../../projections/monitoring/search.ts';
import { tokensProjection } from '../../../projections/tokens/reports.ts';
import { cleanupResponse, retentionResponse } from '../../../shared/contract/admin/cleanup.ts';
import { DAY } from '../../../shared/time.ts';
import { fixture } from '../../support/fixture.ts';
import { call, startTestService } from '../../support/service.ts';
import { testOrigin } from '../../support/world.ts';
import { conforms } from '../../support/worlds/agents.ts';

describe('/api/cleanup', function () {
  this.timeout(120_000);
  const base = fixture(() => startTestService({ MC_RETAIN_ACTIVITIES_DAYS: '12' }));

  const post = (body?: object) => call(base, 'POST', '/api/cleanup', body);
  const total = async () => (await call(base, 'GET', '/api/activities?limit=1')).body.total;
  const audited = async (action: string) => (await call(base, 'GET', `/api/audit?action=${action}`)).body.entries;

  it('shows what is kept and for how long', async () => {
    const body = conforms(retentionResponse, await call(base, 'GET', '/api/cleanup'));
    expect(body.retention).to.include({
      activities: 12,
      notifications: 60,
      pipelineRuns: 90,
      auditLog: 365,
      logs: 30,
    });
  });

  it('does not remove recent records, and then writes no audit entry', async () => {
    const before = await total();
    for (const body of [undefined, {}, { older_than_days: '1' }, { dry_run: true }]) {
      const reply = await post(body);
      expect(reply.status, JSON.stringify(reply.body)).to.equal(200);
      expect(cleanupResponse.parse(reply.body)).to.deep.equal(reply.body);
      expect(reply.body).to.deep.include({
        success: true,
        total_deleted: 0,
        deleted: { activities: 0, notifications: 0, pipeline_runs: 0, token_usage: 0, audit_log: 0 },
      });
    }
    expect(await total()).to.equal(before);
    expect(await audited('data_cleanup')).to.deep.equal([]);
  });

  it('keeps audit entries for at least the configured days, even if a call names fewer', async () => {
    const days = async (older_than_days: number) => {
      const { body } = await post({ older_than_days, dry_run: true });
      return body.results.find(({ table }: { table: string }) => table === 'audit_log')?.retention_days;
    };
    const set = (value: number) =>
      call(base, 'PUT', '/api/settings', { settings: { 'retention.audit_log_days': value } });
    expect([await days(1), await days(400)]).to.deep.equal([365, 400]);
    expect((await set(7)).status).to.equal(200);
    expect([await days(1), await days(8)]).to.deep.equal([7, 8]);
    expect((await set(0)).status).to.equal(200);
    expect([await days(1), await days(8)]).to.deep.equal([undefined, undefined]);
    const { body } = await call(base, 'GET', '/api/cleanup');
    expect(body.preview).to.deep.include({
      ...{ table: 'audit_log', retention_days: 0, stale_count: 0 },
      note: 'kept forever',
    });
    expect((await call(base, 'DELETE', '/api/settings', { key: 'retention.audit_log_days' })).status).to.equal(200);
  });

  it('rejects an invalid number of days', async () => {
    for (const older_than_days of [0, -1, 1.5, 'x', 40_000, null]) {
      expect((await post({ older_than_days })).status, String(older_than_days)).to.equal(400);
    }
  });

  it('removes old token reports from the list and all sums, and a rebuild gives the same result', async () => {
    const { core } = base.service;
    const counts = async () => {
      const { total: listed } = (await call(base, 'GET', '/api/tokens')).body;
      const { recordCount } = (await call(base, 'GET', '/api/tokens?action=stats')).body;
      const { agents } = (await call(base, 'GET', '/api/tokens/by-agent')).body;
      return { listed, recordCount, requests: agents.map((one: { request_count: number }) => one.request_count) };
    };
    const reports = Array.from({ length: 1_200 }, (_, n) => ({
      ...{ id: `old-${n}`, model: n % 2 ? 'm' : 'n', sessionId: 'sweeper:cli', inputTokens: n, outputTokens: 1 },
    }));
    for (let n = 0; n < reports.length; n += 600) {
      const sent = await call(base, 'POST', '/api/tokens/batch', { reports: reports.slice(n, n + 600) });
      expect(sent.status, JSON.stringify(sent.body)).to.equal(200);
    }
    const { listed } = await counts();
    expect(listed).to.be.at.least(1_200);
    const now = () => Date.now() + 2 * DAY * 1_000;
    const cleaning = { commands: core.commands, reads: core.reads, now };
    const runs = await Promise.all(
      [1, 2].map(() => cleanUp(cleaning, { origin: testOrigin }, { token_usage: 1 }, 'schedule')),
    );
    expect(runs.reduce((sum, { results }) => sum + (results[0]?.deleted ?? 0), 0)).to.equal(listed);
    expect(await counts()).to.deep.equal({ listed: 0, recordCount: 0, requests: [] });
    const again = { model: 'm', sessionId: 'sweeper:cli', inputTokens: 7, outputTokens: 1 };
    expect((await call(base, 'POST', '/api/tokens', again)).status).to.equal(200);
    expect(await counts()).to.deep.equal({ listed: 1, recordCount: 1, requests: [1] });
    const [report] = await rebuildProjections(core, [tokensProjection], { check: true, fresh: true });
    expect(report).to.include({ equal: true, compared: true });
  });

  it('removes old rows once, even if several processes run, and a rebuild gives the same result', async () => {
    const { core } = base.service;
    await call(base, 'POST', '/api/agents', { name: 'tidy', role: 'x' });
    await call(base, 'PUT', '/api/agents', { name: 'tidy', status: 'busy', last_activity: 'sweeping the floor' });
    const found = async () =>
      (await call(base, 'GET', '/api/search?q=tidy')).body.results.filter(
        ({ type }: { type: string }) => type === 'activity',
      ).length;
    const before = await total();
    expect(before).to.be.above(1);
    expect(await found()).to.be.above(0);
    // As it will be the day after tomorrow.
    const now = () => Date.now() + 2 * DAY * 1_000;
    const cleaning = { commands: core.commands, reads: core.reads, now };
    const context = () => ({ origin: testOrigin });
    const retention = { activities: 1, notifications: 1 };
    const runs = await Promise.all(
      Array.from({ length: 3 }, () => cleanUp(cleaning, context(), retention, 'schedule')),
    );
    const removed = runs.map(({ results }) => results.find(({ table }) => table === 'activities')?.deleted ?? 0);
    expect(removed.reduce((sum, count) => sum + count, 0)).to.equal(before);
    expect(await total()).to.equal(0);
    expect((await call(base, 'GET', '/api/activities')).body.activities).to.deep.equal([]);
    expect(await found()).to.equal(0);
    const entries = await audited('auto_cleanup');
    const sum = entries.reduce(
      (all: number, { detail }: { detail: { total_deleted: number } }) => all + detail.total_deleted,
      0,
    );
    expect(sum).to.be.at.least(before);
    await call(base, 'PUT', '/api/agents', { name: 'tidy', status: 'idle' });
    expect(await total()).to.equal(1);
    const reports = await rebuildProjections(core, [activitiesProjection, notificationsProjection, searchProjection], {
      check: true,
      fresh: true,
    });
    expect(reports.map(({ equal, compared }) => ({ equal, compared }))).to.deep.equal(
      reports.map(() => ({ equal: true, compared: true })),
    );
  });

  it('removes old audit entries once but keeps the events, and a rebuild gives the same result', async () => {
    const { core } = base.service;
    const totalOf = async (filter = '') => (await call(base, 'GET', `/api/audit?limit=1${filter}`)).body.total;
    const wrong = { username: 'unknown@example.com', password: 'not the password' };
    await call(base, 'POST', '/api/auth/login', wrong);
    const typed = '&actor=unknown%40example.com';
    const [before, ofTyped] = [await totalOf(), await totalOf(typed)];
    expect(before).to.be.above(1);
    expect(ofTyped).to.be.above(0);
    const now = () => Date.now() + 2 * DAY * 1_000;
    const cleaning = { commands: core.commands, reads: core.reads, now };
    const runs = await Promise.all(
      [1, 2].map(() => cleanUp(cleaning, { origin: testOrigin }, { audit_log: 1 }, 'schedule')),
    );
    const removed = runs.reduce((sum, { results }) => sum + (results[0]?.deleted ?? 0), 0);
    // The second of two that overlap may find the entry that the first one has left.
    expect(removed).to.be.within(before, before + 1);
    expect(await totalOf(typed)).to.equal(0);
    const { entries, total: left } = (await call(base, 'GET', '/api/audit')).body;
    expect(entries.map(({ action }: { action: string }) => action)).to.deep.equal(entries.map(() => 'auto_cleanup'));
    expect([left, await totalOf('&action=auto_cleanup')]).to.deep.equal([entries.length, entries.length]);
    const { results } = (await call(base, 'GET', '/api/search?q=unknown%40example.com&type=audit')).body;
    expect(results).to.deep.equal([]);
    let purged = '';
    for await (const events of core.eventLog.readAll()) {
      for (const event of events) if (event.type === 'AuditEntriesPurged') purged += JSON.stringify(event);
    }
    expect(purged).to.include('login_failed');
    expect(purged).not.to.include('unknown@example.com');
    const reports = await rebuildProjections(core, [auditProjection, searchProjection], { check: true, fresh: true });
    expect(reports.map(({ equal, compared }) => ({ equal, compared }))).to.deep.equal(
      reports.map(() => ({ equal: true, compared: true })),
    );
  });
});
