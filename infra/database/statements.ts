/**
 * Which statements the connections of a pool prepare: repeated ones, up to a limit that all connections share. The
 * least recently used ones are closed.
 *
 * The texts depend on which read models happen to write together, so most occur only once: of 652 statements prepared
 * in 1,600 mixed requests, 538 were never used again, and the embedded database held 130 MB for them.
 */
import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type pg from 'pg';

/** Limit of prepared texts on all connections, characters; the embedded database needs 30 times as much memory. */
const PREPARED_CHARACTERS = 1_000_000;
/** Maximum number of characters of remembered texts, by which repeated ones are recognised. */
const SEEN_CHARACTERS = 4_000_000;

interface Prepared {
  readonly on: Connection;
  readonly name: string;
}

/** A connection, and its statements that should be closed. */
interface Connection {
  readonly number: number;
  readonly unused: Set<string>;
}

type RunQuery = (...args: unknown[]) => Promise<pg.QueryResult>;

export interface Statements {
  /**
   * Makes a connection prepare repeated statements. Call this once per connection.
   *
   * @param mayPrepare whether a text may be prepared at all
   */
  equip(client: pg.PoolClient, mayPrepare: (text: string) => boolean): void;
  /** The statement name under which an equipped connection should run a text; undefined: it is not prepared. */
  nameOn(client: pg.PoolClient, text: string): Promise<string | undefined>;
}

export function createStatements(): Statements {
  /** Names by text. */
  const seen = new LRUCache<string, string>({ maxSize: SEEN_CHARACTERS, sizeCalculation: (_, text) => text.length });
  const prepared = new LRUCache<string, Prepared>({
    maxSize: PREPARED_CHARACTERS,
    dispose: ({ on, name }, _key, reason) => {
      if (reason === 'evict') on.unused.add(name);
    },
  });
  const equipped = new WeakMap<pg.PoolClient, (text: string) => Promise<string | undefined>>();
  let connections = 0;

  /** Undefined for a text that occurs for the first time, and for one that is too long to be prepared. */
  function nameOf(text: string, on: Connection): string | undefined {
    const name = seen.get(text);
    if (name === undefined) {
      seen.set(text, `s${createHash('sha1').update(text).digest('base64url')}`);
      return undefined;
    }
    const key = `${on.number} ${name}`;
    if (prepared.get(key) === undefined) {
      prepared.set(key, { on, name }, { size: text.length });
      if (!prepared.has(key)) return undefined;
    }
    on.unused.delete(name);
    return name;
  }

  return {
    equip(client, mayPrepare) {
      const connection: Connection = { number: ++connections, unused: new Set() };
      client.once('end', () => {
        for (const [key, { on }] of prepared.entries()) if (on === connection) prepared.delete(key);
      });
      const run = client.query.bind(client) as RunQuery;
      async function named(text: string): Promise<string | undefined> {
        const name = nameOf(text, connection);
        if (connection.unused.size > 0) {
          const names = [...connection.unused];
          connection.unused.clear();
          await closeStatements(client, names);
        }
        return name;
      }
      equipped.set(client, async (text) => (mayPrepare(text) ? named(text) : undefined));
      async function query(text: string, values: unknown): Promise<pg.QueryResult> {
        const name = await named(text);
        return run(name === undefined ? { text, values } : { name, text, values });
      }
      // Callers with a callback, such as `pool.query`, get no promise.
      client.query = ((text: unknown, ...rest: unknown[]) =>
        typeof text === 'string' && typeof rest.at(-1) !== 'function' && mayPrepare(text)
          ? query(text, rest[0])
          : run(text, ...rest)) as typeof client.query;
    },
    nameOn: async (client, text) => equipped.get(client)?.(text),
  };
}

/** `pg` has no method for this, but accepts objects that send their own messages, as cursors do. */
function closeStatements(client: pg.PoolClient, names: readonly string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const closing = {
      /** `pg` replaces this callback with its own, which handles time-outs. */
      callback: (error?: Error | null) => (error ? reject(error) : resolve()),
      submit(connection: pg.Connection & { readonly parsedStatements?: Record<string, string> }) {
        for (const name of names) {
          connection.close({ type: 'S', name }, true);
          // `pg` prepares a statement again only if it has no record of it.
          delete connection.parsedStatements?.[name];
        }
        connection.sync();
      },
      handleReadyForQuery() {
        this.callback();
      },
      handleError(error: Error) {
        this.callback(error);
      },
    };
    client.query(closing);
  });
}
