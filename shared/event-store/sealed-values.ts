/**
 * Sealed values: AES-256-GCM under the key of a person or of a record, bound to the event and the field, so that a sealed
 * value cannot be moved to another place.
 */
import { createCipheriv, createDecipheriv, createHmac, randomFillSync } from 'node:crypto';
import type { PersonKeys } from '../ports/person-keys.ts';
import { mapSecrets } from '../secrets.ts';

/** A sealed value, as stored in the log. */
export interface Sealed {
  /** 2: the field has a key of its own besides that of the person, so it can be erased alone (`keysOf`). */
  readonly sealed: 1 | 2;
  readonly person: string;
  /** base64url of 12 bytes IV, ciphertext, 16 bytes tag. */
  readonly box: string;
}

export function isSealed(value: unknown): value is Sealed {
  if (typeof value !== 'object' || value === null || !('box' in value)) return false;
  const { sealed } = value as Sealed;
  return sealed === 1 || sealed === 2;
}

const OF_PEOPLE = /^(user|access_request|anonymous):/;

/** Whether a key belongs to a person. The other keys seal secrets, which no reader of the log may open. */
export const isOfPerson = ({ person }: Pick<Sealed, 'person'>): boolean => OF_PEOPLE.test(person);

/** The name of the key of a single field. `place` as in `sealValue`. */
export const fieldKeyName = (place: string): string => `field:${place}`;

/** The names of all keys that open a value. `place` as in `sealValue`. */
export const keysOf = ({ sealed, person }: Sealed | SecretsSealed, place: string): readonly string[] =>
  sealed === 2 ? [person, fieldKeyName(place)] : [person];

/** The key of a value, from those that `keysOf` names; undefined if one of them was deleted. */
export function keyFrom(keys: readonly (Buffer | undefined)[]): Buffer | undefined {
  const [person, field] = keys;
  if (keys.length < 2) return person;
  return person && field && createHmac('sha256', person).update(field).digest();
}

const IV_BYTES = 12;
/** Random bytes are generated in larger blocks, because a system call per value cost more than the encryption. */
const pool = Buffer.alloc(IV_BYTES * 256);
let used = pool.length;

/** A random IV, for a value that is sealed once. */
function nextIv(): Buffer {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const iv = Buffer.from(pool.subarray(used, used + IV_BYTES));
  used += IV_BYTES;
  return iv;
}

/** Seals any JSON value. `place` is `<event id>/<field>`. */
export const sealValue = async (
  keys: Pick<PersonKeys, 'findOrCreate'>,
  person: string,
  place: string,
  value: unknown,
): Promise<Sealed> => sealWith(await keys.findOrCreate(person), { sealed: 1, person }, place, value);

/** The place of client addresses, which belong to no single event. */
export const ADDRESS_PLACE = 'address';

/**
 * Seals a client address. The result is the same for every event of a person from one address, so that the metadata of
 * these events can be stored once. As in AES-SIV, the IV is derived from key and value: it repeats only with the value.
 */
export async function sealAddress(
  keys: Pick<PersonKeys, 'findOrCreate'>,
  person: string,
  address: string,
): Promise<Sealed> {
  const key = await keys.findOrCreate(person);
  const iv = createHmac('sha256', key).update(`${ADDRESS_PLACE} ${address}`).digest().subarray(0, IV_BYTES);
  return sealWith(key, { sealed: 1, person }, ADDRESS_PLACE, address, iv);
}

/** Seals the fields of an event, each with a key of its own as well. @param eventId the place of a field is `<event id>/<field>` */
export async function sealFields(
  keys: PersonKeys,
  person: string,
  eventId: string,
  values: Readonly<Record<string, unknown>>,
): Promise<Record<string, Sealed>> {
  const fields = Object.entries(values).map(([field, value]) => ({ field, value, place: `${eventId}/${field}` }));
  if (fields.length === 0) return {};
  const key = await keys.findOrCreate(person);
  const own = await keys.create(fields.map(({ place }) => fieldKeyName(place)));
  return Object.fromEntries(
    fields.map(({ field, value, place }, n) => {
      const both = keyFrom([key, own[n]]) as Buffer;
      return [field, sealWith(both, { sealed: 2, person }, place, value)];
    }),
  );
}

