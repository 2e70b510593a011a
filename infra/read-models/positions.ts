/**
 * Waiting for read models (docs/adr/0025-reads-wait.md): a write waits only for its append, a read until the read
 * models that it uses have reached the head of the log.
 *
 * A process knows the position of each read model: its own followers report it at once, those of other processes by
 * notification and polling. It also knows the last event that concerns each. A read model that has reached that event
 * shows everything that the reader of this process has handed out, however old its checkpoint is.
 */
import { leasesProjection } from '../../projections/agents/leases.ts';
import { type Projection, schemaOf } from '../../projections/projection.ts';
import { READ_MODEL_BEHIND, unavailable } from '../../shared/errors.ts';
import type { LoggedEvent, Position } from '../../shared/ports/event-log.ts';
import type {
  ConcernedAgent,
  Freshness,
  ReadAt,
  ReadModels,
  Sources,
  Stamp,
  StampFor,
} from '../../shared/ports/read-models.ts';
import { askedSince, createOutage, pause, settledWithin } from '../../shared/waiting.ts';
import type { Database } from '../database/database.ts';
import type { Logger } from '../logging.ts';
import type { ChangeTracker } from './change-tracker.ts';

export interface PositionsOptions {
  readonly database: Pick<Database, 'pool' | 'listener' | 'losses' | 'onLoss'>;
  readonly projections: readonly Projection[];
  readonly log: Logger;
  /** How long a read waits for its read models, milliseconds. */
  readonly visibleTimeoutMs: number;
  /** The head of the log as of `since` (`performance.now()`) or later; default: the database is queried. */
  readonly head?: ((since: number) => Position | Promise<Position>) | undefined;
  /** Changes of rows and credentials, in a process that makes all of them; default: the database is queried. */
  readonly own?: OwnChanges | undefined;
}

/** What a process knows that makes all changes. */
export interface OwnChanges extends Pick<Said, 'leases'> {
  readonly changes: Pick<ChangeTracker, 'last' | 'concerns' | 'resets'>;
  credentials(): number;
}

/** The database's state of read models and credentials. */
interface Said {
  /** The minimum position that the rows of a read model showed at that time. */
  shown(schema: string): Position;
  /** Changes whenever rows of a read model do. */
  changed(schema: string, workspace: number | 'all'): string;
  /** Changes whenever a lease of an agent is renewed. */
  leases(workspace: number | 'all'): number;
  /** Changes whenever a credential does. */
  readonly credentials: string;
  /** Position of the last acknowledged event that changes what a credential stands for. */
  readonly credentialsAt: Position;
  /** Head of the log, if the log is in this database. */
  readonly head: Position;
}

/**
 * Prepared, because planning it takes the server as long as running it. The plan cannot become a bad one: the tables
 * are small, and are read completely. The result is one object, because parsing a row for each read model costs more.
 */
const ASK = {
  name: 'checkpoints',
  text: `SELECT (SELECT json_object_agg(schema_name, position || ' ' || generation || '.' || changed) FROM service.checkpoints)
        AS checkpoints,
      (SELECT sum(moves)::bigint FROM service.lease_moves) AS leases, version::text AS credentials, position AS "credentialsAt", (SELECT position FROM log.head) AS head
    FROM credentials.version`,
};
const LEASES = schemaOf(leasesProjection);
const UNKNOWN = Number.POSITIVE_INFINITY;
/** How long a command waits for the reader before it reads a stream itself, milliseconds: notifications take less. */
const SEEN_MS = 25;

/** The state of a read model as this process knows it. */
interface Model {
  readonly schema: string;
  readonly projection: Projection;
  reached: Position;
  /** The last event that concerns it, or the position where the reader began. */
  concerned: Position;
}

export class Positions implements ReadModels, Freshness {
  readonly #options: PositionsOptions;
  /** By schema. */
  readonly #models: ReadonlyMap<string, Model>;
  /** By name of the projection. */
  readonly #schemas: ReadonlyMap<string, string>;
  readonly #tables = new WeakMap<Sources['tables'], { readonly names: string[]; readonly schemas: string[] }>();
  readonly #listening = new Map<string, readonly Model[]>();
  /** Position of the reader of this process; undefined if it has none. */
  #level: Position | undefined;
  /** The condition of each wait, and the function that ends it. */
  readonly #waits = new Map<() => boolean, () => void>();
  /** Writes the gathered rows. */
  #hurry = () => {};
  readonly #head: (since: number) => Position | Promise<Position>;
  #ask: (since?: number) => Promise<Said> | Said;
  readonly #closing = new AbortController();
  #watching: Promise<void> | undefined;

