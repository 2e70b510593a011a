/** Users and access requests, as sign-in, commands and lists look them up. */
import { expect } from 'chai';
import { usersProjection } from '../../../projections/auth/users.ts';
import { findAccessRequestOf, listAccessRequests } from '../../../queries/auth/access-requests.ts';
import {
  adminsIn,
  findGoogleUser,
  findUser,
  findUserByName,
  findUserForApproval,
  findUsers,
  findUsersByName,
  listUsers,
  userDirectory,
  wasSetUp,
} from '../../../queries/auth/users.ts';
import type { Records } from '../../../queries/records.ts';
import {
  accessRequestApproved,
  accessRequested,
  accessRequestRejected,
} from '../../../shared/events/auth/access-requests.ts';
import { userCreated } from '../../../shared/events/auth/users.ts';
import { newUser } from '../../support/ann.ts';
import { sample } from '../../support/kit.ts';
import { openReadModels, readModels, secondsOf } from '../../support/rows.ts';

const CREDENTIAL = '11111111-1111-4111-8111-111111111111';
const created = (userId: number, username: string, more: object = {}) =>
  userCreated.draft({
    ...newUser(username, { display_name: null }),
    user_id: userId,
    credential_id: null,
    ...more,
  });
const google = (userId: number, username: string, more: object) =>
  created(userId, username, { provider: 'google', ...more });
const asked = (requestId: number, more: object = {}) =>
  sample(accessRequested, {
    request_id: requestId,
    provider: 'google',
    email: `r${requestId}@example.com`,
    provider_id: `sub-r${requestId}`,
    ...more,
  });

const noRecords = {} as Records;

