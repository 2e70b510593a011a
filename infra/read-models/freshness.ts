/**
 * Freshness of read models and credentials (`shared/ports/freshness.ts`).
 *
 * Embedded: this process is the only one, so the runners' own positions and a counter of credential changes say it
 * all, per workspace. On a server: checkpoints and the credentials' version are read from the database, one query at a
 * time; a request that comes while one is in flight waits for the next, because that one began too early for it.
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
  /** Changes of credentials that this process made. */
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

  /** `begun`: its query is on its way; whoever comes now needs a later one. */
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
  /** A snapshot that is begun after this call. Calls of the same moment share one. */
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
