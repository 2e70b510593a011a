/**
 * What queries keep in memory. Each value has an owner, which is a part of its key: who asks for it as another owner does
 * not find it. No other file of this room has a cache of its own (a test sees to that).
 */
import { LRUCache } from 'lru-cache';
import { atMost } from '../shared/bounded.ts';
import type { TaskView } from '../shared/identity.ts';

/** A workspace, what a caller sees of one, or all that belongs to none. */
export type Owner = number | TaskView | 'deployment';

export interface KeptOf<V> {
  get(name: string): V | undefined;
  set(name: string, value: V): void;
}

export interface Kept<V> {
  of(owner: Owner): KeptOf<V>;
  clear(): void;
}

/** A total for all owners together: a number of values, or of characters. */
type Bound<V> = { readonly values: number } | { readonly characters: number; readonly size: (value: V) => number };

const textOf = (owner: Owner): string =>
  typeof owner === 'object'
    ? JSON.stringify([owner.workspace, owner.agent && [owner.agent.id, owner.agent.name]])
    : String(owner);

export function createKept<V extends object>(bound: Bound<V>): Kept<V> {
  const values = new LRUCache<string, V>(
    'values' in bound ? atMost(bound.values) : { maxSize: bound.characters, sizeCalculation: bound.size },
  );
  return {
    of(owner) {
      const own = textOf(owner);
      return {
        get: (name) => values.get(`${own} ${name}`),
        set(name, value) {
          values.set(`${own} ${name}`, value);
        },
      };
    },
    clear: () => values.clear(),
  };
}
