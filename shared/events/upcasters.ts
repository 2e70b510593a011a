/**
 * The one place where old versions of events are upcast.
 *
 * `upcasters.<type>[n]` turns data of version n into data of version n + 1. The golden files of the old version stay in
 * `test/golden/events` and the tests read them through these upcasters.
 */
type Data = Readonly<Record<string, unknown>>;

export type Upcasters = Readonly<Record<string, Readonly<Record<number, (data: Data) => Data>>>>;

export const upcasters: Upcasters = {};

/** Upcasts `data` of `type` from version `from` to version `to`. @throws Error when a step is missing */
export function upcast(type: string, data: Data, from: number, to: number, steps = upcasters): Data {
  let current = data;
  for (let version = from; version < to; version++) {
    const step = steps[type]?.[version];
    if (!step) throw new Error(`there is no upcaster for ${type} from version ${version} to ${version + 1}`);
    current = step(current);
  }
  return current;
}
