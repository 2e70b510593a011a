/**
 * The event store: typed, validated, sealed events on top of the event log's port.
 *
 * In:  validate → number → seal → append.   Out: upcast → unseal → validate. Adapters of the log know nothing of this.
 */
import { randomUUID } from 'node:crypto';
import './messages.ts';
import { AppError } from './errors.ts';
import type { DomainEvent, EventDefinition, EventDraft } from './events/define.ts';
import { formerPath, isCamelCase } from './events/field-names.ts';
import { type Metadata, metadataSchema, type Origin } from './events/metadata.ts';
import {
  holdsSealedSecrets,
  isSealed,
  keyFrom,
  keysOf,
  type Sealed,
  seal,
  sealFields,
  sealSecrets,
  unseal,
  unsealSecrets,
} from './events/seal.ts';
import { type Upcasters, upcast, upcasters } from './events/upcasters.ts';
import { parserOf } from './parsing.ts';
import type { Counters } from './ports/counters.ts';
import {
  type Appended,
  type EventLog,
  type Expectation,
  type LoggedEvent,
  MAX_APPEND_BYTES,
  type NewEvent,
} from './ports/event-log.ts';
import type { PersonKeys } from './ports/person-keys.ts';
import { activeTracer, traced } from './ports/tracing.ts';
import { EVENT_BOUNDS, storageProblem } from './storable.ts';

export interface EventStore {
  readonly log: EventLog;
  /**
   * Validates, numbers and seals drafts. The result may be appended repeatedly, because its ids make that safe.
   *
   * @throws AppError 400 for data that read models could not store; 413 for more than fits into one append
   */
  prepare(drafts: readonly EventDraft[], origin: Origin): Promise<readonly NewEvent[]>;
  /** @throws what `EventLog.append` throws. */
  append(
    stream: string,
    events: readonly NewEvent[],
    expected: Expectation,
    unless?: AbortSignal | undefined,
  ): Promise<Appended>;
  /** Events of a stream, oldest first, starting at a revision (inclusive); by default all. */
  readStream(stream: string, from?: number): Promise<readonly DomainEvent[]>;
  /**
   * Decodes a logged event; repeated calls give the same object.
   *
   * @param once nobody else will ask for this event, so it need not be remembered: a weak map of many events makes
   *   garbage collection dear
   * @throws EventUnreadableError, or what `PersonKeys.find` throws when the keys are unavailable
   */
  decode(event: LoggedEvent, once?: boolean): DomainEvent | Promise<DomainEvent>;
  /**
   * Data and metadata of a logged event as they were written, with personal fields readable; null where the person was
   * erased. Secrets stay sealed. Of types that this version does not know, only the address is readable.
   *
   * @throws as `decode`
   */
  reveal(event: LoggedEvent): Promise<Pick<LoggedEvent, 'data' | 'meta'>>;
  /** Forgets the readable content of events: the key of a person was deleted. */
  forget(): void;
}

/** An event that this version of Signalbox cannot read: unknown type, newer version, invalid data. */
export class EventUnreadableError extends Error {
  constructor(event: LoggedEvent, reason: string, options?: ErrorOptions) {
    super(`event ${event.type} at position ${event.position} cannot be read: ${reason}`, options);
    this.name = 'EventUnreadableError';
  }
}

/** The person whose key seals what is known of an actor. Anonymous callers share one key per month. */
export function personOfActor(origin: Pick<Origin, 'actor'>, at: number): string {
  const { type, id } = origin.actor;
  return type === 'anonymous' ? `anonymous:${new Date(at).toISOString().slice(0, 7)}` : `${type}:${id}`;
}

/**
 * The person whose key seals the client address of an event: the actor, or the person whom the event is about where the
 * caller is not signed in, as in a sign-in that failed.
 */
export function personOfAddress<Data>(
  { personal }: Pick<EventDefinition<string, Data>, 'personal'>,
  { data, meta }: { readonly data: Data; readonly meta: Pick<Metadata, 'actor' | 'at'> },
): string {
  if (meta.actor.type === 'anonymous' && personal) return personal.person(data);
  return personOfActor(meta, meta.at);
}

/** The readable content of an event that was sealed here. */
interface Opened {
  readonly event: NewEvent;
  readonly data: DomainEvent['data'];
  readonly meta: Metadata;
}

/**
 * @throws AppError 400 for data that is nested too deeply or contains text that cannot be stored; 413 for data that
 *   is too large
 */
function checkStorable(value: unknown): void {
  const problem = storageProblem(value, EVENT_BOUNDS);
  if (!problem) return;
  const where = problem.path.join('.') || 'The change';
  throw new AppError(problem.kind === 'size' ? 413 : 400, `${where} ${problem.reason}.`);
}

