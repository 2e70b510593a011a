/**
 * Delivers events to the webhooks of their workspace. One loop per worker process:
 *
 *     claim → send → record → sleep until the next delivery is due or a notification comes
 *
 * The log holds the undelivered messages: each webhook has a position up to which it has been served. A worker claims a
 * webhook with a lease, so one worker at a time sends to it, in log order; a worker that dies loses its claims to the
 * others. A claim is a small batch, and the webhook that has waited longest comes first, so none starves another.
 *
 * A message that fails waits for its retry, and the next one is sent: order is kept as long as the receiver keeps up.
 * When so many attempts in a row have failed that the circuit is open, new messages wait in the log until a retry
 * succeeds.
 *
 * A message is recorded after it was sent: it is delivered at least once, with an id derived from that of its event.
 */
import { eventOfMessage, type WebhookMessage } from '../../../shared/events/webhooks/messages.ts';
import { newId } from '../../../shared/ids.ts';
import type { LoggedEvent, Position } from '../../../shared/ports/event-log.ts';
import type { Outgoing } from '../../../shared/ports/outgoing.ts';
import type { Claim, Resume, WebhookQueue } from '../../../shared/ports/webhooks/queue.ts';
import { createBackOff, createNotice, type Outage, pause, settledWithin } from '../../../shared/waiting.ts';
import type { Commands } from '../../handler.ts';
import { isOpen, type RetrySchedule, retryAfterMs, retryDelay } from '../../webhooks/retries.ts';
import { type Attempted, type AttemptNumber, attempt, isGone, isSuccess, messageOf } from '../../webhooks/sending.ts';
import { decideTrip, type WebhookState, webhookDecider, webhookStream } from '../../webhooks/webhooks.ts';
import { scheduledContext } from '../policy.ts';
import type { LogCache } from './log-cache.ts';
import { historyOf, type MessageParts, undelivered, type WebhookHistory } from './messages.ts';
import type { Subscribers } from './subscribers.ts';

/** Webhooks that one process serves concurrently. */
const AT_ONCE = 20;
/** Messages that are sent under one claim. */
const BATCH = 20;
/** How long a claim sends messages before other webhooks take their turn, milliseconds; a started attempt is completed. */
const TURN_MS = 5_000;
/** Messages of a webhook that may wait for a retry; at this number, new ones wait in the log. */
const MAX_WAITING = 1_000;
/** A lease that was taken or renewed this recently need not be renewed; it lasts much longer. Milliseconds. */
const FRESH_MS = 1_000;
/** The longest sleep: other workers do not say which retries they leave behind. Milliseconds. */
const SLEEP_MS = 30_000;
/** Interval between removals of old deliveries, milliseconds. */
const PURGE_MS = 3_600_000;
const BACK_OFF = { firstMs: 250, lastMs: 5_000 };

export interface WorkerParts extends Omit<MessageParts, 'queue'> {
  readonly commands: Commands;
  readonly subscribers: Subscribers;
  readonly log: LogCache;
  readonly queue: WebhookQueue;
  readonly outgoing: Outgoing;
  readonly schedule: RetrySchedule;
  /** Whether failed deliveries are retried automatically. If not, failed deliveries wait. */
  readonly retries: () => Promise<boolean>;
  /** Usernames of a workspace's admins, who are notified when a webhook is disabled. */
  readonly adminsOf: (workspace: number) => Promise<readonly string[]>;
  /** How long deliveries are kept, milliseconds. */
  readonly keptMs: number;
  /** Reports failures of the stores; the worker tries again. */
  readonly outage: Outage;
  /** Unix ms */
  readonly now: () => number;
  /** 0 to 1 */
  readonly random: () => number;
}

export interface WebhookWorker {
  /** Notifies the worker of new events, up to a position. Does not throw. */
  notify(position: Position, events: readonly Pick<LoggedEvent, 'type' | 'meta'>[]): void;
  /** Makes the worker look for work now. */
  look(): void;
  /** Ends the loop. Started attempts are completed, for this many milliseconds at most; the rest is left to others. */
  close(withinMs: number): Promise<void>;
}

