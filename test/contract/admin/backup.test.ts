/** Backups through HTTP, and their restoration by the command line into empty stores. */
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { expect } from 'chai';
import { canonical } from '../../../infra/tools/copy-log.ts';
import { backupResponse, backupsResponse } from '../../../shared/contract/admin/backup.ts';
import type { EventLog } from '../../../shared/ports/event-log.ts';
import { SERVERS } from '../../support/databases.ts';
import { fixture } from '../../support/fixture.ts';
import { needs } from '../../support/needs.ts';
import { call, freshDatabase, startTestService, TEST_ADMIN, type TestService } from '../../support/service.ts';
import { commandLine } from '../../support/service-process.ts';
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
  const restore = (file: string, env: Record<string, string> = { DATA_DIR: folder }) =>
    new Promise<{ readonly code: number; readonly out: string; readonly err: string }>((resolve) => {
      const options = { env: { PATH: process.env.PATH, ...env }, timeout: 120_000 };
      execFile(process.execPath, commandLine('restore', file), options, (error, out, err) =>
        resolve({ code: error ? Number(error.code ?? -1) : 0, out, err }),
      );
    });
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
    expect(gunzipSync(await readFile(path)).toString()).not.to.include('resi@example.org');
  });

  it('rejects a truncated or modified file before writing anything', async function () {
    needs('a second process', !process.env.TEST_ONE_PROCESS, this);
    const whole = await readFile(path);
    const bad = join(folder, 'bad.db');
    const text = gunzipSync(whole).toString();
    for (const [contents, why] of [
      [whole.subarray(0, whole.length - 50), /not a whole backup/],
      [gzipSync(text.replace('survivor', 'surviver')), /not those that were written/],
      [gzipSync(text.replace('"signalbox_backup":2', '"signalbox_backup":1')), /is a backup of format 1, and this/],
      [gzipSync(text.slice(0, text.trimEnd().lastIndexOf('\n') + 1)), /end is missing/],
      [Buffer.from('no backup'), /not a whole backup/],
    ] as const) {
      await writeFile(bad, contents);
      const { code, err } = await restore(bad, { DATA_DIR: join(folder, 'stores') });
      expect([code, why.test(err)], err).to.deep.equal([1, true]);
    }
    const made = (await readdir(folder)).filter((name) => name === 'stores');
    expect(made, 'stores made for a file that was refused').to.deep.equal([]);
  });

  it('restores all events and credentials into empty stores, and refuses stores with data', async function () {
    needs('a second process', !process.env.TEST_ONE_PROCESS, this);
    const database = SERVERS ? await freshDatabase() : undefined;
    const env: Record<string, string> = {
      DATA_DIR: join(folder, 'stores'),
      ...(database && { DATABASE_URL: database.url }),
    };
    const restored = await restore(path, env);
    expect(restored.code, restored.err).to.equal(0);
    expect(restored.out).to.match(/events restored and compared/);
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
