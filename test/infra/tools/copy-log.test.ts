/** Copying a log between stores: the same events in the same order, through kills; nothing else in the target. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import type pg from 'pg';
import { createCredentials } from '../../../infra/credentials/credentials.ts';
import { createPersonKeys } from '../../../infra/credentials/person-keys.ts';
import { type Database, openDatabase } from '../../../infra/database/database.ts';
import { migrate } from '../../../infra/database/migrations.ts';
import { runningEmbedded } from '../../../infra/embedded/embedded.ts';
import { openEventStoreLog } from '../../../infra/eventstore/event-log.ts';
import { createLogger } from '../../../infra/logging.ts';
import { openPostgresLog } from '../../../infra/postgres/event-log.ts';
import { createLeases } from '../../../infra/stores/agents/leases.ts';
import { createCounters } from '../../../infra/stores/counters.ts';
import { type CopySide, canonical, copyLog } from '../../../infra/tools/copy-log.ts';
import { createEventStore } from '../../../shared/event-store.ts';
import { catalogue } from '../../../shared/events/catalogue.ts';
import type { EventLog, LoggedEvent } from '../../../shared/ports/event-log.ts';
import { runHere } from '../../support/command.ts';
import { connected } from '../../support/databases.ts';
import { startEventStoreStandIn } from '../../support/eventstore-stand-in.ts';
import { closing } from '../../support/fixture.ts';
import { writeHistory } from '../../support/history.ts';
import { outcomeText } from '../../support/kit.ts';
import { needsServer } from '../../support/needs.ts';
import { freshDatabase, freshPrefix } from '../../support/service.ts';
import { commandLine, temporaryDirectory } from '../../support/service-process.ts';
import { copyDatabase, migratedDirectory } from '../../support/template.ts';
import { until } from '../../support/until.ts';

const log = createLogger(process.env.TEST_LOG_LEVEL ?? 'silent');
const EVENTS = 2_000;
const PASSWORD = 'correct horse battery';

interface Opened extends CopySide {
  readonly database: Database;
  close(): Promise<void>;
}

async function open(place: { url?: string; dataDir?: string }): Promise<Opened & AsyncDisposable> {
  const database = await openDatabase({
    url: place.url,
    dataDir: place.dataDir ?? '',
    poolSize: 6,
    statementTimeoutMs: 15_000,
    log,
  });
  await migrate(database.db);
  const events = openPostgresLog({ database, log });
  return closing({
    name: place.url ?? place.dataDir ?? '',
    log: events,
    database,
    async close() {
      await events.close();
      await database.close();
    },
  });
}

async function allOf(events: EventLog): Promise<LoggedEvent[]> {
  const all: LoggedEvent[] = [];
  for await (const page of events.readAll()) all.push(...page);
  return all;
}

async function fill({ log: events, database }: Opened, count: number): Promise<void> {
  const counters = createCounters(database.pool);
  const store = createEventStore({ log: events, catalogue, counters, keys: createPersonKeys(database) });
  await writeHistory(store, { events: count });
}

const texts = async (events: EventLog) => (await allOf(events)).map(canonical);

/** `signalbox copy-log` as a process. */
function start(...args: string[]): { child: ChildProcess; ended: Promise<{ code: number | null; said: string }> } {
  const child = spawn(process.execPath, commandLine('copy-log', ...args), {
    env: { PATH: process.env.PATH, HOME: process.env.HOME },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const said = Promise.all([text(child.stdout), text(child.stderr)]);
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve)).then(async (code) => ({
    code,
    said: (await said).join(''),
  }));
  return { child, ended };
}

