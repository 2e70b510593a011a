import { expect } from 'chai';
import { accessRequestDecider, decideRequest } from '../../../commands/auth/access-requests.ts';
import {
  checkTenants,
  chooseField,
  choosePerson,
  decideErasure,
  erasePerson,
  redactField,
} from '../../../commands/auth/people.ts';
import { userDecider } from '../../../commands/auth/users.ts';
import type { PeopleDirectory } from '../../../queries/auth/people.ts';
import { accessRequested } from '../../../shared/events/auth/access-requests.ts';
import { personErased } from '../../../shared/events/auth/people.ts';
import { userDeleted, userTransferred } from '../../../shared/events/auth/users.ts';
import type { PersonRecords } from '../../../shared/ports/auth/people.ts';
import type { LoggedEvent } from '../../../shared/ports/event-log.ts';
import { created, given } from '../../support/ann.ts';
import { authMemory } from '../../support/auth-memory.ts';
import { failureOf, givenFor, outcomeOf, refusalOf } from '../../support/kit.ts';

const USER = { kind: 'user', id: 7 } as const;
const deleted = userDeleted.draft({ user_id: 7, username: 'ann' });

describe('erasure of personal data', () => {
  it('records no name, and happens once', () => {
    const event = personErased.draft(USER);
    given(created(), deleted).when(decideErasure, USER).then(event);
    expect(event.data).to.deep.equal(USER);
    given(created(), deleted, event).when(decideErasure, USER).then();
  });

  it('removes personal fields from cached states', () => {
    const user = given(created(), deleted, personErased.draft(USER)).state;
    expect(user).to.include({ display_name: null, email: null, avatar_url: null, provider_id: null, username: 'ann' });
    const asked = accessRequested.draft({
      ...{ request_id: 4, provider: 'google', email: 'ann@example.com', display_name: 'Ann' },
      ...{ avatar_url: 'https://x/y.png', provider_id: 'sub-1' },
    });
    const request = givenFor(accessRequestDecider)(asked, personErased.draft({ kind: 'access_request', id: 4 }));
    expect(request.state).to.include({ display_name: null, email: null, avatar_url: null, provider_id: null });
    const profile = { email: 'ann@example.com', sub: 'sub-1', name: 'Ann', picture: null };
    request.when(decideRequest, 4, profile).thenRefuses(409);
  });

  it('prefers the current user of a name to earlier ones, which need an id if there are several', () => {
    const person = { tenant: 1, workspace: 3, deleted: true };
    const [old, older, present] = [
      { ...person, id: 5 },
      { ...person, id: 6 },
      { ...person, id: 7, deleted: false },
    ];
    const choose = (
      found: Parameters<typeof choosePerson>[0],
      userId?: number,
      reach: 'all' | { tenant: number } = 'all',
    ) => choosePerson(found, { username: 'ann', userId, reach });
    expect(choose([present, old])).to.equal(present);
    expect(choose([old])).to.equal(old);
    expect(choose([present, old, older], 6)).to.equal(older);
    const refusal = refusalOf(() => choose([old, older]));
    expect([refusal.status, refusal.extras.code]).to.deep.equal([409, 'SEVERAL_PEOPLE']);
    expect(refusal.message).to.include('5, 6');
    for (const work of [() => choose([]), () => choose([old], 8), () => choose([old], 5, { tenant: 2 })])
      expect(refusalOf(work).status).to.equal(404);
  });

  it('requires an admin of the default tenant if the person has been in several tenants', () => {
    const moved = given(created(), userTransferred.draft({ user_id: 7, username: 'ann', tenant: 9, workspace: 12 }));
    expect(moved.state.tenants).to.deep.equal([1, 9]);
    moved.when(checkTenants, { tenant: 9 }).thenRefuses(403);
    checkTenants(moved.state, 'all');
    checkTenants(given(created()).state, { tenant: 1 });
  });

  /** A world with one user, and what is asked of the ports. */
  async function open() {
    const auth = authMemory();
    const userId = await auth.make({}, 'a long enough password');
    const asked: string[] = [];
    let entries = [
      { workspace: 1, id: 11 },
      { workspace: 2, id: 12 },
    ];
    const people: PeopleDirectory = {
      named: async () => {
        const { deleted } = (await auth.commands.load(userDecider, `user-${userId}`)).state;
        return [{ id: userId, tenant: 1, workspace: 1, deleted }];
      },
      requestsOf: async () => [],
      workspacesOf: async (tenants) => tenants.map((tenant) => tenant * 10),
      async auditEntriesOf() {
        const found = entries;
        entries = [];
        return found;
      },
    };
    const records: Pick<PersonRecords, 'erase' | 'forget'> = {
      async erase(person, stream, _username, workspaces) {
        asked.push(`${person} ${stream} in ${workspaces}`);
        return ['Ann'];
      },
      async forget(texts, username, workspaces) {
        const erased = types().includes('PersonErased');
        asked.push(`${texts} ${username} in ${workspaces} ${erased ? 'after' : 'before'} the erasure`);
      },
    };
    const credentials = auth.credentials.store;
    const erasing = { commands: auth.commands, credentials, admins: async () => [99], people, records };
    const erase = (parts: Partial<typeof erasing> = {}, callerId = 0) =>
      erasePerson({ ...erasing, ...parts }, auth.context(), {
        username: 'ann',
        userId: undefined,
        reach: 'all',
        callerId,
      });
    const types = () => auth.world.written().map(({ type }) => type);
    return { auth, user_id: userId, erase, asked, types };
  }

  it('deletes the user, then the key, then the audit entries in their workspaces', async () => {
    const { auth, user_id, erase, asked, types } = await open();
    expect(await erase()).to.deep.equal({ userId: user_id, accessRequestIds: [] });
    expect(asked).to.deep.equal([`user:${user_id} user-${user_id} in 10`, 'Ann ann in 10 after the erasure']);
    expect(types().filter((type) => /Deleted|Erased/.test(type))).to.deep.equal([
      ...['UserDeleted', 'AuditEntriesErased', 'AuditEntriesErased', 'PersonErased'],
    ]);
    expect(auth.credentials.passwords().size).to.equal(0);
  });

  it('cannot erase the caller or the last admin, and checks this first', async () => {
    const { user_id: userId, erase, asked, types } = await open();
    expect(await outcomeOf(erase({}, userId))).to.equal('400');
    expect(asked).to.deep.equal([]);
    expect(types()).not.to.include('PersonErased');
  });

  it('is completed by a repeated call after an interruption', async () => {
    const { erase, types } = await open();
    const failing: Pick<PersonRecords, 'erase' | 'forget'> = {
      erase: async () => Promise.reject(new Error('the database is away')),
      forget: async () => expect.fail('nothing was erased'),
    };
    expect(await failureOf(erase({ records: failing }))).to.equal('the database is away');
    expect(types()).to.include('UserDeleted').and.not.include('PersonErased');
    await erase();
    expect(types().filter((type) => /UserDeleted|PersonErased/.test(type))).to.deep.equal([
      'UserDeleted',
      'PersonErased',
    ]);
  });
});

