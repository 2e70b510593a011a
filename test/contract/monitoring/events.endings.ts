/** What ends the streams of a credential, for one process and for two: opened at `here`, ended at `there`. */
import { expect } from 'chai';
import { issueAgentKey } from '../../../commands/agents/keys.ts';
import { failureOf } from '../../support/kit.ts';
import { TEST_ADMIN } from '../../support/service.ts';
import { type OpenStream, openStream } from '../../support/stream.ts';
import { testOrigin } from '../../support/world.ts';
import { type AuthWorld, PASSWORD } from '../../support/worlds/auth.ts';

/** How long a stream may outlast its credential, under load, milliseconds. */
const PATIENCE_MS = 10_000;

export const streamOf = (world: AuthWorld, as: string, query = ''): Promise<OpenStream> =>
  openStream(`${world.url}/api/events${query}`, as.includes('mc-session=') ? { cookie: as } : { 'x-api-key': as });

export async function expectEnd(stream: OpenStream, what: string): Promise<void> {
  const outcome = await failureOf(stream.until(() => false, PATIENCE_MS));
  expect(outcome, what).to.equal('the stream ended');
}

let names = 0;

/** Each way in which a user or a key ends; a bystander's stream goes on through all of it. */
export async function expectStreamsToEnd(here: AuthWorld, there: AuthWorld): Promise<void> {
  const admin = await there.signIn(TEST_ADMIN.username, TEST_ADMIN.password);
  const { commands, credentials } = there.service.core;
  const elsewhere = await there.ask('POST', '/api/workspaces', { as: admin, body: { name: `Elsewhere ${++names}` } });
  const put = async (body: object) =>
    expect((await there.ask('PUT', '/api/auth/users', { as: admin, body })).status).to.equal(200);
  const bystander = await streamOf(here, await here.signIn(TEST_ADMIN.username, TEST_ADMIN.password));

  const ways: readonly (readonly [string, (id: number, cookie: string) => Promise<unknown>])[] = [
    ['sign-out', (_, cookie) => there.ask('POST', '/api/auth/logout', { as: cookie })],
    ['disabled', (id) => put({ id, is_approved: 0 })],
    ['deleted', (id) => there.ask('DELETE', '/api/auth/users', { as: admin, body: { id } })],
    ['another role', (id) => put({ id, role: 'viewer' })],
    ['another password, by an admin', (id) => put({ id, password: `${PASSWORD} two` })],
    [
      'another password, by the user',
      (_, cookie) =>
        there.ask('PATCH', '/api/auth/me', {
          as: cookie,
          body: { current_password: PASSWORD, new_password: `${PASSWORD} three` },
        }),
    ],
    ['another workspace', (id) => put({ id, workspace_id: elsewhere.body.workspace.id })],
  ];
  await Promise.all(
    ways.map(async ([what, end]) => {
      const username = `streaming-${++names}`;
      const id = await here.makeUser({ username, role: 'operator' });
      const cookie = await here.signIn(username);
      const stream = await streamOf(here, cookie);
      await end(id, cookie);
      await expectEnd(stream, what);
    }),
  );

  const agent = await here.makeAgent(`streaming-${++names}`);
  const request = { workspace: 1, agent_id: agent, name: 'brief', scopes: ['viewer'] };
  const limit = { most: 100, now: 0 };
  const revoked = await issueAgentKey(
    commands,
    { origin: testOrigin },
    credentials,
    { ...request, expiresAt: null },
    limit,
  );
  const byKey = await streamOf(here, revoked.apiKey);
  await there.ask('DELETE', `/api/agents/${agent}/keys`, { as: admin, body: { key_id: revoked.id } });
  await expectEnd(byKey, 'key revoked');
  const renamed = await issueAgentKey(
    commands,
    { origin: testOrigin },
    credentials,
    { ...request, expiresAt: null },
    limit,
  );
  const byName = await streamOf(here, renamed.apiKey);
  // By its name, an agent has its tasks.
  await there.ask('PUT', `/api/agents/${agent}`, { as: admin, body: { name: `streaming-${++names}` } });
  await expectEnd(byName, 'agent renamed');
  const expiresAt = Math.floor(Date.now() / 1_000) + 3;
  const brief = await issueAgentKey(commands, { origin: testOrigin }, credentials, { ...request, expiresAt }, limit);
  await expectEnd(await streamOf(here, brief.apiKey), 'key expired');
  expect(Date.now() / 1_000).to.be.at.least(expiresAt);

  // It was there all the time, and still is.
  await here.makeAgent('seen-by-the-bystander');
  await here.ask('POST', '/api/auth/login', { body: { username: 'nobody-there', password: 'x' } });
  await bystander.until(() => bystander.frames.some((frame) => JSON.stringify(frame.data).includes('nobody-there')));
  bystander.close();
}

/** A viewer sees what happens, but not what the audit trail keeps for admins. */
export async function expectAuditForAdminsOnly(world: AuthWorld): Promise<void> {
  const since = `?since=${await world.service.core.eventLog.head()}`;
  const agent = await world.makeAgent(`watching-${++names}`);
  const cookies = await Promise.all(
    (['viewer', 'operator'] as const).map(async (role) => {
      const username = `watching-${++names}`;
      await world.makeUser({ username, role });
      return world.signIn(username);
    }),
  );
  const keys = await Promise.all(['viewer', 'operator'].map((scope) => world.makeKey(agent, [scope])));
  const admin = await streamOf(world, await world.signIn(TEST_ADMIN.username, TEST_ADMIN.password), since);
  const body = { username: 'my-secret-password', password: 'x' };
  await world.ask('POST', '/api/auth/login', { body, ip: '203.0.113.99' });
  await admin.until(() => admin.frames.filter((frame) => frame.type === 'security.event').length > 0);
  expect(JSON.stringify(admin.frames)).to.match(/my-secret-password.*203\.0\.113\.99/);
  const last = `watching-${++names}`;
  await world.ask('POST', '/api/agents', { as: keys[1], body: { name: last, role: 'tester' } });
  for (const as of [...cookies, ...keys]) {
    for (const query of [since, '?since=0', `${since}&kind=security.event,audit.security,agent.created`]) {
      const stream = await streamOf(world, as, query);
      await stream.until(() => stream.frames.some((frame) => frame.data?.name === last));
      expect(JSON.stringify(stream.frames)).not.to.match(/my-secret-password|203\.0\.113\.99|"(audit|security)\./);
      stream.close();
    }
  }
  admin.close();
}