describe('user queries', () => {
  const models = readModels([usersProjection]);

  it('report a deployment as set up once a user has existed', async () => {
    expect(await wasSetUp(models.reads)).to.equal(false);
    expect(await userDirectory(models.reads, noRecords).wasSetUp()).to.equal(false);
    await models.tell(
      created(1, 'ann', { display_name: 'Ann', role: 'admin', email: 'Ann@Example.com', credential_id: CREDENTIAL }),
      created(2, 'ben', { role: 'admin', is_approved: false }),
      created(3, 'cat', { role: 'admin', tenant: 2, workspace: 2 }),
      google(4, 'dee', { email: 'Dee@Example.com', provider_id: 'sub-dee' }),
      google(5, 'eli', { email: 'eli@example.com', provider_id: null }),
      google(6, 'eli2', { email: 'eli@example.com', provider_id: 'sub-eli2' }),
      created(7, 'fox', { email: 'fox@example.com', provider_id: 'sub-fox' }),
      created(8, 'gia', { role: 'admin' }),
    );
    expect(await wasSetUp(models.reads)).to.equal(true);
    expect(await userDirectory(models.reads, noRecords).wasSetUp()).to.equal(true);
  });

  const idsOf = (rows: readonly { readonly id: number }[]) => rows.map(({ id }) => id).sort();

  it('return the enabled admins of one tenant, oldest first', async () => {
    expect(await adminsIn(models.reads)(1)).to.deep.equal([1, 8]);
    expect(await adminsIn(models.reads)(2)).to.deep.equal([3]);
  });

  it('find users by id and by name, one or many', async () => {
    expect(await findUser(models.reads, 4)).to.include({ username: 'dee' });
    expect(await findUserByName(models.reads, 'dee')).to.include({ id: 4 });
    expect(await findUser(models.reads, 99)).to.equal(undefined);
    expect(await findUserByName(models.reads, 'nobody')).to.equal(undefined);
    expect(idsOf(await findUsers(models.reads, [1, 4, 99]))).to.deep.equal([1, 4]);
    expect(idsOf(await findUsersByName(models.reads, ['cat', 'dee', 'nobody']))).to.deep.equal([3, 4]);
  });

  it('find a Google account by its subject, or by its address if the user has no subject', async () => {
    const found = async (sub: string, email: string) => (await findGoogleUser(models.reads, sub, email))?.id;
    expect(await found('sub-dee', 'other@example.com')).to.equal(4);
    expect(await found('unknown', 'eli@example.com')).to.equal(5);
    expect(await found('unknown', 'dee@example.com'), 'has another subject').to.equal(undefined);
    expect(await found('sub-fox', 'nobody@example.com'), 'signs in with a password').to.equal(undefined);
    expect(await found('unknown', 'fox@example.com'), 'signs in with a password').to.equal(undefined);
  });

  it('match an approved request to the account’s user, else by address, for any way to sign in', async () => {
    const found = async (sub: string | null, email: string | null) =>
      (await findUserForApproval(models.reads, sub, email))?.id;
    expect(await found('sub-dee', 'fox@example.com')).to.equal(4);
    expect(await found('sub-fox', 'fox@example.com')).to.equal(7);
    expect(await found('sub-fox', null), 'a subject of a user who signs in otherwise').to.equal(undefined);
    expect(await found(null, 'eli@example.com'), 'the oldest of two').to.equal(5);
    expect(await found(null, null)).to.equal(undefined);
    expect(await found('unknown', 'unknown@example.com')).to.equal(undefined);
  });

  it('list the users of a workspace oldest first, without credentials', async () => {
    const users = await listUsers(models.reads, 1);
    expect(users.map(({ id }) => id)).to.deep.equal([1, 2, 4, 5, 6, 7, 8]);
    expect(users[0]).to.deep.equal({
      id: 1,
      username: 'ann',
      display_name: 'Ann',
      role: 'admin',
      provider: 'local',
      email: 'Ann@Example.com',
      avatar_url: null,
      is_approved: 1,
      workspace_id: 1,
      tenant_id: 1,
      created_at: secondsOf(1),
      updated_at: secondsOf(1),
      last_login_at: null,
    });
    expect(users[1]).to.include({ display_name: 'ben', is_approved: 0 });
  });

  it('list users created in the same second by id', async () => {
    const place = { at: 1_700_000_000_000 };
    await models.tell(
      [created(93, 'same-93', { workspace: 9 }), place],
      [created(91, 'same-91', { workspace: 9 }), place],
      [created(92, 'same-92', { workspace: 9 }), { at: 1_600_000_000_000 }],
    );
    expect((await listUsers(models.reads, 9)).map(({ id }) => id)).to.deep.equal([92, 91, 93]);
  });

  it('return the user fields that commands need', async () => {
    const directory = userDirectory(models.reads, noRecords);
    const ann = await directory.find(1);
    expect(ann).to.deep.include({
      id: 1,
      username: 'ann',
      tenant: 1,
      workspace: 1,
      provider: 'local',
      is_approved: true,
      credential_id: CREDENTIAL,
      sessionMark: `${CREDENTIAL}.1`,
    });
    expect(ann?.record).to.include({ id: 1, display_name: 'Ann' });
    expect(await directory.findByName('ann')).to.deep.equal(ann);
    expect((await directory.findByGoogleAccount('sub-dee', 'x@example.com'))?.id).to.equal(4);
    expect(await directory.find(99)).to.equal(undefined);
    expect(await directory.findByName('nobody')).to.equal(undefined);
    expect(await directory.findByGoogleAccount('unknown', 'unknown@example.com')).to.equal(undefined);
  });

  describe('access request queries', () => {
    before(() =>
      models.tell(
        asked(1, { display_name: 'Ron' }),
        asked(2),
        accessRequestRejected.draft({ request_id: 1, email: null, note: 'who?' }),
        asked(3),
        accessRequestApproved.draft({ request_id: 3, email: null, role: 'viewer', user_id: 4, note: null }),
        asked(4, { email: null, display_name: null }),
        asked(5, { email: 'r2@example.com', provider_id: 'sub-r5' }),
        asked(6, { email: 'other@example.com', provider_id: 'sub-r3' }),
      ),
    );
    const list = async (status?: string, limit = 50, offset = 0) =>
      (await listAccessRequests(models.reads, { status, limit, offset })).map(({ id }) => id);

    it('list pending requests first, then by the last attempt, in pages or by one status', async () => {
      expect(await list()).to.deep.equal([6, 5, 4, 2, 3, 1]);
      expect(await list('pending')).to.deep.equal([6, 5, 4, 2]);
      expect(await list('rejected')).to.deep.equal([1]);
      expect(await list(undefined, 2, 1)).to.deep.equal([5, 4]);
    });

    it('list requests of the same second by id, newest first', async () => {
      const { reads, tell, close } = await openReadModels([usersProjection]);
      try {
        const place = { at: 1_700_000_000_000 };
        await tell([asked(1), place], [asked(3), place], [asked(2), place]);
        const found = await listAccessRequests(reads, { status: undefined, limit: 9, offset: 0 });
        expect(found.map(({ id }) => id)).to.deep.equal([3, 2, 1]);
      } finally {
        await close();
      }
    });

    it('return records named after the person or the address', async () => {
      const all = await listAccessRequests(models.reads, { status: undefined, limit: 99, offset: 0 });
      const record = (id: number) => all.find((one) => one.id === id);
      const [first] = await listAccessRequests(models.reads, { status: 'rejected', limit: 1, offset: 0 });
      expect(first).to.deep.equal(record(1));
      expect(first).to.deep.include({
        id: 1,
        username: 'Ron',
        email: 'r1@example.com',
        reason: null,
        status: 'rejected',
        provider: 'google',
        provider_user_id: 'sub-r1',
        display_name: 'Ron',
        avatar_url: null,
        attempt_count: 1,
        reviewed_by: 'admin',
        review_note: 'who?',
        approved_user_id: null,
      });
      expect(first?.created_at).to.equal(first?.requested_at);
      expect(record(2)).to.include({ username: 'r2', email: 'r2@example.com' });
      expect(record(4)).to.include({ username: '[erased]', email: '[erased]' });
      expect(record(3)).to.include({ status: 'approved', approved_user_id: 4 });
      expect(record(99)).to.equal(undefined);
    });

    it('find requests by the address of an account, or by its subject, oldest first', async () => {
      for (const find of [
        (sub: string, email: string) => findAccessRequestOf(models.reads, sub, email),
        (sub: string, email: string) => userDirectory(models.reads, noRecords).findAccessRequest(sub, email),
      ]) {
        expect(await find('sub-r3', 'r2@example.com')).to.equal(2);
        expect(await find('sub-r3', 'unknown@example.com')).to.equal(3);
        expect(await find('unknown', 'unknown@example.com')).to.equal(undefined);
      }
    });
  });
});
