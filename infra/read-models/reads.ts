/** Reads that wait (`queries/reads.ts`): a statement first waits for the read models whose tables it was built with. */
import { historyOf, type Projection, schemaOf } from '../../projections/projection.ts';
import type { Reads } from '../../queries/reads.ts';
import { conflict, HISTORY_NOT_KEPT } from '../../shared/errors.ts';
import type { Position } from '../../shared/ports/event-log.ts';
import { atHead, type ReadAt } from '../../shared/ports/read-models.ts';
import type { AnyDatabase, Database } from '../database/database.ts';
import { kyselyRunBy } from '../database/kysely.ts';
import type { ChangeTracker } from './change-tracker.ts';
import { findMissing, lookAt, type Missing, pastOf } from './history.ts';
import { type Run, snapshotAt } from './one-snapshot.ts';
import type { Positions } from './positions.ts';

export interface ReadsParts {
  readonly database: Pick<Database, 'db' | 'together' | 'atOneMoment' | 'losses'>;
  readonly projections: readonly Projection[];
  readonly positions: Pick<Positions, 'reachSchemas' | 'shown'>;
  /** The changes of rows, in a process that makes all of them. */
  readonly changes?: Pick<ChangeTracker, 'quiet'> | undefined;
}

/** Projections by the schemas of their tables. */
type Named = ReadonlyMap<string, Projection>;

export function createReads({ database, projections, positions, changes }: ReadsParts): Reads {
  const live: Named = new Map(projections.map((one) => [schemaOf(one), one]));
  const past: Named = new Map(
    projections.flatMap((one) => [pastOf(schemaOf(one)), historyOf(schemaOf(one))].map((name) => [name, one])),
  );

  function readsAt(at: () => ReadAt): Reads {
    let position: Position | undefined;
    let db: AnyDatabase | undefined;
    const run: Run = async (query, used) => {
      for (;;) {
        const { losses } = database;
        if (used.length > 0) {
          const shown = await positions.reachSchemas(used.map(schemaOf), at());
          position = Math.min(position ?? shown, shown);
        }
        const result = await database.db.executeQuery(query);
        // Otherwise rows that it waited for may have been lost since.
        if (losses === database.losses) return result;
      }
    };
    return {
      get db() {
        db ??= kyselyFor(run, live);
        return db;
      },
      schema: schemaOf,
      get position() {
        return position;
      },
      isExact: false,
      at: (other) => readsAt(() => other),
      response: readsOfResponse,
      asOf: readsAsOf,
    };
  }

  function readsOfResponse(at: ReadAt): Reads {
    const snapshot = snapshotAt(at, { database, positions, changes, past: (position) => runAsOf(position) });
    let db: AnyDatabase | undefined;
    return {
      get db() {
        db ??= kyselyFor(snapshot.run, live);
        return db;
      },
      schema: schemaOf,
      get position() {
        return snapshot.position;
      },
      get isExact() {
        return snapshot.isExact;
      },
      at: (other) => readsAt(() => other),
      response: readsOfResponse,
      asOf: readsAsOf,
    };
  }

  /**
   * Reads as of a position: the same statements on the views of the past. Each runs in a transaction that sets their
   * position. Whether the read models still have the position is checked before and after the statement: in between,
   * versions may have been removed, or the tables replaced.
   */
  function runAsOf(position: Position, at?: number, deleted = true): Run {
    return async (query, used) => {
      if (used.length === 0) return database.db.executeQuery(query);
      const schemas = used.map(schemaOf);
      await positions.reachSchemas(schemas, { position });
      const missing = findMissing(position, schemas);
      const responses = await database.together([lookAt(position, schemas, at, deleted), missing, query, missing]);
      const [, before, rows, after] = responses as [unknown, Missing[], unknown[], Missing[]];
      requireNone([...before, ...after], used, position);
      return { rows };
    };
  }

  function readsAsOf(position: Position, at?: number, deleted?: boolean): Reads {
    const db = kyselyFor(runAsOf(position, at, deleted), past);
    const schema = (projection: Pick<Projection, 'name' | 'version'>) => pastOf(schemaOf(projection));
    const reads: Reads = {
      db,
      schema,
      position,
      isExact: true,
      past: position,
      at: () => reads,
      response: () => reads,
      asOf: readsAsOf,
    };
    return reads;
  }

  return readsAt(atHead);
}

/** @throws AppError 409 if a read model does not have the position */
function requireNone(missing: readonly Missing[], used: readonly Projection[], position: Position): void {
  const [first] = missing;
  if (!first) return;
  const names = used.filter((one) => missing.some(({ schema }) => schema === schemaOf(one))).map(({ name }) => name);
  const from = Math.max(...missing.map(({ from }) => from ?? Number.POSITIVE_INFINITY));
  const since = Number.isFinite(from) ? `goes back to position ${from} only` : 'has not been written yet';
  throw conflict(
    `as_of: the past of ${names.join(', ')} ${since}, and position ${position} is before that. To fill it from the log, run: signalbox rebuild --history ${names.join(' ')}${first.bundle ? `, with the bundle ${first.bundle} in ARCHIVE_DIR, which has the events of that time` : ''}`,
    { code: HISTORY_NOT_KEPT, ...(first.bundle && { body: { bundle: first.bundle } }) },
  );
}

const kyselyFor = (run: Run, named: Named): AnyDatabase =>
  kyselyRunBy((query) => run(query, [...projectionsIn(query.query, named)]));

/** The projections whose tables a statement reads, found in its syntax tree, never in its text. */
function projectionsIn(node: unknown, named: Named, found = new Set<Projection>()): ReadonlySet<Projection> {
  if (typeof node !== 'object' || node === null) return found;
  const { kind, schema } = node as { readonly kind?: string; readonly schema?: { readonly name?: string } };
  if (kind === 'ValueNode' || kind === 'PrimitiveValueListNode') return found;
  const projection = kind === 'SchemableIdentifierNode' ? named.get(schema?.name ?? '') : undefined;
  if (projection) found.add(projection);
  for (const one of Object.values(node)) projectionsIn(one, named, found);
  return found;
}
