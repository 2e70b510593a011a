/**
 * Who waits for what (docs/adr/0025-reads-wait.md): a write for its append alone, a read until the read models that it
 * uses have reached the head of the log.
 *
 * What this process knows of read models: which position each has reached (its own followers report that at once, those
 * of other processes by notification and polling), and the last event that concerns each. A read model that has reached
 * that event shows everything that the reader of this process has seen, however old its checkpoint is.
 */
import { type Projection, schemaOf } from '../../projections/projection.ts';
import { READ_MODEL_BEHIND, unavailable } from '../../shared/errors.ts';
import type { LoggedEvent, Position } from '../../shared/ports/event-log.ts';
import type { ReadAt, ReadModels } from '../../shared/ports/read-models.ts';
import { askedSince, createOutage, pause } from '../../shared/waiting.ts';
import type { Database } from '../database/database.ts';
import type { Logger } from '../logging.ts';

export interface PositionsOptions {
  readonly database: Pick<Database, 'pool' | 'listener' | 'onLoss'>;
  readonly projections: readonly Projection[];
  readonly log: Logger;
  /** How long a read waits for its read models, milliseconds. */
  readonly visibleTimeoutMs: number;
  /** The head of the log as of `since` (`performance.now()`) or later; by default, the database is asked. */
  readonly head?: ((since: number) => Position | Promise<Position>) | undefined;
}

/** What the database says of read models and credentials, in one statement. */
export interface Asked {
  /** By schema: the position that it has reached, and a value that changes whenever its rows do. */
  readonly checkpoints: ReadonlyMap<string, { readonly reached: Position; readonly changed: string }>;
  /** Changes whenever a credential does. */
  readonly credentials: string;
  /** Position of the last acknowledged event that changes what one stands for. */
  readonly credentialsAt: Position;
  /** Of the log, if it is in this database. */
  readonly head: Position;
  /** `Positions.losses` when it was said. */
  readonly losses: number;
}

/**
 * Prepared, because planning it takes the server as long as running it. The plan cannot become a bad one: the tables are
 * small, and read as a whole. One object, because a row for each read model costs more to take apart.
 */
const ASK = {
  name: 'checkpoints',
  text: `SELECT (SELECT json_object_agg(schema_name, position || ' ' || generation || '.' || changed) FROM service.checkpoints)
        AS checkpoints,
      version::text AS credentials, position AS "credentialsAt", (SELECT position FROM log.head) AS head
    FROM credentials.version`,
};

interface Waiter {
  readonly target: Position;
  arrived(): void;
}

export class Positions implements ReadModels {
  readonly #options: PositionsOptions;
  readonly #closing = new AbortController();
  readonly #reached = new Map<string, Position>();
  /** Position of the last event that concerns a read model, among those that the reader of this process has handed out. */
  readonly #concerned = new Map<string, Position>();
  /** Where that reader began: read models that no later event concerns have to have reached this. */
  #base: Position = 0;
  /** How far that reader is; undefined: this process has none. */
  #level: Position | undefined;
  readonly #waiters = new Map<string, Set<Waiter>>();
  readonly #listening = new Map<string, readonly Projection[]>();
  readonly #lossListeners = new Set<() => void>();
  /** How often the database has lost rows. */
  #losses = 0;
  /** Writes the rows that gather. */
  #hurry = () => {};
  #watching: Promise<void> | undefined;
  readonly #ask: (since?: number) => Promise<Asked> | Asked;

