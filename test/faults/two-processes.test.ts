/** Two API processes on the same stores: a write through one is read through the other at once; streams resume anywhere. */
import { expect } from 'chai';
import pg from 'pg';
import { needsServer } from '../support/needs.ts';
import { type ServerStores, serverStores, twoApiProcesses } from '../support/service.ts';
import { KEY, type ServiceProcess, startProcesses } from '../support/service-process.ts';
import { openStream } from '../support/stream.ts';
import { until } from '../support/until.ts';

const headers = { 'x-api-key': KEY, 'content-type': 'application/json' };
/** The user named in the header `x-remote-user` is an admin. */
const PROXY = {
  MC_PROXY_AUTH_HEADER: 'x-remote-user',
  MC_PROXY_AUTH_TRUSTED_IPS: '127.0.0.1',
  MC_PROXY_AUTH_DEFAULT_ROLE: 'admin',
};

/** @param as the user that a trusted proxy names; default: the global key */
async function send(service: ServiceProcess, method: string, path: string, body?: unknown, as?: string) {
  const response = await fetch(service.url + path, {
    method,
    headers: as === undefined ? headers : { 'x-remote-user': as, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  // biome-ignore lint/suspicious/noExplicitAny: answers are looked into freely.
  return { status: response.status, body: (await response.json()) as any };
}

describe('two processes', function () {
  this.timeout(120_000);
  let stores: ServerStores | undefined;
  let running: Awaited<ReturnType<typeof startProcesses>> | undefined;
  const [A, B] = [0, 1].map((index) => () => running?.services[index] as ServiceProcess) as [
    () => ServiceProcess,
    () => ServiceProcess,
  ];

  before(async function () {
    needsServer('TEST_DATABASE_URL', this);
    stores = await serverStores();
    running = await startProcesses({ ...stores.env, ...PROXY }, twoApiProcesses());
  });
  after(async () => {
    await running?.stop();
    await stores?.close();
  });

  it('see each other’s writes, two thousand times', async () => {
    const { body } = await send(A(), 'POST', '/api/agents', { name: 'shared', role: 'coder' });
    const { id } = body.agent;
    await Promise.all(
      Array.from({ length: 8 }, async (_, lane) => {
        const made = await send(A(), 'POST', '/api/agents', { name: `lane-${lane}`, role: 'coder' });
        for (let n = 0; n < 125; n++) {
          const [writer, reader] = (n + lane) % 2 ? [A(), B()] : [B(), A()];
          const role = `role-${lane}-${n}`;
          const put = await send(writer, 'PUT', `/api/agents/${made.body.agent.id}`, { role });
          expect(put.status).to.equal(200);
          const got = await send(reader, 'GET', `/api/agents/${made.body.agent.id}`);
          expect(got.body.agent.role).to.equal(role);
          const listed = await send(reader, 'GET', `/api/agents?role=${role}`);
          expect(listed.body.total).to.equal(1);
        }
      }),
    );
    expect((await send(B(), 'GET', `/api/agents/${id}`)).body.agent.name).to.equal('shared');
  });

  it('create one agent for fifty concurrent requests with one name', async () => {
    const results = await Promise.all(
      Array.from({ length: 50 }, (_, n) =>
        send(n % 2 ? A() : B(), 'POST', '/api/agents', { name: 'wanted', role: 'coder' }),
      ),
    );
    expect(results.filter((result) => result.status === 201)).to.have.length(1);
    expect(results.filter((result) => result.status === 409)).to.have.length(49);
  });

  it('count each token report once if it goes to both, in a batch or alone', async () => {
    const reports = Array.from({ length: 300 }, (_, n) => ({
      id: `report-${n}`,
      model: 'm',
      sessionId: 'shared:cli',
      inputTokens: 1,
      outputTokens: n,
    }));
    const total = async (service: ServiceProcess) => (await send(service, 'GET', '/api/tokens')).body.total;
    const before = await total(A());
    const results = await Promise.all([
      ...Array.from({ length: 12 }, (_, n) =>
        send(n % 2 ? A() : B(), 'POST', '/api/tokens/batch', { reports: reports.slice(n * 20, n * 20 + 80) }),
      ),
      ...reports.slice(0, 60).map((report, n) => send(n % 2 ? A() : B(), 'POST', '/api/tokens', report)),
    ]);
    for (const { status, body } of results) expect(status, JSON.stringify(body)).to.equal(200);
    expect([await total(A()), await total(B())]).to.deep.equal([before + 300, before + 300]);
  });

  it('keep one admin when two admins delete each other concurrently, fifty times', async () => {
    const users = '/api/auth/users';
    type User = { readonly id: number; readonly username: string; readonly role: string };
    const admins = async (): Promise<User[]> =>
      (await send(A(), 'GET', users)).body.users.filter(({ role }: User) => role === 'admin');
    const makeAdmin = async (name: string) => (await send(A(), 'GET', '/api/auth/me', undefined, name)).body.user;
    const [seeded] = await admins();
    await makeAdmin('first');
    expect((await send(A(), 'PUT', users, { id: seeded?.id, role: 'viewer' })).status).to.equal(200);
    for (let round = 0; round < 50; round++) {
      // No process may win so often that the rate limit decides.
      if (round % 15 === 14) {
        const fresh = (await makeAdmin(`fresh-${round}`)) as User;
        for (const { id } of await admins()) {
          if (id !== fresh.id) await send(B(), 'DELETE', users, { id }, fresh.username);
        }
      }
      const left = await admins();
      expect(left, `round ${round}`).to.have.length.within(1, 2);
      const [one, two = (await makeAdmin(`round-${round}`)) as User] = left as [User, User?];
      const replies = await Promise.all([
        send(A(), 'DELETE', users, { id: two.id }, one.username),
        send(B(), 'DELETE', users, { id: one.id }, two.username),
      ]);
      const statuses = replies.map(({ status }) => status);
      expect(statuses, `round ${round}`).to.include(200);
      for (const { status, body } of replies) if (status === 409) expect(body.code).to.equal('LAST_ADMIN');
    }
    expect(await admins()).to.have.length.within(1, 2);
  });

  it('create one agent and return one response for the same Idempotency-Key', async () => {
    const post = (service: ServiceProcess) =>
      fetch(`${service.url}/api/agents`, {
        method: 'POST',
        headers: { ...headers, 'idempotency-key': 'the-same' },
        body: JSON.stringify({ name: 'once', role: 'coder' }),
      }).then(async (response) => ({ status: response.status, body: await response.json() }));
    const answers = await Promise.all([post(A()), post(B()), post(A()), post(B())]);
    for (const answer of answers) expect(answer).to.deep.equal(answers[0]);
    expect(answers[0]?.status).to.equal(201);
  });

  it('reject a key at once after it was revoked through the other', async () => {
    const { body } = await send(A(), 'POST', '/api/agents', { name: 'keyed', role: 'coder' });
    for (let n = 0; n < 10; n++) {
      const issued = await send(A(), 'POST', `/api/agents/${body.agent.id}/keys`, { name: `key ${n}` });
      const asked = () => fetch(`${B().url}/api/agents?limit=1`, { headers: { 'x-api-key': issued.body.api_key } });
      expect((await asked()).status).to.equal(200);
      await send(A(), 'DELETE', `/api/agents/${body.agent.id}/keys`, { key_id: issued.body.key.id });
      expect((await asked()).status).to.equal(401);
    }
  });

  it('survive cut connections under load, with every acknowledged write', async () => {
    const client = new pg.Client({ connectionString: stores?.env.DATABASE_URL });
    await client.connect();
    const acknowledged: string[] = [];
    let writing = true;
    const writers = Array.from({ length: 6 }, async (_, writer) => {
      for (let n = 0; writing; n++) {
        const name = `cut-${writer}-${n}`;
        const answer = await send(writer % 2 ? A() : B(), 'POST', '/api/agents', { name, role: 'cut' });
        if (answer.status === 201) acknowledged.push(name);
        else expect(answer.status, JSON.stringify(answer.body)).to.be.oneOf([409, 503]);
      }
    });
    for (let cut = 1; cut <= 3; cut++) {
      await until('more is acknowledged', () => acknowledged.length >= cut * 20);
      await client.query(
        'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
      );
    }
    await until('writes go on', () => acknowledged.length >= 100);
    writing = false;
    await Promise.all(writers);
    await client.end();
    const { body } = await send(B(), 'GET', '/api/agents?role=cut&limit=1');
    expect(body.total).to.be.at.least(acknowledged.length);
    for (const name of acknowledged) expect((await send(A(), 'GET', `/api/agents/${name}`)).status).to.equal(200);
  });

  it('resume a stream of the other process without gaps or duplicates', async () => {
    const stream = await openStream(`${A().url}/api/events`, headers);
    const expected: string[] = [];
    for (let n = 0; n < 20; n++) {
      await send(n % 2 ? A() : B(), 'POST', '/api/agents', { name: `streamed-${n}`, role: 'coder' });
      expected.push(`streamed-${n}`);
    }
    const created = (frames: readonly { type: string; data: { name?: string } | null }[]) =>
      frames.filter((frame) => frame.type === 'agent.created').map((frame) => frame.data?.name ?? '');
    await stream.until(() => created(stream.frames).length >= 10);
    stream.close();
    const seen = created(stream.frames);
    const resumed = await openStream(`${B().url}/api/events`, { ...headers, 'last-event-id': stream.lastId });
    await resumed.until(() => seen.length + created(resumed.frames).length >= 20);
    resumed.close();
    expect([...seen, ...created(resumed.frames)]).to.deep.equal(expected);
  });
});