describe('redaction of a field', () => {
  const sealed = (version: number, person = 'user:7') => ({ sealed: version, person, box: 'x' });
  const event = (type: string, data: Readonly<Record<string, unknown>>): LoggedEvent => ({
    ...{ id: '3f0c2a52-5a4e-4a3b-9a65-0c1d2e3f4a5b', type, data, meta: {} },
    ...{ stream: 'user-7', revision: 0, position: 5 },
  });

  it('defaults to the only personal field, otherwise the field must be named', () => {
    const one = event('UserUpdated', { user_id: 7, username: 'ann', email: sealed(2) });
    expect(chooseField(one, undefined)).to.equal('email');
    const two = event('UserCreated', { email: sealed(2), display_name: sealed(2), avatar_url: null });
    expect(chooseField(two, 'display_name')).to.equal('display_name');
    for (const named of [undefined, 'avatar_url', 'username', 'nothing']) {
      const refusal = refusalOf(() => chooseField(two, named));
      expect([refusal.status, refusal.message]).to.deep.equal([
        400,
        `Name the field of the event ${two.id} (UserCreated): it has the personal fields display_name, email.`,
      ]);
    }
  });

  it('is rejected if nothing is personal', () => {
    const hook = event('WebhookCreated', { url: sealed(2, 'webhook:3'), secret: null });
    for (const none of [hook, event('TaskCreated', { title: 'x' }), event('UserUpdated', { email: null })])
      expect(refusalOf(() => chooseField(none, undefined)).message).to.match(/has no personal field/);
  });

  it('deletes the key, records it on the event’s stream, rebuilds, and rechecks events sent meanwhile', async () => {
    const { commands, context, world } = authMemory();
    const steps: string[] = [];
    const one = event('UserUpdated', { user_id: 7, username: 'ann', email: sealed(2) });
    await redactField(
      {
        commands,
        records: {
          textOf: async () => 'ann@example.com',
          redact: async (_event, field, text) => {
            steps.push(`${field} ${text}`);
          },
        },
        rebuild: async (type) => {
          steps.push(`rebuild ${type} ${world.written().length}`);
        },
      },
      context(),
      one,
      'email',
    );
    expect(steps).to.deep.equal(['email ann@example.com', 'rebuild UserUpdated 1', 'email ann@example.com']);
    const [written] = world.written();
    expect([written?.type, written?.stream, written?.data]).to.deep.equal([
      'FieldRedacted',
      'user-7',
      { event: one.id, field: 'email' },
    ]);
  });
});
