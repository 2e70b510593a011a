/**
 * `Idempotency-Key` on POST: for 24 h, the same key, body and agent (`x-agent-name`) get the stored response; another
 * body or agent gets 409.
 *
 * Bodies contain passwords; responses contain keys and cookies. So a body is stored only as an HMAC, and a response
 * only encrypted. The keys of both are derived from the deployment's secret, the caller, and the caller's idempotency
 * key, which is stored only as a hash: neither the table nor the secret alone is enough to read a response or to try
 * passwords.
 *
 * Before a request appends events, they are stored as its intents (`Intents`). If the request dies halfway, the next
 * request with the key appends the same events again, and the log responds as it did the first time.
 */
import { createCipheriv, createDecipheriv, createHash, createHmac, hkdfSync, randomBytes } from 'node:crypto';
import type { Intent, Intents } from '../../commands/handler.ts';
import { AppError, conflict, RUN_IN_PROGRESS } from '../../shared/errors.ts';
import type { IdempotencyRecord, IdempotencyStore } from '../../shared/ports/idempotency.ts';
import { pause } from '../../shared/waiting.ts';
import type { RequestContext } from './context.ts';
import { asAppError } from './errors.ts';
import type { RouteResponse } from './route.ts';

/** How long a request waits for an earlier one with the same key, milliseconds. */
const WAIT_MS = 10_000;
/** Pause between checks whether the earlier request has finished, milliseconds. */
const LOOK_MS = 50;
const KEY_PATTERN = /^[\x21-\x7e]{1,255}$/;

interface Stored {
  readonly intents: readonly Intent[];
  readonly response?: { readonly status: number; readonly body: unknown; readonly headers?: RouteResponse['headers'] };
}

/** The `Idempotency-Key` of a request. @throws AppError 400 when it is not 1 to 255 visible ASCII characters */
export function idempotencyKeyOf(context: RequestContext): string | undefined {
  const key = context.req.headers['idempotency-key'];
  if (key === undefined) return undefined;
  if (typeof key !== 'string' || !KEY_PATTERN.test(key)) {
    throw new AppError(400, 'Idempotency-Key must be 1 to 255 visible ASCII characters without spaces.');
  }
  return key;
}

/** Runs `handle` at most once per key. @throws AppError 409 for a different body, or while an earlier request still runs */
export async function runOnce(
  store: IdempotencyStore,
  key: string,
  context: RequestContext,
  body: unknown,
  handle: (intents: Intents) => Promise<RouteResponse>,
): Promise<RouteResponse> {
  const { identity, req } = context;
  const scope = identity ? `${identity.workspace}:${identity.id}` : `anonymous:${context.ip}`;
  const keyHash = createHash('sha256').update(`${scope}\n${key}`).digest();
  const request = `${req.method} ${req.originalUrl}\n${JSON.stringify(body)}`;
  // The same request on behalf of another agent is another request.
  const agent = identity === null || identity?.kind === 'agent-key' ? null : (identity?.agentName ?? null);
  const { hash, seal } = derive(await store.secret(), scope, key, request, agent);

  const begun = await beginOrWait(store, scope, keyHash, hash);
  const { record } = begun;
  let stored: Stored | undefined;
  if (!isOf(record, hash)) {
    if (begun.taken) await store.abandon(scope, keyHash);
    throw conflict('This Idempotency-Key was used for a different request; use a new key for each new request.', {
      code: 'IDEMPOTENCY_KEY_REUSED',
    });
  }
  if (record?.sealed) {
    stored = open(seal, record.sealed);
    if (!stored || (!begun.taken && !stored.response)) {
      if (begun.taken) await store.abandon(scope, keyHash);
      throw conflict(
        'An earlier request with this Idempotency-Key was accepted, but its stored response can no longer be read. Check what it changed; to send it again, use a new key.',
        { code: 'IDEMPOTENCY_ANSWER_LOST' },
      );
    }
  }
  if (!begun.taken) {
    if (!stored?.response) throw new AppError(500, 'A finished request has no stored response.');
    return { ...stored.response, headers: { ...stored.response.headers, 'Idempotency-Replayed': 'true' } };
  }
  const intents: Intent[] = [...(stored?.intents ?? [])];
  try {
    const response = await handle({
      recorded: intents.slice(),
      async record(step, intent) {
        intents[step] = intent;
        await store.save(scope, keyHash, close(seal, { intents }));
      },
    });
    const { status = 200, headers } = response;
    await store.finish(
      scope,
      keyHash,
      close(seal, { intents, response: { status, body: response.body, ...(headers && { headers }) } }),
    );
    return response;
  } catch (error) {
    const { status } = asAppError(error);
    // A refusal before anything was appended frees the key; with an unknown outcome the intents are kept.
    const appended = intents.some((intent) => intent.events.length > 0);
    const freed = status < 500 && !appended ? store.forget(scope, keyHash) : store.abandon(scope, keyHash);
    // A key that cannot be freed expires by itself. If the store is unreachable, do not wait for a second time-out.
    const settled = freed.catch(() => undefined);
    if (status < 500) await settled;
    throw error;
  }
}

/** Derives a request's hash and encryption key from the caller's key and the deployment's secret. */
function derive(secret: Buffer, scope: string, key: string, request: string, agent: string | null) {
  // The secret has a fixed length, so different pairs of secret and key never give the same bytes.
  const material = Buffer.concat([secret, Buffer.from(key)]);
  const keyFor = (what: string) =>
    Buffer.from(hkdfSync('sha256', material, scope, `signalbox idempotency ${what}`, 32));
  const hash = createHmac('sha256', keyFor('request'))
    .update(`${JSON.stringify(agent)}\n${request}`)
    .digest();
  return { hash, seal: keyFor('response') };
}

const isOf = (record: IdempotencyRecord | undefined, hash: Buffer): boolean =>
  record === undefined || record.requestHash.equals(hash);

async function beginOrWait(store: IdempotencyStore, scope: string, keyHash: Buffer, hash: Buffer) {
  const deadline = Date.now() + WAIT_MS;
  for (;;) {
    const begun = await store.begin(scope, keyHash, hash);
    if (begun.taken || begun.record?.state === 'done') return begun;
    if (!isOf(begun.record, hash)) return begun;
    if (Date.now() > deadline) {
      throw conflict('A request with this Idempotency-Key is still running; try again in a moment.', {
        code: RUN_IN_PROGRESS,
        headers: { 'Retry-After': '1' },
      });
    }
    await pause(LOOK_MS, undefined, { ref: true });
  }
}

function close(seal: Buffer, stored: Stored): Buffer {
  const iv = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', seal, iv);
  return Buffer.concat([iv, cipher.update(JSON.stringify(stored), 'utf8'), cipher.final(), cipher.getAuthTag()]);
}

/** Undefined when it was encrypted under another key, or altered. */
function open(seal: Buffer, sealed: Buffer): Stored | undefined {
  if (sealed.length < 12 + 16) return undefined;
  const decipher = createDecipheriv('aes-256-gcm', seal, sealed.subarray(0, 12));
  decipher.setAuthTag(sealed.subarray(sealed.length - 16));
  const text = decipher.update(sealed.subarray(12, sealed.length - 16));
  try {
    return JSON.parse(Buffer.concat([text, decipher.final()]).toString('utf8')) as Stored;
  } catch {
    return undefined;
  }
}