/**
 * An append with fewer characters always fits: UTF-8, sealing, and the placeholders for sealed secrets need less than
 * ten bytes per character.
 */
const SURELY_FITS = MAX_APPEND_BYTES / 10;
/** Upper bound for the metadata of an event, characters. */
const META_CHARACTERS = 4_000;

const bytesOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value));

/** @throws AppError 413 when the log would refuse the append */
function checkSize(events: readonly NewEvent[]): void {
  const bytes = events.reduce((sum, { data, meta }) => sum + bytesOf(data) + bytesOf(meta), 0);
  if (bytes <= MAX_APPEND_BYTES) return;
  throw new AppError(
    413,
    `The change is too large: it has ${bytes} bytes, and the limit is ${MAX_APPEND_BYTES}; send less.`,
  );
}

/** A copy in which the value at a path is changed; the same object if there is no such value. */
async function changeAt(
  data: Record<string, unknown>,
  [head = '', ...rest]: readonly string[],
  change: (value: unknown) => unknown,
): Promise<Record<string, unknown>> {
  const value = data[head];
  if (value === null || value === undefined) return data;
  const next = rest.length === 0 ? await change(value) : await changeAt(value as typeof data, rest, change);
  return next === value ? data : { ...data, [head]: next };
}

/** The same for values that are already open, which takes no time. */
export function changedAt(
  data: Readonly<Record<string, unknown>>,
  [head = '', ...rest]: readonly string[],
  change: (value: unknown) => unknown,
): Readonly<Record<string, unknown>> {
  const value = data[head];
  if (value === null || value === undefined) return data;
  const next = rest.length === 0 ? change(value) : changedAt(value as typeof data, rest, change);
  return next === value ? data : { ...data, [head]: next };
}

const parseMetadata = parserOf(metadataSchema);

type Data = DomainEvent['data'];
const dataParsers = new WeakMap<EventDefinition, (value: unknown) => Data>();

/** @throws ZodError */
function parseData(definition: EventDefinition, value: unknown): Data {
  let parse = dataParsers.get(definition);
  if (!parse) {
    parse = parserOf(definition.schema);
    dataParsers.set(definition, parse);
  }
  return parse(value);
}

/** @throws EventUnreadableError for a type that is not in the catalogue, or a version that is newer */
function readable(event: LoggedEvent, catalogue: ReadonlyMap<string, EventDefinition>): EventDefinition {
  const definition = catalogue.get(event.type);
  if (!definition) throw new EventUnreadableError(event, 'its type is unknown to this version of Signalbox');
  const { version } = event.meta;
  if (typeof version === 'number' && version <= definition.version) return definition;
  throw new EventUnreadableError(event, `its schema version ${String(version)} is newer than ${definition.version}`);
}

/** Where an event of an older version may have display names, which may be sealed (`copy-log`). */
export const formerNamesOf = (
  { data, meta }: Pick<LoggedEvent, 'data' | 'meta'>,
  { formerNames }: EventDefinition,
): readonly string[] =>
  formerNames && typeof meta.version === 'number' && meta.version < formerNames.before ? formerNames.fields(data) : [];

const NONE: readonly string[] = [];

/** The fields of an event that are sealed, and those with sealed secrets in them, as its version names them. */
export function sealedIn(
  { type, meta }: Pick<LoggedEvent, 'type' | 'meta'>,
  { personal, secrets }: Pick<EventDefinition, 'personal' | 'secrets'>,
): { readonly fields: readonly string[]; readonly secrets: readonly string[] } {
  const [fields, holders] = [personal?.fields ?? NONE, secrets?.fields ?? NONE];
  if (!isCamelCase(type, meta.version)) return { fields, secrets: holders };
  return { fields: fields.map(formerPath), secrets: holders.map(formerPath) };
}

/** Stands for a name whose person was erased. */
export const ERASED_NAME = '[erased]';

/** The names of the keys with which an event is sealed. */
function keysIn(event: Pick<LoggedEvent, 'id' | 'type' | 'data' | 'meta'>, definition: EventDefinition): string[] {
  const { data, meta } = event;
  const { fields, secrets } = sealedIn(event, definition);
  const names: string[] = [];
  if (isSealed(meta.ip)) names.push(meta.ip.person);
  for (const field of fields) {
    const value = data[field];
    if (isSealed(value)) names.push(...keysOf(value, `${event.id}/${field}`));
  }
  for (const path of secrets) {
    changedAt(data, path.split('.'), (value) => {
      if (holdsSealedSecrets(value)) names.push(value.person);
      return value;
    });
  }
  for (const path of formerNamesOf(event, definition)) {
    changedAt(data, path.split('.'), (value) => {
      if (isSealed(value)) names.push(value.person);
      return value;
    });
  }
  return names;
}

/** Where metadata keeps its sealed address until it is read. */
const SEALED_IP = Symbol('sealed ip');

