/**
 * Erasure: a person acts everywhere, is erased, and is then looked for in every table, in every response, in the stream, in
 * the opened log and in a backup.
 */
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { OpenApiDocument } from '../../../api/openapi.ts';
import { chooseField, redactField } from '../../../commands/auth/people.ts';
import { openCore } from '../../../infra/core.ts';
import { createLogIndex } from '../../../infra/log-index/log-index.ts';
import { createLogger } from '../../../infra/logging.ts';
import { verifyLog } from '../../../infra/proof/verify-log.ts';
import { rebuildProjections } from '../../../infra/read-models/rebuild/rebuild.ts';
import { createBackups } from '../../../infra/tools/backup.ts';
import { projections } from '../../../projections/index.ts';
import type { LoggedEvent } from '../../../shared/ports/event-log.ts';
import type { LogEntry } from '../../../shared/ports/history/events.ts';
import { readBackup } from '../../support/backups.ts';
import { allCaughtUp } from '../../support/caught-up.ts';
import { fixture } from '../../support/fixture.ts';
import { CLIENT_ID, ISSUER, startFakeGoogle } from '../../support/google.ts';
import { isIncluded, leafOfEvent, openCheckpoint, treeHashOf } from '../../support/log-proof.ts';
import { OK, startReceiver } from '../../support/receiver.ts';
import { operationsOf, readsOf } from '../../support/requests.ts';
import { runs } from '../../support/runs.ts';
import { bodyOf, TEST_ADMIN } from '../../support/service.ts';
import { openStream } from '../../support/stream.ts';
import { until } from '../../support/until.ts';
import { testOrigin } from '../../support/world.ts';
import { cookieOf, PASSWORD, startAuthWorld } from '../../support/worlds/auth.ts';

/** In each personal text, and in no other: a sealed text is base64, which has no hyphen. */
const MARK = 'm-x9q';
const ADDRESS = '198.18.77.91';
const ACCOUNT = {
  sub: `sub-${MARK}`,
  email: `mara@${MARK}.example`,
  name: `Mara ${MARK}`,
  picture: `https://example.com/${MARK}.png`,
};
/** The same in fields that are redacted one by one. */
const FIELD_MARK = 'r-k7d';
/** What is looked for. */
let marks: readonly string[] = [MARK, ADDRESS];
const marksIn = (text: string): string[] => marks.filter((mark) => text.includes(mark));