/** Starts to deliver. One per process: it limits the concurrent deliveries of the process. */
export function startWebhookWorker(parts: WorkerParts): WebhookWorker {
  const { subscribers, queue, outage, now } = parts;
  const stopping = new AbortController();
  /** Aborts started attempts. */
  const aborting = new AbortController();
  const signals: Signals = { stopping: stopping.signal, aborting: aborting.signal };
  const serving = new Set<Promise<void>>();
  const notice = createNotice();
  /** Position of the last event of which the worker was notified. */
  let newest: Position = 0;
  let looks = true;
  let purgedAt = 0;
  const isBehind = () => subscribers.position === undefined || subscribers.position < newest;

  function serve(claim: Claim): void {
    const served = serveClaim(parts, claim, signals)
      .catch((error) => outage.failed(error, { webhook: claim.webhook }))
      .finally(() => {
        serving.delete(served);
        notice.give();
      });
    serving.add(served);
  }

  /** Milliseconds until a webhook can be claimed. */
  async function untilNext(): Promise<number> {
    const wanted = new Map(subscribers.wanted);
    const next = await queue.next(wanted);
    for (const id of next.wanted) wanted.delete(id);
    // Other workers have claimed these.
    subscribers.seen(wanted);
    return Math.min(next.waitMs ?? SLEEP_MS, SLEEP_MS);
  }

  async function purge(): Promise<void> {
    if (now() - purgedAt < PURGE_MS) return;
    await queue.purge(now() - parts.keptMs);
    purgedAt = now();
  }

  async function step(): Promise<void> {
    if (looks || isBehind()) {
      looks = false;
      if (!(await subscribers.examine())) newest = 0;
    }
    const isFree = serving.size < AT_ONCE && subscribers.any;
    const claim = isFree ? await queue.claim(subscribers.wanted) : undefined;
    if (claim) {
      subscribers.seen(new Map([[claim.webhook, claim.wanted]]));
      return serve(claim);
    }
    if (isBehind()) return;
    if (isFree) await purge();
    const given = await notice.within(isFree ? await untilNext() : SLEEP_MS, stopping.signal);
    looks ||= !given;
  }

  async function run(): Promise<void> {
    const backOff = createBackOff(BACK_OFF);
    while (!stopping.signal.aborted) {
      try {
        await step();
        outage.worked();
        backOff.reset();
      } catch (error) {
        looks = true;
        outage.failed(error);
        await pause(backOff.next(), stopping.signal);
      }
    }
    await Promise.all(serving);
  }

  const running = run();
  return {
    notify(position, events) {
      if (!events.some((event) => subscribers.mayConcern(event))) return;
      newest = position;
      notice.give();
    },
    look() {
      looks = true;
      notice.give();
    },
    async close(withinMs) {
      stopping.abort();
      if (!(await settledWithin(withinMs, running))) aborting.abort(new Error('the process is shutting down'));
      await running;
    },
  };
}

interface Signals {
  /** No further attempt is started. */
  readonly stopping: AbortSignal;
  /** Started attempts are aborted. */
  readonly aborting: AbortSignal;
}

/** A claimed webhook while messages are sent to it. */
interface Serving {
  readonly claim: Claim;
  readonly webhook: WebhookState;
  readonly tenant: number;
  readonly signals: Signals;
  /** Everything up to here has been delivered. */
  position: Position;
  /** Failed attempts in a row. */
  failures: number;
  /** When the lease was taken or last renewed, Unix ms. */
  leasedAt: number;
}

/** Sends what is due to a claimed webhook, and releases it. */
async function serveClaim(parts: WorkerParts, claim: Claim, signals: Signals): Promise<void> {
  const leasedAt = parts.now();
  const history = await historyOf(parts.store, claim);
  const webhook = history.versions.at(-1)?.state;
  if (!webhook || webhook.id === 0) return parts.queue.forget(claim);
  const { position, failures } = claim;
  const serving: Serving = { claim, webhook, tenant: history.tenant, signals, position, failures, leasedAt };
  const resume = webhook.enabled ? await deliver(parts, serving, history) : 'event';
  if (resume !== 'lost') await parts.queue.release(claim, { position: serving.position, resume });
}

