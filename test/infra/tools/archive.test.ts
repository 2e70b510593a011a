/** `signalbox archive` beside a running service: what leaves the database, what stays readable, and kills at each step. */
import { execFile } from 'node:child_process';
import { cp, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { archiveDirOf } from '../../../infra/config.ts';
import { runHere } from '../../support/command.ts';
import { fixture } from '../../support/fixture.ts';
import { runs } from '../../support/runs.ts';
import { call, startTestService } from '../../support/service.ts';
import { nodeArgs, runCommand } from '../../support/service-process.ts';
import { until } from '../../support/until.ts';

const CHILD = fileURLToPath(new URL('../../support/archive-child.js', import.meta.url));

describe('signalbox archive', function () {
  this.timeout(300_000);
  let directory = '';
  const service = fixture(async () => {
    directory = await mkdtemp(join(tmpdir(), 'sbx-archive-'));
    const started = await startTestService({ ARCHIVE_DIR: directory });
    return Object.assign(started, {
      env: {
        DATA_DIR: started.config.dataDir,
        ARCHIVE_DIR: directory,
        ...(started.config.databaseUrl !== undefined && { DATABASE_URL: started.config.databaseUrl }),
      },
    });
  });
  after(() => rm(directory, { recursive: true, force: true }));

  const pool = () => service.service.core.database.pool;
  const rows = async (text: string) => (await pool().query(text)).rows;
  const cli = (...args: string[]) => runHere(args, service.env);
  const upToNow = () => ['archive', '--before', new Date().toISOString()];
  const archive = (...args: string[]) => cli(...upToNow(), ...args);
  const get = (path: string) => call(service, 'GET', path);
  const dropped = async () => (await rows('SELECT count(*)::int AS count FROM log.events WHERE data IS NULL'))[0].count;
  const folder = () => archiveDirOf(service.config);

  /** Everything that the log has, as a caller sees it. */
  async function wholeLog(): Promise<unknown[]> {
    const events: unknown[] = [];
    for (let after = 0; ; ) {
      const { status, body } = await get(`/api/history/events?after=${after}&limit=200`);
      expect(status, JSON.stringify(body)).to.equal(200);
      events.push(...body.events);
      if (body.next_after === null) return events;
      after = body.next_after;
    }
  }

  async function work(count: number): Promise<{ done: number; live: number }> {
    await call(service, 'POST', '/api/agents', { name: `agent-${count}`, role: 'coder' });
    const made = [];
    for (let n = 0; n < count; n++)
      made.push((await call(service, 'POST', '/api/tasks', { title: `task ${n}` })).body.task.id);
    for (let n = 0; n < count; n++)
      await call(service, 'POST', '/api/tokens', {
        model: 'claude-sonnet-4',
        sessionId: 'a:b',
        inputTokens: 1 + n,
        outputTokens: 1,
      });
    return { done: made[0], live: made[1] };
  }

  /** Ends a run at a step with kill -9. */
  const killedAt = (step: string, time: number) =>
    new Promise<string | null>((resolve) => {
      execFile(
        process.execPath,
        [...nodeArgs(), CHILD, step, String(time)],
        { env: { ...process.env, ...service.env, LOG_LEVEL: 'silent' } },
        (error) => resolve((error as { signal?: string } | null)?.signal ?? null),
      );
    });

  let tasks: { done: number; live: number };
  let before: unknown[];

  it('changes nothing in a dry run', async () => {
    tasks = await work(40);
    const { code, out, err } = await archive('--dry-run');
    expect(code, err).to.equal(0);
    expect(out).to.match(/^\d{4}-.*: \d+ events, positions 1 to \d+, in .*sbx-archive-/);
    expect(out).to.match(
      /The contents of \d{2} events, \d+ bytes of JSON, would leave the database\. Nothing was changed\./,
    );
    expect(await readdir(folder())).to.deep.equal([]);
    expect(await dropped()).to.equal(0);
  });

  it('refuses times that are no months, and those in the future', async () => {
    for (const [given, says] of [
      ['yesterday', /must be a month/],
      ['2999-01', /must not be in the future/],
    ] as const) {
      const { code, err } = await cli('archive', '--before', given);
      expect([code, err]).to.deep.equal([1, err]);
      expect(err).to.match(says);
    }
  });

  it('loses nothing when it is killed at any step, and continues', async () => {
    before = await wholeLog();
    const time = Date.now();
    const steps = ['write', 'writing', 'verify', 'record', 'drop', 'dropping'];
    // Each run continues where the one before was killed.
    for (const step of steps.filter((_, at) => at % runs(2, 1) === runs(1, 0))) {
      expect(await killedAt(step, time), step).to.equal('SIGKILL');
      expect((await wholeLog()).slice(0, before.length), step).to.deep.equal(before);
    }
    expect(await dropped()).to.be.greaterThan(0);
    const { code, out, err } = await runCommand(upToNow(), service.env);
    expect(code, err).to.equal(0);
    expect(out).to.match(/left the database/);
    expect((await rows(`SELECT count(*)::int AS count FROM log.archives WHERE after = 0`))[0].count).to.equal(1);
    expect((await wholeLog()).slice(0, before.length)).to.deep.equal(before);
    const recorded = await rows(`SELECT data FROM log.events WHERE type = 'LogArchived' ORDER BY position`);
    const parts = await rows('SELECT name FROM log.archives ORDER BY until');
    expect(
      recorded.map(({ data }) => data.name),
      'each once',
    ).to.deep.equal(parts.map(({ name }) => name));
  });

  it('keeps the places of events, and the contents of what lives long', async () => {
    const kinds = await rows(
      `SELECT DISTINCT split_part(stream, '-', 1) AS kind FROM log.events WHERE data IS NULL ORDER BY 1`,
    );
    expect(kinds.map(({ kind }) => kind)).to.include.members(['task', 'token_reports']);
    expect(kinds.map(({ kind }) => kind)).not.to.include.members(['agent']);
    expect((await rows('SELECT count(*)::int AS count, max(position) AS last FROM log.events'))[0]).to.satisfy(
      ({ count, last }: { count: number; last: number }) => count === last,
    );
  });

  it('lets the database refuse every other change of the log', async () => {
    for (const statement of [
      `UPDATE log.events SET data = '{}', meta = '{}' WHERE position = 1`,
      `UPDATE log.events SET data = NULL, meta = NULL WHERE position = (SELECT max(position) FROM log.events)`,
      `UPDATE log.events SET data = NULL, meta = NULL, type = 'x' WHERE position = 1`,
      'DELETE FROM log.events WHERE position = 1',
    ]) {
      const refused = await pool()
        .query(statement)
        .then(() => undefined)
        .catch((error: Error) => error.message);
      expect(refused, statement).to.match(/append-only/);
    }
  });

  it('leaves the history, proofs and writes as they were, with the bundles', async () => {
    const id = (before[before.length - 3] as { id: string }).id;
    const { body: proof, status } = await get(`/api/history/proof?event=${id}`);
    expect(status).to.equal(200);
    expect(proof.path).to.be.an('array');
    const history = await get(`/api/tasks/${tasks.done}?include=history`);
    expect(history.body.history[0]).to.include({ type: 'TaskCreated' });
    const changed = await call(service, 'PUT', `/api/tasks/${tasks.live}`, { title: 'changed later' });
    expect(changed.body.task).to.include({ title: 'changed later' });
    const verified = await cli('verify');
    expect(verified.code, verified.out + verified.err).to.equal(0);
    expect(verified.out).to.match(/^Unchanged: \d+ events/);
    for (const name of await readdir(folder())) {
      const bundle = await cli('verify', '--bundle', join(folder(), name));
      expect(bundle.code, bundle.out).to.equal(0);
    }
  });

  it('gives equal rows in a rebuild from the bundles', async () => {
    const { code, out, err } = await cli('rebuild', '--check', 'tasks', 'tokens', 'activities', 'audit');
    expect(code, out + err).to.equal(0);
  });

  it('continues with the next part, which verifies by itself', async () => {
    await work(10);
    const now = await wholeLog();
    const { code, out, err } = await archive();
    expect(code, err).to.equal(0);
    expect(out).to.match(/positions \d{2,} to \d+/);
    const parts = await rows('SELECT name, after, until FROM log.archives ORDER BY until DESC');
    const { name, after, until: last } = parts[0];
    expect(after).to.equal(parts[1].until);
    const { out: verified } = await cli('verify', '--bundle', join(folder(), name));
    expect(verified).to.match(new RegExp(`^Unchanged: ${last - after} events from event ${after} on, `));
    expect((await wholeLog()).slice(0, now.length)).to.deep.equal(now);
    expect((await cli('archive', '--before', '2020-01')).out).to.match(/no further events/);
  });

  it('says which bundle is missing, where one is needed', async () => {
    const [{ name, until: last }] = await rows('SELECT name, until FROM log.archives ORDER BY until LIMIT 1');
    await rename(join(folder(), name), join(folder(), 'elsewhere'));
    try {
      const { status, body } = await get('/api/history/events?limit=200');
      expect([status, body.code, body.bundle, body.from, body.until]).to.deep.equal([
        409,
        'EVENTS_ARCHIVED',
        name,
        1,
        last,
      ]);
      expect(body.error).to.include(`archived in the bundle ${name}, which is not in ARCHIVE_DIR`);
      expect((await get('/api/tasks')).status).to.equal(200);
      expect((await call(service, 'POST', '/api/tasks', { title: 'still works' })).status).to.equal(201);
      expect((await call(service, 'PUT', '/api/agents/agent-40', { role: 'tester' })).status).to.equal(200);
      const history = await get(`/api/tasks/${tasks.done}?include=history`);
      expect([history.status, history.body.bundle]).to.deep.equal([409, name]);
      const [{ position }] = await rows('SELECT min(position) AS position FROM log.events WHERE data IS NULL');
      const stream = await get(`/api/events?lastEventId=${position - 1}`);
      expect([stream.status, stream.body.bundle]).to.deep.equal([409, name]);
      for (const args of [['verify'], ['rebuild', '--check', 'tasks'], ['export-events']]) {
        const { code, err } = await cli(...args);
        expect(code, args.join(' ')).to.equal(1);
        expect(err).to.include(`the bundle ${name}`);
      }
    } finally {
      await rename(join(folder(), 'elsewhere'), join(folder(), name));
    }
    expect((await get('/api/history/events?limit=200')).status).to.equal(200);
  });

  it('notices a bundle that was altered', async () => {
    const [{ name }] = await rows('SELECT name FROM log.archives ORDER BY until LIMIT 1');
    const file = join(folder(), name, 'events.jsonl');
    const text = await readFile(file, 'utf8');
    await cp(file, `${file}.whole`);
    // As long as before, in an event that is read from the bundle.
    await writeFile(file, text.replace('task 3"', 'task 9"'));
    const { status, body } = await get('/api/history/events?limit=200');
    expect([status, body.code]).to.deep.equal([409, 'BUNDLE_ALTERED']);
    const { code, out } = await cli('verify');
    expect(code).to.equal(3);
    expect(out).to.match(/^ALTERED: Event \d+ in the bundle/);
    await rename(`${file}.whole`, file);
    await until('the log can be read', async () => (await get('/api/history/events?limit=200')).status === 200);
  });
});
