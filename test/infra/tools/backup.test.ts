/** What a backup holds when the service goes on writing meanwhile. */
import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { createBackups } from '../../../infra/tools/backup.ts';
import { readRelated } from '../../../infra/tools/related.ts';
import type { EventLog } from '../../../shared/ports/event-log.ts';
import { readBackup as read } from '../../support/backups.ts';
import { fixture } from '../../support/fixture.ts';
import { bodyOf, call, startTestService } from '../../support/service.ts';
import { temporaryDirectory } from '../../support/service-process.ts';
import { until } from '../../support/until.ts';

describe('backups during writes', function () {
  this.timeout(60_000);
  const service = fixture(() => startTestService());
  const directory = fixture(temporaryDirectory);

  /** The backups of a log that calls back whenever its end is asked for, and before and after all of it is read. */
  function backupsOf(calls: { head?(): unknown; before?(): unknown; after?(): unknown }) {
    const { database, eventLog, config } = service.service.core;
    const watched = Object.create(eventLog, {
      head: {
        async value() {
          await calls.head?.();
          return eventLog.head();
        },
      },
      readAll: {
        async *value(options: Parameters<EventLog['readAll']>[0]) {
          await calls.before?.();
          yield* eventLog.readAll(options);
          await calls.after?.();
        },
      },
    }) as EventLog;
    return createBackups({ database, eventLog: watched, config: { ...config, dataDir: directory.path } });
  }

  const readBackup = (path: string) => read(service.service.core.database, path);

  let users = 0;
  /** A user whose e-mail address is sealed with a new key, under a new id. */
  async function newUser(): Promise<number> {
    const username = `late-${++users}`;
    const fields = { username, password: 'a long enough password', role: 'viewer', email: `${username}@example.org` };
    const body = bodyOf(await call(service, 'POST', '/api/auth/users', fields), 201);
    return body.user.id;
  }

  it('report their progress while they are being written', async () => {
    const seen: unknown[] = [];
    const backups = backupsOf({
      before: () => seen.push(backups.progress()),
      after: () => seen.push({ ...backups.progress() }),
    });
    expect(backups.progress()).to.equal(undefined);
    const head = await service.service.core.eventLog.head();
    const { createdAt } = await backups.create(5);
    const [begun, ended] = seen as Record<string, number>[];
    expect(begun).to.include({ startedAt: createdAt });
    expect(ended).to.include({ startedAt: createdAt });
    expect(ended?.head).to.be.at.least(head);
    expect(ended?.position).to.equal(ended?.head);
    expect(backups.progress()).to.equal(undefined);
  });

  it('are files of their own if two processes begin one in the same second', async () => {
    const [one, other] = await Promise.all([backupsOf({}).create(5), backupsOf({}).create(5)]);
    expect(one.name).not.to.equal(other.name);
    for (const { path, events } of [one, other]) expect((await readBackup(path)).events).to.equal(events);
  });

  it('are listed, and kept, whatever other processes delete and write meanwhile', async () => {
    const folder = join(directory.path, 'backups');
    await symlink(join(folder, 'gone'), join(folder, 'mc-backup-2020-01-01_00-00-00.db'));
    let ended: (() => void) | undefined;
    const goesOn = new Promise<void>((resolve) => {
      ended = resolve;
    });
    let named = false;
    const before = () => {
      named = true;
    };
    const older = backupsOf({ before, after: () => goesOn }).create(1);
    await until('it has its name', () => named);
    const newer = await backupsOf({}).create(1);
    ended?.();
    const { name } = await older;
    expect(name < newer.name).to.equal(true);
    expect((await backupsOf({}).list()).map((one) => one.name)).to.deep.equal([newer.name, name]);
  });

  it('contain a key and a counter for every event, including the last ones', async () => {
    const late: number[] = [];
    const write = async () => late.push(await newUser());
    const { path } = await backupsOf({ head: write, before: write, after: write }).create(5);
    const { written, rows, rowsOf } = await readBackup(path);
    const { counters } = rows;

    const events = written.map((event) => JSON.stringify(event));
    const sealed = new Set(
      events.flatMap((line) => Array.from(line.matchAll(/"person":"([^"]+)"/g), ([, one]) => one)),
    );
    const keys = rowsOf('credentials.person_keys');
    expect(sealed.size).to.be.above(1);
    expect(keys.map(({ person }) => person)).to.include.members([...sealed]);

    const named = events.flatMap((line) => Array.from(line.matchAll(/"user_id":(\d+)/g), ([, id]) => Number(id)));
    expect(named, 'written after the backup began').to.include(late[0]);
    const counter = counters.find(({ name }) => name === 'user');
    expect(counter?.value).to.be.at.least(Math.max(...named));
  });

  it('contain the password and the key that their events name, even if both are replaced meanwhile', async () => {
    const userId = await newUser();
    const done = async (method: string, path: string, body?: object) => {
      const { status, body: reply } = await call(service, method, path, body);
      expect(status, JSON.stringify(reply)).to.equal(200);
      return reply;
    };
    const { path } = await backupsOf({
      // Once the end of the backup is known.
      async before() {
        await done('PUT', '/api/auth/users', { id: userId, password: 'another long enough password' });
        await done('POST', '/api/tokens/rotate');
      },
    }).create(5);
    const { written, rows, rowsOf } = await readBackup(path);
    const named: { credentials: string[]; keys: number[] } = { credentials: [], keys: [] };
    for (const { type, data } of written) {
      if (type === 'UserCreated' && data.user_id === userId) named.credentials.push(String(data.credential_id));
      if (type === 'GlobalKeyConfigured' || type === 'GlobalKeyRotated') named.keys.push(Number(data.key_id));
      expect(type).not.to.equal('UserPasswordChanged');
    }
    expect(named.credentials).to.have.length(1);
    expect(rowsOf('credentials.passwords').map(({ id }) => id)).to.include(named.credentials[0]);
    const globalKeys = rowsOf('credentials.keys').filter(({ kind }) => kind === 'global');
    expect(globalKeys.map(({ key_id }) => key_id)).to.include(named.keys.at(-1));
    for (const table of ['credentials.passwords', 'credentials.keys'])
      expect(rowsOf(table), table).to.have.length(Number(rows.counts[table]));
  });

  it('lose no other rows if some are removed meanwhile', async () => {
    const { database } = service.service.core;
    const id = (n: number) => `backup-${String(n).padStart(5, '0')}`;
    // More than two pages.
    await database.pool.query(
      `INSERT INTO credentials.person_keys (person, key, created_at)
       SELECT 'backup-' || lpad(n::text, 5, '0'), '\\x00'::bytea, 0 FROM generate_series(1, 4100) n`,
    );
    const reading = readRelated(database.db);
    const removing = database.pool.query('DELETE FROM credentials.person_keys WHERE person = $1', [id(1)]);
    const [{ pages, counts }] = await Promise.all([reading, removing]);
    const read = (pages.get('credentials.person_keys') ?? []).flatMap((text) => JSON.parse(text));
    const persons = new Set(read.map((row: { readonly person: string }) => row.person));
    const missing = Array.from({ length: 4_099 }, (_, n) => id(n + 2)).filter((one) => !persons.has(one));
    expect(missing).to.deep.equal([]);
    expect(counts['credentials.person_keys']).to.equal(read.length);
  });
});
