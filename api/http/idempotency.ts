/**
 * `Idempotency-Key` on POST: the same key and body gives the stored answer, another body 409, for 24 h.
 *
 * What is stored is encrypted under a key derived from the caller's own, which we keep only as a hash: a dump of the
 * table gives neither answers nor secrets away. While a request runs, what it is about to append is stored first
 * (`Intents`); when it dies half-way, the next request with the key appends the very same events again, and the log
 * answers as it did the first time.
 */
import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto';
import type { Intent, Intents } from '../../commands/handler.ts';
import { AppError, conflict } from '../../shared/errors.ts';
import type { IdempotencyStore } from '../../shared/ports/idempotency.ts';
import { asAppError } from './errors.ts';
import type { Exchange } from './exchange.ts';
import type { Answer } from './route.ts';

/** How long a request waits for the one before it with the same key, milliseconds. */
const WAIT_MS = 10_000;
const KEY_PATTERN = /^[\x21-\x7e]{1,255}$/;

interface Stored {
  readonly intents: readonly Intent[];
  readonly answer?: { readonly status: number; readonly body: unknown; readonly headers?: Answer['headers'] };
}

/** The `Idempotency-Key` of a request. @throws AppError 400 when it is not 1 to 255 visible ASCII characters */
export function idempotencyKeyOf(exchange: Exchange): string | undefined {
  const key = exchange.req.headers['idempotency-key'];
  if (key === undefined) return undefined;
  if (typeof key !== 'string' || !KEY_PATTERN.test(key)) {
    throw new AppError(400, 'Idempotency-Key must be 1 to 255 visible ASCII characters without spaces.');
  }
  return key;
}

/** Runs `handle` at most once per key. @throws AppError 409 for another body, or while an earlier request still runs */
export async function runOnce(
  store: IdempotencyStore,
  key: string,
  exchange: Exchange,
  body: unknown,
  handle: (intents: Intents) => Promise<Answer>,
): Promise<Answer> {
  const { identity, req } = exchange;
  const scope = identity ? `${identity.workspace}:${identity.id}` : `anonymous:${exchange.ip}`;
  const keyHash = createHash('sha256').update(`${scope}\n${key}`).digest();
  const requestHash = createHash('sha256')
    .update(`${req.method} ${req.url}\n${JSON.stringify(body)}`)
    .digest();
  const secret = Buffer.from(hkdfSync('sha256', key, scope, 'signalbox idempotency', 32));

  const begun = await beginOrWait(store, scope, keyHash, requestHash);
  if (begun.record && !begun.record.requestHash.equals(requestHash)) {
    if (begun.taken) await store.abandon(scope, keyHash);
    throw conflict('This Idempotency-Key was used for another request; use a new key for a new request.', {
      code: 'IDEMPOTENCY_KEY_REUSED',
    });
  }
  const stored = begun.record?.box ? open(secret, begun.record.box) : undefined;
  if (!begun.taken) {
    if (!stored?.answer) throw new AppError(500, 'The stored answer cannot be read.');
    return { ...stored.answer, headers: { ...stored.answer.headers, 'Idempotency-Replayed': 'true' } };
  }
  const intents: Intent[] = [...(stored?.intents ?? [])];
  try {
    const answer = await handle({
      recorded: intents.slice(),
      async record(step, intent) {
        intents[step] = intent;
        await store.save(scope, keyHash, close(secret, { intents }));
      },
    });
    const { status = 200, headers } = answer;
    await store.finish(
      scope,
      keyHash,
      close(secret, { intents, answer: { status, body: answer.body, ...(headers && { headers }) } }),
    );
    return answer;
  } catch (error) {
    const { status } = asAppError(error);
    // A refusal before anything was appended frees the key; an unknown outcome keeps what was intended.
    const appended = intents.some((intent) => intent.events.length > 0);
    const freed = status < 500 && !appended ? store.forget(scope, keyHash) : store.abandon(scope, keyHash);
    // Where it cannot be freed, it is free by itself after a while. That the store is away is not worth another time-out.
    const settled = freed.catch(() => undefined);
    if (status < 500) await settled;
    throw error;
  }
}

async function beginOrWait(store: IdempotencyStore, scope: string, keyHash: Buffer, requestHash: Buffer) {
  const deadline = Date.now() + WAIT_MS;
  for (;;) {
    const begun = await store.begin(scope, keyHash, requestHash);
    if (begun.taken || begun.record?.state === 'done') return begun;
    if (begun.record && !begun.record.requestHash.equals(requestHash)) return begun;
    if (Date.now() > deadline) {
      throw conflict('A request with this Idempotency-Key is still running; ask again in a moment.', {
        code: 'IDEMPOTENCY_IN_PROGRESS',
        headers: { 'Retry-After': '1' },
      });
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function close(secret: Buffer, stored: Stored): Buffer {
  const iv = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', secret, iv);
  return Buffer.concat([iv, cipher.update(JSON.stringify(stored), 'utf8'), cipher.final(), cipher.getAuthTag()]);
}

function open(secret: Buffer, box: Buffer): Stored {
  const decipher = createDecipheriv('aes-256-gcm', secret, box.subarray(0, 12));
  decipher.setAuthTag(box.subarray(box.length - 16));
  const text = Buffer.concat([decipher.update(box.subarray(12, box.length - 16)), decipher.final()]);
  return JSON.parse(text.toString('utf8')) as Stored;
}
