/**
 * Leads one projection: follows the log from the checkpoint, batch by batch, until its signal aborts.
 *
 * An event that cannot be applied stops this projection and no other, and so does a checkpoint that the log does not
 * have: the place and the reason stand in `service.checkpoints`, and it is tried again with back-off. A runner that finds itself fenced (another process
 * leads, or a rebuild swapped the tables) forgets its rows and starts from the stored checkpoint.
 */
import { type Projection, schemaOf } from '../../projections/projection.ts';
import { UnknownPositionError } from '../../shared/errors.ts';
import type { EventStore } from '../../shared/event-store.ts';
import type { DomainEvent } from '../../shared/events/define.ts';
import type { Followed, LoggedEvent } from '../../shared/ports/event-log.ts';
import type { Database } from '../database/database.ts';
import { isConnectionFailure } from '../database/failures.ts';
import { pause } from '../event-log/tail.ts';
import type { Logger } from '../logging.ts';
import { applyBatch, createRowCache, type RowCache } from './batch.ts';
import type { BatchWriter } from './batch-writer.ts';
import type { Positions } from './positions.ts';
import { isFenced } from './tables.ts';
import type { Touches } from './touches.ts';

/** A checkpoint that only passes events of others is stored at most this often, milliseconds. */
const IDLE_STORE_MS = { server: 1_000, embedded: 10_000 };
const BACK_OFF = { first: 200, last: 30_000 };

export interface RunnerOptions {
  readonly database: Database;
  /** Shared by all runners of the process. */
  readonly writer: BatchWriter;
  readonly store: EventStore;
  readonly positions: Positions;
  readonly touches: Touches;
  readonly log: Logger;
  /** Name of this process in `service.checkpoints.leader`. */
  readonly process: string;
}

export interface RunnerStatus {
  readonly projection: string;
  readonly version: number;
  position: number;
  /** True once the end of the log has been reached since this runner leads. */
  caughtUp: boolean;
  stuck: { readonly position: number; readonly reason: string } | undefined;
  /** Events applied since the start of the process, and when that started (ms). */
  applied: number;
  readonly since: number;
}

