/**
 * The command line as users see it, on a data directory, with and without a running service: each command in a process at
 * least once, and its other cases in this one.
 */
import { createHash } from 'node:crypto';
import { lstat, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { readConfig } from '../../../infra/config.ts';
import { openConfigured } from '../../../infra/database/database.ts';
import { createLogger } from '../../../infra/logging.ts';
import { usersProjection } from '../../../projections/auth/users.ts';
import { schemaOf } from '../../../projections/projection.ts';
import { runHere as run } from '../../support/command.ts';
import { fixture, fixtureForEach } from '../../support/fixture.ts';
import { failureOf } from '../../support/kit.ts';
import { startTestService } from '../../support/service.ts';
import { runCommand, startProcess, temporaryDirectory } from '../../support/service-process.ts';

/** Expects a command with each of these arguments to be refused with its reason. */
async function refuses(
  command: string,
  env: Record<string, string>,
  ...cases: readonly (readonly [args: readonly string[], reason: RegExp])[]
): Promise<void> {
  for (const [args, reason] of cases) {
    const { code, err } = await run([command, ...args], env);
    expect([code, err], args.join(' ')).to.deep.equal([1, err]);
    expect(err).to.match(reason);
  }
}

describe('command line', function () {
  this.timeout(120_000);
  /** The first start of a process in it is that of the test of credentials. */
  const directory = fixture(temporaryDirectory);
  const shown = { key: '', password: '' };
  const fresh = fixtureForEach(temporaryDirectory);
  const here = () => ({ DATA_DIR: directory.path });

  // That it describes its commands is tested with the README's table of them.
  it('prints its version', async () => {
    expect((await runCommand(['--version'])).out).to.match(/^\d+\.\d+\.\d+\n$/);
  });

  it('names every invalid setting with its value and the valid ones, and exits with 2', async () => {
    const { code, err } = await runCommand(['start'], {
      PORT: 'abc',
      LOG_LEVEL: 'loud',
      EVENTSTORE_URL: 'esdb://localhost:2113',
    });
    expect(code).to.equal(2);
    expect(err).to.match(/PORT: "abc" is invalid: must be a whole number from 0 to 65535/);
    expect(err).to.match(/LOG_LEVEL: "loud"/);
    expect(err).to.match(/EVENTSTORE_URL needs DATABASE_URL/);
  });

  it('reports an unreachable database in time', async () => {
    const { code, err } = await run(['status'], {
      DATABASE_URL: 'postgres://127.0.0.1:1/none',
      START_TIMEOUT_MS: '1000',
    });
    expect(code).to.equal(1);
    expect(err).to.match(/the database could not be reached in time: .*ECONNREFUSED/);
  });

  it('refuses to read a database that does not exist, and creates none', async () => {
    const { path } = fresh;
    const missing = join(path, 'data');
    for (const args of [['status'], ['rebuild', '--check'], ['export-events'], ['jobs', 'list'], ['jobs', 'dead']]) {
      const { code, err } = await run(args, { DATA_DIR: missing });
      expect(code, args.join(' ')).to.equal(1);
      expect(err, args.join(' ')).to.include(`there is no database in ${missing}. Set DATA_DIR`);
    }
    const copied = await run(['copy-log', '--from', `embedded:${missing}`, '--to', join(path, 'copy')]);
    expect(copied.code).to.equal(1);
    expect(copied.err).to.include(`There is no database in the directory ${missing}.`);
    expect(await readdir(path)).to.deep.equal([]);
  });

  it('names the setting to change if the data directory cannot be used', async () => {
    const { path } = fresh;
    const file = join(path, 'file');
    await writeFile(file, '');
    const unusable = (directory: string, reason: string) =>
      `data directory ${directory} cannot be used: ${reason}. Correct that, or set DATA_DIR to another directory.`;
    expect(await failureOf(startTestService({ DATA_DIR: file }))).to.equal(unusable(file, 'it is a file'));
    const below = join(file, 'data');
    await refuses('create-user', { DATA_DIR: below }, [
      ['--username', 'ada', '--role', 'admin'],
      new RegExp(`^signalbox: ${unusable(below, 'a part of its path is a file')}\n$`),
    ]);
  });

  it('shows generated credentials even if the port is in use, then names the setting to change', async () => {
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
    const { port } = taken.address() as AddressInfo;
    const first = await runCommand(['start'], { ...here(), LOG_LEVEL: 'warn', PORT: String(port) });
    taken.close();
    expect(first.code).to.equal(1);
    expect(first.err).to.equal(
      `signalbox: port ${port} on 127.0.0.1 is in use by another program. Stop that program, or set PORT to another port (0 picks a free one).\n`,
    );
    shown.password = /Admin password: (\S+)/.exec(first.out)?.[1] ?? '';
    shown.key = /API key: +(\S+)/.exec(first.out)?.[1] ?? '';
    expect(shown.password).to.match(/^\w{24}$/);
    expect(await failureOf(startTestService({ HOST: 'no-such-host.invalid' }))).to.include(
      'HOST is no-such-host.invalid, which is not an address of this machine. Set HOST to',
    );
  });

  it('creates a user without a running service, and rejects the same name', async () => {
    const args = ['create-user', '--username', 'eve', '--role', 'operator', '--password-stdin'];
    const created = await runCommand(args, here(), 'a long password here\n');
    expect(created.err).to.equal('');
    expect(created.out).to.match(/Created user eve \(id \d+, operator\)/);
    const again = await run(args, here(), 'a long password here\n');
    expect(again.code).to.equal(1);
    expect(again.err).to.match(/named "eve", or with a name that looks like it, already exists/);
    const short = await run(
      ['create-user', '--username', 'max', '--role', 'viewer', '--password-stdin'],
      here(),
      'short',
    );
    expect(short.code).to.equal(1);
    expect(short.err).to.match(/password/);
    for (const name of ['coordinator', '\u0435ve']) {
      const args = ['create-user', '--username', 'max', '--role', 'viewer', '--display-name', name];
      const { code, err } = await run(args, here());
      expect([code, err], name).to.deep.equal([1, err]);
      expect(err, name).to.match(/display_name: /);
    }
  });

  it('erases a person without a running service, and exports encrypt earlier values as before', async () => {
    await run(['create-user', '--username', 'zoe', '--role', 'viewer', '--email', 'zoe@mx9q.example'], here());
    const exported = async (...args: string[]) => (await run(['export-events', ...args], here())).out;
    const sealed = await exported('--type', 'UserCreated');
    expect(await exported('--reveal')).to.include('@mx9q');
    const erased = await run(['erase-person', 'zoe'], here());
    expect(erased.err).to.equal('');
    expect(erased.out).to.match(/^Erased the person behind the user \d+\.\nBackups made before/);
    // The name of the other user, a personal field, can still be read.
    expect(await exported('--reveal'))
      .to.include('"display_name":"eve"')
      .and.include('"zoe"')
      .and.not.include('@mx9q');
    expect(await exported('--type', 'UserCreated')).to.equal(sealed);
    expect((await run(['verify'], here())).code).to.equal(0);
    await refuses('erase-person', here(), [['admin'], /last enabled admin/]);
  });

  it('builds the read models of a new version once before it starts', async () => {
    const log = createLogger('silent');
    const database = await openConfigured(readConfig(here()), log);
    const schema = schemaOf(usersProjection);
    // As if this program were the first with this version.
    await database.pool.query(`DROP SCHEMA ${schema} CASCADE`);
    await database.pool.query('DELETE FROM service.checkpoints WHERE schema_name = $1', [schema]);
    await database.close();
    expect((await runCommand(['prepare'], here())).out).to.match(/^Built: users\n\d+ events in/);
    const past = await run(['diff', '--from', '1', '--resource', 'users'], here());
    expect(past.err + past.out, 'with its past').to.match(/^record +change/);
    expect((await run(['prepare'], here())).out).to.equal('All read models have been built before.\n');
  });

  it('replays read models without a running service, reports manual changes of a table, and rebuilds it', async () => {
    const whole = await runCommand(['replay', '--projection', 'users'], here());
    expect([whole.code, whole.err]).to.deep.equal([0, '']);
    expect(whole.out).to.match(
      /^read model +table +rows +only live +only replayed +different +earlier +first +positions\n/,
    );
    expect(whole.out).to.match(/^users +users +2 +0 +0 +0 +0 +0 to \d+$/m);
    const log = createLogger('silent');
    const database = await openConfigured(readConfig(here()), log);
    const users = `${schemaOf(usersProjection)}.users`;
    await database.pool.query(
      `UPDATE ${users} SET role = 'viewer', session_mark = 'planted', avatar_url = 'https://me:sesame9x@example.com/' WHERE username = 'eve'`,
    );
    const { rows } = await database.pool.query(`SELECT position FROM ${users} WHERE username = 'eve'`);
    await database.close();
    const { position } = rows[0];
    const found = await run(['replay', '--projection', 'users', 'agents'], here());
    expect([found.code, found.err]).to.deep.equal([3, '']);
    expect(found.out).to.match(new RegExp(`^users +users +2 +0 +0 +1 +0 +${position} +0 to \\d+$`, 'm'));
    expect(found.out).to.match(/^agents +agents +0 +0 +0 +0 +0 +0 to \d+$/m);
    expect(found.out).to.match(
      new RegExp(`^  differs from position ${position} \\(UserCreated [0-9a-f-]{36}\\)$`, 'm'),
    );
    expect(found.out).to.match(new RegExp(`^  id \\d+ +${position} +\\w+ `, 'm'));
    expect(found.out).to.match(/^ +role +viewer +operator$/m);
    expect(found.out, 'secrets')
      .to.include('avatar_url')
      .and.not.match(/planted|sesame/);
    expect((await run(['replay', '--projection', 'users', '--limit', '0'], here())).out).not.to.include('viewer');
    await refuses(
      'replay',
      here(),
      [['--projection', 'nonsense'], /Unknown projection: nonsense\. Known ones: /],
      [['--projection', 'users', '--from', 'x'], /--from must be a whole number, not x/],
      [['--projection', 'users', '--until', '999999'], /--until: must be at most \d+, the position of users_v/],
      [[], /Specify what to replay: --projection or --decider/],
      [['--decider', 'nonsense'], /Unknown decider: nonsense\. Known ones: agent, /],
    );
    const rebuilt = await run(['rebuild', 'users'], here());
    expect(rebuilt.out).to.match(/users +users +2 +differs \(2 rows\) +switched/);
  });

  describe('with a running service', () => {
    // Without a key and a password: what was shown before has to be valid.
    const service = fixture(() => startProcess(directory.path, { API_KEY: '', AUTH_PASS: '' }));

    // biome-ignore lint/suspicious/noExplicitAny: answers are looked into freely.
    const ask = (path: string): Promise<any> =>
      fetch(service.url + path, { headers: { 'x-api-key': shown.key } }).then((response) => response.json());

    it('shows processes and read models', async () => {
      const { out } = await runCommand(['status', '--json'], here());
      const status = JSON.parse(out);
      expect(status.processes).to.have.length(1);
      expect(status.processes[0]).to.include({ role: 'all', running: true });
      expect(status.projections.map((one: { projection: string }) => one.projection)).to.include('agents');
      expect(
        status.projections.every((one: { lag: number; stuck: null }) => one.lag === 0 && one.stuck === null),
      ).to.equal(true);
      expect((await run(['status'], here())).out).to.match(/agents_v1 +\d+ +0/);
    });

    it('takes the credentials that the first start showed', async () => {
      expect((await ask('/api/auth/me')).user).to.be.an('object');
      const login = { method: 'POST', body: JSON.stringify({ username: 'admin', password: shown.password }) };
      expect((await fetch(`${service.url}/api/auth/login`, login)).status).to.equal(200);
    });

    it('creates a user with a generated password that can sign in', async () => {
      const { out } = await run(['create-user', '--username', 'bob', '--role', 'viewer'], here());
      const password = /Password: (\S+)/.exec(out)?.[1];
      const login = await fetch(`${service.url}/api/auth/login`, {
        method: 'POST',
        body: JSON.stringify({ username: 'bob', password }),
      });
      expect(login.status).to.equal(200);
    });

    it('shows the differences between two moments as a table', async () => {
      const added = await runCommand(['diff', '--from', '1', '--resource', 'users'], here());
      expect(added.err).to.equal('');
      expect(added.out).to.match(/^record +change +field +before +after\n/);
      expect(added.out).to.match(/^users \d+ +added +username +\w+$/m);
      expect(added.out).to.match(/^\d+ records?\n$/m);
      const { err, code } = await run(['diff', '--from', '999999'], here());
      expect([code, err]).to.deep.equal([1, err]);
      expect(err).to.match(
        /^signalbox: from: must be 0 \(before the first event\), a position from \d+ to \d+, or a time in RFC 3339 from .* to now\n$/,
      );
    });

    it('compares and rebuilds beside the live tables', async () => {
      const checked = await runCommand(['rebuild', '--check', 'users', 'audit'], here());
      expect(checked.err).to.equal('');
      expect(checked.code).to.equal(0);
      expect(checked.out).to.match(/audit +audit +\d+ +equal +compared/);
      expect((await run(['rebuild', 'users', 'audit'], here())).out).to.match(/users +users +3 +equal +switched/);
      expect((await ask('/api/auth/users')).users).to.have.length(3);
      expect((await run(['rebuild', 'nonsense'], here())).err).to.match(/Unknown projection: nonsense/);
    });

    it('erases a person whose key the service has in memory', async () => {
      await run(['create-user', '--username', 'zoe', '--role', 'viewer', '--email', 'zoe@mx9q.example'], here());
      const shown = async () =>
        JSON.stringify([
          ...[await ask('/api/auth/users'), await ask('/api/audit')],
          await ask('/api/history/events?type=UserCreated&open=1'),
        ]);
      expect((await shown()).match(/@mx9q/g)).to.have.length(3);
      expect((await runCommand(['erase-person', 'zoe'], here())).out).to.match(/^Erased the person/);
      expect(await shown()).not.to.include('@mx9q');
      await refuses('erase-person', here(), [['zoe'], /Person not found/], [['zoe', '--id', 'x'], /id of a user/]);
    });

    it('erases a single event field, and rebuilds the read models while the service runs', async () => {
      await run(['create-user', '--username', 'kim', '--role', 'viewer', '--email', 'kim@vq4w.example'], here());
      const events = async (query = '') => (await ask(`/api/history/events?type=UserCreated${query}`)).events;
      const shown = async () =>
        JSON.stringify([await ask('/api/auth/users'), await ask('/api/audit'), await events('&open=1')]);
      expect((await shown()).match(/@vq4w/g)).to.have.length(3);
      const { id } = (await events()).at(-1);
      const redact = (...args: string[]) => run(['erase-person', '--redact', ...args], here());
      expect((await redact(id)).err).to.include('it has the personal fields display_name, email');
      const { code, out, err } = await redact(id, '--field', 'email');
      expect([code, err]).to.deep.equal([0, '']);
      expect(out).to.match(new RegExp(`^Erased the field email of the event ${id}. Rebuilt: .*users`));
      expect(await shown()).not.to.include('@vq4w');
      expect(await shown()).to.include('kim');
      expect((await runCommand(['verify'], here())).code).to.equal(0);
      await refuses(
        'erase-person',
        here(),
        [[], /Name either a user or, with --redact, an event/],
        [['kim', '--redact', id], /Name either a user or/],
        [['kim', '--field', 'email'], /--field needs --redact/],
        [['--redact', 'nonsense'], /Event not found/],
        [['--redact', id, '--id', '3'], /--redact takes none/],
      );
    });

    it('replays read models beside the live tables, and all deciders, after what was erased', async () => {
      const { code, out, err } = await run(['replay', '--projection', 'users', 'audit', 'activities'], here());
      expect([code, err]).to.deep.equal([0, '']);
      expect(out).to.match(/^users +users +[1-9]\d* +0 +0 +0 +0 +0 to \d+$/m);
      expect((await run(['status'], here())).out).not.to.include('_replay');
      const decided = await run(['replay', '--decider', 'all'], here());
      expect([decided.code, decided.err]).to.deep.equal([0, '']);
      expect(decided.out).to.match(/^decider +streams +events +same +refused +otherwise +not decided again/);
      expect(decided.out).to.match(/^setting +0 +0 +0 +0 +0 +0 +0 +0 of 0$/m);
    });

    it('exports the log with a matching hash, encrypted by default, and audits the export', async () => {
      const file = join(directory.path, 'events.jsonl');
      const exports = async () => (await ask('/api/audit?action=data_export')).total as number;
      const before = await exports();
      const { err } = await runCommand(['export-events', '--output', file], here());
      const text = await readFile(file);
      const lines = text.toString().trimEnd().split('\n');
      expect(err).to.equal(`${lines.length} events, SHA-256 ${createHash('sha256').update(text).digest('hex')}\n`);
      const positions = lines.map((line) => JSON.parse(line).position);
      expect(positions).to.deep.equal(positions.toSorted((a, b) => a - b));
      const created = (out: string) => out.split('\n').find((line) => line.includes('"UserCreated"')) ?? '';
      expect(created(text.toString())).to.contain('"sealed":2');
      const revealed = await run(['export-events', '--type', 'UserCreated', '--reveal'], here());
      expect(revealed.out).to.include('"display_name":"eve"');
      expect(await exports()).to.equal(before + 2);
      // The newest one: others have read fields over HTTP.
      const [{ actor, detail }] = (await ask('/api/audit?action=personal_fields_read')).entries;
      expect(actor).to.equal('cli');
      expect(detail).to.deep.include({ filter: { after: '0', type: 'UserCreated' } });
    });

    it('follows no link that another user put in the place of its unfinished export', async () => {
      const [file, victim] = [join(directory.path, 'linked.jsonl'), join(directory.path, 'victim')];
      await writeFile(victim, 'mine');
      await symlink(victim, `${file}.partial`);
      const { code, err } = await run(['export-events', '--output', file], here());
      expect([code, err.split(',')[1]?.trim().slice(0, 7)]).to.deep.equal([0, 'SHA-256']);
      expect(await readFile(victim, 'utf8')).to.equal('mine');
      expect((await lstat(file)).isFile()).to.equal(true);
      // A folder cannot be replaced: the export ends with a message.
      await mkdir(`${file}.partial`);
      const refused = await run(['export-events', '--output', file], here());
      expect(refused.code).to.equal(1);
      expect(refused.err).to.match(/^signalbox: .*linked\.jsonl/);
    });
  });
});
