/**
 * The event store: typed, validated, sealed events on top of the event log's port, which knows nothing of this. Its steps
 * are in the folder beside it.
 *
 * In: validate, number, seal, append. Out: open, upcast, validate.
 */
import { EventUnreadableError } from './errors.ts';
import { numbered } from './event-store/number.ts';
import {
  fieldsOfPeople,
  keyNames,
  opened,
  openedMetadata,
  sealedAddress,
  sealedParts,
  withKeys,
} from './event-store/open.ts';
import { type Readable, sealed } from './event-store/seal.ts';
import { validData, validDraft } from './event-store/validate.ts';
import type { DomainEvent, EventDefinition, EventDraft } from './events/define.ts';
import type { Origin } from './events/metadata.ts';
import { type Upcasters, upcast, upcasters } from './events/upcasters.ts';
import { newId } from './ids.ts';
import type { Counters } from './ports/counters.ts';
import type { Appended, EventLog, Expectation, LoggedEvent, NewEvent } from './ports/event-log.ts';
import type { PersonKeys } from './ports/person-keys.ts';
import { activeTracer, traced } from './ports/tracing.ts';

export interface Revealed extends Pick<LoggedEvent, 'data' | 'meta'> {
  /** Number of fields that were opened, without those of erased people. */
  readonly opened: number;
}

export interface EventStore {
  readonly log: EventLog;
  /**
   * Validates, numbers and seals drafts. The result may be appended repeatedly, because its ids make that safe.
   *
   * @throws AppError 400 or 413 for data that read models could not store
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
   * @param once no other caller will read this event, so it is not cached: a weak map of many events makes garbage
   *   collection expensive
   * @throws EventUnreadableError, or what `PersonKeys.find` throws when the keys are unavailable
   */
  decode(event: LoggedEvent, once?: boolean): DomainEvent | Promise<DomainEvent>;
  /**
   * Data and metadata of a logged event as they were written, with the fields of people and the client address readable;
   * null if the person was erased. Secrets stay sealed. For types that this version does not know, only the address is
   * readable.
   *
   * @throws as `decode`
   */
  reveal(event: LoggedEvent): Promise<Revealed>;
  /** Discards the readable content of events, because the key of a person was deleted. */
  forget(): void;
}

/** @throws EventUnreadableError for a type that is not in the catalogue, or a version that is newer */
function definitionOf(event: LoggedEvent, catalogue: ReadonlyMap<string, EventDefinition>): EventDefinition {
  const definition = catalogue.get(event.type);
  if (!definition) throw new EventUnreadableError(event, 'its type is unknown to this version of Signalbox');
  const { version } = event.meta;
  if (typeof version === 'number' && version <= definition.version) return definition;
  throw new EventUnreadableError(event, `its schema version ${String(version)} is newer than ${definition.version}`);
}

export function createEventStore(parts: {
  log: EventLog;
  catalogue: ReadonlyMap<string, EventDefinition>;
  counters: Counters;
  keys: PersonKeys;
  now?: () => number;
  /** Default: the upcasters for every event that was ever written. */
  upcasters?: Upcasters;
}): EventStore {
  const { log, catalogue, counters, keys, now = Date.now, upcasters: steps = upcasters } = parts;
  // All followers of a process share the logged objects, so an event is decoded only once.
  let decoded = new WeakMap<object, DomainEvent | Promise<DomainEvent>>();
  // Events that this process has just written need not be opened for its own followers, because they get the same objects.
  let written = new WeakMap<NewEvent['meta'], Readable & { readonly event: NewEvent }>();

  function draftDefinition({ type }: EventDraft): EventDefinition {
    const definition = catalogue.get(type);
    if (!definition) throw new Error(`event type ${type} is not in the catalogue`);
    return definition;
  }

  /** Whether it was sealed with a discarded key: then it must not be readable here either. */
  const isOfErased = (event: NewEvent, definition: EventDefinition): boolean =>
    [...sealedParts(event, definition), ...sealedAddress(event)].some((part) =>
      keyNames(event.id, part).some((name) => keys.find(name) === undefined),
    );

  /** Decodes an event for the first time. */
  function decodeFresh(event: LoggedEvent): DomainEvent | Promise<DomainEvent> {
    const { id, type, stream, revision, position } = event;
    const known = written.get(event.meta);
    if (known && known.event.data === event.data && known.id === id && known.event.type === type)
      return { id, type, data: known.data, meta: known.meta, stream, revision, position };
    const definition = definitionOf(event, catalogue);
    const parts = sealedParts(event, definition);
    return withKeys(keys, id, [...parts, ...sealedAddress(event)], (keyOf) => {
      try {
        const meta = openedMetadata(event, keyOf);
        const open = opened(id, event.data, parts, keyOf);
        const data = validData(definition, upcast(definition, open, meta, meta.version, steps));
        return { id, type, data, meta, stream, revision, position };
      } catch (error) {
        throw new EventUnreadableError(event, error);
      }
    });
  }

  const store: EventStore = {
    log,
    async prepare(drafts, origin) {
      const definitions = drafts.map(draftDefinition);
      const valid = drafts.map(({ data }, index) => validDraft(definitions[index] as EventDefinition, data));
      const metas = await numbered(counters, definitions, now(), origin);
      return Promise.all(
        definitions.map(async (definition, index) => {
          const readable = { id: newId(), data: valid[index], meta: metas[index] } as Readable;
          const event = await sealed(keys, definition, readable);
          if (!isOfErased(event, definition)) written.set(event.meta, { ...readable, event });
          return event;
        }),
      );
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
          // An event that is unreadable now may be readable later, when the key is available.
          kept.delete(event);
          throw error;
        },
      );
    },
    forget() {
      decoded = new WeakMap();
      written = new WeakMap();
    },
    async reveal(event) {
      const { id, data, meta } = event;
      const address = sealedAddress(event);
      const fields = fieldsOfPeople(event, catalogue.get(event.type) ?? {});
      const parts = [...fields, ...address];
      return withKeys(keys, id, parts, (keyOf) => {
        try {
          const readable = parts.filter((part) => keyNames(id, part).every((name) => keyOf(name) !== undefined));
          return {
            data: opened(id, data, fields, keyOf),
            meta: opened(id, meta, address, keyOf),
            opened: readable.length,
          };
        } catch (error) {
          throw new EventUnreadableError(event, error);
        }
      });
    },
  };
  return store;
}