/** Sends a batch: retries that are due, or new messages. @returns `lost`: another worker has the claim */
async function deliver(parts: WorkerParts, serving: Serving, history: WebhookHistory): Promise<Resume | 'lost'> {
  const { queue, schedule, now } = parts;
  const { claim, signals } = serving;
  const until = now() + TURN_MS;
  let steps = 0;
  const isOver = () => signals.stopping.aborted || (steps++ > 0 && now() >= until);
  const retries = claim.waiting === 0 || (await parts.retries());
  if (claim.waiting > 0 && retries) {
    const due = await queue.due(claim, BATCH);
    for (const delivery of due) {
      if (isOver()) return 'now';
      const number = { number: delivery.attempt + 1, parent_id: delivery.id };
      const result = await send(parts, serving, messageOf(delivery), number);
      if (result !== 'sent') return result;
    }
    // One of them may have closed the circuit.
    if (due.length > 0) return 'now';
    if (isOpen(serving.failures, schedule) || claim.waiting >= MAX_WAITING) return 'retry';
  }
  // With no retry pending, a single new message shows whether the receiver has recovered.
  const most = isOpen(serving.failures, schedule) ? 1 : BATCH;
  let sent = 0;
  for await (const { message, position } of undelivered(parts, parts.log, claim, history)) {
    if (isOver()) return 'now';
    if (message) {
      // No message follows one that opens the circuit.
      if (sent >= most || (sent > 0 && isOpen(serving.failures, schedule))) return 'now';
      sent++;
      const result = await send(parts, serving, message, { number: 0, parent_id: null }, position);
      if (result !== 'sent') return result;
    } else if (position !== undefined) serving.position = position;
  }
  return retries ? 'retry' : 'event';
}

/** Sends one message and records the result. @param position the webhook's position afterwards, if it moves */
async function send(
  parts: WorkerParts,
  serving: Serving,
  message: WebhookMessage,
  number: AttemptNumber,
  position?: Position,
): Promise<Resume | 'lost' | 'sent'> {
  const { queue, outgoing, schedule, now, random } = parts;
  const { claim, webhook, signals } = serving;
  if (!(await isLeased(parts, serving))) return 'lost';
  let attempted: Attempted;
  try {
    const to = { ...webhook, workspace: claim.workspace };
    attempted = await attempt(outgoing, to, message, { ...number, at: now(), signal: signals.aborting });
  } catch (error) {
    // An abort because this process stops says nothing about the receiver.
    if (signals.aborting.aborted) return 'now';
    throw error;
  }
  const { delivery, retryAfter } = attempted;
  const pauseMs = isSuccess(delivery) ? null : retryDelay(number.number, schedule, random);
  const retryInMs = pauseMs === null ? null : Math.max(pauseMs, retryAfterMs(retryAfter, now()));
  const failures = await queue.record(claim, { delivery, retryInMs, position });
  if (failures === undefined) return 'lost';
  serving.failures = failures;
  if (position !== undefined) serving.position = position;
  if (isSuccess(delivery)) return 'sent';
  const isUsedUp = retryInMs === null && isOpen(failures, schedule);
  if (!isGone(delivery) && !isUsedUp) return 'sent';
  await disable(parts, serving, message, isGone(delivery) ? 'gone' : 'failures');
  return 'event';
}

/** Ensures that the lease outlasts an attempt. @returns false when the claim was lost */
async function isLeased({ queue, now }: WorkerParts, serving: Serving): Promise<boolean> {
  const at = now();
  if (at - serving.leasedAt < FRESH_MS) return true;
  serving.leasedAt = at;
  return queue.renew(serving.claim);
}

/** The event of the undelivered message is recorded as the cause. */
async function disable(
  { commands, adminsOf }: WorkerParts,
  { claim, tenant, failures }: Serving,
  message: WebhookMessage,
  reason: 'failures' | 'gone',
): Promise<void> {
  const { origin } = scheduledContext(newId(), tenant, claim.workspace);
  const context = { origin: { ...origin, causationId: eventOfMessage(message.id) ?? null } };
  const admins = await adminsOf(claim.workspace);
  await commands.execute(webhookDecider, webhookStream(claim.workspace, claim.webhook), context, (state) =>
    decideTrip(state, { reason, failures }, admins),
  );
}
