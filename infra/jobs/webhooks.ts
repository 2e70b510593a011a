/**
 * Wakes the webhooks whose workspaces have news, and has jobs deliver them (`commands/policies/webhooks/`).
 *
 * Every worker follows the log from where it is: what a webhook has to be told is in the log from the webhook's own
 * position on, so being woken is only a hint, and a missed one is made up for once a minute. A workspace without
 * webhooks costs nothing but a look at a set.
 */
import { randomUUID } from 'node:crypto';
import { createDeliveries, deliveryJob } from '../../commands/policies/webhooks/deliveries.ts';
import { allWebhooks } from '../../queries/webhooks/webhooks.ts';
import { MESSAGE_EVENTS } from '../../shared/events/webhooks/messages.ts';
import { webhookCreated, webhookEvents } from '../../shared/events/webhooks/webhooks.ts';
import type { LoggedEvent, Position } from '../../shared/ports/event-log.ts';
import { handleJob, type JobHandler, type Jobs, JobsUnavailableError } from '../../shared/ports/jobs.ts';
import type { WebhookQueue } from '../../shared/ports/webhooks.ts';
import { DAY, HOUR, MINUTE } from '../../shared/time.ts';
import type { Core } from '../core.ts';
import { isConnectionFailure } from '../database/failures.ts';
import { createWebhookQueue } from '../database/webhooks.ts';
import type { Subject } from '../following/follower.ts';
import { outgoingOf } from '../outgoing/post.ts';

/** How long deliveries are kept, and how often a process looks for older ones, milliseconds. */
const KEPT_MS = 30 * DAY * 1_000;
const PURGE_MS = HOUR * 1_000;
export const WEBHOOK_RETRY_MS = MINUTE * 1_000;

/** Runs another job, at once or at this time, Unix ms. */
type Again = (at?: number) => Promise<void>;
/** Jobs that are asked for at once; each goes on to the next webhook. */
const MOST_JOBS = 5;

export interface Webhooks {
  readonly handler: JobHandler;
  /** Starts to wake webhooks. */
  follow(): { close(): Promise<void> };
}

export function createWebhooks(core: Core, jobs: Pick<Jobs, 'enqueue'>): Webhooks {
  const { database, commands, store, config, log, following } = core;
  const queue = createWebhookQueue(database.pool);
  const again: Again = async (at = Date.now()) => {
    const delayMs = Math.max(0, at - Date.now());
    try {
      await jobs.enqueue(deliveryJob, {}, { id: `webhooks-${randomUUID()}`, delayMs });
    } catch (error) {
      // The schedule makes up for it as soon as there is a job store.
      if (!(error instanceof JobsUnavailableError)) throw error;
    }
  };
  const deliver = createDeliveries({
    commands,
    store,
    queue,
    outgoing: outgoingOf(config),
    schedule: {
      attempts: config.webhookMaxAttempts,
      delaysMs: config.webhookRetrySeconds.map((seconds) => seconds * 1_000),
    },
    again,
    skipped: (error) => log.error({ err: error }, 'webhooks are not told of an event that cannot be read'),
    now: Date.now,
    random: Math.random,
  });
  let purgedAt = 0;
  return {
    handler: handleJob(deliveryJob, async (_payload, { signal }) => {
      const now = Date.now();
      if (now - purgedAt > PURGE_MS) {
        purgedAt = now;
        await queue.purge(now - KEPT_MS);
      }
      await deliver(signal);
    }),
    follow: () =>
      following.follow(waking(core, queue, again), { by: 'each process', log: log.child({ follower: 'webhooks' }) }),
  };
}

/** Follows the log for the webhooks of all workspaces. Its place is kept nowhere: it begins at the end. */
function waking({ eventLog, reads }: Pick<Core, 'eventLog' | 'reads'>, queue: WebhookQueue, again: Again): Subject {
  const workspaces = new Set<number>();
  const wake = async (events: readonly LoggedEvent[], position: Position) => {
    const awake = new Set<number>();
    for (const { type, meta } of events) {
      const workspace = meta.workspace as number;
      if (type === webhookCreated.type) workspaces.add(workspace);
      if (workspaces.has(workspace)) awake.add(workspace);
    }
    if (awake.size === 0) return;
    const idle = await queue.wake([...awake], position);
    await Promise.all(Array.from({ length: Math.min(idle, MOST_JOBS) }, () => again()));
  };
  return {
    name: 'webhooks',
    types: new Set([...MESSAGE_EVENTS, ...webhookEvents.map(({ type }) => type)]),
    async begin() {
      const position = await eventLog.head();
      const webhooks = await allWebhooks(reads);
      for (const { workspace } of webhooks) workspaces.add(workspace);
      await queue.resume(webhooks, position);
      if (webhooks.length > 0) await again();
      return { position, generation: 0, stuckAt: null };
    },
    apply: (events) => wake(events, events.at(-1)?.position ?? 0),
    forget: () => undefined,
    isTransient: (error) => isConnectionFailure(error as Error),
    stuck: async () => undefined,
  };
}
