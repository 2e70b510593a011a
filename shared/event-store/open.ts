/** Opens what is sealed in events: the first step after they were read, so upcasters see readable data. */
import { EventUnreadableError } from '../errors.ts';
import type { EventDefinition } from '../events/define.ts';
import { type Metadata, metadataSchema } from '../events/metadata.ts';
import type { LoggedEvent, NewEvent } from '../ports/event-log.ts';
import type { PersonKeys } from '../ports/person-keys.ts';
import { valueAt, withValueAt } from './paths.ts';
import {
  ADDRESS_PLACE,
  holdsSealedSecrets,
  isOfPerson,
  isSealed,
  keyFrom,
  keysOf,
  type Sealed,
  type SecretsSealed,
  unseal,
  unsealSecrets,
} from './sealed-values.ts';
import { validMetadata } from './validate.ts';

type Data = Readonly<Record<string, unknown>>;
type Sealing = Pick<EventDefinition, 'personal' | 'secrets'>;
type KeyOf = (name: string) => Buffer | undefined;

/** A sealed value of an event. */
export interface SealedPart {
  /** Dotted path into what holds it. */
  readonly path: string;
  readonly value: Sealed | SecretsSealed;
  /** As in `sealValue`, if it belongs to no single event. */
  readonly place?: string;
}

/** @param id of the event */
const placeOf = (id: string, { path, place = `${id}/${path}` }: SealedPart): string => place;

const NONE: readonly SealedPart[] = [];

/** The client address: a part of the metadata. */
export const sealedAddress = ({ meta: { ip } }: Pick<NewEvent, 'meta'>): readonly SealedPart[] =>
  isSealed(ip) ? [{ path: 'ip', value: ip, place: ADDRESS_PLACE }] : NONE;

/** The personal fields. Only what was sealed is opened: other data, sent by a client, may look like a sealed value. */
export function sealedFields(event: NewEvent, { personal }: Pick<Sealing, 'personal'>): SealedPart[] {
  const parts: SealedPart[] = [];
  for (const path of personal?.fields ?? []) {
    const value = event.data[path];
    if (isSealed(value)) parts.push({ path, value });
  }
  return parts;
}

/** The personal fields that belong to people: `personal` also seals secrets, such as tokens of gateways. */
export const fieldsOfPeople = (event: NewEvent, definition: Pick<Sealing, 'personal'>): SealedPart[] =>
  sealedFields(event, definition).filter(({ value }) => isOfPerson(value));

/** Every sealed part of the data. */
export function sealedParts(event: NewEvent, definition: Sealing): readonly SealedPart[] {
  const parts = sealedFields(event, definition);
  for (const path of definition.secrets?.fields ?? []) {
    const value = valueAt(event.data, path);
    if (holdsSealedSecrets(value)) parts.push({ path, value });
  }
  return parts;
}

/**
 * A copy with these parts readable; null once the person was erased.
 *
 * @param id of the event
 * @throws Error when one was altered or moved
 */
export const opened = (id: string, data: Data, parts: readonly SealedPart[], keyOf: KeyOf): Data =>
  parts.reduce((open, part) => {
    const { path, value } = part;
    const place = placeOf(id, part);
    const readable =
      value.sealed === 'secrets'
        ? unsealSecrets(keyOf(value.person), place, value)
        : unseal(keyFrom(keysOf(value, place).map(keyOf)), place, value);
    return withValueAt(open, path, readable);
  }, data);

/** The names of the keys of a part. @param id of the event */
export const keyNames = (id: string, part: SealedPart): readonly string[] => keysOf(part.value, placeOf(id, part));

/**
 * Does work with the keys of parts: at once if they are in memory, because a promise per event took as long as opening it.
 *
 * @param id of the event
 */
export function withKeys<T>(
  keys: Pick<PersonKeys, 'find'>,
  id: string,
  parts: readonly SealedPart[],
  work: (keyOf: KeyOf) => T,
): T | Promise<T> {
  const found = new Map<string, Buffer | undefined>();
  const coming: Promise<unknown>[] = [];
  for (const part of parts) {
    for (const name of keyNames(id, part)) {
      const key = keys.find(name);
      if (key instanceof Promise) coming.push(key.then((late) => found.set(name, late)));
      else found.set(name, key);
    }
  }
  const run = () => work((name) => found.get(name));
  return coming.length === 0 ? run() : Promise.all(coming).then(run);
}

/** Where metadata keeps its sealed address until its first use. */
const ADDRESS = Symbol('sealed address');

interface Address {
  readonly event: LoggedEvent;
  readonly sealed: Sealed;
  readonly key: Buffer | undefined;
}

/**
 * Nearly every event has a client address, and only audit entries show it: decrypting it was most of the cost of
 * decoding. One function serves all events, so that their metadata keeps one shape.
 */
const IP: PropertyDescriptor & ThisType<Metadata & { readonly [ADDRESS]: Address }> = {
  enumerable: true,
  configurable: true,
  get() {
    const { event, sealed, key } = this[ADDRESS];
    try {
      const value = metadataSchema.shape.ip.parse(unseal(key, ADDRESS_PLACE, sealed));
      Object.defineProperty(this, 'ip', { value, enumerable: true });
      return value;
    } catch (error) {
      throw new EventUnreadableError(event, error);
    }
  },
};

/** Valid metadata, whose address is opened when it is first read: that throws EventUnreadableError if it was altered. */
export function openedMetadata(event: LoggedEvent, keyOf: KeyOf): Metadata {
  const sealed = event.meta.ip;
  if (!isSealed(sealed)) return validMetadata(event.meta);
  const { ip: _, ...meta } = validMetadata({ ...event.meta, ip: null });
  Object.defineProperty(meta, ADDRESS, { value: { event, sealed, key: keyOf(sealed.person) } satisfies Address });
  return Object.defineProperty(meta, 'ip', IP) as Metadata;
}
