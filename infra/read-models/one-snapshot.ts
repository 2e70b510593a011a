/**
 * The statements of one response show read models at one position (docs/adr/0048-a-response-is-one-snapshot.md).
 *
 * The first statement chooses the position: it finds the rows as they are, and the checkpoints say at which positions
 * they stood so. Later statements find the rows as they are too, as long as nothing has changed them since that position;
 * otherwise they read the views of the past (`history.ts`) at it. A query on a table that has gaps is repeated instead
 * (`inPastToo`).
 */
import {
  type CompiledQuery,
  IdentifierNode,
  OperationNodeTransformer,
  PostgresQueryCompiler,
  type QueryResult,
  type SchemableIdentifierNode,
} from 'kysely';
import { type Projection, schemaOf } from '../../projections/projection.ts';
import { NeedsPast } from '../../queries/reads.ts';
import { AppError, HISTORY_NOT_KEPT } from '../../shared/errors.ts';
import type { Position } from '../../shared/ports/event-log.ts';
import type { ReadAt } from '../../shared/ports/read-models.ts';
import type { Database } from '../database/database.ts';
import type { ChangeTracker } from './change-tracker.ts';
import { pastOf } from './history.ts';
import type { Positions } from './positions.ts';

/** Runs a statement. @param used the projections among whose tables it reads */
export type Run = (query: CompiledQuery, used: readonly Projection[]) => Promise<QueryResult<unknown>>;

/** Rows, and the positions at which their read models stood so; none, if `from` is later than `to`. */
interface Seen {
  readonly result: QueryResult<unknown>;
  readonly from: Position;
  readonly to: Position;
}

export interface SnapshotParts {
  readonly database: Pick<Database, 'db' | 'together' | 'atOneMoment' | 'losses'>;
  readonly positions: Pick<Positions, 'reachSchemas' | 'shown'>;
  /** The changes of rows, in a process that makes all of them; default: the database is queried. */
  readonly changes?: Pick<ChangeTracker, 'quiet'> | undefined;
  /** Runs a statement on the views of the past. */
  readonly past: (position: Position) => Run;
}

/** The reads of one response. */
export interface Snapshot {
  readonly run: Run;
  /** Of all rows that were read; undefined: there were none. */
  readonly position: Position | undefined;
  /** False: some rows are of later positions. */
  readonly isExact: boolean;
}

interface Checkpoint {
  readonly schema: string;
  readonly position: Position;
  /** Position of the last change of its rows, or a later one. */
  readonly changed: Position;
}

const checkpointsOf = (schemas: readonly string[]): Pick<CompiledQuery, 'sql' | 'parameters'> => ({
  sql: 'SELECT schema_name AS schema, position, changed FROM service.checkpoints WHERE schema_name = ANY ($1::text[])',
  parameters: [schemas],
});

/** Prepared, because planning it takes the server as long as running it. The table is small, and is read completely. */
const lastChangeOf = (schemas: readonly string[]) => ({
  name: 'last_change',
  sql: 'SELECT coalesce(max(changed), 0)::bigint AS changed FROM service.checkpoints WHERE schema_name = ANY ($1::text[])',
  parameters: [schemas],
});

const lastOf = (checkpoints: readonly Pick<Checkpoint, 'changed'>[]): Position =>
  Math.max(0, ...checkpoints.map(({ changed }) => changed));

