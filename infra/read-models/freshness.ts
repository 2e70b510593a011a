/**
 * Freshness of read models and credentials (`shared/ports/freshness.ts`).
 *
 * On the embedded database this process is the only one, so its own followers and a counter of credential changes know
 * everything, per workspace, once the rows that were promised are there.
 *
 * On a server, checkpoints and the version of the credentials are read from the database,
 * one query at a time; a request that arrives while a query is in flight waits for the next one, because the current
 * one may have started too early. What is read for a request is read once, because it began after the request arrived
 * (docs/adr/0025-freshness-is-asked-for.md).
 */
import { type Projection, schemaOf } from '../../projections/projection.ts';
import type { Freshness } from '../../shared/ports/freshness.ts';
import type { Database } from '../database/database.ts';
import type { ChangeTracker } from './change-tracker.ts';
import type { Positions } from './positions.ts';

interface Snapshot {
  /** By schema. */
  readonly positions: Readonly<Record<string, string>>;
  readonly credentials: string;
  /** `performance.now()` before it was asked for. */
  readonly begun: number;
}

/**
 * Prepared, because planning it takes the server as long as running it. The plan cannot become a bad one: both tables
 * are small, and read as a whole. One object, because a row for each read model costs more to take apart.
 */
const READ = {
  name: 'freshness',
  text: `SELECT json_object_agg(schema_name, generation || '.' || changed) AS positions,
      (SELECT version::text FROM credentials.version) AS credentials
    FROM service.checkpoints`,
};

export function createFreshness(parts: {
  database: Database;
  projections: readonly Projection[];
  changes: ChangeTracker;
  /** Number of changes to credentials that this process has made. */
  credentialChanges: () => number;
  positions: Pick<Positions, 'isBehind' | 'settled' | 'reading'>;
}): Freshness {
  const { database, projections, changes, credentialChanges, positions } = parts;
  const schemas = new Map(projections.map((projection) => [projection.name, schemaOf(projection)]));
  const schemaFor = (name: string): string => {
    const schema = schemas.get(name);
    if (!schema) throw new Error(`there is no projection ${name}`);
    return schema;
  };
  if (database.kind === 'embedded') {
    const lastOf = (names: readonly string[], workspace: number | 'all') =>
      names.map((name) => changes.last(schemaFor(name), workspace)).join(',');
    const credentialsNow = () => String(credentialChanges());
    return {
      stampNow(names, workspace) {
        let behind = false;
        for (const name of names) {
          const schema = schemaFor(name);
          positions.reading(schema);
          if (positions.isBehind(schema)) behind = true;
        }
        return behind ? undefined : lastOf(names, workspace);
      },
      credentialsNow,
      async stamp(names, workspace, _since, despite) {
        const wanted = names.map(schemaFor);
        if (!despite) for (const schema of wanted) positions.reading(schema);
        const settled = positions.settled(wanted, despite);
        if (settled) await settled;
        return lastOf(names, workspace);
      },
      credentials: async () => credentialsNow(),
    };
  }

  /** `begun`: the query has been sent, so requests that arrive now need another one. */
  let current: { readonly promise: Promise<Snapshot>; begun: boolean } | undefined;
  let next: Promise<Snapshot> | undefined;
  let newest: Snapshot | undefined;
  async function read(): Promise<Snapshot> {
    const begun = performance.now();
    const { rows } = await database.pool.query(READ);
    const { positions, credentials } = rows[0] as Omit<Snapshot, 'begun' | 'positions'> & {
      /** Null when there are no checkpoints. */
      readonly positions: Snapshot['positions'] | null;
    };
    newest = { positions: positions ?? {}, credentials, begun };
    return newest;
  }
  /**
   * A snapshot taken after this call, or at least after `since`. Calls in the same turn of the event loop share one.
   */
  function snapshot(since = Number.POSITIVE_INFINITY): Promise<Snapshot> | Snapshot {
    if (newest !== undefined && newest.begun > since) return newest;
    if (!current) {
      const mine = {
        begun: false,
        promise: Promise.resolve()
          .then(() => {
            mine.begun = true;
            return read();
          })
          .finally(() => {
            current = undefined;
          }),
      };
      current = mine;
      return mine.promise;
    }
    if (!current.begun) return current.promise;
    next ??= current.promise
      .catch(() => undefined)
      .then(() => {
        next = undefined;
        return snapshot();
      });
    return next;
  }
  return {
    stampNow: () => undefined,
    credentialsNow: () => undefined,
    stamp: async (names, _workspace, since) => {
      const { positions } = await snapshot(since);
      return names.map((name) => positions[schemaFor(name)] ?? '').join(',');
    },
    credentials: async (since) => (await snapshot(since)).credentials,
  };
}
