/**
 * Plain-text display names in events of older versions: `copy-log` seals them. The same event gives the same copy each
 * time, so that a copy can be resumed and compared.
 */
import { LRUCache } from 'lru-cache';
import { ERASED_NAME, formerNamesOf } from '../../shared/event-store/open.ts';
import { valueAt, withValueAt } from '../../shared/event-store/paths.ts';
import { isSealed, sealAlike } from '../../shared/event-store/sealed-values.ts';
import { catalogue } from '../../shared/events/catalogue.ts';
import type { EventDefinition } from '../../shared/events/define.ts';
import type { Actor } from '../../shared/events/metadata.ts';
import type { EventLog, LoggedEvent } from '../../shared/ports/event-log.ts';
import type { PersonKeys } from '../../shared/ports/person-keys.ts';

/** The key of names whose users are not known. */
const OTHERS = 'former_names';
/** Streams whose first events are remembered. */
const KEPT = 10_000;

/** Returns events as they are copied: unchanged without keys, or without names. */
export function createNameSealer(log: Pick<EventLog, 'readStream'>, keys: PersonKeys | undefined) {
  const creators = new LRUCache<string, { readonly actor: Actor | undefined }>({ max: KEPT });

  async function creatorOf(stream: string): Promise<Actor | undefined> {
    const known = creators.get(stream);
    if (known) return known.actor;
    let actor: Actor | undefined;
    for await (const [first] of log.readStream(stream, { limit: 1 })) actor ??= first?.meta.actor as Actor | undefined;
    creators.set(stream, { actor });
    return actor;
  }

  /** The person whose key seals the names; undefined if they do not belong to a user. */
  async function personOf(event: LoggedEvent, { formerNames }: EventDefinition): Promise<string | undefined> {
    const { of = 'actor' } = formerNames ?? {};
    if (of === 'others') return OTHERS;
    const actor = of === 'creator' ? await creatorOf(event.stream) : (event.meta.actor as Actor | undefined);
    if (actor?.type === 'user') return `user:${actor.id}`;
    return of === 'actor or others' ? OTHERS : undefined;
  }

  return async (event: LoggedEvent): Promise<LoggedEvent> => {
    const definition = catalogue.get(event.type);
    const paths = definition ? formerNamesOf(event, definition) : [];
    if (!keys || !definition || paths.length === 0) return event;
    const person = await personOf(event, definition);
    if (person === undefined) return event;
    const key = person === OTHERS ? await keys.findOrCreate(person) : await keys.find(person);
    const names = paths
      .map((path) => ({ path, value: valueAt(event.data, path) }))
      .filter(({ value }) => value !== null && value !== undefined && !isSealed(value));
    if (names.length === 0) return event;
    // The key of a user is missing only once the user has been erased.
    const shut = (path: string, value: unknown) =>
      key ? sealAlike(key, person, `${event.id}/${path}`, value) : ERASED_NAME;
    const data = names.reduce((before, { path, value }) => withValueAt(before, path, shut(path, value)), event.data);
    return { ...event, data };
  };
}