class StuckError extends Error {
  readonly position: number;
  constructor(event: LoggedEvent, cause: unknown) {
    super(`${event.type}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
    this.position = event.position;
  }
}

export async function leadProjection(
  projection: Projection,
  options: RunnerOptions,
  status: RunnerStatus,
  signal: AbortSignal,
): Promise<void> {
  const schema = schemaOf(projection);
  const log = options.log.child({ projection: projection.name });
  for (let wait = BACK_OFF.first; !signal.aborted; ) {
    const before = status.position;
    const runner = new Runner(projection, schema, options, status);
    try {
      await runner.run(signal);
    } catch (error) {
      if (signal.aborted) return;
      if (isFenced(error)) {
        log.info('fenced: starting again from the stored checkpoint');
      } else if (error instanceof StuckError || error instanceof UnknownPositionError) {
        status.stuck = { position: error.position, reason: error.message };
        log.error({ err: error.cause ?? error, position: error.position }, `stuck: ${error.message}`);
        await storeStuck(options.database, schema, runner.generation, status.stuck).catch((failure) =>
          log.warn({ err: failure }, 'the reason could not be stored'),
        );
      } else {
        log.warn({ err: error }, 'projecting failed; trying again');
      }
      if (status.position > before) wait = BACK_OFF.first;
      await pause(wait, signal);
      wait = Math.min(wait * 2, BACK_OFF.last);
    }
  }
}

async function storeStuck(
  database: Database,
  schema: string,
  generation: number,
  stuck: { position: number; reason: string },
): Promise<void> {
  // A rebuild may have swapped the tables meanwhile: the new ones are not stuck.
  await database.pool.query(
    `UPDATE service.checkpoints SET stuck_at = $2, stuck_reason = $3, updated_at = $4
     WHERE schema_name = $1 AND generation = $5`,
    [schema, stuck.position, stuck.reason.slice(0, 1_000), Date.now(), generation],
  );
}

class Runner {
  readonly #projection: Projection;
  readonly #schema: string;
  readonly #options: RunnerOptions;
  readonly #status: RunnerStatus;
  readonly #cache: RowCache = createRowCache();
  #generation = 0;
  /** As it stands in the database; `status.position` may be ahead of it by events of others. */
  #stored = 0;
  #storedAt = 0;
  /** Batches and idle checkpoint stores take turns. */
  #turn: Promise<void> = Promise.resolve();
  #idleStore: NodeJS.Timeout | undefined;
  /** Aborted with the reason when an idle checkpoint could not be stored: no batch may come that would meet it too. */
  readonly #broken = new AbortController();

  constructor(projection: Projection, schema: string, options: RunnerOptions, status: RunnerStatus) {
    this.#projection = projection;
    this.#schema = schema;
    this.#options = options;
    this.#status = status;
  }

  /** Of the tables that it writes. */
  get generation(): number {
    return this.#generation;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { database, store } = this.#options;
    const { rows } = await database.pool.query(
      'UPDATE service.checkpoints SET leader = $2 WHERE schema_name = $1 RETURNING position, generation, stuck_at',
      [this.#schema, this.#options.process],
    );
    const row = rows[0] as { position: number; generation: number; stuck_at: number | null } | undefined;
    if (!row) throw new Error(`no checkpoint for ${this.#schema}: its tables were not made`);
    this.#options.touches.reset(this.#schema);
    this.#stored = row.position;
    this.#generation = row.generation;
    if (row.stuck_at === null) this.#status.stuck = undefined;
    this.#reached(row.position);
    try {
      const either = AbortSignal.any([signal, this.#broken.signal]);
      for await (const step of store.log.follow({ after: row.position, signal: either })) await this.#take(step);
      if (!signal.aborted) throw this.#broken.signal.reason;
    } finally {
      clearTimeout(this.#idleStore);
      await this.#turn;
      if (signal.aborted) await this.#storeIdle();
    }
  }

  async #take(step: Followed): Promise<void> {
    const relevant = step.events.filter((event) => this.#projection.handles.has(event.type));
    if (relevant.length > 0) await this.#inTurn(() => this.#apply(relevant, step.position));
    else this.#passed(step.position);
    if (step.caughtUp) this.#status.caughtUp = true;
  }

  async #apply(events: readonly LoggedEvent[], end: number): Promise<void> {
    try {
      await this.#applyTogether(events, end);
    } catch (error) {
      if (isFenced(error) || isConnectionFailure(error as Error)) throw error;
      // One by one: what stands before the culprit is applied, and the culprit is named.
      this.#cache.clear();
      for (const event of events) {
        try {
          await this.#applyTogether([event], event.position);
        } catch (cause) {
          if (isFenced(cause) || isConnectionFailure(cause as Error)) throw cause;
          throw new StuckError(event, cause);
        }
      }
      this.#reached(end);
    }
  }

  async #applyTogether(logged: readonly LoggedEvent[], end: number): Promise<void> {
    const events: DomainEvent[] = [];
    for (const event of logged) {
      const decoded = this.#options.store.decode(event);
      events.push(decoded instanceof Promise ? await decoded : decoded);
    }
    const { writer, touches } = this.#options;
    const changed = await applyBatch(writer, this.#projection, events, this.#move(end), this.#cache);
    this.#stored = end;
    this.#storedAt = Date.now();
    if (changed) for (const { meta } of events) touches.touch(this.#schema, meta.workspace, end);
    this.#status.applied += events.length;
    this.#status.stuck = undefined;
    this.#reached(end);
  }

  #move(to: number) {
    return {
      schema: this.#schema,
      generation: this.#generation,
      from: this.#stored,
      to,
      at: Date.now(),
      notify: this.#options.database.kind === 'server',
    };
  }

  /** Events of others went by: known here at once, stored now and then. */
  #passed(position: number): void {
    this.#reached(position);
    if (this.#idleStore || position === this.#stored) return;
    const due = Math.max(0, this.#storedAt + IDLE_STORE_MS[this.#options.database.kind] - Date.now());
    this.#idleStore = setTimeout(() => {
      this.#idleStore = undefined;
      this.#inTurn(() => this.#storeIdle()).catch((error) => this.#broken.abort(error));
    }, due);
    this.#idleStore.unref();
  }

  async #storeIdle(): Promise<void> {
    const position = this.#status.position;
    if (position <= this.#stored) return;
    await this.#options.writer.write({ writes: [], move: this.#move(position) });
    this.#stored = position;
    this.#storedAt = Date.now();
  }

  #reached(position: number): void {
    this.#status.position = position;
    this.#options.positions.advance(this.#schema, position);
  }

  #inTurn(work: () => Promise<void>): Promise<void> {
    const mine = this.#turn.then(work);
    this.#turn = mine.catch(() => undefined);
    return mine;
  }
}
