/** The embedded database: durable, one owner, many connections on its one session. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { CompiledQuery } from 'kysely';
import pg from 'pg';
import { openDatabase } from '../../../infra/database/database.ts';
import { DirectoryLockedError, lockDirectory, lockHolder } from '../../../infra/embedded/directory-lock.ts';
import { type Embedded, openEmbedded, runningEmbedded } from '../../../infra/embedded/embedded.ts';
import { message, notificationsIn, SWAPPED, startupMessage } from '../../../infra/embedded/protocol.ts';
import { createLogger } from '../../../infra/logging.ts';
import { PREPARED } from '../../../shared/prepared.ts';
import { closing } from '../../support/fixture.ts';
import { runs } from '../../support/runs.ts';
import { nodeArgs } from '../../support/service-process.ts';
import { copyDatabase } from '../../support/template.ts';
import { until } from '../../support/until.ts';

const KILLS = runs(2, 3);
const warnings: string[] = [];
const log = {
  info: () => undefined,
  warn: (_fields: object, line: string) => {
    warnings.push(line);
  },
  error: (_fields: object, line: string) => {
    warnings.push(line);
  },
};

const text = (value: string): Buffer => Buffer.from(`${value}\0`);
const socketFile = ({ socketDir, port }: Embedded): string => join(socketDir, `.s.PGSQL.${port}`);

async function clientOf({
  socketDir,
  port,
}: Pick<Embedded, 'socketDir' | 'port'>): Promise<pg.Client & AsyncDisposable> {
  const client = closing(new pg.Client({ host: socketDir, port, user: 'postgres', database: 'postgres' }));
  client.on('error', () => {
    // Tests end connections on purpose; errors of queries are checked where these are awaited.
  });
  await client.connect();
  return client;
}

/** Speaks the protocol by hand; `heard` is everything received. */
async function rawClient(embedded: Embedded): Promise<{ socket: Socket; heard: () => string }> {
  const socket = connect(socketFile(embedded));
  let heard = '';
  socket.on('data', (chunk: Buffer) => {
    heard += chunk.toString('latin1');
  });
  await once(socket, 'connect');
  return { socket, heard: () => heard };
}

/** The socket below a `pg` client, which its types leave out. */
const socketOf = (client: pg.Client): Socket =>
  (client as unknown as { connection: { stream: Socket } }).connection.stream;

async function numbers(client: pg.Client): Promise<number[]> {
  const { rows } = await client.query<{ n: number }>('SELECT n FROM numbers ORDER BY n');
  return rows.map(({ n }) => n);
}

