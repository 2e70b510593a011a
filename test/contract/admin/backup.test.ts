/** Backups through HTTP, and their restoration by the command line into empty stores. */
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { Decrypter, Encrypter, generateX25519Identity } from 'age-encryption';
import { expect } from 'chai';
import { packTar, unpackTar } from 'modern-tar';
import { canonical } from '../../../infra/tools/copy-log.ts';
import { backupResponse, backupsResponse } from '../../../shared/contract/admin/backup.ts';
import type { EventLog } from '../../../shared/ports/event-log.ts';
import { runHere } from '../../support/command.ts';
import { SERVERS } from '../../support/databases.ts';
import { fixture } from '../../support/fixture.ts';
import { needs } from '../../support/needs.ts';
import { call, freshDatabase, startTestService, TEST_ADMIN, type TestService } from '../../support/service.ts';
import { runCommand } from '../../support/service-process.ts';
import { conforms } from '../../support/worlds/agents.ts';

async function textOf(log: EventLog): Promise<string[]> {
  const lines: string[] = [];
  for await (const page of log.readAll()) lines.push(...page.map(canonical));
  return lines;
}

describe('/api/backup', function () {
  this.timeout(180_000);
  const base = fixture(startTestService);
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sbx-restored-'));
  });
  after(() => rm(folder, { recursive: true, force: true }));

  const backup = (method: string, body?: object) => call(base, method, '/api/backup', body);
  const run = (env: Record<string, string>, ...args: readonly string[]) => runHere(args, env);
  /** The file with the key of the deployment. */
  const keyFile = () => join(dirname(path), '..', 'backup-key.txt');
  const restore = (file: string, env: Record<string, string>, identity = keyFile()) =>
    run(env, 'restore', file, '--identity', identity);
  const identity = async () => /^AGE-SECRET-KEY-.*$/m.exec(await readFile(keyFile(), 'utf8'))?.[0] as string;
  /** The files in a backup, as any program reads them that knows age and tar. */
  async function filesIn(file: string) {
    const decrypter = new Decrypter();
    decrypter.addIdentity(await identity());
    return unpackTar(gunzipSync(await decrypter.decrypt(await readFile(file))));
  }
  let path = '';

  it('creates a file that only its owner can read, lists it and records it in the audit trail', async () => {
    expect((await backup('GET')).body).to.deep.equal({ backups: [] });
    await call(base, 'POST', '/api/agents', { name: 'survivor', role: 'x', config: { api_key: 'geheim-1' } });
    // More than is read at a time.
    const soul_content = 'text '.repeat(10_000);
    for (let n = 0; n < 24; n++)
      await call(base, 'POST', '/api/agents', { name: `soul-${n}`, role: 'x', soul_content });
    await call(base, 'POST', '/api/auth/users', {
      username: 'resi',
      password: 'a long enough password',
      role: 'viewer',
      email: 'resi@example.org',
    });
    const body = conforms(backupResponse, await backup('POST'));
    ({ path } = body);
    expect(basename(path)).to.match(/^mc-backup-\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d\.db$/);
    const file = await stat(path);
    expect(file.size).to.equal(body.size_bytes);
    expect(file.mode & 0o077).to.equal(0);
    const listed = (await backup('GET')).body;
    expect(backupsResponse.parse(listed)).to.deep.equal({ backups: [body.backup] });
    const [entry] = (await call(base, 'GET', '/api/audit?action=backup_create')).body.entries;
    expect(entry.detail).to.deep.equal({ name: body.backup.name, size: body.size_bytes });
    expect((await readFile(path, 'latin1')).slice(0, 21)).to.equal('age-encryption.org/v1');
    expect((await stat(keyFile())).mode & 0o077).to.equal(0);
    expect(await readFile(keyFile(), 'utf8')).to.include(`# public key: ${body.encrypted_for[0]}\n`);
    const files = await filesIn(path);
    expect(files.map(({ header }) => header.name)).to.deep.equal([
      ...['events.jsonl', 'leaves', 'checkpoint', 'checkpoints', 'key.pub', 'credentials.json'],
    ]);
    expect(files.map(({ data }) => Buffer.from(data ?? []).toString()).join()).not.to.include('resi@example.org');
  });

  it('rejects a truncated or modified file, and one that no given key opens, before writing anything', async function () {
    needs('a second process', !process.env.TEST_ONE_PROCESS, this);
    const whole = await readFile(path);
    const bad = join(folder, 'bad.db');
    const flipped = Buffer.from(whole);
    flipped[whole.length - 500] = (flipped[whole.length - 500] as number) ^ 1;
    const altered = 'is not a complete backup: it was altered, is cut off, or has data after its end';
    for (const [contents, why] of [
      [whole.subarray(0, whole.length - 50), altered],
      [whole.subarray(0, 100), 'is not a complete backup'],
      [Buffer.concat([whole, Buffer.from('more')]), altered],
      [flipped, altered],
      [Buffer.from('no backup'), 'is not a complete backup: the header is missing'],
    ] as const) {
      await writeFile(bad, contents);
      const { code, err } = await restore(bad, { DATA_DIR: join(folder, 'stores') });
      expect([code, err.includes(why)], err).to.deep.equal([1, true]);
    }
    const other = join(folder, 'other.txt');
    await writeFile(other, await generateX25519Identity());
    for (const [file, why] of [
      [other, /None of the given keys opens .*--identity FILE/],
      [join(folder, 'missing.txt'), /missing\.txt holds no key that opens backups/],
    ] as const) {
      const { code, err } = await restore(path, { DATA_DIR: join(folder, 'stores') }, file);
      expect(code, err).to.equal(1);
      expect(err).to.match(why);
    }
    const made = (await readdir(folder)).filter((name) => name === 'stores');
    expect(made, 'stores made for a file that was refused').to.deep.equal([]);
  });

  it('verifies the signatures of a backup before writing anything', async function () {
    needs('a second process', !process.env.TEST_ONE_PROCESS, this);
    /** Encrypted for the right key by a program that has altered a file. */
    const forge = async (file: string, text: string, other: string) => {
      const entries = (await filesIn(path)).map(({ header, data }) => {
        const content = Buffer.from(data ?? []).toString('latin1');
        const body = Buffer.from(header.name === file ? content.replace(text, other) : content, 'latin1');
        return { header: { ...header, size: body.length }, body };
      });
      const encrypter = new Encrypter();
      encrypter.addRecipient((await readFile(keyFile(), 'utf8')).match(/age1\w+/)?.[0] as string);
      const forged = join(folder, 'forged.db');
      await writeFile(forged, await encrypter.encrypt(gzipSync(await packTar(entries))));
      return forged;
    };
    const older = await forge('credentials.json', '"signalbox_backup":3', '"signalbox_backup":1');
    expect((await restore(older, { DATA_DIR: join(folder, 'stores') })).err).to.include(
      'is a backup of format 1, and this',
    );
    const forged = await forge('events.jsonl', 'survivor', 'surviver');
    const env = { DATA_DIR: join(folder, 'stores') };
    const refused = await restore(forged, env);
    expect([refused.code, refused.out]).to.satisfy(
      ([code, out]: [number, string]) =>
        code === 3 && /ALTERED: Event \d+ is the first that is not what its leaf says/.test(out),
      JSON.stringify(refused),
    );
    expect((await readdir(folder)).includes('stores')).to.equal(false);
    const verified = await run({}, 'verify', '--bundle', path, '--identity', keyFile());
    expect(verified.code, verified.err).to.equal(0);
    expect(verified.out).to.match(/^Unchanged: \d+ events, \d+ checkpoints? of signalbox\//);
    const found = await run({}, 'verify', '--bundle', forged, '--identity', keyFile());
    expect(found.code, found.err).to.equal(3);
  });

  it('restores all events and credentials into empty stores, and refuses stores with data', async function () {
    needs('a second process', !process.env.TEST_ONE_PROCESS, this);
    const database = SERVERS ? await freshDatabase() : undefined;
    const env: Record<string, string> = {
      DATA_DIR: join(folder, 'stores'),
      ...(database && { DATABASE_URL: database.url }),
    };
    const restored = await runCommand(['restore', path, '--identity', keyFile()], env);
    expect(restored.code, restored.err).to.equal(0);
    expect(restored.out).to.match(/(\d+) events restored and compared, \1 of them under a checkpoint/);
    const again = await restore(path, env);
    expect(again.code).to.equal(1);
    expect(again.err).to.match(/holds events already/);
    // The deployment as it was: the same events, the same people, the same keys.
    const other = await startTestService({ ...env, AUTH_PASS: '' });
    try {
      const before = await textOf(base.service.core.eventLog);
      const after = await textOf(other.service.core.eventLog);
      const count = Number(/(\d+) events restored/.exec(restored.out)?.[1]);
      expect(count).to.be.above(10);
      expect(after.slice(0, count)).to.deep.equal(before.slice(0, count));
      const signedIn = await call(other, 'POST', '/api/auth/login', TEST_ADMIN, { 'x-api-key': '' });
      expect(signedIn.status).to.equal(200);
      const users = (await call(other, 'GET', '/api/auth/users')).body.users;
      expect(users.find(({ username }: { username: string }) => username === 'resi').email).to.equal(
        'resi@example.org',
      );
      const agents = async (one: TestService) =>
        (await call(one, 'GET', '/api/agents?limit=200')).body.agents.find(
          ({ name }: { name: string }) => name === 'survivor',
        );
      expect(await agents(other)).to.deep.equal(await agents(base));
      const made = (await call(other, 'POST', '/api/agents', { name: 'newcomer', role: 'x' })).body.agent;
      expect(made.id).to.be.above((await agents(base)).id);
    } finally {
      await other.close();
      await database?.drop();
    }
  });

  it('deletes an existing backup', async () => {
    const name = basename(path);
    for (const bad of [{}, { name: '../x.db' }, { name: `x/${name}` }, { name: 'mc-backup.txt' }])
      expect((await backup('DELETE', bad)).status, JSON.stringify(bad)).to.equal(400);
    expect((await backup('DELETE', { name: 'mc-backup-2020-01-01_00-00-00.db' })).status).to.equal(404);
    expect((await backup('DELETE', { name })).body).to.deep.equal({ success: true });
    expect((await backup('GET')).body).to.deep.equal({ backups: [] });
    expect((await call(base, 'GET', '/api/audit?action=backup_delete')).body.entries).to.have.length(1);
  });
});
