/** Users named by a trusted proxy for the first time: they are created with the role that the operator configured. */
import type { Logger } from 'pino';
import { AppError } from '../../shared/errors.ts';
import type { Origin } from '../../shared/events/metadata.ts';
import { type Role, systemActor } from '../../shared/identity.ts';
import { userNameFault } from '../../shared/names.ts';
import type { Credentials } from '../../shared/ports/credentials.ts';
import type { Commands } from '../handler.ts';
import { createUser } from './registration.ts';
import { NEW_USER } from './users.ts';

/** Makes a function that creates a user. Concurrent requests that name the same user share one attempt. */
export function createProxyUsers(
  parts: { readonly commands: Commands; readonly credentials: Credentials; readonly log: Logger },
  role: Role,
): (username: string, origin: Origin) => Promise<void> {
  const { commands, credentials, log } = parts;
  const creating = new Map<string, Promise<void>>();

  async function create(username: string, origin: Origin): Promise<void> {
    const fault = userNameFault(username);
    if (fault !== undefined) {
      log.warn({ fault }, 'the proxy sent a name that is not a valid username');
      return;
    }
    try {
      await createUser(
        commands,
        { origin: { ...origin, actor: systemActor('proxy') } },
        credentials,
        { ...NEW_USER, username, display_name: username, role, provider: 'proxy', source: 'proxy' },
        null,
      );
      log.info({ username, role }, 'created a user named by the proxy');
    } catch (error) {
      // Another process was faster, so the user exists.
      if (!(error instanceof AppError) || error.status !== 409) throw error;
    }
  }

  return (username, origin) => {
    let one = creating.get(username);
    if (!one) {
      one = create(username, origin).finally(() => creating.delete(username));
      creating.set(username, one);
    }
    return one;
  };
}
