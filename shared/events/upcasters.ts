/**
 * The one place where old versions of events are brought up to date.
 *
 * `upcasters.<type>[n]` turns data of version n into data of version n + 1. The golden files of the old version
 * stay in `test/golden/events` and are read through here by the tests.
 */
type Data = Readonly<Record<string, unknown>>;

export type Upcasters = Readonly<Record<string, Readonly<Record<number, (data: Data) => Data>>>>;

export const upcasters: Upcasters = {};

/** Brings `data` of `type` from `from` to `to`. @throws Error when a step is missing. */
export function upcast(type: string, data: Data, from: number, to: number, steps = upcasters): Data {
  let current = data;
  for (let version = from; version < to; version++) {
    const step = steps[type]?.[version];
    if (!step) throw new Error(`no upcaster brings ${type} from version ${version} to ${version + 1}`);
    current = step(current);
  }
  return current;
}
