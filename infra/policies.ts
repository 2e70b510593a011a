/**
 * Runs the policies (`commands/policies/`): follows the log for each of them, and turns what it wants into jobs.
 *
 * A policy has a checkpoint of its own in `service.checkpoints`, `policy_<name>`. It moves only when the jobs of all
 * events before it are stored, so none is lost, and the jobs' ids make it harmless that some are stored twice. One process
 * leads all policies; the next takes over when it is gone. While jobs cannot be stored, the checkpoint stays and is tried
 * from again. A policy starts at the end of the log as it is at its first start. A rebuild of read models does not come by
 * here.
 */
import { jobIdOf, type Policy, type WantedJob } from '../commands/policies/policy.ts';
import { UnknownPositionError } from '../shared/errors.ts';
import type { EventStore } from '../shared/event-store.ts';
import type { Followed, LoggedEvent, Position } from '../shared/ports/event-log.ts';
import { type Jobs, JobsUnavailableError } from '../shared/ports/jobs.ts';
import type { Database } from './database/database.ts';
import { isConnectionFailure } from './database/failures.ts';
import { pause } from './event-log/tail.ts';
import type { Logger } from './logging.ts';
import { LOCK_CLASS } from './projector/projector.ts';

const LOCK_NAME = 'policies';
/** How often a process that does not lead tries to, milliseconds. */
const TAKE_OVER_MS = 1_000;
/** A checkpoint that only passes events of no interest is stored at most this often, milliseconds. */
const IDLE_STORE_MS = 2_000;
const BACK_OFF = { first: 200, last: 30_000 };
/** Jobs that are on their way to the store at the same time; few, because the embedded database has one session. */
const IN_FLIGHT = 4;

export interface PoliciesOptions {
  readonly database: Database;
  readonly store: Pick<EventStore, 'log' | 'decode'>;
  readonly jobs: Pick<Jobs, 'enqueue'>;
  readonly log: Logger;
  /** Name of this process in `service.checkpoints.leader`. */
  readonly process: string;
}

export interface PolicyStatus {
  readonly policy: string;
  /** The jobs of all events up to here are stored, as far as this process knows; 0 while it does not lead. */
  position: Position;
  /** The event that this policy cannot go on from. */
  stuck: { readonly position: Position; readonly reason: string } | undefined;
}

export interface Policies {
  readonly statuses: readonly PolicyStatus[];
  close(): Promise<void>;
}

/** The name of a policy's checkpoint. */
export const checkpointOf = (policy: Pick<Policy, 'name'>): string => `policy_${policy.name}`;

/** Starts to lead. Returns at once. */
export function startPolicies(policies: readonly Policy[], options: PoliciesOptions): Policies {
  const closing = new AbortController();
  const statuses = policies.map(({ name }): PolicyStatus => ({ policy: name, position: 0, stuck: undefined }));
  const follow = async (signal: AbortSignal): Promise<void> => {
    await Promise.all(
      policies.map((policy, index) => followPolicy(policy, options, statuses[index] as PolicyStatus, signal)),
    );
  };
  let running: Promise<void> = Promise.resolve();
  if (policies.length > 0)
    running = options.database.kind === 'server' ? lead(options, closing.signal, follow) : follow(closing.signal);
  return {
    statuses,
    async close() {
      closing.abort();
      await running;
    },
  };
}

/** Runs `follow` while this process holds the lock: on a connection of its own, which ends with the process. */
async function lead(
  { database, log }: PoliciesOptions,
  signal: AbortSignal,
  follow: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  while (!signal.aborted) {
    const lost = new AbortController();
    try {
      const client = await database.connect(LOCK_NAME);
      client.on('error', (error) => log.warn({ err: error }, 'the connection of the leader of the policies broke'));
      client.once('end', () => lost.abort());
      const ended = AbortSignal.any([signal, lost.signal]);
      try {
        while (!ended.aborted) {
          const { rows } = await client.query('SELECT pg_try_advisory_lock($1, hashtext($2)) AS mine', [
            LOCK_CLASS,
            LOCK_NAME,
          ]);
          if (rows[0]?.mine) await follow(ended);
          else await pause(TAKE_OVER_MS, ended);
        }
      } finally {
        await client.end();
      }
    } catch (error) {
      if (!signal.aborted) log.warn({ err: error }, 'the lead of the policies could not be asked for; trying again');
    }
    await pause(TAKE_OVER_MS, signal);
  }
}

