/**
 * Notifies webhooks of new events in their workspaces: jobs then deliver them (`commands/policies/webhooks/`).
 *
 * Every worker follows the log from its end: pending events are in the log after the webhook's own position, so a
 * notification is only a hint, and the next one makes up for a missed one. An event is checked once for all webhooks of
 * its workspace, and notifies those that subscribe to it; without webhooks this costs a look-up in a map.
 */
import { randomUUID } from 'node:crypto';
import { createDeliveries, deliveryJob } from '../../../commands/policies/webhooks/deliveries.ts';
import { settingValues } from '../../../queries/admin/settings.ts';
import { createDisplayNames } from '../../../queries/names.ts';
import { createTaskProjects } from '../../../queries/projects/tickets.ts';
import { allWebhooks } from '../../../queries/webhooks/webhooks.ts';
import { EventUnreadableError } from '../../../shared/errors.ts';
import { catalogue } from '../../../shared/events/catalogue.ts';
import type { EventOf } from '../../../shared/events/define.ts';
import { MESSAGE_EVENTS, messagesOf } from '../../../shared/events/webhooks/messages.ts';
import {
  webhookCreated,
  webhookDeleted,
  webhookTripped,
  webhookUpdated,
} from '../../../shared/events/webhooks/webhooks.ts';
import type { LoggedEvent, Position } from '../../../shared/ports/event-log.ts';
import { handleJob, type JobHandler, type Jobs, JobsUnavailableError } from '../../../shared/ports/jobs.ts';
import type { WebhookQueue } from '../../../shared/ports/webhooks/deliveries.ts';
import { DAY } from '../../../shared/time.ts';
import type { Core } from '../../core.ts';
import { isConnectionFailure } from '../../database/failures.ts';
import type { Subject } from '../../following/follower.ts';
import { createWebhookQueue } from '../../stores/webhooks/deliveries.ts';
import { outgoingOf } from '../post.ts';

/** How long deliveries are kept, milliseconds. */
const KEPT_MS = 30 * DAY * 1_000;

/** Adds a job, unless there is one with this id. */
type Add = (id: string, delayMs?: number) => Promise<void>;
/** Jobs that are requested at once; each continues with the next webhook. */
const MOST_JOBS = 5;
/** Time limit for recording an attempt, milliseconds. */
const RECORDING_MS = 10_000;
/** Approximate number of events after which webhooks are notified even if they subscribe to none of them. */
const FAR_EVENTS = 5_000;
const OWN_TYPES: ReadonlySet<string> = new Set(
  [webhookCreated, webhookUpdated, webhookTripped, webhookDeleted].map(({ type }) => type),
);

export interface Webhooks {
  readonly handler: JobHandler;
  /** Requests a job for due retries, and removes old deliveries. @returns how many deliveries wait for a retry */
  retry(): Promise<number>;
  /** Starts to wake webhooks. */
  follow(): { close(): Promise<void> };
}

export function createWebhooks(core: Core, jobs: Pick<Jobs, 'enqueue'>): Webhooks {
  const { database, commands, store, config, log, following } = core;
  const queue = createWebhookQueue(database.pool, config.webhookTimeoutMs + RECORDING_MS);
  const add: Add = async (id, delayMs = 0) => {
    try {
      await jobs.enqueue(deliveryJob, {}, { id: `webhooks-${id}`, delayMs });
    } catch (error) {
      // The schedule makes up for it as soon as the job store is available.
      if (!(error instanceof JobsUnavailableError)) throw error;
    }
  };
  const deliver = createDeliveries({
    commands,
    store,
    names: { people: createDisplayNames({ reads: core.reads }), projects: createTaskProjects({ reads: core.reads }) },
    queue,
    outgoing: outgoingOf(config),
    retries: async () => {
      const name = 'webhooks.retry_enabled';
      return (await settingValues(core.reads, config, [name]))[name] === 'true';
    },
    schedule: {
      attempts: config.webhookMaxAttempts,
      delaysMs: config.webhookRetrySeconds.map((seconds) => seconds * 1_000),
    },
    // One job per second is enough, however many jobs request one.
    again: (at) => {
      const second = Math.ceil(at / 1_000);
      return add(`at-${second}`, Math.max(0, second * 1_000 - Date.now()));
    },
    skipped: (error) => log.error({ err: error }, 'webhooks are not told of an event that cannot be read'),
    now: Date.now,
    random: Math.random,
  });
  return {
    handler: handleJob(deliveryJob, (_payload, { signal }) => deliver(signal)),
    async retry() {
      await queue.purge(Date.now() - KEPT_MS);
      const waiting = await queue.recall();
      await add(randomUUID());
      return waiting;
    },
    follow: () =>
      following.follow(waking(core, queue, add), { by: 'each process', log: log.child({ follower: 'webhooks' }) }),
  };
}

