import { expect } from 'chai';
import { usersProjection } from '../../../projections/auth/users.ts';
import { userSignedIn } from '../../../shared/events/auth/sign-in.ts';
import {
  googleDisconnected,
  userCreated,
  userDeleted,
  userMoved,
  userPasswordChanged,
  userTransferred,
  userUpdated,
} from '../../../shared/events/auth/users.ts';
import { newUser } from '../../support/ann.ts';
import { type Draft, eventsOf, rowsAfter } from '../../support/kit.ts';

const FIRST = '11111111-1111-4111-8111-111111111111';
const SECOND = '22222222-2222-4222-8222-222222222222';

const ann = (userId = 7) =>
  userCreated.draft({
    ...newUser(`ann${userId}`, { display_name: 'Ann', email: 'Ann@Example.com', workspace: 2 }),
    user_id: userId,
    credential_id: FIRST,
  });
const id = { user_id: 7, username: 'ann7' };
const updated = (changes: object) => userUpdated.draft({ ...id, password_changed: false, by: 'admin', ...changes });

const rows = (...drafts: readonly Draft[]) => {
  const { users, first_user: first } = rowsAfter(usersProjection, eventsOf(drafts));
  return { users, first };
};

describe('projection users', () => {
  it('remembers permanently that a user has existed', () => {
    expect(rows().first).to.deep.equal([]);
    const { users, first } = rows(ann(), userDeleted.draft(id), ann(8), userDeleted.draft({ ...id, user_id: 8 }));
    expect(users).to.deep.equal([]);
    expect(first.map(({ user_id }) => user_id)).to.deep.equal([7]);
  });

  it('shows a user with all later changes', () => {
    const { users } = rows(
      ann(),
      updated({ display_name: 'Ann Lee', email: 'lee@example.com', role: 'admin', avatar_url: 'https://x/y.png' }),
      userSignedIn.draft({ ...id, method: 'password' }),
      userMoved.draft({ ...id, tenant: 4, workspace: 5 }),
    );
    expect(users).to.have.length(1);
    expect(users[0]).to.deep.include({
      username: 'ann7',
      display_name: 'Ann Lee',
      email: 'lee@example.com',
      email_key: 'lee@example.com',
      avatar_url: 'https://x/y.png',
      role: 'admin',
      created_at: 1_700_000_001,
      updated_at: 1_700_000_004,
      last_login_at: 1_700_000_003,
      tenant_id: 4,
      workspace_id: 5,
      credential_id: FIRST,
    });
  });

  it('shows a transferred user in the new workspace, with the same session mark', () => {
    const [row] = rows(ann(), userTransferred.draft({ ...id, tenant: 6, workspace: 8 })).users;
    expect(row).to.deep.include({
      tenant_id: 6,
      workspace_id: 8,
      session_mark: `${FIRST}.1`,
      updated_at: 1_700_000_002,
    });
  });

  it('keeps fields that an update omits', () => {
    const [before] = rows(ann(), updated({ provider_id: 'sub', avatar_url: 'https://x/y.png' })).users;
    expect(before).to.include({ provider_id: 'sub', avatar_url: 'https://x/y.png' });
    expect(before).to.include({ display_name: 'Ann', email: 'Ann@Example.com', role: 'viewer', is_approved: true });
    const [after] = rows(ann(), updated({ provider_id: 'sub', avatar_url: 'https://x/y.png' }), updated({})).users;
    expect(after).to.deep.equal({ ...before, updated_at: 1_700_000_003, position: 3 });
  });

  it('keeps the session mark until sessions are ended', () => {
    const mark = (...drafts: readonly Draft[]) => rows(ann(), ...drafts).users[0]?.session_mark;
    expect(mark()).to.equal(`${FIRST}.1`);
    expect(mark(updated({ role: 'admin', display_name: 'x', is_approved: true }))).to.equal(`${FIRST}.1`);
    expect(mark(userSignedIn.draft({ ...id, method: 'password' }))).to.equal(`${FIRST}.1`);
    expect(mark(userPasswordChanged.draft({ ...id, credential_id: SECOND, by: 'self' }))).to.equal(`${SECOND}.2`);
    expect(mark(updated({ is_approved: false }))).to.equal(`${FIRST}.2`);
    expect(mark(updated({ is_approved: false }), updated({ is_approved: true }))).to.equal(`${FIRST}.2`);
    expect(mark(updated({ provider: 'google', provider_id: 's' }))).to.equal('google.2');
    expect(
      mark(
        updated({ provider: 'google', provider_id: 's' }),
        userPasswordChanged.draft({ ...id, credential_id: SECOND, by: 'admin' }),
        googleDisconnected.draft(id),
      ),
    ).to.equal(`${SECOND}.4`);
  });

  it('marks the sessions of Google users by Google, even if they have a password as well', () => {
    const viaGoogle = { ...ann(), data: { ...ann().data, provider: 'google' as const } };
    const marked = (...drafts: readonly Draft[]) => rows(...drafts).users[0]?.session_mark;
    expect(marked(viaGoogle)).to.equal('google.1');
    expect(marked(viaGoogle, userPasswordChanged.draft({ ...id, credential_id: SECOND, by: 'admin' }))).to.equal(
      'google.2',
    );
    expect(marked(viaGoogle, updated({ is_approved: false }))).to.equal('google.2');
    expect(marked({ ...ann(), data: { ...ann().data, credential_id: null } })).to.equal('none.1');
    expect(rows(viaGoogle, googleDisconnected.draft(id)).users[0]).to.include({ provider: 'local', provider_id: null });
  });

  it('removes deleted users, and ignores late events', () => {
    const { users } = rows(ann(7), ann(8), userDeleted.draft(id), userSignedIn.draft({ ...id, method: 'password' }));
    expect(users.map((row) => row.id)).to.deep.equal([8]);
  });

  it('supports users whose personal fields were erased', () => {
    const { users } = rows({ ...ann(), data: { ...ann().data, display_name: null, email: null } });
    expect(users[0]).to.deep.include({ display_name: null, email: null, email_key: null });
  });
});