export function snapshotAt(at: ReadAt, parts: SnapshotParts): Snapshot {
  const { database, positions, changes, past } = parts;
  const waits = at.since !== undefined || at.position !== undefined;
  let position: Position | undefined;
  let isExact = true;
  /** The statement that chooses the position. */
  let first: Promise<QueryResult<unknown>> | undefined;
  const shownBy = (schemas: readonly string[]) => Math.min(...schemas.map((schema) => positions.shown(schema)));

  /** The rows as they are, if nothing is known to have changed them since `to`, which they show. */
  async function readLive(query: CompiledQuery, schemas: readonly string[], to: Position): Promise<Seen | undefined> {
    if (!changes) {
      const [rows, last] = await database.together([query, lastChangeOf(schemas)]);
      const from = lastOf(last as Pick<Checkpoint, 'changed'>[]);
      return from <= to ? { result: { rows: rows as unknown[] }, from, to } : undefined;
    }
    const before = schemas.map((schema) => changes.quiet(schema));
    if (before.some((one) => one === undefined || one.changed > to)) return undefined;
    const result = await database.db.executeQuery(query);
    const isSame = before.every((one, n) => one?.mark === changes.quiet(schemas[n] as string)?.mark);
    return isSame ? { result, from: to, to } : undefined;
  }

  /** The rows together with their checkpoints. @param shown which they show at least */
  async function readTogether(
    query: CompiledQuery,
    schemas: readonly string[],
    shown: (schema: string) => Position,
  ): Promise<Seen> {
    const [rows, checkpoints] = await database.atOneMoment([query, checkpointsOf(schemas)]);
    const models = new Map((checkpoints as Checkpoint[]).map((one) => [one.schema, one]));
    const upTo = schemas.map((schema) => {
      const { position: stored = 0, changed = 0 } = models.get(schema) ?? {};
      // Without a change since, rows show more than their checkpoint, which is stored from time to time.
      return changed <= shown(schema) ? Math.max(stored, shown(schema)) : stored;
    });
    return { result: { rows: rows as unknown[] }, from: lastOf([...models.values()]), to: Math.min(...upTo) };
  }

  async function choose(query: CompiledQuery, schemas: readonly string[], used: readonly Projection[]) {
    await positions.reachSchemas(schemas, at);
    const known = new Map(schemas.map((schema) => [schema, positions.shown(schema)]));
    const shown = Math.min(...known.values());
    const seen =
      (await readLive(query, schemas, shown)) ??
      (await readTogether(query, schemas, (schema) => known.get(schema) ?? 0));
    position = seen.to;
    if (seen.from <= seen.to) return seen.result;
    if (waits) return readPast(query, used, position);
    // What stands there now, and not what stood at the position of the read model that is furthest behind.
    isExact = false;
    return seen.result;
  }

  async function readAt(query: CompiledQuery, schemas: readonly string[], used: readonly Projection[], then: Position) {
    // A caller that does not wait for the head does not wait for other read models either.
    if (!waits && shownBy(schemas) < then) return readLater(query, shownBy(schemas));
    await positions.reachSchemas(schemas, { position: then });
    return (await readLive(query, schemas, then))?.result ?? readPast(query, used, then);
  }

  async function readPast(query: CompiledQuery, used: readonly Projection[], then: Position) {
    const { statement, hasGaps } = toPast(query, used);
    if (hasGaps) throw new NeedsPast(then, () => later(then));
    try {
      return await past(then)(statement, used);
    } catch (error) {
      if (!(error instanceof AppError && error.extras.code === HISTORY_NOT_KEPT)) throw error;
      return readLater(query, then);
    }
  }

  /** The rows as they are, which may be of positions later than `then`. */
  async function readLater(query: CompiledQuery, then: Position) {
    const result = await database.db.executeQuery(query);
    later(then);
    return result;
  }

  function later(then: Position): void {
    position = Math.min(position ?? then, then);
    isExact = false;
  }

  async function runOnce(query: CompiledQuery, used: readonly Projection[]): Promise<QueryResult<unknown>> {
    const schemas = used.map(schemaOf);
    if (first) await first.catch(() => undefined);
    if (position !== undefined) return readAt(query, schemas, used, position);
    first = choose(query, schemas, used);
    return first;
  }

  return {
    async run(query, used) {
      if (used.length === 0) return database.db.executeQuery(query);
      for (;;) {
        const { losses } = database;
        const result = await runOnce(query, used);
        // Otherwise rows that it waited for may have been lost since.
        if (losses === database.losses) return result;
      }
    },
    get position() {
      return position;
    },
    get isExact() {
      return isExact;
    },
  };
}

/** Replaces the schemas of live tables by those of the views of the past. */
class ToPast extends OperationNodeTransformer {
  readonly #live: ReadonlyMap<string, Projection>;
  /** Whether the statement reads a table that has gaps. */
  hasGaps = false;
  constructor(live: readonly Projection[]) {
    super();
    this.#live = new Map(live.map((one) => [schemaOf(one), one]));
  }
  protected override transformSchemableIdentifier(node: SchemableIdentifierNode): SchemableIdentifierNode {
    const name = node.schema?.name ?? '';
    const projection = this.#live.get(name);
    if (!projection) return node;
    this.hasGaps ||= projection.tables.some((table) => table.name === node.identifier.name && table.hasGaps === true);
    return { ...node, schema: IdentifierNode.create(pastOf(name)) };
  }
}

const compiler = new PostgresQueryCompiler();

/** The same statement on the views of the past. */
function toPast({ query, queryId }: CompiledQuery, used: readonly Projection[]) {
  const transformer = new ToPast(used);
  const statement = compiler.compileQuery(transformer.transformNode(query), queryId);
  return { statement, hasGaps: transformer.hasGaps };
}
