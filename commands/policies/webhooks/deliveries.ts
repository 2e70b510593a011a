/**
 * Whenever an event is written, it is delivered to the webhooks of its workspace that subscribe to it.
 *
 * The log is the queue. Each webhook has an acknowledged position; a worker that has claimed the webhook continues from
 * there and sends one message after the other. The subscriptions at the time of an event decide whether the webhook
 * receives it, so a later change, or a period in which it was disabled, has the same effect however late the delivery
 * is.
 *
 * A message that fails waits for its retry, and the next one is sent: order is kept as long as the receiver keeps up.
 * When so many attempts in a row have failed that the circuit is open, new messages wait in the log until a retry
 * succeeds.
 */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { EventUnreadableError } from '../../../shared/errors.ts';
import type { EventStore } from '../../../shared/event-store.ts';
import { catalogue } from '../../../shared/events/catalogue.ts';
import type { DomainEvent, EventDefinition } from '../../../shared/events/define.ts';
import { type FrameNames, framesOf, shownFrames } from '../../../shared/events/monitoring/frames.ts';
import {
  eventOfMessage,
  isChosen,
  MESSAGE_EVENTS,
  messagesOf,
  type WebhookMessage,
} from '../../../shared/events/webhooks/messages.ts';
import type { LoggedEvent, Position } from '../../../shared/ports/event-log.ts';
import { defineJob } from '../../../shared/ports/jobs.ts';
import type { Outgoing } from '../../../shared/ports/outgoing.ts';
import type { Claim, Delivery, WebhookQueue } from '../../../shared/ports/webhooks/deliveries.ts';
import { pause } from '../../../shared/waiting.ts';
import type { Commands } from '../../handler.ts';
import {
  type Attempted,
  type AttemptNumber,
  attempt,
  isOpen,
  isSuccess,
  judge,
  messageOf,
  type RetrySchedule,
} from '../../webhooks/deliveries.ts';
import { decideTrip, type WebhookState, webhookDecider, webhookStream } from '../../webhooks/webhooks.ts';
import { scheduledContext } from '../policy.ts';
import { createLogCache, type LogCache } from './log-cache.ts';

/** Delivers pending messages to webhooks until none is left. */
export const deliveryJob = defineJob({ name: 'webhook-deliveries', schema: z.object({}), timeoutMs: 120_000 });

/** How long one job runs, milliseconds; a started attempt is completed. */
const JOB_MS = 45_000;
/** How long one webhook receives messages before others take their turn, milliseconds. */
const TURN_MS = 15_000;
/** Webhooks that one process serves concurrently. Slow receivers must not take all slots from other jobs. */
const AT_ONCE = 5;
/** The job waits for a retry that is due this soon, because jobs do not start exactly on time. Milliseconds. */
const SOON_MS = 1_000;
/** Minimum wait: the database's clock decides what is due, and may be slightly behind. Milliseconds. */
const LEAST_WAIT_MS = 5;
/** Retries that are read together. */
const RETRIES = 20;
/** Number of messages after which retries and the webhook's settings are checked again. */
const MESSAGES = 20;
/** Messages of a webhook that may wait for a retry; at this number, new ones wait in the log. */
const MAX_PENDING = 1_000;
/** A lease that was taken or renewed this recently need not be renewed; it lasts much longer. Milliseconds. */
const FRESH_MS = 1_000;

export interface DeliveryWork {
  readonly commands: Commands;
  readonly store: Pick<EventStore, 'log' | 'decode'>;
  readonly names: FrameNames;
  readonly queue: WebhookQueue;
  readonly outgoing: Outgoing;
  readonly schedule: RetrySchedule;
  /** Whether failed deliveries are retried automatically. If not, failed deliveries wait. */
  readonly retries: () => Promise<boolean>;
  /** Runs another job at this time, Unix ms. */
  readonly again: (at: number) => Promise<void>;
  /** Called for events that cannot be read; they are skipped. */
  readonly skipped: (error: EventUnreadableError) => void;
  /** Unix ms */
  readonly now: () => number;
  /** 0 to 1 */
  readonly random: () => number;
}

