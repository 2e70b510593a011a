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
import { type Projection, schemaOf } from '../../projections/projection.ts';
import type { Reads } from '../../queries/reads.ts';
import type { Position } from '../../shared/ports/event-log.ts';
import { atHead, type ReadAt } from '../../shared/ports/read-models.ts';
import type { AnyDatabase } from '../database/database.ts';
import type { Positions } from './positions.ts';

export interface ReadsParts {
  readonly db: AnyDatabase;
  readonly projections: readonly Projection[];
  readonly positions: Pick<Positions, 'reachSchemas' | 'losses'>;
}

export function createReads({ db, projections, positions }: ReadsParts, at: () => ReadAt = atHead): Reads {
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
      const result = await db.executeQuery<R>(query as CompiledQuery<R>);
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
    at: (other) => createReads({ db, projections, positions }, () => other),
  };
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
