/** Credential store, person keys and the first start on a real PostgreSQL, as two processes would use them. */
import { createHash } from 'node:crypto';
import argon2 from 'argon2';
import { expect } from 'chai';
import { type CredentialStore, createCredentials } from '../../../infra/credentials/credentials.ts';
import { givenPassword, prepareFirstStart } from '../../../infra/credentials/first-start.ts';
import { createPersonKeys } from '../../../infra/credentials/person-keys.ts';
import type { Database } from '../../../infra/database/database.ts';
import { createLogger } from '../../../infra/logging.ts';
import { agentKeysProjection } from '../../../projections/agents/keys.ts';
import { usersProjection } from '../../../projections/auth/users.ts';
import { projectsProjection } from '../../../projections/projects/projects.ts';
import { findGlobalKey } from '../../../queries/auth/global-key.ts';
import { findUserByName, listUsers } from '../../../queries/auth/users.ts';
import type { Reads } from '../../../queries/reads.ts';
import { catalogue } from '../../../shared/events/catalogue.ts';
import { fixture } from '../../support/fixture.ts';
import { describeWith } from '../../support/needs.ts';
import { withRealPasswordCost } from '../../support/password-cost.ts';
import { freshDatabase } from '../../support/service.ts';
import { until } from '../../support/until.ts';
import { databaseOnServer, ensureTables, openView, serverDatabase } from '../../support/world.ts';

const log = createLogger('silent');
const sha256 = (text: string) => createHash('sha256').update(text).digest();
const now = () => Math.floor(Date.now() / 1_000);

describe('AUTH_PASS_B64', () => {
  it('takes precedence if it is canonical base64 of a text, and is ignored otherwise', () => {
    const authPass = 'plain';
    const b64 = (text: string) => Buffer.from(text).toString('base64');
    expect(givenPassword({ authPass, authPassBase64: b64('with $ and "') })).to.equal('with $ and "');
    for (const bad of [
      'not base64!',
      b64('abcd').replace(/=+$/, ''),
      Buffer.from([0xff, 0xfe]).toString('base64'),
      '',
    ]) {
      expect(givenPassword({ authPass, authPassBase64: bad }), bad).to.equal('plain');
    }
    expect(givenPassword({ authPass: undefined, authPassBase64: undefined })).to.equal(undefined);
    expect(givenPassword({ authPass: '', authPassBase64: undefined })).to.equal(undefined);
  });
});