/** Delivers for all webhooks with pending work. One per process: it limits the concurrent deliveries of the process. */
export function createDeliveries(work: DeliveryWork): (signal: AbortSignal) => Promise<void> {
  let running = 0;
  const logCache = createLogCache(work.store.log);
  return async (signal) => {
    // The running jobs continue until nothing is left to do.
    if (running >= AT_ONCE) return;
    running++;
    const until = work.now() + JOB_MS;
    try {
      while (!signal.aborted) {
        const claim = await work.queue.claim();
        if (claim) await new Turn(work, logCache, claim, signal).take();
        if (work.now() >= until) return await work.again(work.now());
        if (claim) continue;
        const at = await work.queue.next();
        if (at === undefined) return;
        const waitMs = at - work.now();
        if (waitMs > SOON_MS) return await work.again(at);
        await pause(Math.max(waitMs, LEAST_WAIT_MS), signal, { ref: true });
      }
    } finally {
      running--;
    }
  };
}

/** The webhook as it was after one of its events. */
interface Version {
  readonly position: Position;
  readonly state: WebhookState;
}

/** Why a turn ends. `waits`: until a notification or a due retry. `unfinished`: it continues as soon as possible. */
type Ending = 'waits' | 'disabled' | 'unfinished';
/** There is no claim to release: another process has it, or the webhook was deleted. */
type Gone = 'lost' | 'deleted';

class Turn {
  readonly #work: DeliveryWork;
  readonly #logCache: LogCache;
  readonly #claim: Claim;
  readonly #signal: AbortSignal;
  readonly #until: number;
  #failures: number;
  /** When the lease was taken or last renewed, Unix ms. */
  #leased: number;
  /** Messages may be waiting for a retry. */
  #waiting: boolean;
  #retries = true;
  /** Everything up to this position has been delivered. */
  #position: Position;
  #tenant = 1;

  constructor(work: DeliveryWork, logCache: LogCache, claim: Claim, signal: AbortSignal) {
    this.#work = work;
    this.#logCache = logCache;
    this.#claim = claim;
    this.#signal = signal;
    this.#leased = work.now();
    this.#until = this.#leased + TURN_MS;
    this.#failures = claim.failures;
    this.#waiting = claim.waiting > 0;
    this.#position = claim.position;
  }

