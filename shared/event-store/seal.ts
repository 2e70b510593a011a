/** Seals what is personal or secret in new events: the last step before they are appended. */
import type { EventDefinition } from '../events/define.ts';
import type { Metadata, Origin } from '../events/metadata.ts';
import type { NewEvent } from '../ports/event-log.ts';
import type { PersonKeys } from '../ports/person-keys.ts';
import { valueAt, withValueAt } from './paths.ts';
import { sealAddress, sealFields, sealSecrets } from './sealed-values.ts';

/** The person whose key seals the data about an actor. Anonymous callers share one key per month. */
function personOfActor({ actor: { type, id } }: Pick<Origin, 'actor'>, at: number): string {
  return type === 'anonymous' ? `anonymous:${new Date(at).toISOString().slice(0, 7)}` : `${type}:${id}`;
}

/**
 * The person whose key seals the client address of an event: the actor, or the person whom the event is about if the
 * caller is not signed in, as in a failed sign-in.
 */
export function personOfAddress<Data>(
  { personal }: Pick<EventDefinition<string, Data>, 'personal'>,
  { data, meta }: { readonly data: Data; readonly meta: Pick<Metadata, 'actor' | 'at'> },
): string {
  if (meta.actor.type === 'anonymous' && personal) return personal.person(data);
  return personOfActor(meta, meta.at);
}

/** An event before it is sealed. */
export interface Readable {
  readonly id: string;
  readonly data: Readonly<Record<string, unknown>>;
  readonly meta: Metadata;
}

/** Seals, in this order, the secrets inside values from clients, the personal fields, and the client address. */
export async function sealed(
  keys: PersonKeys,
  definition: EventDefinition,
  { id, data: readable, meta }: Readable,
): Promise<NewEvent> {
  const { type, personal, secrets } = definition;
  let data = readable;
  for (const path of secrets?.fields ?? []) {
    const value = valueAt(data, path);
    if (value === null || value === undefined) continue;
    const shut = await sealSecrets(keys, secrets?.owner(readable, meta) ?? '', `${id}/${path}`, value);
    if (shut !== value) data = withValueAt(data, path, shut);
  }
  if (personal) {
    const present = personal.fields.filter((field) => data[field] !== null && data[field] !== undefined);
    const values = Object.fromEntries(present.map((field) => [field, data[field]]));
    data = { ...data, ...(await sealFields(keys, personal.person(readable), id, values)) };
  }
  const ip =
    meta.ip === null ? null : await sealAddress(keys, personOfAddress(definition, { data: readable, meta }), meta.ip);
  return { id, type, data, meta: { ...meta, ip } };
}
