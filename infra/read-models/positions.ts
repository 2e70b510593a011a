/**
 * The positions of the read models, as known to this process: those of its own followers at once, those of other
 * processes by notification and polling. Commands wait here until what they appended is visible, or have it promised:
 * then reads wait here (docs/adr/0026-reads-wait.md).
 */
import { type Projection, schemaOf } from '../../projections/projection.ts';
import { type AppError, unavailable } from '../../shared/errors.ts';
import type { DomainEvent } from '../../shared/events/define.ts';
import type { LoggedEvent, Position } from '../../shared/ports/event-log.ts';
import type { ReadModels } from '../../shared/ports/read-models.ts';
import { createOutage, pause } from '../../shared/waiting.ts';
import type { Database } from '../database/database.ts';
import type { Logger } from '../logging.ts';
import { type PendingChanges, pendingOf } from './pending.ts';

interface Waiter {
  readonly position: Position;
  resolve(): void;
  /** Called when the read model gets stuck. */
  stuck(): void;
}

/** A read model, and a position that it has yet to reach. */
type Target = readonly [schema: string, position: Position];

/** Schemas of read models as statements name them. */
const SCHEMAS = /"([a-z0-9_]+_v\d+)"\./g;
/** For how long a read model counts as one that is read, milliseconds. */
const READ_LATELY_MS = 1_000;
/** How far a read model may be behind what was promised, in positions, before writes wait for it. */
const MAX_BEHIND = 1_000;

function raise(positions: Map<string, Position>, name: string, position: Position): void {
  if ((positions.get(name) ?? 0) < position) positions.set(name, position);
}

export interface PositionsOptions {
  readonly database: Database;
  readonly projections: readonly Projection[];
  readonly log: Logger;
  /** How long a write waits for its read models, milliseconds. */
  readonly visibleTimeoutMs: number;
  /** Those whose rows are worked out in memory before they are written, because requests ask for single ones of them. */
  readonly foreseen?: readonly Projection[];
  /** Milliseconds; default: `performance.now`. */
  readonly now?: () => number;
}

/** Those who decide when rows are written. */
interface Gatherer {
  /** Somebody waits. */
  end(): void;
}

export class Positions implements ReadModels {
  readonly #options: PositionsOptions;
  readonly #now: () => number;
  readonly #closing = new AbortController();
  readonly #current = new Map<string, Position>();
  /** Read models whose followers rest: their position is that of the reader of this process. */
  readonly #resting = new Set<string>();
  /** Position of that reader. */
  #level: Position = 0;
  readonly #waiters = new Map<string, Set<Waiter>>();
  /** Read models that gather their rows, and keep up with the log. */
  readonly #gathering = new Map<string, Gatherer>();
  /** What reads of a read model have to show. */
  readonly #promised = new Map<string, Position>();
  /** The same by event type. */
  readonly #promisedOf = new Map<string, Position>();
  /** When read models were read last. */
  readonly #readAt = new Map<string, number>();
  /** What is known of rows that are not written yet. */
  readonly #pending: ReadonlyMap<string, PendingChanges>;
  /** Read models that cannot go on. */
  readonly #stuck = new Set<string>();
  /** Projections that some events of their types do not concern, by schema. */
  readonly #choosy: ReadonlyMap<string, Projection>;
  /** Schemas of the projections that listen to an event type. */
  readonly #listeners = new Map<string, readonly string[]>();
  #watching: Promise<void> | undefined;

