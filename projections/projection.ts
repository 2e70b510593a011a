/**
 * A projection consists of tables, the events that it listens to, and a pure function from an event to changes of
 * single rows. The projector (`infra/read-models`) collects the changes of a batch, loads the affected rows, applies
 * the changes in order and writes everything, including the checkpoint, with one set-based statement.
 *
 * Every row has `position`, the position of the event that last changed it. It makes changes idempotent: an event that
 * is not newer than the row is skipped.
 *
 * In code that builds rows for most events, added properties come before a spread, as in `{ count, ...key }`: `{
 * ...key, count }` takes Node 20 about 5 µs instead of 0.3, because each such object gets a hidden class of its own,
 * which then slows down every reader. Overriding an existing property costs nothing extra.
 */
import type { DomainEvent, EventDefinition } from '../shared/events/define.ts';
import { seconds } from '../shared/time.ts';

/**
 * PostgreSQL types that read models use; a trailing `?` allows null. `int` has four bytes: it is for flags and for
 * numbers that the contract bounds. Ids, times and counts from requests are `bigint`.
 */
export type ColumnType =
  | 'int'
  | 'bigint'
  | 'text'
  | 'boolean'
  | 'jsonb'
  | 'double'
  | 'int?'
  | 'bigint?'
  | 'text?'
  | 'jsonb?'
  | 'double?';

/** A column with a more exact type than its PostgreSQL type. `is` exists only as a type. */
export type ColumnOf<V> = ColumnType & { readonly is: V };

type ValueOf<T extends ColumnType> = T extends { readonly is: infer V } ? V : PlainValueOf<T>;

type PlainValueOf<T extends ColumnType> = T extends 'int' | 'bigint' | 'double'
  ? number
  : T extends 'int?' | 'bigint?' | 'double?'
    ? number | null
    : T extends 'text'
      ? string
      : T extends 'text?'
        ? string | null
        : T extends 'boolean'
          ? boolean
          : T extends 'jsonb'
            ? Readonly<Record<string, unknown>> | readonly unknown[]
            : Readonly<Record<string, unknown>> | readonly unknown[] | null;

export type Columns = Readonly<Record<string, ColumnType>>;
/** A row as written by projections; the projector adds `position`. */
export type RowOf<C extends Columns> = { readonly [K in keyof C]: ValueOf<C[K]> };
export type StoredRow<Row> = Row & { readonly position: number };

/**
 * The agents of a row's workspace whose inboxes a change of the row may change: by name, by id, or by their names in a text.
 * `all`: every agent.
 */
export type Concerned =
  | 'all'
  | {
      readonly names?: readonly (string | null)[];
      readonly ids?: readonly (number | null)[];
      readonly mentionedIn?: string;
    };

// biome-ignore lint/suspicious/noExplicitAny: a row of any table; `defineTable`, `change` and `insert` keep each one typed.
type AnyRow = any;

export interface Table<C extends Columns = Columns, N extends string = string> {
  readonly name: N;
  readonly columns: C;
  /** Primary key; if the table is scoped by workspace, the workspace comes first. */
  readonly key: readonly string[];
  /**
   * Each entry is the part inside `CREATE INDEX … ON t (…)`, optionally followed by clauses such as `INCLUDE (…)`.
   *
   * Columns that grow with time ascend, also where lists begin with the newest: PostgreSQL reads an index from either end,
   * but fills its pages only if new entries come last. In descending order they take 57 bytes instead of 32.
   */
  readonly indexes: readonly string[];
  /** Texts that are searched for substrings (`LIKE '%…%'`): each gets a trigram index. */
  readonly searched: readonly string[];
  /** Percent of a page that new rows fill. The rest is for new versions of its rows. */
  readonly fillFactor: number;
  /**
   * The column with the time of the event that created the row, Unix seconds. Lists that are ordered by it then begin at
   * the moment that is asked for, where they would read all newer rows first.
   */
  readonly createdAt?: string;
  /** The table has a column `bytes` as well: the size of a row's texts and JSON as JSON, for pages that end by size. */
  readonly sized?: true;
  /**
   * The agents that a row concerns. A change concerns those of the row as it was and as it is. Of tables without it,
   * nothing that is cached for an agent may be built (`Freshness.stampFor`).
   *
   * @param other the row on the other side of the change; undefined: there is none
   */
  readonly concerns?: (row: AnyRow, other: AnyRow | undefined) => Concerned;
  /** Some changes are `unversioned`, so queries of the past need statements of their own (`inPastToo` in `queries/reads.ts`). */
  readonly hasGaps?: true;
  /** Its open buckets have no versions, and views of the past count the rows of another table instead. */
  readonly counted?: CountedRows;
}