describe('contract: erasure of personal data', function () {
  this.timeout(300_000);
  let admin: string;
  const google = fixture(startFakeGoogle);
  const receiver = fixture(startReceiver);
  const world = fixture(() =>
    startAuthWorld({
      GOOGLE_CLIENT_ID: CLIENT_ID,
      GOOGLE_KEYS_URL: google.url,
      GOOGLE_ISSUERS: ISSUER,
      WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8',
      WEBHOOK_TIMEOUT_MS: '2000',
      WEBHOOK_RETRY_SECONDS: '0.1',
    }),
  );
  before(async () => {
    admin = await world.signIn(TEST_ADMIN.username, TEST_ADMIN.password);
  });

  async function done(method: string, path: string, body?: unknown, as = admin, headers = {}) {
    return bodyOf(
      await world.ask(method, path, { as, body, headers, ip: as === admin ? '198.51.100.1' : ADDRESS }),
      200,
      201,
    );
  }
  const erase = (name: string, as = admin) => world.ask('DELETE', `/api/people/${name}`, { as, ip: '198.51.100.1' });
  const signInWithGoogle = async () =>
    world.ask('POST', '/api/auth/google', { body: { credential: await google.token(ACCOUNT) }, ip: ADDRESS });
  const logIndex = () => createLogIndex({ ...world.service.core, timeoutMs: 10_000 });
  const requests = async () => (await done('GET', '/api/auth/access-requests')).requests;

  /** Every row of every table with a mark in it; bytes count as the text that they may be. */
  async function markedTables(): Promise<string[]> {
    const { core } = world.service;
    await allCaughtUp(core);
    const { pool } = core.database;
    const { rows } = await pool.query(
      `SELECT quote_ident(table_schema) || '.' || quote_ident(table_name) AS place FROM information_schema.tables
       WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema')`,
    );
    expect(rows.length).to.be.above(40);
    const each = (rows as { place: string }[]).map(
      ({ place }) => `SELECT '${place}' AS place WHERE EXISTS (
         SELECT FROM (SELECT t::text AS written FROM ${place} t) t, unnest($1::text[]) looked (up)
         WHERE strpos(lower(written), looked.up) > 0 OR strpos(written, encode(looked.up::bytea, 'hex')) > 0)`,
    );
    const { rows: found } = await pool.query(each.join(' UNION ALL '), [marks]);
    return found.map(({ place }) => place).sort();
  }

  /** The GET requests whose responses have a mark; of each operation the first ones, which name each of the ids. */
  async function markedResponses(numbers: readonly number[]): Promise<string[]> {
    const operations = operationsOf((await done('GET', '/api/docs')) as OpenApiDocument);
    const found = new Set<string>();
    for (const operation of operations) {
      if (operation.method !== 'GET' || operation.isStream) continue;
      const sent = [...readsOf(operation, { numbers, names: ['mara'] }, { own: undefined })].slice(0, runs(8, 24));
      for (let at = 0; at < sent.length && !found.has(operation.name); at += 6) {
        await Promise.all(
          sent.slice(at, at + 6).map(async ({ path }) => {
            const { body } = await world.ask('GET', path, { as: admin, ip: '198.51.100.1' });
            if (marksIn(JSON.stringify(body)).length > 0) found.add(operation.name);
          }),
        );
      }
    }
    for (const query of ['open=1', ''])
      for (const event of (await done('GET', `/api/history/events?limit=1000&${query}`)).events)
        if (marksIn(JSON.stringify(event)).length > 0) found.add(`${event.type} ${query}`);
    return [...found].sort();
  }

  async function markedFrames(): Promise<string[]> {
    const stream = await openStream(`${world.url}/api/events?since=0`, { cookie: admin });
    const { task } = await done('POST', '/api/tasks', { title: 'the end of the stream' });
    await stream.until(() => stream.frames.some(({ type, data }) => type === 'task.created' && data.id === task.id));
    stream.close();
    return stream.frames.filter((frame) => marksIn(JSON.stringify(frame)).length > 0).map(({ type }) => type);
  }

  /** Events with a mark, opened by a tool beside the service, as `export-events --reveal` does. */
  async function markedEvents(): Promise<string[]> {
    const core = await openCore(world.config, createLogger('silent'), { attach: true });
    try {
      const found: string[] = [];
      for await (const page of core.eventLog.readAll({ from: 0 }))
        for (const event of page) {
          const { data, meta } = await core.store.decode(event);
          if (marksIn(JSON.stringify([data, meta])).length > 0) found.push(event.type);
        }
      return found;
    } finally {
      await core.close();
    }
  }

  async function backedUp() {
    const { database, eventLog } = world.service.core;
    const dataDir = await mkdtemp(join(tmpdir(), 'sbx-erased-'));
    const backup = await createBackups({ database, eventLog, config: { ...world.config, dataDir } }).create(5);
    const { written, rows } = await readBackup(database, backup.path);
    await rm(dataDir, { recursive: true, force: true });
    const { pages } = rows;
    return { text: JSON.stringify([written, [...pages.values()]]), pages };
  }

  it('removes all data of a person with activity everywhere, and leaves the log unchanged', async () => {
    const hook = { name: 'hook', url: receiver.url, events: ['*'] };
    const { id: hookId } = await done('POST', '/api/webhooks', hook);
    // The receiver quotes what it knows about the person, as receivers do.
    const quoted = [
      ...[ACCOUNT.name.toUpperCase(), `Mara II ${MARK}`, ACCOUNT.email, `SECOND@${MARK}.example`, ACCOUNT.picture],
      ...[ACCOUNT.email, ACCOUNT.name].map(encodeURIComponent),
      ...[ACCOUNT.email, ACCOUNT.picture].map((text) => text.replaceAll('@', '\\u0040').replaceAll('/', '\\/')),
    ];
    receiver.react(() => ({ status: 202, body: `accepted for ${quoted.join(', ')}; thanks` }));
    expect((await signInWithGoogle()).status).to.equal(403);
    const [{ id: requestId }] = await requests();
    const approval = { id: requestId, action: 'approve', role: 'admin' };
    const approving = { 'idempotency-key': 'approval' };
    const { user } = await done('POST', '/api/auth/access-requests', approval, admin, approving);
    expect(user).to.include({ username: 'mara', email: ACCOUNT.email });
    const mara = cookieOf(await signInWithGoogle());
    await done('PATCH', '/api/auth/me', { display_name: `Mara II ${MARK}` }, mara);
    await done('PUT', '/api/auth/users', { id: user.id, email: `second@${MARK}.example` });
    await world.ask('POST', '/api/auth/login', { body: { username: 'mara', password: 'wrong' }, ip: ADDRESS });
    const { agent } = await done('POST', '/api/agents', { name: 'scout', role: 'tester' }, mara);
    const { task } = await done('POST', '/api/tasks', { title: 'a task', assigned_to: 'mara' }, mara);
    await done('POST', `/api/tasks/${task.id}/comments`, { content: 'see @admin and @mara' }, mara);
    await done('POST', `/api/tasks/${task.id}/comments`, { content: 'well done, @mara' });
    await done('POST', '/api/chat/messages', { content: 'hello', recipient: 'scout' }, mara);
    await done('POST', `/api/agents/${agent.id}/keys`, { name: 'a key' }, mara);
    await done('POST', '/api/workspaces', { name: 'Lab' }, mara);
    await done('GET', '/api/export?type=audit', undefined, mara);
    await until('the webhook has sent the display name', () =>
      receiver.requests.some(({ text }) => text.includes(MARK)),
    );

    // What is looked for is there before.
    const numbers = [user.id, task.id, agent.id, requestId];
    expect(await markedTables()).to.include.members([
      ...['audit_v1.audit', 'service.webhook_deliveries', 'users_v1.access_requests', 'users_v1.users'],
    ]);
    const shown = await markedResponses(numbers);
    expect(shown).to.include.members([
      ...['GET /api/audit', 'GET /api/auth/users', 'GET /api/auth/access-requests', 'GET /api/tasks/{id}/comments'],
      ...['GET /api/webhooks/deliveries', 'UserCreated open=1'],
    ]);
    expect(shown.filter((name) => /^\w+ $/.test(name))).to.deep.equal([]);
    expect(await markedFrames()).to.include('security.event');
    expect(await markedEvents()).to.include.members(['UserCreated', 'UserUpdated', 'AccessRequested', 'TaskCreated']);

    const history = async (path: string) => await done('GET', `/api/history/${path}`);
    await until('a checkpoint is signed', async () => {
      const reply = await world.ask('GET', '/api/history/checkpoint', { as: admin });
      return reply.status === 200;
    });
    const checkpoint = openCheckpoint(await history('checkpoint'), await history('key'));
    const before = (await history('events?limit=1000')).events;
    const { id, index } = before.findLast(({ type }: { type: string }) => type === 'UserCreated');
    const size = before.length;
    const proof = await history(`proof?event=${id}&size=${size}`);

    const listed = (await done('GET', '/api/audit?limit=200')).entries.map(({ id }: { id: number }) => id);
    expect(listed.length).to.be.within(5, 150);

    // A receiver that still quoted the person afterwards would tell the service anew.
    receiver.react(() => OK);
    const reply = await erase('mara');
    expect([reply.status, reply.body]).to.deep.equal([
      200,
      { success: true, user_id: user.id, access_request_ids: [requestId] },
    ]);

    expect(await markedTables()).to.deep.equal([]);
    expect(await markedResponses(numbers)).to.deep.equal([]);
    const { deliveries } = await done('GET', `/api/webhooks/deliveries?webhook_id=${hookId}`);
    expect(deliveries.at(-1).response_body).to.equal(`accepted for ${quoted.map(() => '[erased]').join(', ')}; thanks`);
    expect(await markedFrames()).to.deep.equal([]);
    expect(await markedEvents()).to.deep.equal([]);
    expect((await world.ask('GET', '/api/auth/me', { as: mara })).status).to.equal(401);
    const repeated = await world.ask('POST', '/api/auth/access-requests', {
      ...{ as: admin, body: approval, headers: approving, ip: '198.51.100.1' },
    });
    expect([repeated.status, repeated.body.code]).to.deep.equal([409, 'IDEMPOTENCY_ANSWER_LOST']);

    // Entries of the audit trail stay where they were, without what is gone.
    const trail = (await done('GET', '/api/audit?limit=200')).entries;
    const order = trail.map(({ id }: { id: number }) => id).filter((id: number) => listed.includes(id));
    expect(order).to.deep.equal(listed);
    const login = trail.find(({ action }: { action: string }) => action === 'login_google');
    expect(login).to.deep.include({ actor: 'mara', ip_address: null });
    expect(trail.find(({ action }: { action: string }) => action === 'google_login_pending_approval')).to.deep.include({
      actor: '[erased]',
      detail: { email: null, sub: null },
    });

    // A rebuild from the log gives the same rows.
    const reports = await rebuildProjections(world.service.core, projections, { check: true });
    expect(reports.flatMap(({ tables }) => tables.filter(({ equal }) => !equal))).to.deep.equal([]);

    // The log is what it was, with what came after it.
    const now = (await history('events?limit=1000')).events;
    expect(now.slice(0, before.length)).to.deep.equal(before);
    const { database, eventLog } = world.service.core;
    expect((await verifyLog(database, eventLog, world.config)).findings).to.deep.equal([]);
    const leaves: readonly Buffer[] = now.map(leafOfEvent);
    expect(treeHashOf(leaves.slice(0, checkpoint.size))).to.deep.equal(checkpoint.root);
    const path = proof.path.map((hash: string) => Buffer.from(hash, 'base64'));
    const leaf = leaves[index] as Buffer;
    expect(leaf).to.deep.equal(Buffer.from(proof.leaf, 'base64'));
    expect(isIncluded({ leaf, index, size, path }, treeHashOf(leaves.slice(0, size)))).to.equal(true);

    const { text, pages } = await backedUp();
    expect(marksIn(text)).to.deep.equal([]);
    const { rows } = await database.pool.query('SELECT person FROM credentials.person_keys WHERE length(key) = 0');
    expect(rows.map(({ person }) => person).sort()).to.deep.equal([`access_request:${requestId}`, `user:${user.id}`]);
    const kept = [...pages].flatMap(([table, texts]) => (table.endsWith('person_keys') ? texts : [])).join();
    for (const { person } of rows) expect(kept).to.include(`"${person}"`);

    // The event of the erasure contains no name, and the account may request access again.
    const erasures = now.filter(({ type }: { type: string }) => type === 'PersonErased');
    expect(erasures.map(({ data }: { data: unknown }) => data)).to.deep.equal([
      { kind: 'access_request', id: requestId },
      { kind: 'user', id: user.id },
    ]);
    expect((await erase('mara')).status).to.equal(404);
    expect((await signInWithGoogle()).status).to.equal(403);
    const asked = (await requests()).filter(({ email }: { email: string }) => email === ACCOUNT.email);
    expect(asked.map(({ id, status }: { id: number; status: string }) => [id === requestId, status])).to.deep.equal([
      [false, 'pending'],
    ]);
  });

  it('redacts single fields of events, and keeps later values', async () => {
    marks = [FIELD_MARK];
    const { core } = world.service;
    const { pool } = core.database;
    const later = 'Nora vq4w';
    await done('POST', '/api/webhooks', { name: 'another hook', url: receiver.url, events: ['*'] });
    const { user } = await done('POST', '/api/auth/users', {
      ...{ username: 'nora', password: PASSWORD, role: 'operator' },
      ...{ display_name: `Nora ${FIELD_MARK}`, email: `nora@${FIELD_MARK}.example` },
    });
    const nora = await world.signIn('nora');
    const { task } = await done('POST', '/api/tasks', { title: 'by nora' }, nora);
    await until('the webhook has sent the display name', () =>
      receiver.requests.some(({ text }) => text.includes(`Nora ${FIELD_MARK}`)),
    );
    // Many a user types the password where the username belongs.
    await world.ask('POST', '/api/auth/login', { body: { username: `secret-${FIELD_MARK}`, password: 'x' } });
    await allCaughtUp(core);
    const named = await core.eventLog.head();
    await done('PATCH', '/api/auth/me', { display_name: later }, nora);
    const shownAt = async (position?: number) =>
      (await done('GET', `/api/auth/users${position === undefined ? '' : `?as_of=${position}`}`)).users.find(
        ({ id }: { id: number }) => id === user.id,
      );
    expect(await shownAt(named)).to.include({
      display_name: `Nora ${FIELD_MARK}`,
      email: `nora@${FIELD_MARK}.example`,
    });
    const eventsOf = async (query: string) => (await done('GET', `/api/history/events?limit=1000&${query}`)).events;
    const before = await eventsOf('');
    expect(await markedTables()).to.include.members(['audit_v1.audit', 'users_v1.users', 'users_v1_history.users']);

    const [creation] = await eventsOf(`stream=user-${user.id}&type=UserCreated`);
    const [failed] = (await eventsOf('type=SignInFailed')).slice(-1);
    for (const [id, field] of [
      [creation.id, 'display_name'],
      [creation.id, 'email'],
      [failed.id, 'username'],
    ]) {
      const [event] = await logIndex().read([(await logIndex().find(id)) as LogEntry]);
      expect(chooseField(event as LoggedEvent, field)).to.equal(field);
      await redactField(
        {
          ...{ commands: core.commands, records: core.personRecords },
          async rebuild(type) {
            const readers = projections.filter(({ handles }) => handles.has(type));
            await rebuildProjections(core, readers, { fresh: true, history: true });
          },
        },
        { origin: testOrigin },
        event as LoggedEvent,
        field,
      );
    }

    expect(await markedTables()).to.deep.equal([]);
    expect(await markedResponses([user.id, task.id])).to.deep.equal([]);
    expect(await markedFrames()).to.deep.equal([]);
    expect(await markedEvents()).to.deep.equal([]);
    expect(marksIn((await backedUp()).text)).to.deep.equal([]);
    expect(await shownAt()).to.include({ display_name: later, email: null, role: 'operator' });
    expect(await shownAt(named)).to.include({ display_name: 'nora', email: null, role: 'operator' });
    const opened = (await eventsOf(`stream=user-${user.id}&open=1`)).map(({ data }: { data: object }) => data);
    expect(opened[0]).to.include({ username: 'nora', display_name: null, email: null });
    expect(JSON.stringify(opened)).to.include(later);
    const trail = (await done('GET', `/api/audit?action=field_redact&as_of=${await core.eventLog.head()}`)).entries;
    expect(trail.map(({ detail }: { detail: object }) => detail)).to.deep.include({
      event: creation.id,
      field: 'email',
    });

    // The log and every proof are as they were, and so is a rebuild.
    expect((await eventsOf('')).slice(0, before.length)).to.deep.equal(before);
    expect((await verifyLog(core.database, core.eventLog, world.config)).findings).to.deep.equal([]);
    const reports = await rebuildProjections(core, projections, { check: true });
    expect(reports.flatMap(({ tables }) => tables.filter(({ equal }) => !equal))).to.deep.equal([]);
    const { rows } = await pool.query(
      "SELECT person FROM credentials.person_keys WHERE person LIKE 'field:%' AND length(key) = 0",
    );
    expect(rows.map(({ person }) => person).sort()).to.deep.equal(
      [`field:${creation.id}/display_name`, `field:${creation.id}/email`, `field:${failed.id}/username`].sort(),
    );

    // The person as a whole can still be erased.
    expect((await erase('nora')).status).to.equal(200);
    expect(JSON.stringify(await eventsOf(`stream=user-${user.id}&open=1`))).not.to.include(later);
  });

  it('keeps no display name of a webhook message that was being sent', async () => {
    marks = ['hana h-g3w'];
    receiver.react(({ text }) => (marksIn(text).length > 0 ? 'hang' : OK));
    const hana = { username: 'hana', password: PASSWORD, role: 'operator', display_name: 'hana h-g3w' };
    await done('POST', '/api/auth/users', hana);
    await done('POST', '/api/tasks', { title: 'by hana' }, await world.signIn('hana'));
    await until('the receiver has the message', () => receiver.requests.some(({ text }) => marksIn(text).length > 0));
    const { pool } = world.service.core.database;
    // In a workspace of another tenant the text is something else.
    const lease = randomUUID();
    await pool.query(
      `INSERT INTO service.webhooks (webhook_id, workspace_id, position, seen, lease) VALUES (9999, 99, 1, 1, $1)`,
      [lease],
    );
    await pool.query(
      `INSERT INTO service.webhook_deliveries (webhook_id, workspace_id, message_id, event_type, payload, duration_ms,
         attempt, created_at) VALUES (9999, 99, 'm', 'e', '{"name":"hana h-g3w"}', 1, 0, 1)`,
    );
    expect((await erase('hana')).status).to.equal(200);
    // The next attempt is delivered. It is due when the lease of the one that is under way has ended.
    receiver.react(() => OK);
    receiver.cut();
    const { rows: others } = await pool.query(
      'SELECT lease, payload FROM service.webhooks JOIN service.webhook_deliveries USING (webhook_id) WHERE webhook_id = 9999',
    );
    expect(others).to.deep.equal([{ lease, payload: '{"name":"hana h-g3w"}' }]);
    await pool.query('DELETE FROM service.webhooks WHERE webhook_id = 9999');
    await pool.query('UPDATE service.webhooks SET leased_until = 0 WHERE lease IS NULL');
    await done('POST', '/api/tasks', { title: 'by the admin' });
    await until('the attempt has ended', async () => {
      const { rows } = await pool.query('SELECT FROM service.webhooks WHERE resume_at IS NOT NULL');
      return rows.length === 0;
    });
    expect(await markedTables()).to.deep.equal([]);
  });

  it('erases previously deleted users, selected by id if several had the name', async () => {
    const ids: number[] = [];
    for (const _ of [1, 2]) {
      const id = await world.makeUser({ username: 'twin', display_name: `Twin ${ids.length}` });
      await done('DELETE', '/api/auth/users', { id });
      ids.push(id);
    }
    const refused = await erase('twin');
    expect([refused.status, refused.body.code]).to.deep.equal([409, 'SEVERAL_PEOPLE']);
    for (const id of ids) expect((await erase(`twin?id=${id}`)).body.user_id).to.equal(id);
    expect((await erase('twin')).status).to.equal(404);
  });

  it('returns 401, 403 and 404 as documented, and 400 for the caller’s own data', async () => {
    await world.makeUser({ username: 'op', role: 'operator' });
    expect((await erase('op', await world.signIn('op'))).status).to.equal(403);
    expect((await world.ask('DELETE', '/api/people/op')).status).to.equal(401);
    expect((await erase('nobody-of-this-name')).status).to.equal(404);
    expect((await erase(TEST_ADMIN.username)).status).to.equal(400);
    expect((await erase('op?id=x')).status).to.equal(400);
  });

  it('lets tenant admins erase only their own people who have never been in another tenant', async () => {
    const body = { slug: 'acme', display_name: 'Acme', gateway_port: 2_000 };
    const { tenant } = await done('POST', '/api/super/tenants', body);
    const place = { tenant: tenant.id, workspace: tenant.workspace_id };
    const boss = await world.makeSession({ username: 'boss', role: 'admin', ...place });
    await world.makeUser({ username: 'ours', ...place });
    await world.makeUser({ username: 'theirs' });
    const came = await world.makeUser({ username: 'came' });
    await done('PUT', '/api/auth/users', { id: came, workspace_id: place.workspace });
    const status = async (name: string) => (await erase(name, boss)).status;
    expect([await status('theirs'), await status('came'), await status('ours')]).to.deep.equal([404, 403, 200]);
    expect((await erase('came')).status).to.equal(200);
    expect((await erase('boss')).body.code).to.equal('LAST_ADMIN');
    expect(
      (await world.ask('POST', '/api/auth/login', { body: { username: 'boss', password: PASSWORD } })).status,
    ).to.equal(200);
  });
});