describe('embedded database', function () {
  this.timeout(60_000);
  let root: string;
  let template: string;
  /** Open for all tests that do not close or break it. */
  let shared: Embedded;
  let sharedDir: string;
  const children = new Set<ChildProcess>();

  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'embedded-test-'));
    template = join(root, 'template');
    const embedded = await openEmbedded({ dataDir: template, log });
    const client = await clientOf(embedded);
    await client.query('CREATE TABLE numbers (n int PRIMARY KEY)');
    await client.query('CREATE TABLE accounts (id int PRIMARY KEY, balance int NOT NULL)');
    await client.query('INSERT INTO accounts VALUES (1, 0), (2, 0)');
    await client.end();
    await embedded.close();
    sharedDir = await freshDirectory();
    shared = await openEmbedded({ dataDir: sharedDir, log });
  });

  after(async () => {
    await shared.close();
    await rm(root, { recursive: true, force: true });
  });

  afterEach(async () => {
    for (const child of children) await kill(child);
    await using client = await clientOf(shared);
    await client.query('TRUNCATE numbers');
  });

  /** A copy of the template, so that initdb runs once. */
  async function freshDirectory(...path: string[]): Promise<string> {
    const directory = join(await mkdtemp(join(root, 'data-')), ...path);
    await mkdir(directory, { recursive: true, mode: 0o700 });
    copyDatabase(template, directory);
    return directory;
  }

  function child(mode: 'insert' | 'open' | 'lock', dataDir: string): ChildProcess {
    const started = fork(fileURLToPath(new URL('./embedded-child.js', import.meta.url)), [mode, dataDir], {
      execArgv: nodeArgs(),
    });
    children.add(started);
    return started;
  }

  async function kill(process: ChildProcess): Promise<void> {
    children.delete(process);
    if (process.exitCode !== null || process.signalCode !== null) return;
    const exit = once(process, 'exit');
    process.kill('SIGKILL');
    await exit;
  }

  const answer = async (process: ChildProcess): Promise<unknown> => (await once(process, 'message'))[0];

  describe('a data directory', () => {
    it('is private to its owner, is flushed to disk, and contains only the database postgres', async () => {
      for (const name of ['.', 'pg', 'run'])
        expect((await stat(join(template, name))).mode & 0o777, name).to.equal(0o700);
      expect(await readdir(template)).to.have.members(['pg', 'run']);
      await using client = await clientOf(shared);
      expect((await client.query('SHOW fsync')).rows).to.deep.equal([{ fsync: 'on' }]);
      expect((await client.query('SHOW wal_sync_method')).rows).to.deep.equal([{ wal_sync_method: 'fsync' }]);
      expect((await client.query('SELECT datname FROM pg_database')).rows).to.deep.equal([{ datname: 'postgres' }]);
    });

    it('refuses a second process, naming pid and remedy', async () => {
      const refused = await openEmbedded({ dataDir: sharedDir, log }).catch((error: unknown) => error);
      expect(refused).to.be.instanceOf(DirectoryLockedError);
      const told = String(await answer(child('open', sharedDir)));
      expect(told).to.include(sharedDir).and.to.include(`process ${process.pid}.`).and.to.include('Stop that process');
    });

    it('shows how to connect while it is open', async () => {
      const running = await runningEmbedded(sharedDir);
      await using client = await clientOf({ socketDir: running?.host ?? '', port: running?.port ?? 0 });
      expect(await numbers(client)).to.deep.equal([]);
      // In a container, a tool sees the directory under another path.
      expect((await lockHolder(sharedDir))?.socketDir).to.equal('run');
      expect(await runningEmbedded(template)).to.equal(undefined);
      expect(await runningEmbedded(join(root, 'nothing here'))).to.equal(undefined);
    });

    it('may have a path that is too long for a Unix socket', async () => {
      const dataDir = await freshDirectory('a'.repeat(100), 'b'.repeat(100));
      const owner = child('open', dataDir);
      expect(await answer(owner)).to.equal('opened');
      const running = await runningEmbedded(dataDir);
      expect(Buffer.byteLength(running?.host ?? dataDir)).to.be.lessThan(80);
      expect((await lockHolder(dataDir))?.socketDir).to.equal(running?.host);
      expect((await stat(running?.host ?? '')).mode & 0o777).to.equal(0o700);
      expect(await openEmbedded({ dataDir, log }).then(String, String)).to.include(`process ${owner.pid}.`);
      await kill(owner);
      const embedded = await openEmbedded({ dataDir, log });
      const client = await clientOf(embedded);
      expect(await numbers(client)).to.deep.equal([]);
      await client.end();
      await embedded.close();
      // Neither the killed owner's socket directory nor this one is left.
      for (const directory of [running?.host ?? '', embedded.socketDir]) {
        expect(existsSync(directory), directory).to.equal(false);
      }
    });

    it('is opened by exactly one of six processes, and again by one each time that process is killed', async () => {
      const dataDir = await mkdtemp(join(root, 'lock-'));
      let starters = Array.from({ length: 6 }, () => child('lock', dataDir));
      await Promise.all(starters.map(answer));
      while (starters.length > 3) {
        const answers = Promise.all(starters.map(answer));
        for (const starter of starters) starter.send('go');
        const said = await answers;
        const [winner, ...more] = starters.filter((_starter, index) => said[index] === 'held');
        if (winner === undefined) throw new Error(`nobody won: ${said.join('; ')}`);
        expect(more).to.deep.equal([]);
        for (const line of said) if (line !== 'held') expect(line).to.include(`process ${winner.pid}.`);
        await kill(winner);
        starters = starters.filter((starter) => starter !== winner);
      }
    });

    it('is opened by exactly one of ten concurrent openers in one process', async () => {
      const dataDir = await mkdtemp(join(root, 'lock-'));
      for (let round = 0; round < 5; round++) {
        const results = await Promise.allSettled(Array.from({ length: 10 }, () => lockDirectory(dataDir, dataDir)));
        const won = results.filter((result) => result.status === 'fulfilled');
        expect(won).to.have.length(1);
        for (const result of results) {
          if (result.status === 'rejected') expect(result.reason).to.be.instanceOf(DirectoryLockedError);
        }
        await won[0]?.value.release();
      }
    });

    it(`loses no acknowledged row to kill -9, ${KILLS} times, and opens again at once`, async () => {
      const dataDir = await freshDirectory();
      const acknowledged = new Set<number>();
      for (let round = 0; round <= KILLS; round++) {
        const writer = child('insert', dataDir);
        const kept = new Set((await answer(writer)) as number[]);
        expect([...acknowledged].filter((n) => !kept.has(n))).to.deep.equal([]);
        const before = acknowledged.size;
        writer.on('message', (n: number) => acknowledged.add(n));
        if (round < KILLS) await until('a hundred more are acknowledged', () => acknowledged.size >= before + 100);
        await kill(writer);
      }
      expect(acknowledged.size).to.be.at.least(KILLS * 100);
    });

    it('keeps its rows after closing, which completes a transaction, notifies others and is repeatable', async () => {
      const dataDir = await freshDirectory();
      const embedded = await openEmbedded({ dataDir, log });
      const [busy, idle] = [await clientOf(embedded), await clientOf(embedded)];
      const told = once(idle, 'error');
      await busy.query('BEGIN');
      await busy.query('INSERT INTO numbers VALUES (1)');
      const closed = Promise.all([embedded.close(), embedded.close()]);
      expect((await told)[0]).to.have.property('code', '57P01');
      await busy.query('COMMIT');
      await closed;
      await embedded.close();
      await using reopened = closing(await openEmbedded({ dataDir, log }));
      await using client = await clientOf(reopened);
      expect(await numbers(client)).to.deep.equal([1]);
    });

    it('is reported at once if it becomes unwritable, and opens again with every acknowledged row', async () => {
      const dataDir = await freshDirectory();
      const embedded = await openEmbedded({ dataDir, log });
      const client = await clientOf(embedded);
      await client.query('INSERT INTO numbers VALUES (1)');
      const [wal, away] = [join(dataDir, 'pg', 'pg_wal'), join(dataDir, 'pg', 'away')];
      await rename(wal, away);
      const outcome = client
        .query('SELECT pg_switch_wal()')
        .then(async () => await client.query('INSERT INTO numbers VALUES (2)').then(() => 'done', String), String);
      expect((await embedded.failed).message).to.include('the database engine aborted');
      expect(await outcome).not.to.equal('done');
      await embedded.close();
      await rename(away, wal);
      await using reopened = closing(await openEmbedded({ dataDir, log }));
      await using again = await clientOf(reopened);
      expect(await numbers(again)).to.deep.equal([1]);
    });
  });

  describe('connections', () => {
    it('get results for their own statement and parameters after waiting for a transaction', async () => {
      const [holder, ...others] = await Promise.all(Array.from({ length: 6 }, () => clientOf(shared)));
      await holder?.query('BEGIN');
      const waiting = others.map(async (client, index) => {
        const values = Array.from({ length: index + 1 }, (_, position) => `${index}.${position}`);
        const columns = values.map((_, position) => `$${position + 1}::text AS c${position}`);
        const { rows } = await client.query({ text: `SELECT ${columns.join(', ')}`, values, rowMode: 'array' });
        expect(rows).to.deep.equal([values]);
        return await client.query('SELECT 1 / $1::int', [0]).then(String, String);
      });
      await holder?.query('SELECT pg_sleep(0.05)');
      await holder?.query('COMMIT');
      for (const failure of await Promise.all(waiting)) expect(failure).to.include('division by zero');
      await Promise.all([holder, ...others].map((client) => client?.end()));
    });

    it('do not mix data that exceeds one packet', async () => {
      await Promise.all(
        [0, 1, 2, 3].map(async (index) => {
          await using client = await clientOf(shared);
          for (let round = 0; round < 5; round++) {
            const large = `${index}.${round}.`.repeat(100_000);
            const query = 'SELECT md5($1::text) = md5($2::text) AS same, $3::int AS index';
            const { rows } = await client.query(query, [large, large, index]);
            expect(rows).to.deep.equal([{ same: true, index }]);
          }
        }),
      );
    });

    it('have transactions that exclude the statements of all others', async () => {
      await using pool = closing(new pg.Pool({ host: shared.socketDir, port: shared.port, user: 'postgres', max: 12 }));
      const transfer = async (): Promise<void> => {
        const client = await pool.connect();
        try {
          await client.query('BEGIN');
          const { rows } = await client.query<{ balance: number }>('SELECT balance FROM accounts WHERE id = $1', [1]);
          await client.query('UPDATE accounts SET balance = $1 WHERE id = 1', [Number(rows[0]?.balance) + 1]);
          await client.query('UPDATE accounts SET balance = balance - $1 WHERE id = 2', [1]);
          await client.query('COMMIT');
        } finally {
          client.release();
        }
      };
      const look = async (): Promise<void> => {
        const { rows } = await pool.query('SELECT sum(balance)::int AS sum FROM accounts');
        expect(rows).to.deep.equal([{ sum: 0 }]);
      };
      await Promise.all(Array.from({ length: 150 }, (_, index) => (index % 3 === 0 ? look() : transfer())));
      expect((await pool.query('SELECT balance FROM accounts WHERE id = 1')).rows).to.deep.equal([{ balance: 100 }]);
    });

    it('that die inside a transaction are rolled back and block no one', async () => {
      const dying = await clientOf(shared);
      await using other = await clientOf(shared);
      await dying.query('BEGIN');
      await dying.query('INSERT INTO numbers VALUES (1)');
      const waiting = numbers(other);
      socketOf(dying).destroy();
      expect(await waiting).to.deep.equal([]);
    });

    it('that die between a statement and its Sync are rolled back and block no one', async () => {
      const { socket, heard } = await rawClient(shared);
      socket.write(startupMessage({ user: 'postgres' }));
      socket.write(message('P', text(''), text('INSERT INTO numbers VALUES (1)'), Buffer.alloc(2)));
      socket.write(message('B', text(''), text(''), Buffer.alloc(6)));
      socket.write(message('E', text(''), Buffer.alloc(4)));
      socket.write(message('H'));
      await until('it has run', () => heard().includes('INSERT 0 1'));
      await using other = await clientOf(shared);
      const waiting = numbers(other);
      socket.destroy();
      expect(await waiting).to.deep.equal([]);
    });

    it('have their own named statements, and never run another’s unnamed statement', async () => {
      const clients = await Promise.all([0, 1, 2].map(() => clientOf(shared)));
      for (let round = 0; round < 2; round++) {
        for (const [index, client] of clients.entries()) {
          const query = { name: 'same', text: `SELECT ${index} + $1::int AS sum`, values: [10] };
          expect((await client.query(query)).rows).to.deep.equal([{ sum: index + 10 }]);
        }
      }
      const { socket, heard } = await rawClient(shared);
      socket.write(startupMessage({ user: 'postgres' }));
      await clients[0]?.query('SELECT $1::int', [1]);
      socket.write(message('B', text(''), text(''), Buffer.from([0, 0, 0, 1, 0, 0, 0, 1, 0x37, 0, 0])));
      socket.write(message('S'));
      await until('it is refused', () => heard().includes('does not exist'));
      socket.destroy();
      await Promise.all(clients.map((client) => client.end()));
      await using last = await clientOf(shared);
      const left = async (): Promise<number> =>
        (await last.query('SELECT count(*)::int AS n FROM pg_prepared_statements WHERE name <> $1', [''])).rows[0].n;
      await until('none is left', async () => (await left()) === 0);
    });

    it('prepare repeated statements, and close the least recently used ones above a limit', async () => {
      const database = await openDatabase({
        dataDir: sharedDir,
        attach: true,
        poolSize: 2,
        statementTimeoutMs: 30_000,
        log: createLogger('silent'),
      });
      const marker = `/* ${'x'.repeat(20_000)} */`;
      const ask = async (n: number): Promise<void> => {
        const query = CompiledQuery.raw(`${PREPARED} ${marker} SELECT ${n} + $1::int AS sum`, [1]);
        const { rows } = await database.db.executeQuery(query);
        expect(rows).to.deep.equal([{ sum: n + 1 }]);
      };
      const held = async (): Promise<number[]> => {
        const { rows } = await database.pool.query(
          `SELECT substring(statement from 'SELECT ([0-9]+)')::int AS n FROM pg_prepared_statements
           WHERE starts_with(statement, $1) ORDER BY n`,
          [PREPARED],
        );
        return (rows as { n: number }[]).map(({ n }) => n);
      };
      await ask(0);
      expect(await held(), 'one that came once').to.deep.equal([]);
      await ask(0);
      expect(await held(), 'one that came again').to.deep.equal([0]);
      for (let n = 1; n <= 80; n++) {
        await ask(n);
        await ask(n);
        await ask(0);
      }
      const numbers = await held();
      expect(numbers).to.have.length.within(40, 50);
      expect(numbers, 'the one in use').to.include(0);
      expect(numbers, 'the newest').to.include(80);
      expect(numbers, 'the least recently used').to.not.include(1);
      await ask(1);
      const after = await held();
      expect(after, 'prepared again').to.include(1);
      expect(after).to.have.length.within(40, 50);
      const { rows } = await database.pool.query(`${PREPARED} SELECT 1 AS one`);
      expect(rows, 'by the pool').to.deep.equal([{ one: 1 }]);
      const busy = await database.pool.connect();
      await ask(0);
      busy.release();
      await database.close();
      await using client = await clientOf(shared);
      const left = 'SELECT count(*)::int AS n FROM pg_prepared_statements WHERE starts_with(statement, $1)';
      await until('none is left', async () => (await client.query(left, [PREPARED])).rows[0].n === 0);
    });

    it('that keep a transaction open and idle while others wait are ended', async () => {
      await using embedded = closing(
        await openEmbedded({ dataDir: await freshDirectory(), log, idleInTransactionMs: 200 }),
      );
      const idle = await clientOf(embedded);
      await using other = await clientOf(embedded);
      const told = once(idle, 'error');
      await idle.query('BEGIN');
      await idle.query('INSERT INTO numbers VALUES (1)');
      expect(await numbers(other)).to.deep.equal([]);
      expect((await told)[0]).to.have.property('code', '25P03');
    });

    it('are limited to 150, and one more is refused with a reason', async () => {
      await using pool = closing(
        new pg.Pool({ host: shared.socketDir, port: shared.port, user: 'postgres', max: 150 }),
      );
      const each = Array.from({ length: 150 }, (_, index) => index);
      const results = await Promise.all(each.map((index) => pool.query('SELECT $1::int AS i', [index])));
      expect(results.map(({ rows }) => rows[0].i)).to.deep.equal(each);
      const more = await Promise.allSettled(each.slice(0, 60).map(() => clientOf(shared)));
      const refused = more.filter((result) => result.status === 'rejected');
      expect(refused[0]?.reason).to.have.property('code', '53300');
      for (const result of more) if (result.status === 'fulfilled') await result.value.end();
    });

    it('cannot break the engine with COPY, a timeout setting, endless recursion or an invalid message', async () => {
      await using client = await clientOf(shared);
      const outcome = (query: string | pg.QueryConfig): Promise<string> =>
        client.query(query).then(() => 'done', String);
      expect(await outcome('COPY numbers FROM STDIN')).to.include('not available on the embedded database');
      expect(await outcome({ text: 'COPY numbers FROM STDIN', name: 'copy' })).to.include('not available');
      await client.query("SET idle_in_transaction_session_timeout = '1ms'");
      await client.query('BEGIN');
      await sleep(30);
      await client.query('COMMIT');
      await client.query('RESET idle_in_transaction_session_timeout');
      await client.query('CREATE FUNCTION f(int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN f($1 + 1); END $$');
      expect(await outcome('SELECT f(1)')).to.include('stack depth limit exceeded');
      const { socket } = await rawClient(shared);
      socket.write('GET / HTTP/1.1\r\n\r\n');
      await once(socket, 'close');
      expect(await numbers(client)).to.deep.equal([]);
    });
  });

  describe('table swap notifications', () => {
    it('are sent after the commit, before the client receives the response to it', async () => {
      const heard: string[] = [];
      const stop = shared.onSwap((schema) => heard.push(schema));
      await using client = await clientOf(shared);
      const notify = (schema: string) => client.query('SELECT pg_notify($1, $2)', [SWAPPED, schema]);
      await client.query('BEGIN');
      await notify('undone_v1');
      await client.query('ROLLBACK');
      await client.query('BEGIN');
      await notify('one_v1');
      await notify('two_v1');
      expect(heard).to.deep.equal([]);
      await client.query('COMMIT');
      await client.query('LISTEN another_channel');
      await client.query("SELECT pg_notify('another_channel', 'x')");
      await client.query('UNLISTEN another_channel');
      await until('both are heard', () => heard.length >= 2);
      await notify('three_v1');
      await until('the third is heard', () => heard.length >= 3);
      expect(heard).to.deep.equal(['one_v1', 'two_v1', 'three_v1']);
      stop();
      await notify('four_v1');
      expect(heard).to.have.length(3);
    });

    it('are found in a response wherever it is split', () => {
      const notification = (payload: string, channel = SWAPPED) =>
        message('A', Buffer.alloc(4), text(channel), text(payload));
      const row = message('D', Buffer.from('AAAA'));
      const notifications = [notification('a'), notification('b', 'another_channel'), notification('')];
      const answer = Buffer.concat([row, message('C', text('COMMIT')), ...notifications, row]);
      for (let cut = 0; cut <= answer.length; cut++)
        expect(notificationsIn([answer.subarray(0, cut), answer.subarray(cut)], SWAPPED)).to.deep.equal(['a', '']);
      expect(notificationsIn([answer], SWAPPED)).to.deep.equal(['a', '']);
      expect(notificationsIn([], SWAPPED)).to.deep.equal([]);
    });
  });
});
