/**
 * How far the read models are, as this process knows it: from its own runners at once, from other processes by
 * notification and poll. Commands wait here until what they appended can be read.
 */
import type pg from 'pg';
import { type Projection, schemaOf } from '../../projections/projection.ts';
import { unavailable } from '../../shared/errors.ts';
import type { Position } from '../../shared/ports/event-log.ts';
import type { ReadModels } from '../../shared/ports/read-models.ts';
import { type Database, inTime } from '../database/database.ts';
import { pause } from '../event-log/tail.ts';
import type { Logger } from '../logging.ts';
import { createTrouble } from '../trouble.ts';

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
  readonly #waiters = new Map<string, Set<Waiter>>();
  /** Schemas of the projections that listen to an event type. */
  readonly #listeners = new Map<string, readonly string[]>();
  #watching: Promise<void> | undefined;

  constructor(options: PositionsOptions) {
    this.#options = options;
  }

  /** Position of a projection's live tables as last heard of. */
  current(schema: string): Position {
    return this.#current.get(schema) ?? 0;
  }

  /** A read model has reached `position`. Goes back only when the database may have. */
  advance(schema: string, position: Position): void {
    if (position <= this.current(schema)) return;
    this.#current.set(schema, position);
    const waiters = this.#waiters.get(schema);
    if (!waiters) return;
    for (const waiter of waiters) {
      if (waiter.position <= position) {
        waiters.delete(waiter);
        waiter.resolve();
      }
    }
  }

  /**
   * A server that crashed may have lost the last rows together with their checkpoint, and the runner makes them again:
   * what was heard before does not hold until it is read anew.
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
    const schemas = new Set(eventTypes.flatMap((type) => this.schemasFor(type)));
    const behind = [...schemas].filter((schema) => this.current(schema) < position);
    if (behind.length === 0) return;
    let timer: NodeJS.Timeout | undefined;
    const added: [string, Waiter][] = [];
    const timeout = new Promise<'late'>((resolve) => {
      timer = setTimeout(resolve, this.#options.visibleTimeoutMs, 'late');
    });
    const reached = Promise.all(
      behind.map(
        (schema) =>
          new Promise<void>((resolve) => {
            const waiter = { position, resolve };
            const waiters = this.#waiters.get(schema) ?? new Set();
            this.#waiters.set(schema, waiters.add(waiter));
            added.push([schema, waiter]);
          }),
      ),
    );
    try {
      if ((await Promise.race([reached, timeout])) === 'late') {
        const late = behind.filter((schema) => this.current(schema) < position);
        throw unavailable(
          `The change is stored at position ${position}, but the read model ${late.join(', ')} has not shown it in time. Repeat the request with the same Idempotency-Key, or read again later; \`signalbox status\` tells what holds it up.`,
          { code: 'READ_MODEL_BEHIND', body: { position } },
        );
      }
    } finally {
      clearTimeout(timer);
      for (const [schema, waiter] of added) this.#waiters.get(schema)?.delete(waiter);
    }
  }

  /** Starts to hear of runners in other processes. */
  watch(): void {
    this.#watching ??= this.#watch();
  }

  async #watch(): Promise<void> {
    const { database, log } = this.#options;
    const { signal } = this.#closing;
    const listening = createTrouble(
      log,
      'no notifications of read model positions; polling instead',
      'notifications of read model positions come again',
    );
    const reading = createTrouble(
      log,
      'positions of read models could not be read; trying again',
      'positions of read models can be read again',
    );
    let client: pg.Client | undefined;
    while (!signal.aborted) {
      if (database.kind === 'server' && !client) {
        client = await this.#listen().catch((error) => {
          listening.failed(error);
          return undefined;
        });
        if (client) listening.worked();
        client?.once('end', () => {
          client = undefined;
          this.#forget();
        });
      }
      await this.refresh().then(reading.worked, reading.failed);
      const waiting = [...this.#waiters.values()].some((waiters) => waiters.size > 0);
      await pause(waiting ? 25 : 250, signal);
    }
    await client?.end();
  }

  async #listen(): Promise<pg.Client> {
    const client = await this.#options.database.connect('positions');
    client.on('error', (error) => this.#options.log.warn({ err: error }, 'the notification connection broke'));
    client.on('notification', ({ payload }) => {
      const [schema, position] = (payload ?? '').split(':');
      if (schema && position) this.advance(schema, Number(position));
    });
    try {
      await client.query(inTime('LISTEN signalbox_positions'));
    } catch (error) {
      client.end().catch(() => undefined);
      throw error;
    }
    return client;
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
