/**
 * Freshness of read models and credentials (`shared/ports/freshness.ts`).
 *
 * On the embedded database this process is the only one, so its own followers and a counter of credential changes know
 * everything, per workspace. On a server, checkpoints and the version of the credentials are read from the database,
 * one query at a time; a request that arrives while a query is in flight waits for the next one, because the current
 * one may have started too early.
 */
import { type Projection, schemaOf } from '../../projections/projection.ts';
import type { Freshness } from '../../shared/ports/freshness.ts';
import type { Database } from '../database/database.ts';
import type { ChangeTracker } from './change-tracker.ts';

interface Snapshot {
  readonly positions: ReadonlyMap<string, string>;
  readonly credentials: string;
}

export function createFreshness(parts: {
  database: Database;
  projections: readonly Projection[];
  changes: ChangeTracker;
  /** Number of changes to credentials that this process has made. */
  credentialChanges: () => number;
}): Freshness {
  const { database, projections, changes, credentialChanges } = parts;
  const schemas = new Map(projections.map((projection) => [projection.name, schemaOf(projection)]));
  const schemaFor = (name: string): string => {
    const schema = schemas.get(name);
    if (!schema) throw new Error(`there is no projection ${name}`);
    return schema;
  };
  if (database.kind === 'embedded') {
    const stampNow = (names: readonly string[], workspace: number | 'all') =>
      names.map((name) => changes.last(schemaFor(name), workspace)).join(',');
    const credentialsNow = () => String(credentialChanges());
    return {
      stampNow,
      credentialsNow,
      stamp: async (names, workspace) => stampNow(names, workspace),
      credentials: async () => credentialsNow(),
    };
  }

  /** `begun`: the query has been sent, so requests that arrive now need another one. */
  let current: { readonly promise: Promise<Snapshot>; begun: boolean } | undefined;
  let next: Promise<Snapshot> | undefined;
  async function read(): Promise<Snapshot> {
    const { rows } = await database.pool.query(
      `SELECT schema_name, generation || '.' || changed AS stamp FROM service.checkpoints
       UNION ALL SELECT '', version::text FROM credentials.version`,
    );
    const all = new Map((rows as { schema_name: string; stamp: string }[]).map((row) => [row.schema_name, row.stamp]));
    return { positions: all, credentials: all.get('') ?? '' };
  }
  /** A snapshot taken after this call. Calls in the same turn of the event loop share one. */
  function snapshot(): Promise<Snapshot> {
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
    stamp: async (names) => {
      const { positions } = await snapshot();
      return names.map((name) => positions.get(schemaFor(name)) ?? '').join(',');
    },
    credentials: async () => (await snapshot()).credentials,
  };
}
