/** Users and access requests according to the read models, for commands that do not know the stream yet. */
import type { UserRecord } from '../../contract/auth/users.ts';
import type { Provider } from '../../events/auth/users.ts';
import type { DomainEvent } from '../../events/define.ts';
import type { ReadAt } from '../read-models.ts';

export interface FoundUser {
  readonly id: number;
  readonly username: string;
  readonly tenant: number;
  readonly workspace: number;
  readonly provider: Provider;
  readonly is_approved: boolean;
  readonly credential_id: string | null;
  /** A session is valid while its mark is that of its user; see `projections/auth/users.ts`. */
  readonly sessionMark: string;
  /** The user's public record. */
  readonly record: UserRecord;
}

export interface UserDirectory {
  /**
   * A user after a command on their stream, whatever the read model shows.
   *
   * @throws AppError 404 when they have been deleted
   */
  after(
    id: number,
    executed: { readonly stream: string; readonly events: readonly DomainEvent[]; readonly position: number },
  ): Promise<FoundUser>;
  find(id: number): Promise<FoundUser | undefined>;
  findByName(username: string): Promise<FoundUser | undefined>;
  /** The user of this Google account, found by its subject, otherwise by its e-mail address. */
  findByGoogleAccount(sub: string, email: string): Promise<FoundUser | undefined>;
  /** The user of this account of the OpenID Connect provider. */
  findByOidcAccount(account: string): Promise<FoundUser | undefined>;
  /** Ids of the enabled admins of a tenant. */
  adminsOf(tenant: number): Promise<readonly number[]>;
  /** The workspace with this slug; undefined if there is none. */
  placeOf(slug: string): Promise<{ readonly tenant: number; readonly workspace: number } | undefined>;
  /** Id of an earlier access request of this account or e-mail address. */
  findAccessRequest(sub: string, email: string): Promise<number | undefined>;
  /** Whether the deployment has ever had a user. */
  wasSetUp(): Promise<boolean>;
}

/** Display names. Only events about the user contain them, so they are looked up where a name is shown. */
export interface DisplayNames {
  /**
   * How names in records of a workspace are displayed. A name that is not a user's is shown unchanged, and so is one
   * that a user got after the record was written.
   *
   * @param names names that may be usernames
   */
  of(workspace: number, names: readonly string[]): Promise<ShownAs>;
  /**
   * The username of the only user of a workspace with this display name; the text itself if it is a username, or if
   * several users have it.
   *
   * @param at default: the head of the log at the time of the call
   */
  usernameOf(workspace: number, shown: string, at?: ReadAt): Promise<string>;
}

/** @param at when the record was written, Unix seconds */
export type ShownAs = (name: string, at: number) => string;
