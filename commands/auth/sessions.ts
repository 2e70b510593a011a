/**
 * Sessions. They are kept in the credential store only, under the hash of their token. An event of the user ends all of
 * them: it changes the user's session mark, and a session is valid only while it carries the current one.
 */
import { hash, randomBytes } from 'node:crypto';
import type { FoundUser, UserDirectory } from '../../queries/auth/users.ts';
import type { Credentials } from '../../shared/ports/credentials.ts';
import { DAY, seconds } from '../../shared/time.ts';
import type { CommandContext, Commands } from '../handler.ts';

/** Counted from sign-in: using a session does not extend it. */
export const SESSION_SECONDS = 7 * DAY;

export const newToken = (): string => randomBytes(32).toString('hex');
export const hashToken = (token: string): string => hash('sha256', token, 'hex');

/** Dependencies of commands that begin a session. */
export interface SessionParts {
  readonly commands: Commands;
  readonly credentials: Credentials;
  readonly users: UserDirectory;
  /** Unix milliseconds. */
  readonly now: () => number;
}

/** A user with a new session. The token is sent to the browser and not stored. */
export interface SignedIn {
  readonly user: FoundUser;
  readonly token: string;
}

/** Begins a session. @returns its token */
export async function beginSession(
  { credentials, now }: Pick<SessionParts, 'credentials' | 'now'>,
  { origin }: Pick<CommandContext, 'origin'>,
  user: FoundUser,
): Promise<string> {
  const token = newToken();
  const createdAt = seconds(now());
  await credentials.addSession(token, {
    userId: user.id,
    credential: user.sessionMark,
    ip: origin.ip,
    userAgent: origin.userAgent,
    createdAt,
    expiresAt: createdAt + SESSION_SECONDS,
  });
  return token;
}