interface SealedIp {
  readonly event: LoggedEvent;
  readonly sealed: Sealed;
  readonly key: Buffer | undefined;
}

/**
 * Nearly every event has a client address, and only audit entries show it: decrypting it was most of what decoding cost.
 * One function serves all events, so that their metadata keeps one shape.
 */
const IP: PropertyDescriptor & ThisType<Metadata & { readonly [SEALED_IP]: SealedIp }> = {
  enumerable: true,
  configurable: true,
  get() {
    const { event, sealed, key } = this[SEALED_IP];
    try {
      const value = metadataSchema.shape.ip.parse(unseal(key, `${event.id}/ip`, sealed));
      Object.defineProperty(this, 'ip', { value, enumerable: true });
      return value;
    } catch (error) {
      throw unreadable(event, error);
    }
  },
};

/** Metadata whose address is unsealed when it is first read, which throws EventUnreadableError if it was altered. */
function withSealedIp({ ip: _, ...meta }: Metadata, sealed: SealedIp): Metadata {
  Object.defineProperty(meta, SEALED_IP, { value: sealed });
  return Object.defineProperty(meta, 'ip', IP) as Metadata;
}

const unreadable = (event: LoggedEvent, error: unknown): EventUnreadableError =>
  new EventUnreadableError(event, error instanceof Error ? error.message : String(error), { cause: error });

/** @throws EventUnreadableError */
function openedWith(
  keyOf: (person: string) => Buffer | undefined,
  event: LoggedEvent,
  definition: EventDefinition,
  steps: Upcasters,
): DomainEvent {
  const { id, type, stream, revision, position } = event;
  try {
    const { ip } = event.meta;
    const meta = isSealed(ip)
      ? withSealedIp(parseMetadata({ ...event.meta, ip: null }), { event, sealed: ip, key: keyOf(ip.person) })
      : parseMetadata(event.meta);
    const { fields, secrets } = sealedIn(event, definition);
    let open = event.data;
    // Only these fields are unsealed, because data sent by a client may look like a sealed value. For fields with secrets, `unsealSecrets` tells them apart.
    for (const field of fields) {
      const value = open[field];
      const place = `${id}/${field}`;
      if (isSealed(value)) open = { ...open, [field]: unseal(keyFrom(keysOf(value, place).map(keyOf)), place, value) };
    }
    for (const path of secrets) {
      open = changedAt(open, path.split('.'), (value) =>
        holdsSealedSecrets(value) ? unsealSecrets(keyOf(value.person), `${id}/${path}`, value) : value,
      );
    }
    for (const path of formerNamesOf(event, definition)) {
      open = changedAt(open, path.split('.'), (value) =>
        isSealed(value) ? (unseal(keyOf(value.person), `${id}/${path}`, value) ?? ERASED_NAME) : value,
      );
    }
    const data = parseData(definition, upcast(definition, open, meta, event.meta.version as number, steps));
    return { id, type, data, meta, stream, revision, position };
  } catch (error) {
    throw unreadable(event, error);
  }
}

