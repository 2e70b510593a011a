/** `/health/ready`: stores reachable and writable, nothing stuck or being built, every read model and the tree close behind the log. */
import type { HealthReport } from '../api/services.ts';
import { projections } from '../projections/index.ts';
import { schemaOf } from '../projections/projection.ts';
import type { Position } from '../shared/ports/event-log.ts';
import { storeFaultOf } from '../shared/store-faults.ts';
import { within } from '../shared/waiting.ts';
import type { Core } from './core.ts';
import type { RegisteredProcess } from './processes.ts';
import { readTreeState } from './proof/state.ts';
import { TREE } from './proof/tree.ts';
import type { Projector } from './read-models/projector.ts';

/** What is wrong, and what to do if that is known. */
function reasonOf(error: unknown): string {
  const reason = error instanceof Error ? error.message : String(error);
  const fault = storeFaultOf(error);
  return fault ? `${reason}. ${fault.message}` : reason;
}

/** Time limit for reading the head of the log, and for a write at the same time, milliseconds. */
const STORE_TIMEOUT_MS = 3_000;

/**
 * Measures how long a read model has been behind the log. A distance would not do, because a position is a count in one
 * store and a byte offset in another.
 */
export class Lag {
  readonly #targets = new Map<string, { readonly head: Position; readonly since: number }>();

  /**
   * Time that the read model has needed so far to reach an earlier end of the log, milliseconds; 0 when it has reached
   * it.
   */
  behindMs(name: string, position: Position, head: Position, now: number): number {
    const target = this.#targets.get(name);
    if (target && position < target.head) return now - target.since;
    if (position < head) this.#targets.set(name, { head, since: now });
    else this.#targets.delete(name);
    return 0;
  }
}

interface ReadinessOptions {
  /** Of this process; its read models are known without a query. */
  readonly projector: Projector | undefined;
  readonly registered: Pick<RegisteredProcess, 'checkWritable'>;
  /** Head of the log when the process started: read models that have not reached it yet are being built. */
  readonly start: Position;
}

export function createReadiness(
  core: Core,
  { projector, registered, start }: ReadinessOptions,
): () => Promise<HealthReport> {
  const lag = new Lag();
  const followers = [
    ...projections.map((projection) => {
      const schema = schemaOf(projection);
      const led = () => projector?.statuses.find((one) => one.projection === projection.name)?.position ?? 0;
      return {
        name: `projection ${projection.name}`,
        schema,
        seen: () => Math.max(led(), core.positions.shown(schema)),
      };
    }),
    // The tree moves with its checkpoint, in one statement.
    { name: TREE, schema: TREE, seen: () => 0 },
  ];
  const building = new Set(followers.map(({ schema }) => schema));
  return async () => {
    const checks: Record<string, string> = {};
    const details: Record<string, string> = {};
    let ok = true;
    const fail = (name: string, state: string, detail: string) => {
      checks[name] = state;
      details[name] = detail;
      ok = false;
    };
    // At the same time, because orchestrators give a probe a few seconds.
    const writing = within(STORE_TIMEOUT_MS, registered.checkWritable(), 'a write').then(
      () => undefined,
      (error: unknown) => ({ error }),
    );
    try {
      const head = await within(STORE_TIMEOUT_MS, core.eventLog.head(), 'the event log');
      checks.event_log = 'ok';
      details.event_log = `position ${head}`;
      const { rows } = await core.database.pool.query(
        'SELECT schema_name, projection, position, stuck_at, stuck_reason FROM service.checkpoints',
      );
      checks.database = 'ok';
      const tree = await readTreeState(core.database.pool);
      details[TREE] = `${tree.size} events, position ${tree.position}`;
      details.log_checkpoint = tree.checkpoint
        ? `${tree.checkpoint.size} events, signed ${new Date(tree.checkpoint.signedAt).toISOString()}`
        : 'none is signed yet';
      for (const { name, schema, seen } of followers) {
        const row = (rows as Record<string, unknown>[]).find((one) => one.schema_name === schema);
        const position = Math.max(Number(row?.position ?? 0), seen());
        const behindMs = lag.behindMs(schema, position, head, Date.now());
        if (position >= start) building.delete(schema);
        if (row?.stuck_at) fail(name, 'stuck', `stuck at position ${row.stuck_at}: ${row.stuck_reason}`);
        else if (building.has(schema)) fail(name, 'building', `being built: at position ${position} of ${start}`);
        else if (behindMs > core.config.readyMaxLagMs)
          fail(name, 'behind', `behind for ${Math.round(behindMs / 1_000)} s`);
        else checks[name] = 'ok';
      }
    } catch (error) {
      fail('stores', 'failing', reasonOf(error));
    }
    const failed = await writing;
    if (failed) fail('writes', 'failing', reasonOf(failed.error));
    else checks.writes = 'ok';
    return { ok, checks, details };
  };
}
