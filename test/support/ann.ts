/** A user and her Google account, for the tests of decisions on users. */

import { NEW_USER, type NewUser, userDecider } from '../../commands/auth/users.ts';
import { userCreated } from '../../shared/events/auth/users.ts';
import type { GoogleProfile } from '../../shared/ports/auth/google.ts';
import { givenFor } from './kit.ts';

export const OLD = '11111111-1111-4111-8111-111111111111';
export const NEW = '22222222-2222-4222-8222-222222222222';

/** A viewer with a local account, unless `more` says otherwise. */
export const newUser = (username: string, more: Partial<NewUser> = {}): NewUser => ({
  ...NEW_USER,
  username,
  display_name: username,
  role: 'viewer',
  source: 'admin',
  ...more,
});

export const ann = newUser('ann', {
  display_name: 'Ann',
  email: 'ann@example.com',
  role: 'operator',
  workspace: 3,
});
export const google: NewUser = { ...ann, provider: 'google', provider_id: 'sub-1' };
export const profile: GoogleProfile = { sub: 'sub-1', email: 'ann@example.com', name: 'Ann', picture: null };
export const created = (user: NewUser = ann, credentialId: string | null = OLD) =>
  userCreated.draft({ ...user, user_id: 7, credential_id: credentialId });

export const given = givenFor(userDecider);
