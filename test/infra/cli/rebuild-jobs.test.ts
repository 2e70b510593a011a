/** A rebuild by several processes: which process has which read models, and what the command says. */
import { expect } from 'chai';
import { divided, rebuildInProcesses } from '../../../infra/cli/rebuild-jobs.ts';
import { LOCK_CLASS } from '../../../infra/following/leadership.ts';
import { projections } from '../../../projections/index.ts';
import { schemaOf } from '../../../projections/projection.ts';
import { allCaughtUp } from '../../support/caught-up.ts';
import { fixture } from '../../support/fixture.ts';
import { failureOf } from '../../support/kit.ts';
import { describeWith } from '../../support/needs.ts';
import { call, serverStores, startTestService } from '../../support/service.ts';
import { runCommand } from '../../support/service-process.ts';
import { until } from '../../support/until.ts';

describe('read models divided among processes', () => {
  const named = (groups: ReturnType<typeof divided>) => groups.map((group) => group.map(({ name }) => name));

  it('are each in one group, and the groups weigh about the same', () => {
    const weights = new Map(projections.map((one, n) => [schemaOf(one), 1_000 * (n + 1)]));
    const weightOf = (group: (typeof projections)[number]) => (weights.get(schemaOf(group)) ?? 0) + group.handles.size;
    for (const jobs of [1, 2, 3, 8]) {
      const groups = divided(projections, jobs, weights);
      expect(groups).to.have.length(jobs);
      expect(named(groups).flat().sort()).to.deep.equal(projections.map(({ name }) => name).sort());
      const sums = groups.map((group) => group.reduce((sum, one) => sum + weightOf(one), 0));
      expect(Math.max(...sums)).to.be.below(1.2 * Math.min(...sums));
    }
  });

  it('are in no more groups than there are read models', () => {
    const two = projections.slice(0, 2);
    expect(divided(two, 8, new Map()).map((group) => group.length)).to.deep.equal([1, 1]);
    expect(divided([], 8, new Map())).to.deep.equal([]);
  });
});

describe('processes of a rebuild', () => {
  it('are not started after an interruption', async () => {
    const watched = { signal: AbortSignal.abort(new Error('interrupted')), onProgress: () => undefined };
    expect(await failureOf(rebuildInProcesses([projections], [], watched))).to.equal('interrupted');
  });
});

describeWith('TEST_DATABASE_URL', 'rebuild by several processes', function () {
  this.timeout(60_000);
  const stores = fixture(() => serverStores('postgres'));
  const service = fixture(() => startTestService(stores.env));
  before(async () => {
    for (const name of ['ada', 'bob']) await call(service, 'POST', '/api/agents', { name, role: 'coder' });
    await allCaughtUp(service.service.core);
  });
  const rebuild = (...args: string[]) => runCommand(['rebuild', ...args], { ...stores.env, LOG_LEVEL: 'silent' });

  it('gives the rows of the live tables, and reports each read model once', async () => {
    const { code, out, err } = await rebuild('--jobs', '3', 'agents', 'audit', 'activities', 'tokens');
    expect([code, err]).to.deep.equal([0, '']);
    expect(out).to.match(/^agents +agents +2 +equal +switched$/m);
    const named = [...out.matchAll(/^(\w+) +\w+ +\d+ +equal +switched$/gm)].map(([, name]) => name);
    expect([...new Set(named)]).to.deep.equal(['agents', 'tokens', 'activities', 'audit']);
    const { body } = await call(service, 'GET', '/api/agents');
    expect(body.agents).to.have.length(2);
  });

  it('compares only, with the exit code 3 if something differs', async () => {
    expect((await rebuild('--check', '--jobs', '2', 'agents', 'audit')).code).to.equal(0);
    await service.service.core.database.pool.query("UPDATE agents_v1.agents SET role = 'other' WHERE name = 'ada'");
    const { code, out } = await rebuild('--check', '--jobs', '2', 'agents', 'audit');
    expect(code).to.equal(3);
    expect(out).to.match(/^agents +agents +2 +differs \(2 rows\) +compared$/m);
  });

  // A process of two read models has a connection that it has not used yet.
  for (const jobs of ['2', '1'])
    it(`fails with the error of the process that failed, of ${jobs}`, async () => {
      const { pool } = service.service.core.database;
      const holder = await pool.connect();
      try {
        // The process with this read model waits for the lock, and loses its connection.
        await holder.query(`BEGIN; SELECT pg_advisory_xact_lock(${LOCK_CLASS}, hashtext('audit_v1_rebuild'))`);
        const ended = rebuild('--jobs', jobs, 'audit', 'agents');
        await until('the process has lost its connection', async () => {
          const { rows } = await pool.query(
            `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE datname = current_database() AND wait_event = 'advisory'`,
          );
          return rows.length > 0;
        });
        const { code, err } = await ended;
        expect(code).to.equal(1);
        expect(err).to.match(/^signalbox: .*terminat\w+.*\n$/);
      } finally {
        await holder.query('ROLLBACK');
        holder.release();
      }
    });
});