function sealWith(
  key: Buffer,
  { sealed, person }: Pick<Sealed, 'sealed' | 'person'>,
  place: string,
  value: unknown,
  iv = nextIv(),
): Sealed {
  const cipher = createCipheriv('aes-256-gcm', key, iv);
  cipher.setAAD(Buffer.from(place));
  const box = Buffer.concat([iv, cipher.update(JSON.stringify(value), 'utf8'), cipher.final(), cipher.getAuthTag()]);
  return { sealed, person, box: box.toString('base64url') };
}

/**
 * Opens a sealed value; null without a key, because the person's is gone. `place` as in `sealValue`.
 *
 * @throws when the value was altered or moved
 */
export function unseal(key: Buffer | undefined, place: string, value: Sealed): unknown {
  if (!key) return null;
  const box = Buffer.from(value.box, 'base64url');
  const decipher = createDecipheriv('aes-256-gcm', key, box.subarray(0, IV_BYTES));
  decipher.setAAD(Buffer.from(place));
  decipher.setAuthTag(box.subarray(box.length - 16));
  const text = Buffer.concat([decipher.update(box.subarray(IV_BYTES, box.length - 16)), decipher.final()]);
  return JSON.parse(text.toString('utf8'));
}

// --- Secrets inside a value -------------------------------------------------------------------------------------------

/** A JSON value whose secrets are sealed, as stored in the log. */
export interface SecretsSealed {
  readonly sealed: 'secrets';
  readonly person: string;
  /** The value, with `{"sealed": n}` in place of the secret number n. */
  readonly shown: unknown;
  /** As in `Sealed`: the sealed list of secrets. */
  readonly box: string;
}

export const holdsSealedSecrets = (value: unknown): value is SecretsSealed =>
  typeof value === 'object' && value !== null && (value as SecretsSealed).sealed === 'secrets' && 'box' in value;

const isPlace = (value: unknown): value is { readonly sealed: number } =>
  typeof value === 'object' && value !== null && typeof (value as { sealed?: unknown }).sealed === 'number';

/**
 * Data from a client may look like a sealed value. It is sealed together with the secrets, so it comes out unchanged.
 */
const looksSealed = (value: unknown): boolean => isPlace(value) || holdsSealedSecrets(value);

/**
 * Seals the secrets in a JSON value, recognised by name or format. A value without secrets is returned unchanged.
 * `place` as in `sealValue`.
 */
export async function sealSecrets(
  keys: Pick<PersonKeys, 'findOrCreate'>,
  person: string,
  place: string,
  value: unknown,
): Promise<unknown> {
  const secrets: unknown[] = [];
  const shown = mapSecrets(value, (secret) => ({ sealed: secrets.push(secret) - 1 }), undefined, looksSealed);
  if (secrets.length === 0) return value;
  const { box } = await sealValue(keys, person, place, secrets);
  return { sealed: 'secrets', person, shown, box } satisfies SecretsSealed;
}

/** Opens a value from `sealSecrets`; without a key, secrets read as null. @throws when it was altered or moved */
export function unsealSecrets(key: Buffer | undefined, place: string, value: SecretsSealed): unknown {
  const { person, box, shown } = value;
  const secrets = unseal(key, place, { sealed: 1, person, box }) as readonly unknown[] | null;
  const put = (one: unknown): unknown => {
    if (isPlace(one)) return secrets?.[one.sealed] ?? null;
    if (Array.isArray(one)) return one.map(put);
    if (typeof one !== 'object' || one === null) return one;
    return Object.fromEntries(Object.entries(one).map(([key, inner]) => [key, put(inner)]));
  };
  return put(shown);
}