  constructor(options: PositionsOptions) {
    this.#options = options;
    const models = options.projections.map(
      (projection): Model => ({ schema: schemaOf(projection), projection, reached: 0, concerned: UNKNOWN }),
    );
    this.#models = new Map(models.map((model) => [model.schema, model]));
    this.#schemas = new Map(models.map(({ projection, schema }) => [projection.name, schema]));
    for (const model of models)
      for (const type of model.projection.handles)
        this.#listening.set(type, [...(this.#listening.get(type) ?? []), model]);
    this.#head = options.head ?? (async (since) => (await this.#ask(since)).head);
    const asking = () => askedSince(() => this.#askDatabase());
    this.#ask = asking();
    options.database.onLoss(() => {
      this.#ask = asking();
      this.#forget();
    });
  }

  /** Position that a read model shows, as far as this process knows. @param reached its last known position */
  shown(schema: string, reached = this.#models.get(schema)?.reached ?? 0): Position {
    const { concerned = UNKNOWN } = this.#models.get(schema) ?? {};
    return reached >= concerned ? Math.max(reached, this.#level ?? 0) : reached;
  }

  /** Records the position that a read model has reached. Lower positions are ignored. */
  advance(schema: string, position: Position): void {
    const model = this.#models.get(schema);
    if (!model || position <= model.reached) return;
    model.reached = position;
    this.#release();
  }

  /** Records the events that the reader of this process has handed out, and their last position. */
  saw(position: Position, events: readonly LoggedEvent[]): void {
    const isOther = this.#level !== undefined && position < this.#level;
    // Another log, such as one restored from a backup.
    if (isOther) this.#forget();
    if (isOther || this.#level === undefined) for (const model of this.#models.values()) model.concerned = position;
    for (const event of events) {
      for (const model of this.#listening.get(event.type) ?? []) {
        if (model.projection.wants?.(event) === false) continue;
        model.reached = this.shown(model.schema);
        model.concerned = event.position;
      }
    }
    this.#level = position;
    this.#release();
  }

  #forget(): void {
    for (const model of this.#models.values()) model.reached = 0;
  }

  /** Ends the waits whose condition is met. */
  #release(): void {
    for (const [isOver, end] of this.#waits) {
      if (!isOver()) continue;
      this.#waits.delete(isOver);
      end();
    }
  }

  /** Whether a read waits. */
  isAwaited(): boolean {
    return this.#waits.size > 0;
  }

  /** @param hurry called when a read begins to wait */
  onWait(hurry: () => void): void {
    this.#hurry = hurry;
  }

  async reach(eventTypes: readonly string[], at: ReadAt): Promise<void> {
    const listeners = eventTypes.flatMap((type) => this.#listening.get(type) ?? []);
    await this.reachSchemas([...new Set(listeners.map(({ schema }) => schema))], at);
  }

  /**
   * Resolves when these read models show `at`. @returns the position that they show
   *
   * @throws AppError 503 `READ_MODEL_BEHIND`
   */
  async reachSchemas(schemas: readonly string[], { since, position = 0 }: ReadAt): Promise<Position> {
    const target = since === undefined ? position : Math.max(position, await this.#head(since));
    const shown = () => Math.min(...schemas.map((schema) => this.shown(schema)));
    if (shown() < target) await this.#wait(schemas, shown, target);
    return target > 0 ? target : shown();
  }

  async has(position: Position): Promise<boolean> {
    return position <= (this.#level ?? 0) || position <= (await this.#head(performance.now()));
  }

  /**
   * Whether the reader of this process has handed out what was in the log at `since` (`performance.now()`). Waits for it
   * for a moment.
   */
  seen(since: number): Promise<boolean> | boolean {
    if (this.#level === undefined) return false;
    const head = this.#head(since);
    if (typeof head !== 'number') return head.then((end) => this.#sawUpTo(end));
    return this.#sawUpTo(head);
  }

  #sawUpTo(position: Position): Promise<boolean> | boolean {
    const isOver = () => (this.#level ?? 0) >= position;
    return isOver() || this.#until(isOver, SEEN_MS);
  }

  /** Waits for a condition. @returns whether it was met in time */
  async #until(isOver: () => boolean, ms: number): Promise<boolean> {
    const waiting = new Promise<void>((end) => this.#waits.set(isOver, end));
    if (await settledWithin(ms, waiting)) return true;
    this.#waits.delete(isOver);
    return false;
  }

  async #wait(schemas: readonly string[], shown: () => Position, target: Position): Promise<void> {
    const until = this.#until(() => shown() >= target, this.#options.visibleTimeoutMs);
    this.#hurry();
    if (await until) return;
    const late = schemas.filter((schema) => this.shown(schema) < target);
    const all = late.map((schema) => `${schema} (position ${this.shown(schema)})`).join(', ');
    throw unavailable(
      `The read would show position ${target} of the log, which these read models have not reached in time: ${all}. Try again later, or send X-Signalbox-Consistency: eventual to get what is there; \`signalbox status\` shows what holds them up.`,
      { code: READ_MODEL_BEHIND, headers: { 'Retry-After': '1' }, body: { position: target, reached: shown() } },
    );
  }

  async stamp(names: readonly string[], workspace: number | 'all', at: ReadAt): Promise<Stamp> {
    const { own, database } = this.#options;
    // The cached state of a database that has lost rows since is never current again.
    const { losses } = database;
    const schemas = names.map((name) => this.#schemaOf(name));
    const said = own
      ? { changed: own.changes.last, leases: own.leases }
      : this.#ask(at.since ?? Number.NEGATIVE_INFINITY);
    const [position, early] = await Promise.all([this.reachSchemas(schemas, at), said]);
    // The database may have responded before its rows showed the position.
    const isOld = 'shown' in early && schemas.some((schema) => early.shown(schema) < position);
    const { changed, leases } = isOld ? await this.#ask() : early;
    const values = schemas.map((schema) =>
      // What the tables of this read model do not show yet is in the leases.
      schema === LEASES ? `${changed(schema, workspace)}+${leases(workspace)}` : changed(schema, workspace),
    );
    return { value: [losses, ...values].join(','), position };
  }

  async stampFor(agent: ConcernedAgent, { tables, models }: Sources, at: ReadAt, earlier?: Stamp): Promise<StampFor> {
    const { own, database } = this.#options;
    if (!own) {
      const stamp = await this.stamp(models, agent.workspace, at);
      return { ...stamp, isCurrent: stamp.value === earlier?.value };
    }
    const { losses } = database;
    const { names, schemas } = this.#tablesOf(tables);
    const position = await this.reachSchemas(schemas, at);
    const { concerns, resets } = own.changes;
    const value = `${losses}.${resets()}`;
    const isCurrent = earlier?.value === value && !concerns.after(earlier.position, names, agent);
    return { value, position, isCurrent };
  }

  /** @throws Error for a table that does not say which agents its rows concern */
  #tablesOf(tables: Sources['tables']) {
    let known = this.#tables.get(tables);
    if (!known) {
      const schemas = new Set<string>();
      const names = tables.map(({ projection, table }) => {
        const schema = this.#schemaOf(projection);
        const found = this.#models.get(schema)?.projection.tables.find(({ name }) => name === table);
        if (!found?.concerns) throw new Error(`the table ${projection}.${table} does not say whom its rows concern`);
        schemas.add(schema);
        return `${schema}.${table}`;
      });
      known = { names, schemas: [...schemas] };
      this.#tables.set(tables, known);
    }
    return known;
  }

  #schemaOf(name: string): string {
    const schema = this.#schemas.get(name);
    if (schema === undefined) throw new Error(`there is no projection ${name}`);
    return schema;
  }

  async credentials(names: readonly string[], since: number): Promise<string> {
    const { own } = this.#options;
    if (own) return `${(await this.stamp(names, 'all', { since })).value} ${own.credentials()}`;
    const { credentials, credentialsAt } = await this.#ask(since);
    return `${(await this.stamp(names, 'all', { position: credentialsAt })).value} ${credentials}`;
  }

  async #askDatabase(): Promise<Said> {
    const { database } = this.#options;
    const { losses } = database;
    const { rows } = await database.pool.query(ASK);
    if (losses !== database.losses) return this.#askDatabase();
    const { checkpoints, leases, ...row } = rows[0] as Pick<Said, 'credentials' | 'credentialsAt' | 'head'> & {
      readonly leases: number;
      /**
       * By schema: the position that it has reached, and a value that changes with its rows. Null if there are none.
       */
      readonly checkpoints: Readonly<Record<string, string>> | null;
    };
    const said = new Map(Object.entries(checkpoints ?? {}).map(([schema, text]) => [schema, text.split(' ')]));
    const reached = (schema: string) => Number(said.get(schema)?.[0] ?? 0);
    for (const schema of this.#models.keys()) this.advance(schema, reached(schema));
    return {
      ...row,
      leases: () => leases,
      shown: (schema) => this.shown(schema, reached(schema)),
      changed: (schema) => said.get(schema)?.[1] ?? '',
    };
  }

  /** Starts tracking the positions of other processes. */
  watch(): void {
    this.#watching ??= this.#watch();
  }

  async #watch(): Promise<void> {
    const { database, log } = this.#options;
    const { signal } = this.#closing;
    const reading = createOutage(
      log,
      'the positions of read models could not be read; trying again',
      'the positions of read models can be read again',
    );
    const stopListening = database.listener?.listen('signalbox_positions', {
      heard: (payload) => {
        for (const reached of payload.split(',')) {
          const [schema, position] = reached.split(':');
          if (schema && position) this.advance(schema, Number(position));
        }
      },
    });
    while (!signal.aborted) {
      await Promise.resolve(this.#ask()).then(reading.worked, reading.failed);
      await pause(this.isAwaited() ? 25 : 250, signal);
    }
    stopListening?.();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#watching;
  }
}
