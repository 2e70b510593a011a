/** Users and access requests according to the read models, for commands that do not know the stream yet. */
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
  /** A session is valid while its mark is that of its user; see `projections/auth/users.ts`. */
  readonly sessionMark: string;
  /** The user's public record. */
  readonly record: UserRecord;
}

export interface UserDirectory {
  find(id: number): Promise<FoundUser | undefined>;
  findByName(username: string): Promise<FoundUser | undefined>;
  /** The user of this Google account, found by its subject or else by its e-mail address. */
  findByGoogleAccount(sub: string, email: string): Promise<FoundUser | undefined>;
  /** Id of an earlier access request of this account or e-mail address. */
  findAccessRequest(sub: string, email: string): Promise<number | undefined>;
  /** Whether the deployment has ever had a user. */
  wasSetUp(): Promise<boolean>;
}
