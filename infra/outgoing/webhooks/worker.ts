/** The worker that delivers webhooks (`commands/policies/webhooks/worker.ts`), with the stores of the deployment. */
import { createLogCache } from '../../../commands/policies/webhooks/log-cache.ts';
import { createSubscribers, WEBHOOK_EVENTS } from '../../../commands/policies/webhooks/subscribers.ts';
import { startWebhookWorker } from '../../../commands/policies/webhooks/worker.ts';
import { settingValues } from '../../../queries/admin/settings.ts';
import { adminNames } from '../../../queries/auth/users.ts';
import { createDisplayNames } from '../../../queries/names.ts';
import { createTaskProjects } from '../../../queries/projects/tickets.ts';
import { allWebhooks } from '../../../queries/webhooks/webhooks.ts';
import { DAY } from '../../../shared/time.ts';
import { createOutage } from '../../../shared/waiting.ts';
import type { Core } from '../../core.ts';
import { createWebhookQueue } from '../../stores/webhooks/queue.ts';
import { outgoingOf } from '../post.ts';

/** How long deliveries are kept, milliseconds. */
const KEPT_MS = 30 * DAY * 1_000;
/** How long a lease lasts beyond an attempt, milliseconds: the time for recording it. */
const RECORDING_MS = 10_000;

export interface Webhooks {
  /** Retries what is due now. @returns how many deliveries wait for a retry */
  retry(): Promise<number>;
  close(): Promise<void>;
}

const queueOf = ({ database, config }: Pick<Core, 'database' | 'config'>) =>
  createWebhookQueue(database.pool, config.webhookTimeoutMs + RECORDING_MS);

/** The webhooks of all workspaces, at the end of the log. */
async function currentOf({ following, eventLog, positions, reads, config }: Core) {
  // The notifications of later events come from the reader.
  await following.reader.started(AbortSignal.timeout(config.startTimeoutMs));
  const position = await eventLog.head();
  await positions.reach(WEBHOOK_EVENTS, { position });
  return { position, webhooks: await allWebhooks(reads) };
}

/** Webhooks that are not delivered yet begin here: after a restore, they get the events that are written until then. */
export async function registerWebhooks(core: Core): Promise<void> {
  const { webhooks, position } = await currentOf(core);
  await queueOf(core).register(webhooks, position, false);
}

export function startWebhooks(core: Core): Webhooks {
  const { database, commands, store, config, log, following, eventLog, reads } = core;
  const queue = queueOf(core);
  const logCache = createLogCache(store.log);
  const subscribers = createSubscribers({
    log: logCache,
    decode: (event) => store.decode(event),
    queue,
    current: () => currentOf(core),
    stride: eventLog.stride,
    alone: database.kind === 'embedded',
  });
  const worker = startWebhookWorker({
    commands,
    store,
    names: { people: createDisplayNames({ reads }), projects: createTaskProjects({ reads }) },
    queue,
    subscribers,
    log: logCache,
    outgoing: outgoingOf({ ...config, gate: core.pause.refuse }),
    async retries() {
      const name = 'webhooks.retry_enabled';
      return (await settingValues(reads, config, [name]))[name] === 'true';
    },
    schedule: {
      attempts: config.webhookMaxAttempts,
      delaysMs: config.webhookRetrySeconds.map((seconds) => seconds * 1_000),
    },
    adminsOf: (workspace) => adminNames(reads, workspace),
    keptMs: KEPT_MS,
    skipped: (error) => log.error({ err: error }, 'skipped an unreadable event: not delivered to webhooks'),
    outage: createOutage(log, 'webhooks are not delivered; trying again', 'webhooks are delivered again'),
    now: Date.now,
    random: Math.random,
  });
  const unwatch = following.reader.watch((position, events) => worker.notify(position, events));
  return {
    async retry() {
      const waiting = await queue.recall();
      worker.look();
      return waiting;
    },
    async close() {
      unwatch();
      await worker.close(config.shutdownTimeoutMs);
    },
  };
}