/** A webhook that may have pending events. */
interface Listening {
  /** Event types to which it subscribes; ended subscriptions stay. */
  readonly chosen: Set<string>;
  /** It has been notified of everything up to this position. */
  woken: Position;
}

/** Follows the log for the webhooks of all workspaces. It has no checkpoint: it begins at the end. */
function waking({ database, eventLog, reads, store, positions }: Core, queue: WebhookQueue, add: Add): Subject {
  const far = FAR_EVENTS * eventLog.stride;
  /** By workspace, then by id. */
  const listening = new Map<number, Map<number, Listening>>();
  // At the beginning; later this process may hold claims itself.
  let alone = database.kind === 'embedded';
  const learn = (workspace: number, id: number, chosen: readonly string[], position: Position) => {
    const all = listening.get(workspace) ?? new Map<number, Listening>();
    const one = all.get(id) ?? { chosen: new Set(), woken: position };
    for (const type of chosen) one.chosen.add(type);
    listening.set(workspace, all.set(id, one));
  };
  /** The types of an event's messages; undefined for an unreadable event: the delivery skips and reports it. */
  const typesOf = async (logged: LoggedEvent): Promise<readonly string[] | undefined> => {
    const definition = catalogue.get(logged.type);
    if (!definition) return [];
    try {
      return messagesOf(definition, await store.decode(logged)).map(({ type }) => type);
    } catch (error) {
      if (error instanceof EventUnreadableError) return undefined;
      throw error;
    }
  };
  /** Adds the webhooks of a workspace that an event concerns. */
  const wakeFor = async (all: ReadonlyMap<number, Listening>, logged: LoggedEvent, awake: Map<number, Listening>) => {
    const asleep = [...all].filter(([id]) => !awake.has(id));
    // Webhooks that subscribe to rare events must not have to read the whole log when one happens.
    const wanted = ({ chosen, woken }: Listening) => chosen.has('*') || logged.position - woken > far;
    const others = asleep.filter(([id, one]) => {
      if (wanted(one)) awake.set(id, one);
      return !wanted(one);
    });
    if (others.length === 0) return;
    const types = await typesOf(logged);
    for (const [id, one] of others) if (!types || types.some((type) => one.chosen.has(type))) awake.set(id, one);
  };
  return {
    name: 'webhooks',
    types: new Set([...MESSAGE_EVENTS, ...OWN_TYPES]),
    async begin() {
      const position = await eventLog.head();
      await positions.reach([...OWN_TYPES], { position });
      const webhooks = await allWebhooks(reads);
      listening.clear();
      for (const { workspace, id, events } of webhooks) learn(workspace, id, events, position);
      await queue.resume(webhooks, position, alone);
      alone = false;
      if (webhooks.length > 0) await add(randomUUID());
      return { position, generation: 0, stuckAt: null };
    },
    async apply(events) {
      const awake = new Map<number, Listening>();
      for (const logged of events) {
        const workspace = logged.meta.workspace as number;
        if (OWN_TYPES.has(logged.type)) {
          const { data } = (await store.decode(logged)) as EventOf<typeof webhookUpdated>;
          learn(workspace, data.webhook_id, data.events ?? [], logged.position);
          const all = listening.get(workspace);
          const one = all?.get(data.webhook_id);
          // The webhook was changed or deleted: the delivery checks that.
          if (one) awake.set(data.webhook_id, one);
          if (logged.type === webhookDeleted.type) all?.delete(data.webhook_id);
        }
        const all = listening.get(workspace);
        if (all && MESSAGE_EVENTS.has(logged.type)) await wakeFor(all, logged, awake);
      }
      if (awake.size === 0) return;
      const position = events.at(-1)?.position ?? 0;
      const idle = await queue.wake([...awake.keys()], position);
      for (const one of awake.values()) one.woken = position;
      await Promise.all(Array.from({ length: Math.min(idle, MOST_JOBS) }, () => add(randomUUID())));
    },
    forget: () => undefined,
    isTransient: (error) => isConnectionFailure(error as Error),
    stuck: async () => undefined,
  };
}