/** An event that a policy cannot deal with: trying again helps only when something else has changed. */
class StuckError extends Error {
  readonly position: Position;
  constructor(event: LoggedEvent, cause: unknown) {
    super(`${event.type}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
    this.position = event.position;
  }
}

/** Somebody else has moved the checkpoint. */
class FencedError extends Error {}

/** Each policy for itself: one that is stuck holds up no other. */
async function followPolicy(
  policy: Policy,
  options: PoliciesOptions,
  status: PolicyStatus,
  signal: AbortSignal,
): Promise<void> {
  const log = options.log.child({ policy: policy.name });
  for (let wait = BACK_OFF.first; !signal.aborted; ) {
    const before = status.position;
    try {
      await followOnce(policy, options, status, signal);
    } catch (error) {
      if (signal.aborted) break;
      if (error instanceof FencedError) {
        log.info('fenced: starting again from the stored checkpoint');
      } else if (error instanceof StuckError || error instanceof UnknownPositionError) {
        status.stuck = { position: error.position, reason: error.message };
        log.error({ err: error.cause ?? error, position: error.position }, `stuck: ${error.message}`);
        await storeStuck(policy, options, status.stuck).catch((failure) =>
          log.warn({ err: failure }, 'the reason could not be stored'),
        );
      } else {
        log.warn({ err: error }, 'the jobs of a policy wait; trying again');
      }
      if (status.position > before) wait = BACK_OFF.first;
      await pause(wait, signal);
      wait = Math.min(wait * 2, BACK_OFF.last);
    }
  }
  status.position = 0;
  status.stuck = undefined;
}

async function followOnce(
  policy: Policy,
  options: PoliciesOptions,
  status: PolicyStatus,
  signal: AbortSignal,
): Promise<void> {
  const { store } = options;
  let stored = await startingPoint(policy, options);
  status.position = stored;
  const save = async (): Promise<void> => {
    const { position } = status;
    if (position === stored) return;
    await moveCheckpoint(policy, options, stored, position);
    stored = position;
    status.stuck = undefined;
  };
  // Steps and the timer's saves take turns.
  let turn: Promise<void> = Promise.resolve();
  const inTurn = (work: () => Promise<void>): Promise<void> => {
    const mine = turn.then(work);
    turn = mine.catch(() => undefined);
    return mine;
  };
  // No step may come that would meet the same failure.
  const broken = new AbortController();
  const saving = setInterval(() => {
    inTurn(save).catch((error) => broken.abort(error));
  }, IDLE_STORE_MS);
  saving.unref();
  try {
    const either = AbortSignal.any([signal, broken.signal]);
    for await (const step of store.log.follow({ after: stored, signal: either })) {
      await inTurn(async () => {
        if (await storeJobs(policy, options, step)) {
          status.position = step.position;
          await save();
        } else {
          status.position = step.position;
        }
      });
    }
    if (!signal.aborted) throw broken.signal.reason;
  } finally {
    clearInterval(saving);
    if (signal.aborted)
      await inTurn(save).catch((error) => options.log.debug({ err: error }, 'the last checkpoint was not stored'));
  }
}

/** Stores the jobs that a policy wants for these events. Gives whether it listens to any of them. */
async function storeJobs(policy: Policy, options: PoliciesOptions, step: Followed): Promise<boolean> {
  const events = step.events.filter((event) => policy.listensTo.has(event.type));
  const wanted: { readonly event: LoggedEvent; readonly job: WantedJob }[] = [];
  for (const event of events) {
    try {
      for (const job of policy.react(await options.store.decode(event))) wanted.push({ event, job });
    } catch (error) {
      // A key that is needed to read the event may be away with the database.
      if (isConnectionFailure(error as Error)) throw error;
      throw new StuckError(event, error);
    }
  }
  for (let index = 0; index < wanted.length; index += IN_FLIGHT) {
    await Promise.all(
      wanted.slice(index, index + IN_FLIGHT).map(async ({ event, job }) => {
        try {
          await options.jobs.enqueue(job.kind, job.payload, { id: jobIdOf(policy, event, job.key) });
        } catch (error) {
          if (error instanceof JobsUnavailableError) throw error;
          throw new StuckError(event, error);
        }
      }),
    );
  }
  return events.length > 0;
}

/** Position of the checkpoint; a policy that has none gets one at the end of the log. */
async function startingPoint(policy: Policy, { database, store, process }: PoliciesOptions): Promise<Position> {
  const head = await store.log.head();
  const { rows } = await database.pool.query(
    `INSERT INTO service.checkpoints (schema_name, projection, version, position, leader, updated_at)
     VALUES ($1, $2, 1, $3, $4, $5)
     ON CONFLICT (schema_name) DO UPDATE SET leader = $4 RETURNING position`,
    [checkpointOf(policy), `policy ${policy.name}`, head, process, Date.now()],
  );
  return (rows[0] as { position: Position }).position;
}

async function moveCheckpoint(
  policy: Policy,
  { database }: PoliciesOptions,
  from: Position,
  to: Position,
): Promise<void> {
  const { rowCount } = await database.pool.query(
    `UPDATE service.checkpoints SET position = $3, stuck_at = NULL, stuck_reason = NULL, updated_at = $4
     WHERE schema_name = $1 AND position = $2`,
    [checkpointOf(policy), from, to, Date.now()],
  );
  if (rowCount !== 1) throw new FencedError(`${policy.name}: its checkpoint is not at ${from} any more`);
}

async function storeStuck(
  policy: Policy,
  { database }: PoliciesOptions,
  stuck: { readonly position: Position; readonly reason: string },
): Promise<void> {
  await database.pool.query(
    'UPDATE service.checkpoints SET stuck_at = $2, stuck_reason = $3, updated_at = $4 WHERE schema_name = $1',
    [checkpointOf(policy), stuck.position, stuck.reason.slice(0, 1_000), Date.now()],
  );
}