describeWith('TEST_DATABASE_URL', 'credential store', () => {
  withRealPasswordCost();
  const place = fixture(databaseOnServer);
  const store = fixture(() => createCredentials(place.database, log));

  const version = async (): Promise<number> =>
    (await place.database.pool.query('SELECT version FROM credentials.version')).rows[0].version;
  const raised = async (act: () => Promise<unknown>): Promise<boolean> => {
    const before = await version();
    const changes = store.changes();
    await act();
    return (await version()) > before && store.changes() > changes;
  };

  it('stores passwords only as argon2id hashes', async () => {
    const id = await store.addPassword(7, 'correct horse');
    const { rows } = await place.database.pool.query('SELECT hash FROM credentials.passwords WHERE id = $1', [id]);
    expect(rows[0].hash).to.match(/^\$argon2id\$v=19\$m=19456,(t=2,p=1|p=1,t=2)\$/);
    expect(await store.verifyPassword(id, 'correct horse')).to.equal(true);
    expect(await store.verifyPassword(id, 'Correct horse')).to.equal(false);
    expect(await store.verifyPassword(null, 'correct horse')).to.equal(false);
    expect(await store.verifyPassword('00000000-0000-4000-8000-000000000000', 'correct horse')).to.equal(false);
  });

  it('takes about as long for unknown users as for wrong passwords', async () => {
    const id = await store.addPassword(7, 'correct horse');
    await store.verifyPassword(null, 'x');
    const times: Record<'known' | 'unknown', number[]> = { known: [], unknown: [] };
    // In alternation, so that other load on the machine affects both.
    for (let i = 0; i < 11; i++) {
      for (const who of ['known', 'unknown'] as const) {
        const begun = performance.now();
        await store.verifyPassword(who === 'known' ? id : null, 'wrong');
        times[who].push(performance.now() - begun);
      }
    }
    const [known, unknown] = [times.known, times.unknown].map((all) => all.sort((a, b) => a - b)[5] as number) as [
      number,
      number,
    ];
    expect(unknown / known).to.be.within(0.4, 2.5);
  });

  it('renews hashes with old parameters under the same id', async () => {
    const id = await store.addPassword(8, 'p');
    const weak = await argon2.hash('old one', {
      type: argon2.argon2id,
      memoryCost: 8_192,
      timeCost: 1,
      parallelism: 1,
    });
    await place.database.pool.query('UPDATE credentials.passwords SET hash = $2 WHERE id = $1', [id, weak]);
    expect(await store.verifyPassword(id, 'wrong')).to.equal(false);
    expect(await store.verifyPassword(id, 'old one')).to.equal(true);
    const { rows } = await place.database.pool.query('SELECT hash FROM credentials.passwords WHERE id = $1', [id]);
    expect(rows[0].hash).to.include('m=19456');
    expect(await store.verifyPassword(id, 'old one')).to.equal(true);
  });

  it('removes all passwords of a user except one', async () => {
    const [a, b] = [await store.addPassword(9, 'a'), await store.addPassword(9, 'b')];
    await store.removePasswords(9, b);
    expect([await store.verifyPassword(a, 'a'), await store.verifyPassword(b, 'b')]).to.deep.equal([false, true]);
    await store.removePasswords(9);
    expect(await store.verifyPassword(b, 'b')).to.equal(false);
  });

  it('returns the correct result for many concurrent verifications', async () => {
    const id = await store.addPassword(10, 'p');
    const answers = await Promise.all(
      Array.from({ length: 24 }, (_, i) => store.verifyPassword(i % 3 === 0 ? null : id, i % 2 === 0 ? 'p' : 'q')),
    );
    expect(answers).to.deep.equal(Array.from({ length: 24 }, (_, i) => i % 3 !== 0 && i % 2 === 0));
  });

  it('stores sessions by hash, removes expired ones when the next is added, and ends one or all', async () => {
    const createdAt = now();
    const session = { userId: 7, credential: 'c.1', ip: '192.0.2.1', userAgent: 'test', createdAt };
    await store.addSession('old', { ...session, createdAt: createdAt - 100, expiresAt: createdAt - 1 });
    await store.addSession('t1', { ...session, expiresAt: createdAt + 100 });
    await store.addSession('t2', { ...session, expiresAt: createdAt + 101 });
    const hex = (token: string) => sha256(token).toString('hex');
    expect(await store.findSession(hex('old'))).to.equal(undefined);
    expect(await store.findSession(hex('t1'))).to.deep.equal({
      userId: 7,
      credential: 'c.1',
      expiresAt: createdAt + 100,
    });
    expect(await store.findSession('t1')).to.equal(undefined);
    await store.removeSession(hex('t1'));
    expect(await store.findSession(hex('t1'))).to.equal(undefined);
    await store.removeSessions(7);
    expect(await store.findSession(hex('t2'))).to.equal(undefined);
  });

  it('stores keys by hash, and keeps the first record of a key', async () => {
    await store.addKey('mca_1', { kind: 'agent', keyId: 1 });
    await store.addKey('mca_1', { kind: 'agent', keyId: 2 });
    expect(await store.findKey('mca_1')).to.deep.equal({ kind: 'agent', keyId: 1 });
    expect(await store.findKey('mca_2')).to.equal(undefined);
    await store.removeKey({ kind: 'agent', keyId: 1 });
    expect(await store.findKey('mca_1')).to.equal(undefined);
  });

  it('knows when a key was last used, both before and after it is written', async () => {
    await store.addKey('mca_3', { kind: 'agent', keyId: 3 });
    expect((await store.keysLastUsed('agent', [3])).size).to.equal(0);
    for (let i = 0; i < 100; i++) store.keyUsed({ kind: 'agent', keyId: 3 });
    expect((await store.keysLastUsed('agent', [3])).get(3)).to.be.closeTo(now(), 2);
    await until('the use is written', async () => {
      const { rows } = await place.database.pool.query('SELECT last_used_at FROM credentials.keys WHERE key_id = 3');
      return rows[0].last_used_at !== null;
    });
    expect((await store.keysLastUsed('global', [3])).size).to.equal(0);
  });

  it('increments the version with every addition and removal', async () => {
    const session = { userId: 7, credential: 'c', ip: null, userAgent: null, createdAt: now(), expiresAt: now() + 9 };
    expect(await raised(() => store.addPassword(7, 'p'))).to.equal(true);
    expect(await raised(() => store.removePasswords(7))).to.equal(true);
    expect(await raised(() => store.addSession('t9', session))).to.equal(true);
    expect(await raised(() => store.removeSession(sha256('t9').toString('hex')))).to.equal(true);
    expect(await raised(() => store.removeSessions(7))).to.equal(true);
    expect(await raised(() => store.addKey('k9', { kind: 'global', keyId: 9 }))).to.equal(true);
    expect(await raised(() => store.removeKey({ kind: 'global', keyId: 9 }))).to.equal(true);
    expect(await raised(() => store.verifyPassword(null, 'p'))).to.equal(false);
    expect(await raised(() => store.findKey('k9'))).to.equal(false);
  });

  it('contains no readable part of a secret in any of its tables', async () => {
    const secrets = ['a very secret password', 'mc_secretkey', 'secretsessiontoken'];
    await store.addPassword(11, secrets[0] as string);
    await store.addKey(secrets[1] as string, { kind: 'global', keyId: 11 });
    await store.addSession(secrets[2] as string, {
      userId: 11,
      credential: 'c',
      ip: null,
      userAgent: null,
      createdAt: now(),
      expiresAt: now() + 100,
    });
    for (const table of ['passwords', 'keys', 'sessions']) {
      const { rows } = await place.database.pool.query(`SELECT t::text AS text FROM credentials.${table} t`);
      const all = rows.map((row) => row.text).join('\n');
      for (const secret of secrets) {
        expect(all).not.to.include(secret);
        expect(all).not.to.include(Buffer.from(secret).toString('hex'));
      }
    }
  });

  describe('person keys', () => {
    it('are the same for every process, even under concurrent requests', async () => {
      const [one, two] = [createPersonKeys(place.database), createPersonKeys(place.database)];
      expect(await one.find('user:1')).to.equal(undefined);
      const keys = await Promise.all(Array.from({ length: 50 }, (_, i) => (i % 2 ? one : two).findOrCreate('user:1')));
      expect(new Set(keys.map((key) => key.toString('hex'))).size).to.equal(1);
      expect(keys[0]).to.have.length(32);
      expect(await one.find('user:1')).to.deep.equal(keys[0]);
    });
    it('are read by one query if they are asked for together', async () => {
      const names = Array.from({ length: 100 }, (_, n) => `field:${n}`);
      const made = await createPersonKeys(place.database).create(names);
      let queries = 0;
      const query = (text: string, values: unknown[]) => {
        queries++;
        return place.database.pool.query(text, values);
      };
      const keys = createPersonKeys({ pool: { query } as unknown as Database['pool'] });
      const found = await Promise.all([...names, 'field:unknown'].map((name) => keys.find(name)));
      expect(found).to.deep.equal([...made, undefined]);
      expect(queries).to.equal(1);
    });
    it('stay erased, and later data is encrypted with a key that is not stored', async () => {
      const keys = createPersonKeys(place.database);
      const before = await keys.findOrCreate('user:2');
      await keys.erase('user:2');
      expect(await keys.find('user:2')).to.equal(undefined);
      const after = await keys.findOrCreate('user:2');
      expect(after).to.have.length(32).and.not.deep.equal(before);
      expect(await keys.find('user:2')).to.equal(undefined);
      expect(await createPersonKeys(place.database).find('user:2')).to.equal(undefined);
      await keys.erase('user:never-seen');
      expect(await keys.find('user:never-seen')).to.equal(undefined);
    });
  });

  describe('first start', () => {
    const models = [usersProjection, agentKeysProjection, projectsProjection];
    const config = { authUser: 'admin', authPass: undefined, authPassBase64: undefined, apiKey: undefined };

    /** Two processes on one empty database: one leads the projections, both prepare. */
    async function twoProcesses(
      run: (
        processes: readonly { start(settings: object): Promise<string[]> }[],
        at: Database,
        reads: Reads,
      ) => Promise<void>,
    ): Promise<void> {
      const fresh = await freshDatabase();
      const at = await serverDatabase(fresh.url);
      await ensureTables(at, models);
      const views = await Promise.all([1, 2].map(() => openView(at, [...catalogue.values()], models)));
      const projector = views[0]?.project('leader');
      for (const view of views) {
        view.positions.watch();
        await view.following.reader.started(new AbortController().signal);
      }
      const stores = views.map(() => createCredentials(at, log));
      try {
        await run(
          views.map((view, index) => ({
            start: async (settings: object) =>
              prepareFirstStart({
                config: { ...config, ...settings },
                commands: view.commands,
                credentials: stores[index] as CredentialStore,
                reads: view.reads,
                log,
              }),
          })),
          at,
          (views[0] as (typeof views)[number]).reads,
        );
      } finally {
        await projector?.close();
        for (const one of stores) await one.close();
        for (const view of views) await view.close();
        await at.close();
        await fresh.drop();
      }
    }

    it('creates one admin and one key for concurrent starts, and shows each once', () =>
      twoProcesses(async ([one, two], at, reads) => {
        const shown = (await Promise.all([one?.start({}), two?.start({}), one?.start({}), two?.start({})])).flat();
        const passwords = shown.filter((line) => line?.startsWith('Admin password:'));
        const keys = shown.filter((line) => line?.startsWith('API key:'));
        expect([passwords.length, keys.length]).to.deep.equal([1, 1]);
        expect((await listUsers(reads, 1)).map((user) => [user.username, user.role])).to.deep.equal([
          ['admin', 'admin'],
        ]);
        const credentials = createCredentials(at, log);
        const row = await findUserByName(reads, 'admin');
        const password = passwords[0]?.split(' ').at(-1) as string;
        expect(password).to.have.length(24);
        expect(await credentials.verifyPassword(row?.credential_id ?? null, password)).to.equal(true);
        const key = keys[0]?.split(' ').at(-1) as string;
        expect((await credentials.findKey(key))?.keyId).to.equal((await findGlobalKey(reads))?.key_id);
        const { rows } = await at.pool.query("SELECT count(*)::int AS n FROM credentials.keys WHERE kind = 'global'");
        expect(rows[0].n).to.equal(1);
        // The next start has nothing to create and nothing to show.
        expect(await one?.start({})).to.deep.equal([]);
      }));

    it('agrees on one key from the environment, which replaces a generated one and may change', () =>
      twoProcesses(async ([one, two], at, reads) => {
        const credentials = createCredentials(at, log);
        const inForce = async (key: string) =>
          (await credentials.findKey(key))?.keyId === (await findGlobalKey(reads))?.key_id;
        await one?.start({ authPass: 'a good password' });
        const both = await Promise.all([one?.start({ apiKey: 'first-key' }), two?.start({ apiKey: 'first-key' })]);
        expect(both.flat()).to.deep.equal([]);
        expect(await inForce('first-key')).to.equal(true);
        await two?.start({ apiKey: 'second-key' });
        expect([await inForce('first-key'), await inForce('second-key')]).to.deep.equal([false, true]);
        // A process without the variable leaves the others' key unchanged.
        expect(await one?.start({})).to.deep.equal([]);
        expect(await inForce('second-key')).to.equal(true);
        const { rows } = await at.pool.query("SELECT count(*)::int AS n FROM credentials.keys WHERE kind = 'global'");
        expect(rows[0].n).to.equal(1);
      }));

    it('creates no admin with a well-known password', () =>
      twoProcesses(async ([one], _at, reads) => {
        for (const authPass of ['admin', 'password', 'change-me-on-first-login', 'changeme', 'testpass123']) {
          await one?.start({ authPass, apiKey: 'k' });
        }
        expect(await listUsers(reads, 1)).to.deep.equal([]);
      }));
  });
});