  constructor(options: PositionsOptions) {
    this.#options = options;
    this.#ask = askedSince(() => this.#askDatabase());
    options.database.onLoss(() => this.#lost());
  }

  /** Position that a read model shows, as far as this process knows. @param reached what it is known to have reached */
  shown(schema: string, reached = this.#reached.get(schema) ?? 0): Position {
    const concerned = this.#concerned.get(schema) ?? this.#base;
    return this.#level !== undefined && reached >= concerned ? Math.max(reached, this.#level) : reached;
  }

  /** Records what a read model has reached. Lower positions are old news. */
  advance(schema: string, position: Position): void {
    if (position <= (this.#reached.get(schema) ?? 0)) return;
    this.#reached.set(schema, position);
    this.#notify(schema);
  }

  /** Records what the reader of this process has handed out, and up to where that is. */
  saw(position: Position, events: readonly LoggedEvent[]): void {
    if (this.#level === undefined) this.#base = position;
    else if (position < this.#level) {
      // Another log, such as one restored from a backup.
      this.#reached.clear();
      this.#concerned.clear();
      this.#base = position;
    }
    for (const event of events) {
      for (const projection of this.#listenersTo(event.type)) {
        if (projection.wants?.(event) === false) continue;
        const schema = schemaOf(projection);
        this.advance(schema, this.shown(schema));
        this.#concerned.set(schema, event.position);
      }
    }
    this.#level = position;
    for (const schema of this.#waiters.keys()) this.#notify(schema);
  }

  #listenersTo(type: string): readonly Projection[] {
    let projections = this.#listening.get(type);
    if (!projections) {
      projections = this.#options.projections.filter(({ handles }) => handles.has(type));
      this.#listening.set(type, projections);
    }
    return projections;
  }

  #notify(schema: string): void {
    const waiters = this.#waiters.get(schema);
    if (!waiters) return;
    const shown = this.shown(schema);
    for (const waiter of waiters) {
      if (waiter.target > shown) continue;
      waiters.delete(waiter);
      waiter.arrived();
    }
    if (waiters.size === 0) this.#waiters.delete(schema);
  }

  /** Whether a read waits. */
  isAwaited(): boolean {
    return this.#waiters.size > 0;
  }

  /** @param hurry is called when a read begins to wait */
  onWait(hurry: () => void): void {
    this.#hurry = hurry;
  }

  /**
   * Resolves when these read models show `at`, without a promise when they do. @returns the position that they show
   *
   * @throws AppError 503 `READ_MODEL_BEHIND`
   */
  reachSchemas(schemas: readonly string[], at: ReadAt): Position | Promise<Position> {
    const target = this.#targetOf(at);
    if (target === undefined) return Math.min(...schemas.map((schema) => this.shown(schema)));
    return typeof target === 'number' ? this.#reach(schemas, target) : target.then((one) => this.#reach(schemas, one));
  }

  /** The same without waiting; undefined when there is something to wait for. */
  showNow(schemas: readonly string[], at: ReadAt): Position | undefined {
    const shown = Math.min(...schemas.map((schema) => this.shown(schema)));
    const target = this.#targetOf(at) ?? shown;
    return typeof target === 'number' && shown >= target ? target : undefined;
  }

  async reach(eventTypes: readonly string[], at: ReadAt): Promise<void> {
    await this.reachSchemas([...new Set(eventTypes.flatMap((type) => this.#listenersTo(type)).map(schemaOf))], at);
  }

  /** The position that a read has to show; undefined: any. */
  #targetOf({ since, position = 0 }: ReadAt): Position | Promise<Position> | undefined {
    if (since === undefined) return position > 0 ? position : undefined;
    const head = this.#head(since);
    return typeof head === 'number' ? Math.max(head, position) : head.then((one) => Math.max(one, position));
  }

  async has(position: Position): Promise<boolean> {
    return position <= (this.#level ?? 0) || position <= (await this.#head(performance.now()));
  }

  #head(since: number): Position | Promise<Position> {
    if (this.#options.head) return this.#options.head(since);
    const asked = this.#ask(since);
    return asked instanceof Promise ? asked.then(({ head }) => head) : asked.head;
  }

  #reach(schemas: readonly string[], target: Position): Position | Promise<Position> {
    const behind = [...new Set(schemas)].filter((schema) => this.shown(schema) < target);
    return behind.length === 0 ? target : this.#wait(behind, target);
  }

  /** One promise for all read models, because this is where requests wait. */
  #wait(schemas: readonly string[], target: Position): Promise<Position> {
    return new Promise((resolve, reject) => {
      let left = schemas.length;
      const arrived = () => {
        left--;
        if (left > 0) return;
        clearTimeout(timer);
        resolve(target);
      };
      const giveUp = () => {
        clearTimeout(timer);
        for (const schema of schemas) {
          const waiters = this.#waiters.get(schema);
          if (waiters?.delete(waiter) && waiters.size === 0) this.#waiters.delete(schema);
        }
        reject(this.#late(schemas, target));
      };
      const waiter: Waiter = { target, arrived };
      const timer = setTimeout(giveUp, this.#options.visibleTimeoutMs);
      for (const schema of schemas) {
        const waiters = this.#waiters.get(schema);
        if (waiters) waiters.add(waiter);
        else this.#waiters.set(schema, new Set([waiter]));
      }
      this.#hurry();
    });
  }

  #late(schemas: readonly string[], target: Position): Error {
    const late = schemas.map((schema) => [schema, this.shown(schema)] as const).filter(([, shown]) => shown < target);
    const all = late.map(([schema, shown]) => `${schema} (position ${shown})`).join(', ');
    return unavailable(
      `The read would show position ${target} of the log, which these read models have not reached in time: ${all}. Try again later, or send X-Signalbox-Consistency: eventual to get what is there; \`signalbox status\` shows what holds them up.`,
      {
        code: READ_MODEL_BEHIND,
        headers: { 'Retry-After': '1' },
        body: { position: target, reached: Math.min(...late.map(([, shown]) => shown)) },
      },
    );
  }

  /** What the database says, when asked after `since` (`performance.now()`; by default: now). */
  async ask(since?: number): Promise<Asked> {
    const asked = await this.#ask(since);
    return asked.losses === this.losses ? asked : this.ask();
  }

  async #askDatabase(): Promise<Asked> {
    for (;;) {
      const { losses } = this;
      const { rows } = await this.#options.database.pool.query(ASK);
      if (losses !== this.losses) continue;
      const { checkpoints: said, ...row } = rows[0] as Omit<Asked, 'checkpoints' | 'losses'> & {
        /** Null when there are none. */
        readonly checkpoints: Readonly<Record<string, string>> | null;
      };
      const checkpoints = new Map<string, { reached: Position; changed: string }>();
      for (const [schema, text] of Object.entries(said ?? {})) {
        const space = text.indexOf(' ');
        const reached = Number(text.slice(0, space));
        checkpoints.set(schema, { reached, changed: text.slice(space + 1) });
        this.advance(schema, reached);
      }
      return { ...row, checkpoints, losses };
    }
  }

  /** How often the database has lost rows: what was known before the last time is void. */
  get losses(): number {
    return this.#losses;
  }

  /** @param listener is called when the database has lost rows, with their checkpoints: followers have to begin again */
  onLoss(listener: () => void): () => void {
    this.#lossListeners.add(listener);
    return () => this.#lossListeners.delete(listener);
  }

  #lost(): void {
    this.#losses++;
    this.#reached.clear();
    for (const listener of this.#lossListeners) listener();
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
        const [schema, position] = payload.split(':');
        if (schema && position) this.advance(schema, Number(position));
      },
    });
    while (!signal.aborted) {
      await this.ask().then(reading.worked, reading.failed);
      await pause(this.isAwaited() ? 25 : 250, signal);
    }
    stopListening?.();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#watching;
  }
}