/**
 * How the views of the past derive the rows of open buckets (`open-hours.ts`): each counts rows of another table of the
 * read model. A row of the live table says which row there may be; it is never deleted.
 */
export interface CountedRows {
  /** The counted table. */
  readonly of: string;
  /**
   * SQL: where the bucket of row `b` starts if it is the open one, from `open_hour` (Unix ms). NULL: its unit has
   * versions.
   */
  readonly open: string;
  /** SQL: whether row `b` counts row `r` of the counted table. Their workspaces agree. */
  readonly where: string;
}

/** The row type of a table, as queries read it. */
// biome-ignore lint/suspicious/noExplicitAny: any table; its columns are inferred.
export type Row<T extends Table<any>> = T extends Table<infer C> ? StoredRow<RowOf<C>> : never;

export function defineTable<const N extends string, const C extends Columns>(
  name: N,
  columns: C,
  options: {
    readonly key: readonly (keyof C & string)[];
    readonly indexes?: readonly string[];
    readonly searched?: readonly (keyof C & string)[];
    readonly fillFactor?: number;
    readonly createdAt?: keyof C & string;
    readonly sized?: true;
    readonly concerns?: (row: RowOf<C>, other: RowOf<C> | undefined) => Concerned;
    readonly hasGaps?: true;
    readonly counted?: CountedRows;
  },
): Table<C, N> {
  const { key, indexes = [], searched = [], fillFactor = 100, createdAt, sized, concerns, hasGaps, counted } = options;
  return {
    name,
    columns,
    key,
    indexes,
    searched,
    fillFactor,
    ...(createdAt && { createdAt }),
    ...(sized && { sized }),
    ...(concerns && { concerns }),
    ...(hasGaps && { hasGaps }),
    ...(counted && { counted }),
  };
}

/**
 * A change of a single row. The changes of an event are applied in order, so one may depend on the result of an earlier
 * one: see `observed`.
 */
export interface Change {
  readonly table: Table;
  readonly key: Readonly<Record<string, string | number>>;
  /** True for rows that cannot exist yet, so they need not be loaded. */
  readonly fresh: boolean;
  /** True for a change that keeps the row's position, and so its place in lists: it only removes information. */
  readonly inPlace?: boolean;
  /**
   * Whether the row that the change replaces gets no version, because reads of the past never use it (`unversioned`).
   * Called after the earlier changes of the event were applied.
   */
  readonly isUnversioned?: (row: AnyRow) => boolean;
  /** Returns the new row, or undefined to delete it. Receives undefined if there is no row. */
  readonly apply: (row: AnyRow) => AnyRow;
}

type KeyOf<C extends Columns> = { readonly [K in keyof RowOf<C>]?: RowOf<C>[K] };

/** Changes, creates or deletes the row with this key. Returning the same row leaves it unchanged. */
export function change<C extends Columns>(
  table: Table<C>,
  key: KeyOf<C>,
  apply: (row: RowOf<C> | undefined) => RowOf<C> | undefined,
): Change {
  return { table: table as Table, key: key as Change['key'], fresh: false, apply };
}

/** A row before and after its change, once that has been applied; both undefined if the row was already up to date. */
export type Turn<C extends Columns> = () => {
  readonly before?: RowOf<C> | undefined;
  readonly now?: RowOf<C> | undefined;
};

/**
 * Like `change`, for changes on which others depend, such as those of stored sums: the dependent changes come later in
 * the event's list, and call `turn` for the result. One event changes a row of sums once, however many rows it sums up.
 */
export function observed<C extends Columns>(
  table: Table<C>,
  key: KeyOf<C>,
  apply: (row: RowOf<C> | undefined) => RowOf<C> | undefined,
): { readonly change: Change; readonly turn: Turn<C> } {
  let found: ReturnType<Turn<C>> = {};
  return {
    change: change(table, key, (before) => {
      const now = apply(before);
      found = { before, now };
      return now;
    }),
    turn: () => found,
  };
}

/** Changes the row with this key if it exists. */
export function update<C extends Columns>(
  table: Table<C>,
  key: KeyOf<C>,
  apply: (row: RowOf<C>) => RowOf<C> | undefined,
) {
  return change(table, key, (row) => (row ? apply(row) : undefined));
}

/** Sets columns of the row with this key if it exists, and its `updated_at` to the time of the event. */
export const set = <C extends Columns>(
  table: Table<C>,
  key: KeyOf<C>,
  meta: { readonly at: number },
  columns: NoInfer<Partial<RowOf<C>> | ((row: RowOf<C>) => Partial<RowOf<C>>)>,
): Change =>
  update(table, key, (row) =>
    Object.assign({}, row, typeof columns === 'function' ? columns(row) : columns, { updated_at: seconds(meta.at) }),
  );

