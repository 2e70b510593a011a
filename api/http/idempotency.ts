/**
 * `Idempotency-Key` on POST: the same key and body gives the stored answer, another body 409, for 24 h.
 *
 * Bodies hold passwords, and answers hold keys and cookies. Of a body an HMAC is stored, the answer is encrypted, and
 * the keys of both are derived from the deployment's secret, the caller, and the caller's key, which we keep only as a
 * hash: neither the table nor the secret is enough to read an answer or to try passwords.
 *
 * While a request runs, what it is about to append is stored first (`Intents`); when it dies half-way, the next request
 * with the key appends the very same events again, and the log answers as it did the first time.
 */
import { createCipheriv, createDecipheriv, createHash, createHmac, hkdfSync, randomBytes } from 'node:crypto';
import type { Intent, Intents } from '../../commands/handler.ts';
import { AppError, conflict } from '../../shared/errors.ts';
import type { IdempotencyRecord, IdempotencyStore } from '../../shared/ports/idempotency.ts';
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
  const request = `${req.method} ${req.url}\n${JSON.stringify(body)}`;
  const { hash, seal, former } = derive(await store.secret(), scope, key, request);

  const begun = await beginOrWait(store, scope, keyHash, [hash, former.hash]);
  const { record } = begun;
  let stored: Stored | undefined;
  if (!isOf(record, [hash, former.hash])) {
    if (begun.taken) await store.abandon(scope, keyHash);
    throw conflict('This Idempotency-Key was used for another request; use a new key for a new request.', {
      code: 'IDEMPOTENCY_KEY_REUSED',
    });
  }
  if (record?.box) {
    stored = open(seal, record.box) ?? open(former.seal, record.box);
    if (!stored || (!begun.taken && !stored.answer)) {
      if (begun.taken) await store.abandon(scope, keyHash);
      throw conflict(
        'A request with this Idempotency-Key was accepted before, and its answer can no longer be read. See what it changed; use a new key to send it again.',
        { code: 'IDEMPOTENCY_ANSWER_LOST' },
      );
    }
  }
  if (!begun.taken) {
    if (!stored?.answer) throw new AppError(500, 'A finished request has no stored answer.');
    return { ...stored.answer, headers: { ...stored.answer.headers, 'Idempotency-Replayed': 'true' } };
  }
  const intents: Intent[] = [...(stored?.intents ?? [])];
  try {
    const answer = await handle({
      recorded: intents.slice(),
      async record(step, intent) {
        intents[step] = intent;
        await store.save(scope, keyHash, close(seal, { intents }));
      },
    });
    const { status = 200, headers } = answer;
    await store.finish(
      scope,
      keyHash,
      close(seal, { intents, answer: { status, body: answer.body, ...(headers && { headers }) } }),
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

/** What is known of a request's keys by those who know the caller's key and the deployment's secret. */
function derive(secret: Buffer, scope: string, key: string, request: string) {
  // The secret has a fixed length, so no two pairs of secret and key are the same bytes.
  const material = Buffer.concat([secret, Buffer.from(key)]);
  const keyFor = (what: string) =>
    Buffer.from(hkdfSync('sha256', material, scope, `signalbox idempotency ${what}`, 32));
  return {
    hash: createHmac('sha256', keyFor('request')).update(request).digest(),
    seal: keyFor('answer'),
    /** As earlier versions stored it. Such records are gone a day after the upgrade; until then they still answer. */
    former: {
      hash: createHash('sha256').update(request).digest(),
      seal: Buffer.from(hkdfSync('sha256', key, scope, 'signalbox idempotency', 32)),
    },
  };
}

const isOf = (record: IdempotencyRecord | undefined, hashes: readonly [current: Buffer, former: Buffer]): boolean =>
  record === undefined || hashes.some((hash) => record.requestHash.equals(hash));

async function beginOrWait(
  store: IdempotencyStore,
  scope: string,
  keyHash: Buffer,
  hashes: readonly [current: Buffer, former: Buffer],
) {
  const deadline = Date.now() + WAIT_MS;
  for (;;) {
    const begun = await store.begin(scope, keyHash, hashes[0]);
    if (begun.taken || begun.record?.state === 'done') return begun;
    if (!isOf(begun.record, hashes)) return begun;
    if (Date.now() > deadline) {
      throw conflict('A request with this Idempotency-Key is still running; ask again in a moment.', {
        code: 'IDEMPOTENCY_IN_PROGRESS',
        headers: { 'Retry-After': '1' },
      });
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function close(seal: Buffer, stored: Stored): Buffer {
  const iv = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', seal, iv);
  return Buffer.concat([iv, cipher.update(JSON.stringify(stored), 'utf8'), cipher.final(), cipher.getAuthTag()]);
}

/** Undefined when it was sealed under another key, or altered. */
function open(seal: Buffer, box: Buffer): Stored | undefined {
  if (box.length < 12 + 16) return undefined;
  const decipher = createDecipheriv('aes-256-gcm', seal, box.subarray(0, 12));
  decipher.setAuthTag(box.subarray(box.length - 16));
  const text = decipher.update(box.subarray(12, box.length - 16));
  try {
    return JSON.parse(Buffer.concat([text, decipher.final()]).toString('utf8')) as Stored;
  } catch {
    return undefined;
  }
}