  constructor(options: PositionsOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
    this.#choosy = new Map(
      options.projections.filter(({ concerns }) => concerns).map((projection) => [schemaOf(projection), projection]),
    );
    this.#pending = pendingOf(options.foreseen ?? [], (schema) => this.current(schema));
  }

  /** Last known position of a projection's live tables. */
  current(schema: string): Position {
    const position = this.#current.get(schema) ?? 0;
    return this.#resting.has(schema) ? Math.max(position, this.#level) : position;
  }

  /**
   * Records that a read model has reached a position. Positions never decrease, except after the database may have lost
   * some.
   */
  advance(schema: string, position: Position): void {
    if (position <= (this.#current.get(schema) ?? 0)) return;
    this.#current.set(schema, position);
    this.#stuck.delete(schema);
    this.#tell(schema);
  }

  /**
   * Records that a read model gathers what it writes, as long as nobody waits for it, and that only this process reads
   * it: then writes need not wait for it. Undefined: no longer, because it has stopped or has fallen behind.
   */
  gathers(schema: string, gatherer: Gatherer | undefined): void {
    if (gatherer) this.#gathering.set(schema, gatherer);
    else this.#gathering.delete(schema);
  }

  /** Records that a read model fails on an event. Reads that would have to wait for it fail until it gets on. */
  stuck(schema: string): void {
    this.#stuck.add(schema);
    for (const waiter of this.#waiters.get(schema) ?? []) waiter.stuck();
  }

  /** Whether anybody waits for a read model. */
  isAwaited(): boolean {
    for (const waiters of this.#waiters.values()) if (waiters.size > 0) return true;
    return false;
  }

  /**
   * Records that a read model led by this process starts or stops resting (its position is then that of the reader).
   */
  rest(schema: string, resting: boolean): void {
    if (!resting) this.#resting.delete(schema);
    else if (this.#resting.add(schema)) this.#tell(schema);
  }

  /** Records that the reader of this process has handed out everything up to here. */
  raise(position: Position): void {
    this.#level = position;
    for (const [schema, waiters] of this.#waiters)
      if (waiters.size > 0 && this.#resting.has(schema)) this.#tell(schema);
  }

  #tell(schema: string): void {
    const waiters = this.#waiters.get(schema);
    if (!waiters || waiters.size === 0) return;
    const position = this.current(schema);
    for (const waiter of waiters) {
      if (waiter.position <= position) {
        waiters.delete(waiter);
        waiter.resolve();
      }
    }
  }

  /**
   * A server that crashed may have lost the last rows together with their checkpoint, which the leader then writes
   * again. So what was known before is invalid until it has been read again.
   */
  #forget(): void {
    this.#current.clear();
  }

  /** Schemas whose rows depend on events of this type. */
  schemasFor(type: string): readonly string[] {
    let schemas = this.#listeners.get(type);
    if (!schemas) {
      schemas = this.#options.projections.filter((one) => one.handles.has(type)).map(schemaOf);
      this.#listeners.set(type, schemas);
    }
    return schemas;
  }

  async visible(eventTypes: readonly string[], position: Position): Promise<void> {
    await this.#show(this.#behind(eventTypes, position), position);
  }

  async promise(eventTypes: readonly string[], position: Position, events?: readonly DomainEvent[]): Promise<void> {
    const listening = this.#behind(eventTypes, position);
    const behind = events ? listening.filter((schema) => this.#concerned(schema, events).length > 0) : listening;
    if (behind.length === 0) return;
    for (const schema of behind) this.#foresee(schema, position, events);
    const others: string[] = [];
    const far: Target[] = [];
    for (const schema of behind) {
      if (!this.#gathering.has(schema) || this.#isRead(schema)) others.push(schema);
      else {
        raise(this.#promised, schema, position);
        if (this.current(schema) < position - MAX_BEHIND) far.push([schema, position - MAX_BEHIND]);
      }
    }
    for (const type of eventTypes) raise(this.#promisedOf, type, position);
    await this.#show(others, position);
    if (far.length > 0 && !(await this.#reached(far))) throw this.#late(behind, position);
  }

  /** Those of the events that may change rows of a read model that listens to their types. */
  #concerned<E extends Pick<DomainEvent, 'type' | 'data'>>(schema: string, events: readonly E[]): readonly E[] {
    const { concerns, handles } = this.#choosy.get(schema) ?? {};
    return concerns ? events.filter((event) => handles?.has(event.type) && concerns(event)) : events;
  }

  #foresee(schema: string, position: Position, events: readonly DomainEvent[] | undefined): void {
    const pending = this.#pending.get(schema);
    if (events) for (const event of events) pending?.add(event);
    else pending?.expect(position);
  }

  /** What is known of rows that are not written yet; undefined for read models of which that is not remembered. */
  pending(schema: string): PendingChanges | undefined {
    return this.#pending.get(schema);
  }

  /**
   * Records that somebody asks whether what is in memory of a read model is current. While that happens all the time, writes
   * wait for the read model: otherwise each write would keep all of its readers waiting, who until then are answered from
   * memory.
   */
  reading(schema: string): void {
    this.#readAt.set(schema, this.#now());
  }

  #isRead(schema: string): boolean {
    const at = this.#readAt.get(schema);
    return at !== undefined && this.#now() - at < READ_LATELY_MS;
  }

  /**
   * Promises what others in this process have received as well: a policy that reads because of an event, or a client that
   * reads because of its frame, sees what the event has changed. Read models that are read all the time are left out: their
   * rows are on their way already.
   */
  owe(schema: string, received: readonly Pick<LoggedEvent, 'type' | 'data' | 'position'>[]): void {
    const events = this.#concerned(schema, received);
    const pending = this.#pending.get(schema);
    if (pending) for (const { position } of events) pending.expect(position);
    if (this.#isRead(schema)) return;
    for (const { type, position } of events) {
      raise(this.#promised, schema, position);
      raise(this.#promisedOf, type, position);
    }
  }

  /** @throws AppError 503 when they do not reach the position in time */
  async #show(schemas: readonly string[], position: Position): Promise<void> {
    if (schemas.length === 0 || (await this.#reached(schemas.map((schema) => [schema, position])))) return;
    throw this.#late(schemas, position);
  }

  #late(schemas: readonly string[], position: Position): AppError {
    const late = schemas.filter((schema) => this.current(schema) < position);
    return unavailable(
      `The change is stored at position ${position}, but the read model ${late.join(', ')} did not show it in time. Repeat the request with the same Idempotency-Key, or read again later; \`signalbox status\` shows what holds it up.`,
      { code: 'READ_MODEL_BEHIND', body: { position } },
    );
  }

  /**
   * Whether changes that were promised are missing in a read model.
   *
   * @param despite types of events whose changes may be missing
   */
  isBehind(schema: string, despite?: ReadonlySet<string>): boolean {
    const promised = this.#promised.get(schema);
    if (promised === undefined) return false;
    const current = this.current(schema);
    if (current >= promised) {
      this.#promised.delete(schema);
      return false;
    }
    if (!despite) return true;
    for (const [type, position] of this.#promisedOf)
      if (position > current && !despite.has(type) && this.schemasFor(type).includes(schema)) return true;
    return false;
  }

  /**
   * Resolves when these read models (default: all) show everything that was promised until now. Undefined: they do.
   *
   * @throws AppError 503 `READ_MODEL_BEHIND` when that takes longer than the configured time-out, or when one is stuck
   */
  settled(
    schemas: readonly string[] = [...this.#promised.keys()],
    despite?: ReadonlySet<string>,
  ): Promise<void> | undefined {
    if (this.#promised.size === 0) return undefined;
    const behind = schemas.filter((schema) => this.isBehind(schema, despite));
    return behind.length === 0 ? undefined : this.#settle(behind);
  }

  async #settle(schemas: readonly string[]): Promise<void> {
    const targets = schemas.map((schema): Target => [schema, this.#promised.get(schema) ?? 0]);
    if (!schemas.some((schema) => this.#stuck.has(schema)) && (await this.#reached(targets, true))) return;
    const late = targets.filter(([schema, position]) => this.current(schema) < position).map(([schema]) => schema);
    throw unavailable(
      `The read model ${late.join(', ')} does not yet show everything that was stored before this request. Read again later; \`signalbox status\` shows what holds it up.`,
      { code: 'READ_MODEL_BEHIND' },
    );
  }

  /**
   * As `settled`, for a statement: it waits for the read models whose tables it names, or for all if it names none.
   */
  settledFor(statement: string): Promise<void> | undefined {
    if (this.#promised.size === 0) return undefined;
    const named = new Set(Array.from(statement.matchAll(SCHEMAS), ([, schema]) => schema as string));
    return named.size === 0 ? this.settled() : this.settled([...named]);
  }

  /** Schemas that depend on events of these types and are not at the position yet. */
  #behind(eventTypes: readonly string[], position: Position): readonly string[] {
    const behind: string[] = [];
    for (const type of eventTypes)
      for (const schema of this.schemasFor(type))
        if (this.current(schema) < position && !behind.includes(schema)) behind.push(schema);
    return behind;
  }

  /**
   * Whether all of them get there in time. One promise for all, because this is where requests wait.
   *
   * @param unlessStuck gives up when one of them gets stuck
   */
  #reached(targets: readonly Target[], unlessStuck = false): Promise<boolean> {
    return new Promise((resolve) => {
      let left = targets.length;
      const arrived = () => {
        left--;
        if (left > 0) return;
        clearTimeout(timer);
        resolve(true);
      };
      const giveUp = () => {
        clearTimeout(timer);
        for (const { schema, waiter } of waiting) this.#waiters.get(schema)?.delete(waiter);
        resolve(false);
      };
      const stuck = unlessStuck ? giveUp : () => undefined;
      const waiting = targets.map(([schema, position]) => ({ schema, waiter: { position, resolve: arrived, stuck } }));
      const timer = setTimeout(giveUp, this.#options.visibleTimeoutMs);
      for (const { schema, waiter } of waiting) {
        const waiters = this.#waiters.get(schema);
        if (waiters) waiters.add(waiter);
        else this.#waiters.set(schema, new Set([waiter]));
        this.#gathering.get(schema)?.end();
      }
    });
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
      interrupted: () => this.#forget(),
    });
    while (!signal.aborted) {
      await this.refresh().then(reading.worked, reading.failed);
      const waiting = [...this.#waiters.values()].some((waiters) => waiters.size > 0);
      await pause(waiting ? 25 : 250, signal);
    }
    stopListening?.();
  }

  /** Reads all positions from the database. */
  async refresh(): Promise<void> {
    const { rows } = await this.#options.database.pool.query('SELECT schema_name, position FROM service.checkpoints');
    for (const row of rows as { schema_name: string; position: number }[]) this.advance(row.schema_name, row.position);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#watching;
  }
}
