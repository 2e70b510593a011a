/**
 * Reads that wait (`queries/reads.ts`): each statement first waits for the read models whose tables it was built with.
 */
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Driver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type QueryResult,
} from 'kysely';
import { historyOf, type Projection, schemaOf } from '../../projections/projection.ts';
import type { Reads } from '../../queries/reads.ts';
import { conflict } from '../../shared/errors.ts';
import type { Position } from '../../shared/ports/event-log.ts';
import { atHead, type ReadAt } from '../../shared/ports/read-models.ts';
import type { AnyDatabase, Database } from '../database/database.ts';
import { findMissing, lookAt, type Missing, pastOf } from './history.ts';
import type { Positions } from './positions.ts';

export interface ReadsParts {
  readonly database: Pick<Database, 'db' | 'together'>;
  readonly projections: readonly Projection[];
  readonly positions: Pick<Positions, 'reachSchemas' | 'losses'>;
}

export function createReads(parts: ReadsParts, at: () => ReadAt = atHead): Reads {
  const { database, projections, positions } = parts;
  const schemas = new Set(projections.map(schemaOf));
  let position: Position | undefined;
  let waiting: Reads['db'] | undefined;

  async function run<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    const used = schemasIn(query.query, schemas);
    for (;;) {
      const { losses } = positions;
      if (used.size > 0) {
        const reached = positions.reachSchemas([...used], at());
        const shown = typeof reached === 'number' ? reached : await reached;
        position = Math.min(position ?? shown, shown);
      }
      const result = await database.db.executeQuery<R>(query as CompiledQuery<R>);
      // Rows that were there when it waited may have been lost since.
      if (losses === positions.losses) return result;
    }
  }

  return {
    get db() {
      waiting ??= kyselyThat(run);
      return waiting;
    },
    schema: schemaOf,
    get position() {
      return position;
    },
    at: (other) => createReads(parts, () => other),
    asOf: (past) => createPastReads(parts, past),
  };
}

/**
 * Reads as of a position: the same statements on the views of the past. Each runs in a transaction that says where the views
 * look. Whether the read models still have the position is asked before the statement and after it: in between, versions may
 * have been removed, or the tables replaced.
 */
function createPastReads(parts: ReadsParts, position: Position): Reads {
  const { database, projections, positions } = parts;
  const past = (projection: Pick<Projection, 'name' | 'version'>) => pastOf(schemaOf(projection));
  const named = new Map(
    projections.flatMap((projection) => [
      [past(projection), projection],
      [historyOf(schemaOf(projection)), projection],
    ]),
  );
  const known = new Set(named.keys());

  async function run<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    const used = [...schemasIn(query.query, known)].map((name) => named.get(name) as Projection);
    if (used.length === 0) return database.db.executeQuery<R>(query as CompiledQuery<R>);
    const schemas = used.map(schemaOf);
    await positions.reachSchemas(schemas, { position });
    const missing = findMissing(position, schemas);
    const answers = await database.together([lookAt(position, schemas), missing, query, missing]);
    const [, before, rows, after] = answers as [unknown, Missing[], R[], Missing[]];
    requireNone([...before, ...after], used, position);
    return { rows };
  }

  const reads: Reads = {
    db: kyselyThat(run),
    schema: past,
    position,
    past: position,
    at: () => reads,
    asOf: (other) => createPastReads(parts, other),
  };
  return reads;
}

/** @throws AppError 409 if a read model does not have the position */
function requireNone(missing: readonly Missing[], used: readonly Projection[], position: Position): void {
  if (missing.length === 0) return;
  const names = used.filter((one) => missing.some(({ schema }) => schema === schemaOf(one))).map(({ name }) => name);
  const from = Math.max(...missing.map(({ from }) => from ?? Number.POSITIVE_INFINITY));
  const since = Number.isFinite(from) ? `goes back to position ${from} only` : 'has not been written yet';
  throw conflict(
    `as_of: the past of ${names.join(', ')} ${since}, and position ${position} is before that. To fill it from the log, run: signalbox rebuild --history ${names.join(' ')}`,
    { code: 'HISTORY_NOT_KEPT' },
  );
}

/** Schemas of read models among the tables of a statement: the nodes that it was built with, not its text. */
function schemasIn(node: unknown, known: ReadonlySet<string>, found = new Set<string>()): ReadonlySet<string> {
  if (typeof node !== 'object' || node === null) return found;
  if (Array.isArray(node)) {
    for (const one of node) schemasIn(one, known, found);
    return found;
  }
  const { kind, schema } = node as { readonly kind?: string; readonly schema?: { readonly name?: string } };
  if (kind === 'ValueNode' || kind === 'PrimitiveValueListNode') return found;
  if (kind === 'SchemableIdentifierNode') {
    if (schema?.name !== undefined && known.has(schema.name)) found.add(schema.name);
    return found;
  }
  for (const one of Object.values(node)) schemasIn(one, known, found);
  return found;
}

/** Builds statements for PostgreSQL and gives them to `run`. */
function kyselyThat(run: <R>(query: CompiledQuery) => Promise<QueryResult<R>>): AnyDatabase {
  const refuse = () => {
    throw new Error('reads of read models have no transactions');
  };
  const connection: DatabaseConnection = { executeQuery: run, streamQuery: refuse };
  const driver: Driver = {
    init: async () => undefined,
    acquireConnection: async () => connection,
    beginTransaction: refuse,
    commitTransaction: refuse,
    rollbackTransaction: refuse,
    releaseConnection: async () => undefined,
    destroy: async () => undefined,
  };
  return new Kysely({
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createDriver: () => driver,
      createIntrospector: (one) => new PostgresIntrospector(one),
      createQueryCompiler: () => new PostgresQueryCompiler(),
    },
  });
}
