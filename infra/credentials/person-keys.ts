/**
 * Data keys per person, and per personal field of an event (`shared/ports/person-keys.ts`), on
 * `credentials.person_keys`.
 *
 * Erasing a person leaves an empty key, which means "erased" rather than "never seen". Later data of that person is
 * sealed with a key that is discarded, and earlier data is never opened with a wrong key.
 */
import { randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { atMost } from '../../shared/bounded.ts';
import type { PersonKeys } from '../../shared/ports/person-keys.ts';
import { askingTogether } from '../../shared/waiting.ts';
import type { Database } from '../database/database.ts';

const KEPT = 10_000;
/** How long a process that is not notified of an erasure may still use the key. */
const TTL_MS = 60_000;

const ERASED = Buffer.alloc(0);

export interface ErasablePersonKeys extends PersonKeys {
  /** Deletes a key, of a person or a field: its data reads as null from now on. Other processes must `forget` it. */
  erase(person: string): Promise<void>;
  /** Called when another process has deleted the key. */
  forget(person: string): void;
}

export function createPersonKeys(database: Pick<Database, 'pool'>): ErasablePersonKeys {
  const { pool } = database;
  const kept = new LRUCache<string, Buffer>({ ...atMost(KEPT), ttl: TTL_MS });
  const running = new Map<string, Promise<Buffer | undefined>>();

  // A page of a log may have hundreds of keys of single fields.
  const selectAll = askingTogether(async (persons: readonly string[]) => {
    const text = 'SELECT person, key FROM credentials.person_keys WHERE person = ANY ($1::text[])';
    const { rows } = await pool.query(text, [persons]);
    return new Map((rows as { person: string; key: Buffer }[]).map(({ person, key }) => [person, key]));
  });
  const select = async (person: string): Promise<Buffer | undefined> => (await selectAll([person])).get(person);

  async function make(person: string): Promise<Buffer | undefined> {
    const known = await select(person);
    if (known) return known;
    await pool.query(
      'INSERT INTO credentials.person_keys (person, key, created_at) VALUES ($1, $2, $3) ON CONFLICT (person) DO NOTHING',
      [person, randomBytes(32), Math.floor(Date.now() / 1_000)],
    );
    return select(person);
  }

  /** Concurrent requests for the same key share one query. */
  function shared(kind: 'find' | 'make', person: string): Promise<Buffer | undefined> {
    const name = `${kind} ${person}`;
    let one = running.get(name);
    if (!one) {
      one = (kind === 'find' ? select(person) : make(person)).then((key) => {
        // An absent key is not cached: the next event may be the person's first.
        if (key && running.get(name) === one) kept.set(person, key);
        return key;
      });
      running.set(name, one);
      const done = () => {
        if (running.get(name) === one) running.delete(name);
      };
      one.then(done, done);
    }
    return one;
  }

  function forget(person: string): void {
    for (const kind of ['find', 'make']) running.delete(`${kind} ${person}`);
    kept.set(person, ERASED);
  }

  const unlessErased = (key: Buffer | undefined) => (key && key.length > 0 ? key : undefined);

  return {
    find(person) {
      const key = kept.get(person);
      return key ? unlessErased(key) : shared('find', person).then(unlessErased);
    },
    async findOrCreate(person) {
      const key = kept.get(person) ?? (await shared('make', person));
      if (!key) throw new Error(`the key of ${person} was removed from the database while it was being created`);
      return key.length > 0 ? key : randomBytes(32);
    },
    async create(names) {
      const made = names.map((name) => ({ name, key: randomBytes(32) }));
      await pool.query(
        `INSERT INTO credentials.person_keys (person, key, created_at)
         SELECT name, key, $3 FROM unnest($1::text[], $2::bytea[]) made (name, key)`,
        [names, made.map(({ key }) => key), Math.floor(Date.now() / 1_000)],
      );
      for (const { name, key } of made) kept.set(name, key);
      return made.map(({ key }) => key);
    },
    async erase(person) {
      await pool.query(
        `INSERT INTO credentials.person_keys (person, key, created_at) VALUES ($1, $2, $3)
         ON CONFLICT (person) DO UPDATE SET key = excluded.key`,
        [person, ERASED, Math.floor(Date.now() / 1_000)],
      );
      forget(person);
    },
    forget,
  };
}
