/**
 * Creates the records that every deployment needs: the default tenant with its workspace and general project, the first
 * admin, the API key. Runs at every start of every API process; unique names in the log ensure that only one process
 * creates each.
 */
import { randomInt, randomUUID } from 'node:crypto';
import { configureGlobalKey, generateGlobalKey } from '../../commands/auth/global-key.ts';
import { createUser } from '../../commands/auth/registration.ts';
import { hasFirstAdmin, NEW_USER } from '../../commands/auth/users.ts';
import type { CommandContext, Commands } from '../../commands/handler.ts';
import { ensureGeneral } from '../../commands/projects/changes.ts';
import { ensureDefaultTenant } from '../../commands/super/tenants.ts';
import { wasSetUp } from '../../queries/auth/users.ts';
import { projectDirectory } from '../../queries/projects/projects.ts';
import type { Reads } from '../../queries/reads.ts';
import { isInsecurePassword, newUsername } from '../../shared/contract/auth/users.ts';
import { AppError } from '../../shared/errors.ts';
import { DEFAULT_TENANT, DEFAULT_WORKSPACE } from '../../shared/events/metadata.ts';
import { systemActor } from '../../shared/identity.ts';
import type { Credentials } from '../../shared/ports/credentials.ts';
import type { Config } from '../config.ts';
import type { Logger } from '../logging.ts';

export interface FirstStartParts {
  readonly config: Pick<Config, 'authUser' | 'authPass' | 'authPassBase64' | 'apiKey'>;
  readonly commands: Commands;
  readonly credentials: Credentials;
  /** Queries that do not wait: recent events that they do not show yet are looked up in the log. */
  readonly reads: Reads;
  readonly log: Logger;
  /** How long to wait for another process that is creating the same things, milliseconds; a second by default. */
  readonly waitMs?: number;
  /** Receives the lines with generated credentials, even if a later step fails: they cannot be looked up afterwards. */
  readonly show?: ((lines: readonly string[]) => void) | undefined;
}

/** Without look-alike characters. */
const ALPHABET = 'ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789';
const GENERATED_LENGTH = 24;

const generatePassword = (): string =>
  Array.from({ length: GENERATED_LENGTH }, () => ALPHABET[randomInt(ALPHABET.length)]).join('');

/** The context of commands that the service itself, or an operator on its machine, gives. */
export const systemContext = (name: Parameters<typeof systemActor>[0]): CommandContext => ({
  origin: {
    tenant: DEFAULT_TENANT,
    workspace: DEFAULT_WORKSPACE,
    actor: systemActor(name),
    ip: null,
    userAgent: null,
    requestId: null,
    correlationId: randomUUID(),
    causationId: null,
  },
});

const contextOf = () => systemContext('first start');

/** Creates what is missing. @returns lines with the generated credentials, to be shown once */
export async function prepareFirstStart(parts: FirstStartParts): Promise<string[]> {
  const { commands, reads } = parts;
  await ensureDefaultTenant(commands, contextOf());
  await ensureGeneral(commands, contextOf(), projectDirectory(reads), parts.waitMs);
  const lines: string[] = [];
  try {
    lines.push(...(await seedAdmin(parts)));
    lines.push(...(await provideKey(parts)));
  } finally {
    if (lines.length > 0) parts.show?.(lines);
  }
  return lines;
}

/** `AUTH_PASS_B64` when it is canonical base64 of a non-empty text, else `AUTH_PASS`. */
export function givenPassword(config: Pick<Config, 'authPass' | 'authPassBase64'>): string | undefined {
  const { authPass, authPassBase64 } = config;
  if (authPassBase64) {
    const bytes = Buffer.from(authPassBase64, 'base64');
    const text = bytes.toString('utf8');
    if (text !== '' && bytes.toString('base64') === authPassBase64 && Buffer.from(text).equals(bytes)) return text;
  }
  return authPass || undefined;
}

async function seedAdmin({ config, commands, credentials, reads, log }: FirstStartParts): Promise<string[]> {
  if ((await wasSetUp(reads)) || (await hasFirstAdmin(commands))) return [];
  const given = givenPassword(config);
  if (given !== undefined && isInsecurePassword(given)) {
    log.warn(
      'AUTH_PASS is a well-known default, so no admin was created. Whoever calls /api/setup first becomes the admin: do so now, or set another AUTH_PASS and restart.',
    );
    return [];
  }
  const password = given ?? generatePassword();
  const username = config.authUser.trim().normalize('NFC');
  const checked = newUsername.safeParse(username);
  if (!checked.success) {
    throw new Error(`AUTH_USER ${checked.error.issues[0]?.message}; change it and restart`);
  }
  try {
    await createUser(
      commands,
      contextOf(),
      credentials,
      {
        ...NEW_USER,
        username,
        display_name: `${username.charAt(0).toUpperCase()}${username.slice(1)}`,
        role: 'admin',
        source: 'seed',
      },
      password,
      { first: true },
    );
  } catch (error) {
    if (!(error instanceof AppError) || error.status !== 409) throw error;
    log.info('another process has created the first admin');
    return [];
  }
  log.info({ username }, 'created the first admin');
  return given === undefined ? [`Admin user:     ${username}`, `Admin password: ${password}`] : [];
}

async function provideKey({ config, commands, credentials, log }: FirstStartParts): Promise<string[]> {
  const given = config.apiKey?.trim();
  if (given) {
    await configureGlobalKey(commands, contextOf(), credentials, given);
    return [];
  }
  const key = await generateGlobalKey(commands, contextOf(), credentials);
  if (key === undefined) return [];
  log.info('generated an API key because API_KEY is not set');
  return [`API key:        ${key}`];
}
