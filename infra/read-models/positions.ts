/**
 * The positions of the read models, as known to this process: those of its own followers at once, those of other
 * processes by notification and polling. Commands wait here until what they appended is visible.
 */
import { type Projection, schemaOf } from '../../projections/projection.ts';
import { unavailable } from '../../shared/errors.ts';
import type { Position } from '../../shared/ports/event-log.ts';
import type { ReadModels } from '../../shared/ports/read-models.ts';
import { createOutage, pause } from '../../shared/waiting.ts';
import type { Database } from '../database/database.ts';
import type { Logger } from '../logging.ts';

interface Waiter {
  readonly position: Position;
  resolve(): void;
}

export interface PositionsOptions {
  readonly database: Database;
  readonly projections: readonly Projection[];
  readonly log: Logger;
  /** How long a write waits for its read models, milliseconds. */
  readonly visibleTimeoutMs: number;
}

export class Positions implements ReadModels {
  readonly #options: PositionsOptions;
  readonly #closing = new AbortController();
  readonly #current = new Map<string, Position>();
  /** Read models whose followers rest: their position is that of the reader of this process. */
  readonly #resting = new Set<string>();
  /** Position of that reader. */
  #level: Position = 0;
  readonly #waiters = new Map<string, Set<Waiter>>();
  /** Schemas of the projections that listen to an event type. */
  readonly #listeners = new Map<string, readonly string[]>();
  #watching: Promise<void> | undefined;

  constructor(options: PositionsOptions) {
    this.#options = options;
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
    this.#tell(schema);
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
    const behind = this.#behind(eventTypes, position);
    if (behind.length === 0 || (await this.#reached(behind, position))) return;
    const late = behind.filter((schema) => this.current(schema) < position);
    throw unavailable(
      `The change is stored at position ${position}, but the read model ${late.join(', ')} did not show it in time. Repeat the request with the same Idempotency-Key, or read again later; \`signalbox status\` shows what holds it up.`,
      { code: 'READ_MODEL_BEHIND', body: { position } },
    );
  }

  /** Schemas that depend on events of these types and are not at the position yet. */
  #behind(eventTypes: readonly string[], position: Position): readonly string[] {
    const behind: string[] = [];
    for (const type of eventTypes)
      for (const schema of this.schemasFor(type))
        if (this.current(schema) < position && !behind.includes(schema)) behind.push(schema);
    return behind;
  }

  /** Whether all of them get there in time. Every write waits here, so that it is one promise for all of them. */
  #reached(schemas: readonly string[], position: Position): Promise<boolean> {
    return new Promise((resolve) => {
      let left = schemas.length;
      const waiter: Waiter = {
        position,
        resolve: () => {
          left--;
          if (left > 0) return;
          clearTimeout(timer);
          resolve(true);
        },
      };
      const timer = setTimeout(() => {
        for (const schema of schemas) this.#waiters.get(schema)?.delete(waiter);
        resolve(false);
      }, this.#options.visibleTimeoutMs);
      for (const schema of schemas) {
        const waiters = this.#waiters.get(schema);
        if (waiters) waiters.add(waiter);
        else this.#waiters.set(schema, new Set([waiter]));
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
