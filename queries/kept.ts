/**
 * What queries keep in memory. Each value has an owner, which is a part of its key: who asks for it as another owner does
 * not find it. No other file of this room has a cache of its own (a test sees to that).
 */
import { LRUCache } from 'lru-cache';
import { atMost } from '../shared/bounded.ts';
import type { TaskView } from '../shared/identity.ts';
import type { Freshness } from '../shared/ports/read-models.ts';
import { atHead, type ReadAt } from '../shared/ports/read-models.ts';
import type { Reads } from './reads.ts';

/** A workspace, what a caller sees of one, or all that belongs to none. */
export type Owner = number | TaskView | 'deployment';

export interface KeptOf<V> {
  get(name: string): V | undefined;
  set(name: string, value: V): void;
  delete(name: string): void;
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
        delete(name) {
          values.delete(`${own} ${name}`);
        },
      };
    },
    clear: () => values.clear(),
  };
}

/** Looks up what has a name; `find` reads without waiting. */
export type LookUp<V> = (name: string, find: (reads: Reads) => Promise<V>) => Promise<V>;

/**
 * Look-ups whose results are kept for as long as their read models stand still. Callers that look up the same at the same
 * time share one query.
 *
 * @param parts.models names of the projections that the results depend on
 * @param parts.scope `workspace`: only changes in the workspace count
 * @param parts.values how many results of all workspaces together are kept
 * @param parts.freshness undefined: nothing is kept
 * @returns waits until the read models show `at` (by default, where `reads` are), for look-ups in one workspace
 */
export function createLookUps<V>(parts: {
  readonly reads: Reads;
  readonly freshness: Pick<Freshness, 'stamp'> | undefined;
  readonly models: readonly string[];
  readonly scope: 'workspace' | 'all';
  readonly values: number;
}): (workspace: number, at?: ReadAt) => Promise<LookUp<V>> {
  const { reads, freshness, models, scope, values } = parts;
  const kept = createKept<{ readonly stamp: string; readonly found: Promise<V> }>({ values });
  const there = reads.at({});
  return async (workspace, at) => {
    if (!freshness) return (_name, find) => find(at ? reads.at(at) : reads);
    // Taken before the read: what changes in between is looked up again.
    const { value: stamp } = await freshness.stamp(models, scope === 'all' ? scope : workspace, at ?? atHead());
    const own = kept.of(workspace);
    return (name, find) => {
      const known = own.get(name);
      if (known?.stamp === stamp) return known.found;
      const one = { stamp, found: find(there) };
      own.set(name, one);
      one.found.catch(() => {
        if (own.get(name) === one) own.delete(name);
      });
      return one.found;
    };
  };
}
