/** Users and their access requests as the read models have them, for commands that know no stream yet. */
import type { UserRecord } from '../contract/auth/users.ts';
import type { Provider } from '../events/auth/users.ts';

export interface FoundUser {
  readonly id: number;
  readonly username: string;
  readonly tenant: number;
  readonly workspace: number;
  readonly provider: Provider;
  readonly isApproved: boolean;
  readonly credentialId: string | null;
  /** A session is good while it carries the mark that its user has; see `projections/auth/users.ts`. */
  readonly sessionMark: string;
  /** The user as callers see them. */
  readonly record: UserRecord;
}

export interface UserDirectory {
  find(id: number): Promise<FoundUser | undefined>;
  findByName(username: string): Promise<FoundUser | undefined>;
  /** Who signs in with this Google account: by its subject, else by the e-mail address. */
  findByGoogleAccount(sub: string, email: string): Promise<FoundUser | undefined>;
  /** Id of the access request that this account, or its address, has made before. */
  findAccessRequest(sub: string, email: string): Promise<number | undefined>;
  /** Whether the deployment ever had a user. */
  wasSetUp(): Promise<boolean>;
}