  async take(): Promise<void> {
    const { queue } = this.#work;
    const ending = await this.#go();
    if (ending === 'lost') return;
    if (ending === 'deleted') return queue.forget(this.#claim);
    const done = ending !== 'unfinished';
    const retries = ending !== 'disabled' && this.#retries;
    await queue.release(this.#claim, { position: this.#position, done, retries });
  }

  async #go(): Promise<Ending | Gone> {
    const { queue, now } = this.#work;
    for (;;) {
      const versions = await this.#versions();
      const { state } = versions.at(-1) ?? {};
      if (!state || state.id === 0) return 'deleted';
      if (!state.enabled) return 'disabled';
      if (this.#isOver()) return 'unfinished';
      if (this.#waiting) {
        this.#retries = await this.#work.retries();
        let retried = false;
        for (const delivery of this.#retries ? await queue.due(this.#claim, now(), RETRIES) : []) {
          if (this.#isOver()) return 'unfinished';
          const kept = await this.#retry(state, delivery);
          if (kept !== 'enabled') return kept;
          retried = true;
        }
        // After retries, check the webhook again: one of them may have closed the circuit.
        if (retried) continue;
        const waiting = await queue.pending(this.#claim);
        this.#waiting = waiting > 0;
        const held = isOpen(this.#failures, this.#work.schedule) ? waiting > 0 : waiting >= MAX_PENDING;
        if (held && this.#retries) return 'waits';
      }
      // With no retry pending, a single new message shows whether the receiver has recovered.
      const most = isOpen(this.#failures, this.#work.schedule) ? 1 : MESSAGES;
      const told = await this.#tell(versions, state, most);
      if (told !== 'more') return told;
    }
  }

  #isOver(): boolean {
    return this.#signal.aborted || this.#work.now() >= this.#until;
  }

  /** The webhook after each of its events, oldest first. */
  async #versions(): Promise<readonly Version[]> {
    const { store } = this.#work;
    const { workspace, webhook } = this.#claim;
    const versions: Version[] = [];
    let state = webhookDecider.initial;
    for await (const events of store.log.readStream(webhookStream(workspace, webhook))) {
      for (const logged of events) {
        const event = await store.decode(logged);
        state = webhookDecider.evolve(state, { type: event.type, data: event.data, at: event.meta.at });
        versions.push({ position: event.position, state });
        this.#tenant = event.meta.tenant;
      }
    }
    return versions;
  }

  /** Sends the next messages, up to a limit, and none after one that opens the circuit. `more`: there may be others. */
  async #tell(versions: readonly Version[], webhook: WebhookState, most: number): Promise<Ending | Gone | 'more'> {
    let sent = 0;
    // New events and retries that become due lead to another claim.
    while (this.#position < this.#claim.wanted) {
      if (this.#isOver()) return 'unfinished';
      const page = await this.#logCache.after(this.#position);
      if (page.length === 0) break;
      for (const logged of page) {
        const messages = await this.#messagesFor(versions, logged);
        for (const [index, message] of messages.entries()) {
          if (this.#isOver()) return 'unfinished';
          if (sent >= most || (sent > 0 && isOpen(this.#failures, this.#work.schedule))) return 'more';
          sent++;
          // The position moves only after the last message of an event: if the worker dies, another one sends the rest.
          const position = index === messages.length - 1 ? logged.position : undefined;
          const kept = await this.#send(webhook, message, { number: 0, parent_id: null, position });
          if (kept !== 'enabled') return kept;
        }
        this.#position = logged.position;
      }
    }
    return 'waits';
  }

  /** The messages of this event for this webhook, without those already delivered. */
  async #messagesFor(versions: readonly Version[], logged: LoggedEvent): Promise<readonly WebhookMessage[]> {
    const { store, queue, skipped, names } = this.#work;
    if (logged.meta.workspace !== this.#claim.workspace || !MESSAGE_EVENTS.has(logged.type)) return [];
    const then = versions.findLast(({ position }) => position < logged.position)?.state;
    if (!then?.enabled) return [];
    let event: DomainEvent;
    try {
      event = await store.decode(logged);
    } catch (error) {
      if (!(error instanceof EventUnreadableError)) throw error;
      skipped(error);
      return [];
    }
    const definition = catalogue.get(event.type) as EventDefinition;
    const frames = framesOf(definition, event);
    const isWanted = ({ type }: WebhookMessage) => isChosen(then.events, type);
    if (!messagesOf(definition, event, frames).some(isWanted)) return [];
    const shown = await shownFrames(frames, event, names);
    const chosen = messagesOf(definition, event, shown).filter(isWanted);
    // The record of an event's only message also moves the position, so that message cannot have been delivered before.
    if (chosen.length <= 1) return chosen;
    const told = await queue.told(
      this.#claim,
      chosen.map(({ id }) => id),
    );
    return chosen.filter(({ id }) => !told.has(id));
  }

  #retry(webhook: WebhookState, delivery: Delivery): Promise<Ending | Gone | 'enabled'> {
    return this.#send(webhook, messageOf(delivery), {
      number: delivery.attempt + 1,
      parent_id: delivery.id,
      position: undefined,
    });
  }

  /** Ensures that the lease outlasts an attempt. @returns the failures in a row; undefined when the claim was lost */
  async #renewed(): Promise<number | undefined> {
    const now = this.#work.now();
    if (now - this.#leased < FRESH_MS) return this.#failures;
    const failures = await this.#work.queue.renew(this.#claim);
    this.#leased = now;
    return failures;
  }

  /** Sends one message and records the result. `enabled`: continue. */
  async #send(
    webhook: WebhookState,
    message: WebhookMessage,
    { position, ...attempted }: AttemptNumber & { readonly position: Position | undefined },
  ): Promise<Ending | Gone | 'enabled'> {
    const { outgoing, schedule, now, random, queue } = this.#work;
    const before = await this.#renewed();
    if (before === undefined) return 'lost';
    const to = { ...webhook, workspace: this.#claim.workspace };
    let done: Attempted;
    try {
      done = await attempt(outgoing, to, message, { ...attempted, at: now(), signal: this.#signal });
    } catch (error) {
      // An abort because this process stops says nothing about the receiver.
      if (this.#signal.aborted) return 'unfinished';
      throw error;
    }
    const success = isSuccess(done);
    const verdict = judge({ attempt: attempted.number, success, failures: before }, schedule, { now: now(), random });
    const { failures, nextRetryAt, trips } = verdict;
    if (!(await queue.settle(this.#claim, { delivery: { ...done, nextRetryAt }, failures, position }))) return 'lost';
    this.#failures = failures;
    this.#waiting ||= nextRetryAt !== null;
    if (position !== undefined) this.#position = position;
    if (!trips) return 'enabled';
    const { workspace, webhook: id } = this.#claim;
    const { origin } = scheduledContext(randomUUID(), this.#tenant, workspace);
    // The event of the undelivered message is recorded as the cause.
    const context = { origin: { ...origin, causationId: eventOfMessage(message.id) ?? null } };
    await this.#work.commands.execute(webhookDecider, webhookStream(workspace, id), context, (state) =>
      decideTrip(state, failures),
    );
    return 'disabled';
  }
}
