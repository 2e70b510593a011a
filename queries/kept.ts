/**
 * Caches of queries. Each value has an owner, which is a part of its key: another owner cannot find it. No other file
 * in `queries` has a cache of its own (a test checks that).
 */
import { LRUCache } from 'lru-cache';
import { atMost } from '../shared/bounded.ts';
import type { TaskView } from '../shared/identity.ts';
import type { Freshness } from '../shared/ports/read-models.ts';
import { atHead, type ReadAt } from '../shared/ports/read-models.ts';
import type { Reads } from './reads.ts';

/** A workspace, a caller's view of one, or data that belongs to no workspace. */
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

/** A limit for all owners together: a number of values, or of characters. */
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

/** Looks up a value by its name; `find` reads without waiting. */
export type LookUp<V> = (name: string, find: (reads: Reads) => Promise<V>) => Promise<V>;

/**
 * Lookups whose results are cached as long as their read models do not change. Concurrent callers of the same lookup
 * share one query.
 *
 * @param parts.models names of the projections on which the results depend
 * @param parts.scope `workspace`: only changes in the workspace count
 * @param parts.values maximum number of cached results of all workspaces together
 * @param parts.freshness undefined: nothing is cached
 * @returns waits until the read models show `at` (default: the position of `reads`), for lookups in one workspace
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
    // Taken before the read: a value that changes in between is looked up again.
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