/** Like `update`, but the row keeps its position. Applying such a change again must change nothing. */
export const updateInPlace: typeof update = (table, key, apply) => ({ ...update(table, key, apply), inPlace: true });

/**
 * The change without a version of the row that it replaces, where `isUnversioned` says so: for sums that reads of the past
 * derive from other rows. The views of the past do that if the table says how it is `counted`; otherwise they lack the row
 * before the change, and the table `hasGaps`.
 */
export const unversioned = <Row>(of: Change, isUnversioned: (row: Row) => boolean): Change => {
  // Not a spread to which a property is added, which is slow: a token report makes some 20 of these.
  const { table, key, fresh, inPlace = false, apply } = of;
  return { table, key, fresh, inPlace, isUnversioned, apply };
};

/** Deletes the row with this key. */
export const remove = <C extends Columns>(table: Table<C>, key: KeyOf<C>): Change =>
  change(table, key, () => undefined);

/** Adds a row whose key no earlier event can have used. */
export function insert<C extends Columns>(table: Table<C>, row: RowOf<C>): Change {
  // A loop, because this happens for nearly every event: `Object.fromEntries` takes twice as long.
  const key: Record<string, unknown> = {};
  for (const column of table.key) key[column] = row[column];
  return { table: table as Table, key: key as Change['key'], fresh: true, apply: () => row };
}

/** Adds to, or subtracts from, the column `count` of the row with this key. */
export function tally<C extends Columns & { readonly count: 'bigint' }>(
  table: Table<C>,
  key: Omit<RowOf<C>, 'count'>,
  by = 1,
): Change {
  const first = { count: by, ...key } as RowOf<C>;
  return change(table, key as KeyOf<C>, (row) => (row ? { ...row, count: row.count + by } : first));
}

// biome-ignore lint/suspicious/noExplicitAny: any table; its columns are inferred where it is used.
type AnyTable = Table<any>;

/** `T`: the tables, from which queries derive their column types. */
export interface Projection<T extends AnyTable = Table> {
  /** Lower-case words joined by `_`; the schema of its tables is `<name>_v<version>`. */
  readonly name: string;
  /**
   * Raise this whenever the same events would give different rows; the new tables are then built next to the old ones.
   */
  readonly version: number;
  readonly tables: readonly T[];
  readonly handles: ReadonlySet<string>;
  /**
   * For events that change many rows: their weight in ordinary events, so that a batch stays small enough for one
   * statement.
   */
  readonly weigh?: (event: Pick<DomainEvent, 'type' | 'data'>) => number;
  /**
   * Skips events of its types that change no row, if that is visible in the event as stored: the read model does not
   * receive them, and no read waits for them.
   */
  readonly wants?: (event: Pick<DomainEvent, 'type' | 'data'>) => boolean;
  project(event: DomainEvent): readonly Change[];
}

/** One `on(definition, handler)` per event type. */
export interface Handler {
  readonly type: string;
  // biome-ignore lint/suspicious/noExplicitAny: `on` ties the handler to its definition's data.
  readonly handle: (event: any) => readonly Change[];
}

export function on<Type extends string, Data>(
  definition: EventDefinition<Type, Data>,
  handle: (event: DomainEvent<Type, Data>) => readonly Change[],
): Handler {
  return { type: definition.type, handle };
}

export function defineProjection<const T extends AnyTable>(definition: {
  readonly name: string;
  readonly version: number;
  readonly tables: readonly T[];
  readonly handlers: readonly Handler[];
  readonly weigh?: Projection['weigh'];
  readonly wants?: Projection['wants'];
}): Projection<T> {
  const handlers = new Map(definition.handlers.map((handler) => [handler.type, handler.handle]));
  if (handlers.size !== definition.handlers.length)
    throw new Error(`${definition.name}: two handlers for one event type`);
  return {
    name: definition.name,
    version: definition.version,
    tables: definition.tables,
    handles: new Set(handlers.keys()),
    ...(definition.weigh && { weigh: definition.weigh }),
    ...(definition.wants && { wants: definition.wants }),
    project: (event) => handlers.get(event.type)?.(event) ?? [],
  };
}

/** The schema that holds a projection's live tables. */
export const schemaOf = (projection: Pick<Projection, 'name' | 'version'>): string =>
  `${projection.name}_v${projection.version}`;

/** The schema of the versions of a read model's rows (`infra/read-models/history.ts`). @param schema of the tables */
export const historyOf = (schema: string): string => `${schema}_history`;