export function createEventStore(parts: {
  log: EventLog;
  catalogue: ReadonlyMap<string, EventDefinition>;
  counters: Counters;
  keys: PersonKeys;
  now?: () => number;
  /** Default: those for every event that was ever written. */
  upcasters?: Upcasters;
}): EventStore {
  const { log, catalogue, counters, keys, now = Date.now, upcasters: steps = upcasters } = parts;
  // All followers of a process share the logged objects, so an event is decoded only once.
  let decoded = new WeakMap<object, DomainEvent | Promise<DomainEvent>>();
  // Events that this process has just written need not be unsealed for its own followers, because they get the same objects.
  let opened = new WeakMap<NewEvent['meta'], Opened>();

  function definitionOf(type: string): EventDefinition {
    const definition = catalogue.get(type);
    if (!definition) throw new Error(`event type ${type} is not in the catalogue`);
    return definition;
  }

  /** @param text the data as JSON. Parsing it ensures that what is projected from memory is exactly what a reader of the log will see. */
  async function prepareOne(
    type: string,
    text: string,
    origin: Origin,
    { number, at, rest }: Pick<Metadata, 'number' | 'at'> & { readonly rest: number },
  ): Promise<NewEvent> {
    const definition = definitionOf(type);
    const id = randomUUID();
    const data = parseData(definition, JSON.parse(text));
    const meta: Metadata = { version: definition.version, number, at, ...(rest > 0 && { rest }), ...origin };
    parseMetadata(meta);
    let sealedData: Record<string, unknown> = { ...data };
    const owner = definition.secrets?.owner(data, meta) ?? '';
    for (const path of definition.secrets?.fields ?? []) {
      sealedData = await changeAt(sealedData, path.split('.'), (value) =>
        sealSecrets(keys, owner, `${id}/${path}`, value),
      );
    }
    if (definition.personal) {
      const { fields, person } = definition.personal;
      const present = fields.filter((field) => sealedData[field] !== null && sealedData[field] !== undefined);
      const values = Object.fromEntries(present.map((field) => [field, sealedData[field]]));
      Object.assign(sealedData, await sealFields(keys, person(data), id, values));
    }
    const ip =
      meta.ip === null ? null : await seal(keys, personOfAddress(definition, { data, meta }), `${id}/ip`, meta.ip);
    const event: NewEvent = { id, type, data: sealedData, meta: { ...meta, ip } };
    if (!isOfErased(event, definition)) opened.set(event.meta, { event, data, meta });
    return event;
  }

  /** Whether it was sealed with a key that was thrown away: then it is not readable here either. */
  const isOfErased = (event: NewEvent, definition: EventDefinition): boolean =>
    keysIn(event, definition).some((name) => keys.find(name) === undefined);

  /** Decodes an event for the first time. */
  function decodeFresh(event: LoggedEvent): DomainEvent | Promise<DomainEvent> {
    const { id, type, stream, revision, position } = event;
    const known = opened.get(event.meta);
    if (known?.event.data !== event.data || known.event.id !== id || known.event.type !== type) return unsealed(event);
    return { id, type, data: known.data, meta: known.meta, stream, revision, position };
  }

  /** At once when the keys are in memory: a promise per event took as long as opening it. */
  function unsealed(event: LoggedEvent): DomainEvent | Promise<DomainEvent> {
    const definition = readable(event, catalogue);
    const found = new Map<string, Buffer | undefined>();
    const coming: Promise<unknown>[] = [];
    for (const person of keysIn(event, definition)) {
      const key = keys.find(person);
      if (key instanceof Promise) coming.push(key.then((late) => found.set(person, late)));
      else found.set(person, key);
    }
    const open = () => openedWith((person) => found.get(person), event, definition, steps);
    return coming.length === 0 ? open() : Promise.all(coming).then(open);
  }

  const store: EventStore = {
    log,
    async prepare(drafts, origin) {
      const at = now();
      for (const draft of drafts) checkStorable(draft.data);
      const texts = drafts.map((draft) => JSON.stringify(draft.data));
      const first = await counters.take('event', drafts.length);
      const events = await Promise.all(
        drafts.map(({ type }, index) =>
          prepareOne(type, texts[index] as string, origin, {
            number: first + index,
            at,
            rest: drafts.length - 1 - index,
          }),
        ),
      );
      if (texts.reduce((sum, text) => sum + text.length + META_CHARACTERS, 0) > SURELY_FITS) checkSize(events);
      return events;
    },
    append: (stream, events, expected, unless) => {
      if (!activeTracer()) return log.append(stream, events, expected, unless);
      const attributes = { 'signalbox.stream': stream, 'signalbox.events': events.length };
      return traced('append', { attributes }, async (span) => {
        const appended = await log.append(stream, events, expected, unless);
        span?.set({ 'signalbox.position': appended.position });
        return appended;
      });
    },
    async readStream(stream, from = 0) {
      const events: DomainEvent[] = [];
      for await (const batch of log.readStream(stream, { from })) {
        for (const event of batch) events.push(await store.decode(event));
      }
      return events;
    },
    decode(event, once = false) {
      const known = decoded.get(event);
      if (known) return known;
      let fresh: DomainEvent | Promise<DomainEvent>;
      try {
        fresh = decodeFresh(event);
      } catch (error) {
        return Promise.reject(error);
      }
      if (once) return fresh;
      const kept = decoded;
      kept.set(event, fresh);
      if (!(fresh instanceof Promise)) return fresh;
      return fresh.then(
        (one) => {
          kept.set(event, one);
          return one;
        },
        (error) => {
          // An event that cannot be read now may be readable later, when the key is available.
          kept.delete(event);
          throw error;
        },
      );
    },
    forget() {
      decoded = new WeakMap();
      opened = new WeakMap();
    },
    async reveal(event) {
      const readable = async (values: LoggedEvent['data'], fields: readonly string[]) => {
        const open = { ...values };
        for (const field of fields) {
          const value = values[field];
          if (!isSealed(value)) continue;
          const place = `${event.id}/${field}`;
          const found = await Promise.all(keysOf(value, place).map((name) => keys.find(name)));
          open[field] = unseal(keyFrom(found), place, value);
        }
        return open;
      };
      try {
        const { fields } = sealedIn(event, catalogue.get(event.type) ?? {});
        return { data: await readable(event.data, fields), meta: await readable(event.meta, ['ip']) };
      } catch (error) {
        throw unreadable(event, error);
      }
    },
  };
  return store;
}