describe('copy of a log', function () {
  // Each case starts several processes, which takes its time on a loaded machine.
  this.timeout(180_000);
  const undo: (() => Promise<unknown>)[] = [];
  let empty: string;
  let origin: string;
  let credentialId: string;
  let sha256: string;

  before(async () => {
    const directory = await temporaryDirectory();
    undo.push(directory.remove);
    origin = join(directory.path, 'origin');
    empty = await migratedDirectory();
    undo.push(() => rm(empty, { recursive: true, force: true }));
    newDirectory('origin');
    const source = await open({ dataDir: origin });
    await fill(source, EVENTS);
    await createCounters(source.database.pool).take('user', 77);
    const credentials = createCredentials(source.database, log);
    credentialId = await credentials.addPassword(1, PASSWORD);
    await credentials.addKey('key', { kind: 'agent', keyId: 5 });
    await source.database.pool.query(
      "INSERT INTO service.checkpoints (schema_name, projection, version, position) VALUES ('policy_mail', 'policy mail', 1, 1234)",
    );
    await credentials.close();
    await source.close();
  });
  after(async () => {
    for (const step of undo.reverse()) await step();
  });

  /** A directory next to the origin. */
  const beside = (name: string) => join(origin, '..', name);
  /** One with an empty database. */
  const newDirectory = (name: string): string => {
    copyDatabase(empty, beside(name));
    return beside(name);
  };

  /** Runs the copy, kills it `times` times once the target holds more than a random number of events, then lets it end. */
  async function copyThroughKills(
    from: string,
    to: string,
    times: number,
    count: () => Promise<number | undefined>,
    ...more: readonly string[]
  ): Promise<void> {
    let reached = 0;
    let kills = 0;
    for (let n = 0; n < times; n++) {
      const { child, ended } = start('--from', from, '--to', to, ...more);
      const threshold = reached + Math.random() * (EVENTS - reached) * 0.7;
      await until(
        'the target fills',
        async () => {
          const events = await count();
          if (events !== undefined && events > threshold) {
            reached = events;
            if (child.exitCode === null) kills++;
            child.kill('SIGKILL');
            return true;
          }
          return child.exitCode !== null;
        },
        60_000,
      );
      await ended;
    }
    expect(kills).to.be.greaterThan(0);
    const last = await start('--from', from, '--to', to, ...more).ended;
    expect(last.said).to.match(/SHA-256 of both sides [0-9a-f]{64}/);
    expect(last.code).to.equal(0);
    const hash = /SHA-256 of both sides (\w+)/.exec(last.said)?.[1] as string;
    sha256 ??= hash;
    expect(hash).to.equal(sha256);
  }

  /** Expects everything that a service needs to be in the copy. */
  async function expectComplete(copy: Opened, samePositions = true): Promise<void> {
    await using source = await open({ dataDir: origin });
    expect(await texts(copy.log)).to.deep.equal(await texts(source.log));
    const rows = async (database: Database, query: string) => (await database.pool.query(query)).rows;
    for (const query of [
      'SELECT * FROM service.counters ORDER BY name',
      'SELECT * FROM credentials.person_keys ORDER BY person',
      'SELECT * FROM credentials.keys',
      `SELECT schema_name${samePositions ? ', position' : ''} FROM service.checkpoints WHERE schema_name = 'policy_mail'`,
    ]) {
      expect(await rows(copy.database, query), query).to.deep.equal(await rows(source.database, query));
    }
    const decoded = async ({ database, log: events }: Opened) => {
      const store = createEventStore({
        log: events,
        catalogue,
        counters: createCounters(database.pool),
        keys: createPersonKeys(database),
      });
      const all = await Promise.all((await allOf(events)).slice(0, 50).map((event) => store.decode(event)));
      return all.map(({ data, meta }) => ({ data, ip: meta.ip }));
    };
    expect(await decoded(copy)).to.deep.equal(await decoded(source));
    const credentials = createCredentials(copy.database, log);
    expect(await credentials.verifyPassword(credentialId, PASSWORD)).to.equal(true);
    expect(await credentials.findKey('key')).to.deep.equal({ kind: 'agent', keyId: 5 });
    await credentials.close();
    expect(await createCounters(copy.database.pool).take('user')).to.equal(78);
  }

  it('copies from directory to directory completely, despite being killed', async () => {
    const directory = newDirectory('copy');
    // The copying process has the directory open, so use its socket.
    let looker: pg.Client | undefined;
    await copyThroughKills(`embedded:${origin}`, directory, 1, async () => {
      try {
        if (!looker) {
          const running = await runningEmbedded(directory);
          if (!running) return undefined;
          looker = await connected({ ...running, user: 'postgres', database: 'postgres' });
        }
        return (await looker.query('SELECT position FROM log.head')).rows[0].position as number;
      } catch {
        // The socket does not exist yet, or ended with the process.
        looker = undefined;
        return undefined;
      }
    });
    await using copy = await open({ dataDir: directory });
    await expectComplete(copy);
  });

  it('copies to PostgreSQL and back, despite being killed, with equal hashes', async function () {
    needsServer('TEST_DATABASE_URL', this);
    const fresh = await freshDatabase();
    undo.push(fresh.drop);
    await using copy = await open({ url: fresh.url });
    await copyThroughKills(`embedded:${origin}`, fresh.url, 2, () => copy.log.head());
    await expectComplete(copy);
    const back = newDirectory('back');
    const { said, code } = await start('--from', fresh.url, '--to', `embedded:${back}`).ended;
    expect(code, said).to.equal(0);
    expect(said).to.contain(sha256);
  });

  it('copies to a shared event store and back, despite being killed, with equal hashes', async function () {
    needsServer('TEST_DATABASE_URL', this);
    const standIn = process.env.TEST_EVENTSTORE_URL ? undefined : await startEventStoreStandIn();
    const url = standIn?.url ?? (process.env.TEST_EVENTSTORE_URL as string);
    undo.push(async () => standIn?.stop());
    const prefix = freshPrefix();
    const fresh = await freshDatabase();
    undo.push(fresh.drop);
    const beside = await open({ url: fresh.url });
    await using events = closing(await openEventStoreLog({ url, prefix, log }));
    undo.push(() => beside.close());
    const theirs = await openEventStoreLog({ url, prefix: freshPrefix(), log });
    await theirs.append('theirs', [{ id: randomUUID(), type: 'Theirs', data: {}, meta: {} }], 'none');
    await theirs.close();
    const copied = async () => (await allOf(events)).length;
    const place = ['--to-database', fresh.url, '--to-prefix', prefix];
    await copyThroughKills(`embedded:${origin}`, url, 2, copied, ...place);
    await expectComplete({ ...beside, log: events }, false);
    const back = newDirectory('from-event-store');
    const { said, code } = await start(
      ...['--from', url, '--from-database', fresh.url, '--from-prefix', prefix],
      ...['--to', `embedded:${back}`],
    ).ended;
    expect(code, said).to.equal(0);
    expect(said).to.contain(sha256);

    const shared = await start('--from', url, '--to', url, '--to-prefix', prefix, '--log-only').ended;
    expect(shared.said).to.match(/On the same server both sides need a prefix/);
    const same = await start('--from', fresh.url, '--to', fresh.url.replace(/\?|$/, '?application_name=other&')).ended;
    expect(same.code).to.equal(1);
    expect(same.said).to.match(/Source and target use the same database/);
  });

  it('resumes after an interruption before its first event', async () => {
    await using source = await open({ dataDir: origin });
    await using target = await open({ dataDir: newDirectory('cut-off') });
    const cut = { ...source, log: { head: () => Promise.reject(new Error('cut off')) } as unknown as EventLog };
    expect(await outcomeText(copyLog(cut, target))).to.equal('cut off');
    expect((await target.database.pool.query('SELECT 1 FROM credentials.keys')).rows).to.have.length(1);
    expect((await copyLog(source, target)).sha256).to.equal(sha256);
  });

  it('copies heartbeats that only leases had, once, also if it is resumed, and with --log-only', async () => {
    const source = await open({ dataDir: newDirectory('leased') });
    await fill(source, 20);
    const leases = createLeases(source.database.pool);
    const beat = (agent: number) =>
      leases.renew({ tenant: 1, workspace: 1, agent, at: 1_800_000_000, connection: null });
    for (const agent of [1, 1, 2]) await beat(agent);
    const summaries = async (events: EventLog) =>
      (await allOf(events)).filter(({ type }) => type === 'HeartbeatsReceived').map(({ data }) => data.agents);
    await using target = await open({ dataDir: newDirectory('from-leased') });
    // Interrupted after the summary, and before the first event of the target.
    const cut = {
      ...source,
      related: undefined,
      database: { ...source.database, db: undefined } as unknown as Database,
    };
    expect(await outcomeText(copyLog(cut, target))).to.be.a('string');
    const first = [
      [1, 2, 0, 0],
      [2, 1, 0, 0],
    ];
    expect(await summaries(source.log)).to.deep.equal([first]);
    await copyLog(source, target);
    expect(await summaries(target.log)).to.deep.equal([first]);
    await beat(1);
    await copyLog(source, target);
    expect(await summaries(target.log)).to.deep.equal([first, [[1, 1, 0, 0]]]);
    expect(await texts(target.log)).to.deep.equal(await texts(source.log));
    const { rows } = await target.database.pool.query('SELECT FROM service.leases');
    expect(rows, 'the log has all of them').to.have.length(0);

    await beat(2);
    await source.close();
    const [from, to] = ['leased', 'only-log'].map((name) => `embedded:${beside(name)}`) as [string, string];
    newDirectory('only-log');
    const { code, out, err } = await runHere(['copy-log', '--from', from, '--to', to, '--log-only']);
    expect(code, out + err).to.equal(0);
    expect(out + err).not.to.contain('of service.');
    await using only = await open({ dataDir: beside('only-log') });
    expect(await summaries(only.log)).to.deep.equal([first, [[1, 1, 0, 0]], [[2, 1, 0, 0]]]);
  });

  it('copies large events in parts that the target accepts', async () => {
    await using standIn = closing(await startEventStoreStandIn());
    // Half of its default, which `copyLog` keeps below as well.
    await using events = closing(await openEventStoreLog({ url: standIn.url, log, maxAppendBytes: 8_000_000 }));
    await using source = await open({ dataDir: newDirectory('large') });
    const data = { filler: 'x'.repeat(900_000) };
    // 18 MB: the target sends 8 MB, lets 8 MB wait, and refuses what comes on top.
    for (let n = 0; n < 20; n++)
      await source.log.append(`large-${n}`, [{ id: randomUUID(), type: 'L', data, meta: {} }], 'none');
    const report = await copyLog(source, { name: 'server', log: events, database: undefined });
    expect(report).to.include({ copied: 20, events: 20 });
  });

  it('copies to an event store server and back, and resumes from there', async () => {
    await using standIn = closing(await startEventStoreStandIn());
    await using events = closing(await openEventStoreLog({ url: standIn.url, log }));
    const server: CopySide = { name: 'server', log: events, database: undefined };
    await using source = await open({ dataDir: newDirectory('small') });
    await fill(source, 100);
    const there = await copyLog(source, server);
    expect(there.events).to.be.at.least(100);
    expect(there.rows).to.equal(undefined);
    await using copy = await open({ dataDir: newDirectory('from-server') });
    const back = await copyLog(server, { ...copy, database: undefined });
    expect(back.sha256).to.equal(there.sha256);

    await events.append('more', [{ id: randomUUID(), type: 'More', data: { b: 1, a: [{}] }, meta: {} }], 'none');
    const more = await copyLog(server, { ...copy, database: undefined });
    expect(more.copied).to.equal(1);
    expect(more.events).to.equal(there.events + 1);
    expect((await copyLog(server, { ...copy, database: undefined })).copied).to.equal(0);
  });

  it('stops when aborted, and resumes', async () => {
    await using source = await open({ dataDir: newDirectory('copy-2') });
    await using target = await open({ dataDir: newDirectory('copy-3') });
    const one = () => ({ id: randomUUID(), type: 'One', data: {}, meta: {} });
    for (let n = 0; n < 30; n++) await source.log.append(`s-${n}`, Array.from({ length: 100 }, one), 'none');
    const stop = new AbortController();
    const onProgress = () => stop.abort(new Error('stopped'));
    expect(await outcomeText(copyLog(source, target, { signal: stop.signal, onProgress }))).to.equal('stopped');
    const held = await target.log.head();
    expect(held).to.be.within(1, 2_999);
    const rest = await copyLog(source, target);
    expect(rest.copied).to.equal(3_000 - held);
    expect(await texts(target.log)).to.deep.equal(await texts(source.log));

    // An event that the source does not have, at the end and then in the middle.
    await target.log.append('foreign', [one()], 'none');
    expect(await outcomeText(copyLog(source, target))).to.match(
      /holds events that .* does not have.*foreign, revision 0/,
    );
    await source.log.append('s-1', [one()], 99);
    expect(await outcomeText(copyLog(source, target))).to.match(/Copy into an empty target/);
  });

  it('rejects a database that is in use, and invalid locations', async () => {
    const target = await open({ dataDir: newDirectory('in-use') });
    await createCredentials(target.database, log).addKey('other', { kind: 'global', keyId: 1 });
    const source = await open({ dataDir: newDirectory('copy-4') });
    expect(await outcomeText(copyLog(source, target))).to.match(
      /is empty, but its database has rows in credentials.keys/,
    );
    await source.close();
    const locked = await runHere(['copy-log', '--from', origin, '--to', beside('in-use')]);
    expect(locked.code).to.equal(1);
    expect(locked.err).to.match(/in use by process/);
    await target.close();
    for (const [args, says] of [
      [['--from', 'mysql://user:secret@db/x', '--to', 'x'], /mysql:\/\/db\/x is not a valid log location/],
      [['--from', origin, '--to', 'esdb://localhost:2113'], /--to-database/],
      [['--from', origin, '--to', `embedded:${origin}`], /from and --to are the same/],
      [['--from', origin, '--to', 'esdb://localhost:2113', '--to-prefix', 'acme'], /acme is not a valid stream prefix/],
    ] as const) {
      const { code, err } = await runHere(['copy-log', ...args]);
      expect(code).to.equal(1);
      expect(err).to.match(says);
      expect(err).not.to.contain('secret');
    }
  });
});
