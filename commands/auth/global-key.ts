/**
 * The deployment's own API key. The log names the key in force by its id; the hash is in the credential store. Any other
 * hash there is worthless, so a replacement takes effect with its event.
 */
import { randomBytes } from 'node:crypto';
import { conflict, isRefusal } from '../../shared/errors.ts';
import {
  GLOBAL_KEY_STREAM,
  globalKeyConfigured,
  globalKeyRotated,
  type KeySource,
} from '../../shared/events/auth/global-key.ts';
import type { EventDraft, EventOf } from '../../shared/events/define.ts';
import type { Credentials } from '../../shared/ports/credentials.ts';
import { seconds } from '../../shared/time.ts';
import { defineDecider, on } from '../decider.ts';
import type { CommandContext, Commands } from '../handler.ts';

export interface GlobalKeyState {
  readonly keyId: number | null;
  readonly source: KeySource;
  readonly masked: string | null;
  /** A rotated key takes precedence over the environment for good. */
  readonly rotated: boolean;
}

export const globalKeyDecider = defineDecider<GlobalKeyState>({
  kind: 'API key',
  initial: { keyId: null, source: 'none', masked: null, rotated: false },
  folds: [
    on(globalKeyConfigured, (_, { data: { key_id: keyId, source, masked } }) => ({
      keyId,
      source,
      masked,
      rotated: false,
    })),
    on(globalKeyRotated, (_, { data: { key_id: keyId, masked } }) => ({
      keyId,
      source: 'database',
      masked,
      rotated: true,
    })),
  ],
});

/** First 4 and last 5 characters; no character of a key that is too short for that. */
export function maskKey(key: string): string {
  return key.length <= 9 ? '****' : `${key.slice(0, 4)}-****-****-${key.slice(-5)}`;
}

/** The mask of a key that a person chose: unless the key is long, nine characters would reveal too much of it. */
export const maskChosenKey = (key: string): string => (key.length < 24 ? '****' : maskKey(key));

export const newGlobalKey = (): string => `mc_${randomBytes(24).toString('hex')}`;

/** A new key with the mask `masked`, for a repeated request whose first response, with the key, was lost. */
function sameShape(masked: string): string {
  const [head = '', , , tail = ''] = masked.split('-');
  return `${head}${randomBytes(21).toString('hex')}${tail}`;
}

export function decideConfigure(
  state: GlobalKeyState,
  key: { readonly key_id: number; readonly source: 'environment' | 'database'; readonly masked: string },
): readonly EventDraft[] {
  if (state.rotated || state.keyId === key.key_id) return [];
  // Another process may have generated a key in the meantime, and clients may be using it.
  if (key.source === 'database' && state.keyId !== null) return [];
  return [globalKeyConfigured.draft(key)];
}

/**
 * @param replaced id of the key to be replaced; null: there is none
 *
 * @throws AppError 409 when another key is current
 */
export function decideRotate(
  state: GlobalKeyState,
  key: { readonly key_id: number; readonly masked: string },
  replaced: number | null,
): readonly EventDraft[] {
  if (state.keyId !== replaced)
    throw conflict('The API key was replaced by another request at the same time; use that key, or try again.', {
      code: 'CONFLICT',
    });
  return [globalKeyRotated.draft({ ...key, old_source: state.source, old_masked: state.masked })];
}

/**
 * Makes the key from the environment the current one, unless the key has been rotated.
 *
 * @throws AppError 409 when the key belongs to an agent
 */
export async function configureGlobalKey(
  commands: Commands,
  context: CommandContext,
  credentials: Credentials,
  key: string,
): Promise<void> {
  const before = await commands.load(globalKeyDecider, GLOBAL_KEY_STREAM);
  if (before.state.rotated) return;
  let stored = await credentials.findKey(key);
  if (!stored) {
    await credentials.addKey(key, { kind: 'global', keyId: await commands.counters.take('global_key') });
    // Another process may have stored the key under another id at the same time; the first one counts.
    stored = await credentials.findKey(key);
  }
  if (stored?.kind !== 'global') throw conflict('API_KEY is the key of an agent; choose another one.');
  const { keyId } = stored;
  await commands.execute(globalKeyDecider, GLOBAL_KEY_STREAM, context, (state) =>
    decideConfigure(state, { key_id: keyId, source: 'environment', masked: maskChosenKey(key) }),
  );
  const old = before.state.keyId;
  if (old !== null && old !== keyId) await credentials.removeKey({ kind: 'global', keyId: old });
}

/** Generates a key when there is none. @returns the key, to be shown once; undefined when a key existed */
export async function generateGlobalKey(
  commands: Commands,
  context: CommandContext,
  credentials: Credentials,
): Promise<string | undefined> {
  const before = await commands.load(globalKeyDecider, GLOBAL_KEY_STREAM);
  if (before.state.keyId !== null) return undefined;
  const key = newGlobalKey();
  const keyId = await commands.counters.take('global_key');
  await credentials.addKey(key, { kind: 'global', keyId });
  const { events } = await commands.execute(globalKeyDecider, GLOBAL_KEY_STREAM, context, (state) =>
    decideConfigure(state, { key_id: keyId, source: 'database', masked: maskKey(key) }),
  );
  if (events.length > 0) return key;
  await credentials.removeKey({ kind: 'global', keyId });
  return undefined;
}

export interface RotatedKey {
  /** To be shown once. */
  readonly key: string;
  readonly masked: string;
  /** Unix seconds. */
  readonly at: number;
  readonly by: string;
}

/**
 * Replaces the key; the old one stops working at once. Of several concurrent requests, one replaces it.
 *
 * @param held id of the caller's key; undefined: the caller has another credential, and replaces the current key
 * @throws AppError 409 when a concurrent request replaces the key
 */
export async function rotateGlobalKey(
  commands: Commands,
  context: CommandContext,
  credentials: Credentials,
  held?: number,
): Promise<RotatedKey> {
  const replaced = held ?? (await commands.load(globalKeyDecider, GLOBAL_KEY_STREAM)).state.keyId;
  let key = newGlobalKey();
  const masked = maskKey(key);
  const keyId = await commands.counters.take('global_key');
  await credentials.addKey(key, { kind: 'global', keyId });
  const executed = await commands
    .execute(globalKeyDecider, GLOBAL_KEY_STREAM, context, (state) =>
      decideRotate(state, { key_id: keyId, masked }, replaced),
    )
    .catch(async (error: unknown) => {
      // Without its event the hash is worthless; but if the outcome is unknown, it must be kept.
      if (isRefusal(error)) await credentials.removeKey({ kind: 'global', keyId });
      throw error;
    });
  const { data, meta } = executed.events[0] as EventOf<typeof globalKeyRotated>;
  if (data.key_id !== keyId) {
    // An earlier run of this request rotated the key, but the caller never received the new one.
    await credentials.removeKey({ kind: 'global', keyId });
    await credentials.removeKey({ kind: 'global', keyId: data.key_id });
    key = sameShape(data.masked);
    await credentials.addKey(key, { kind: 'global', keyId: data.key_id });
  } else if (replaced !== null) await credentials.removeKey({ kind: 'global', keyId: replaced });
  return { key, masked: data.masked, at: seconds(meta.at), by: meta.actor.name };
}
