/**
 * The only file in which old versions of events are upcast.
 *
 * `upcasters.<type>[n]` turns data of version n into data of version n + 1; the actor of the event may matter. A golden
 * file of each released version stays in `test/golden/events`, and the tests read it through these upcasters.
 */
import type { EventDefinition } from './define.ts';
import type { Actor } from './metadata.ts';

type Data = Readonly<Record<string, unknown>>;
type By = { readonly actor: Actor };

export type Upcasters = Readonly<Record<string, Readonly<Record<number, (data: Data, meta: By) => Data>>>>;

/** Empty: every event has its first version. */
export const upcasters: Upcasters = {};

/** Upcasts `data` from version `from` to the newest. @throws Error when a step is missing */
export function upcast(
  { type, version: newest }: Pick<EventDefinition, 'type' | 'version'>,
  data: Data,
  meta: By,
  from: number,
  steps = upcasters,
): Data {
  let current = data;
  for (let version = from; version < newest; version++) {
    const step = steps[type]?.[version];
    if (!step) throw new Error(`there is no upcaster for ${type} from version ${version} to ${version + 1}`);
    current = step(current, meta);
  }
  return current;
}
