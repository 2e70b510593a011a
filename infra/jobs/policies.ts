/**
 * Runs the policies (`commands/policies/`): follows the log for each of them and turns its decisions into jobs.
 *
 * A policy has its own checkpoint in `service.checkpoints`, `policy_<name>`. It moves only once the jobs of all events
 * before it are stored, so none is lost; storing some of them twice is harmless, because their ids are derived from the
 * events. While jobs cannot be stored, the checkpoint does not move, and the policy retries from there. A new policy
 * begins at the current end of the log, unless it declares otherwise. Rebuilding read models does not run policies.
 */

import { jobIdOf, type Policy, type WantedJob } from '../../commands/policies/policy.ts';
import type { EventStore } from '../../shared/event-store.ts';
import { BEGINNING, type LoggedEvent, type Position } from '../../shared/ports/event-log.ts';
import { type Jobs, JobsUnavailableError } from '../../shared/ports/jobs.ts';
import { traceparentOf } from '../../shared/ports/tracing.ts';
import { isStoreFault } from '../../shared/store-faults.ts';
import type { Database } from '../database/database.ts';
import { FencedError, moveCheckpoints, type Stuck, storeStuck, takeUpOrBegin } from '../following/checkpoints.ts';
import type { Subject } from '../following/follower.ts';
import type { Following } from '../following/following.ts';
import type { Logger } from '../logging.ts';

/** Maximum number of jobs that are stored concurrently; few, because the embedded database has a single session. */
const IN_FLIGHT = 4;

export interface PoliciesOptions {
  readonly database: Database;
  readonly store: Pick<EventStore, 'log' | 'decode'>;
  readonly following: Following;
  readonly jobs: Pick<Jobs, 'enqueue'>;
  readonly log: Logger;
  /** Name of this process in `service.checkpoints.leader`. */
  readonly process: string;
}

export interface PolicyStatus {
  readonly policy: string;
  /** Position up to which all jobs are stored, as far as this process knows; 0 until it leads. */
  readonly position: Position;
  /** The event on which this policy fails. */
  readonly stuck: Stuck | undefined;
}

export interface Policies {
  readonly statuses: readonly PolicyStatus[];
  close(): Promise<void>;
}

/** The name of a policy's checkpoint. */
export const checkpointOf = (policy: Pick<Policy, 'name'>): string => `policy_${policy.name}`;

/** Runs the policies wherever this process becomes their leader. Returns at once. */
export function startPolicies(policies: readonly Policy[], options: PoliciesOptions): Policies {
  const { following, log } = options;
  const followed = policies.map((policy) => ({
    policy: policy.name,
    ...following.follow(reacting(policy, options), { by: 'one process', log: log.child({ policy: policy.name }) }),
  }));
  return {
    get statuses() {
      return followed.map(({ policy, status: { position, stuck } }) => ({ policy, position, stuck }));
    },
    async close() {
      await Promise.all(followed.map((one) => one.close()));
    },
  };
}

/** Adapts a policy to the follower: its events become jobs, and then the checkpoint moves. */
function reacting(policy: Policy, options: PoliciesOptions): Subject {
  const { database, store, process } = options;
  const name = checkpointOf(policy);
  return {
    name,
    types: policy.listensTo,
    async begin() {
      const first = policy.begins === 'end' ? await store.log.head() : BEGINNING;
      return takeUpOrBegin(database, name, process, { label: `policy ${policy.name}`, first });
    },
    async apply(events, move) {
      await storeJobs(policy, options, events);
      const moved = await moveCheckpoints(database, [move]);
      if (!moved.has(name)) throw new FencedError(name);
    },
    forget: () => undefined,
    // Decoding the event may need a person's key, which is in the database.
    isTransient: (error) => error instanceof JobsUnavailableError || isStoreFault(error),
    stuck: (stuck, generation) => storeStuck(database, name, generation, stuck),
  };
}

async function storeJobs(policy: Policy, options: PoliciesOptions, events: readonly LoggedEvent[]): Promise<void> {
  const wanted: { readonly event: LoggedEvent; readonly job: WantedJob }[] = [];
  for (const event of events) {
    for (const job of policy.react(await options.store.decode(event))) wanted.push({ event, job });
  }
  for (let index = 0; index < wanted.length; index += IN_FLIGHT) {
    await Promise.all(
      wanted.slice(index, index + IN_FLIGHT).map(({ event, job }) =>
        options.jobs.enqueue(job.kind, job.payload, {
          id: jobIdOf(policy, event, job.key),
          traceparent: traceparentOf(event.meta.traceparent),
        }),
      ),
    );
  }
}
