/** Keys of persons, records and fields in memory. A key that is deleted from the map is gone, as after an erasure. */
import { randomBytes } from 'node:crypto';
import type { PersonKeys } from '../../shared/ports/person-keys.ts';

export function memoryKeys(kept = new Map<string, Buffer>()): PersonKeys & { readonly kept: Map<string, Buffer> } {
  const made = (name: string): Buffer => {
    const key = kept.get(name) ?? randomBytes(32);
    kept.set(name, key);
    return key;
  };
  return {
    kept,
    find: (name) => kept.get(name),
    findOrCreate: async (name) => made(name),
    create: async (names) => names.map(made),
  };
}
