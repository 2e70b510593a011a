/**
 * The ports of webhooks: the records of deliveries, and the queue of webhooks with work.
 *
 * Deliveries are not events: they are kept for a while and then removed, and nothing else depends on them. The log
 * itself holds the undelivered messages: each webhook has a position up to which the log has been delivered. Rebuilding
 * read models changes neither.
 */
import type { Position } from '../event-log.ts';

// --- Records ---------------------------------------------------------------------------------------------------------

/** One attempt. */
export interface NewDelivery {
  readonly workspace: number;
  readonly webhookId: number;
  /** The same for each attempt to deliver the same message. */
  readonly messageId: string;
  readonly eventType: string;
  /** The body as it was sent. */
  readonly payload: string;
  readonly statusCode: number | null;
  readonly responseBody: string | null;
  readonly error: string | null;
  readonly durationMs: number;
  /** From 0. */
  readonly attempt: number;
  readonly parentId: number | null;
  /** Unix ms. */
  readonly createdAt: number;
}
export interface Delivery extends NewDelivery {
  readonly id: number;
  /** Unix ms; null: there is no further automatic attempt. */
  readonly nextRetryAt: number | null;
}

/** The state of a webhook according to its deliveries. Times in Unix ms. */
export interface WebhookState {
  readonly lastFiredAt: number | null;
  /** -1: no response. */
  readonly lastStatus: number | null;
  /** Failed attempts in a row. */
  readonly failures: number;
  readonly total: number;
  readonly successful: number;
  readonly failed: number;
}

/** Number of newest deliveries that are kept per webhook, besides those that wait for a retry. */
export const KEPT_DELIVERIES = 200;

export interface WebhookRecords {
  /** Begins deliveries after a position. Does nothing for a known webhook. */
  begin(workspace: number, webhook: number, position: Position): Promise<void>;
  /** By webhook. */
  states(workspace: number): Promise<ReadonlyMap<number, WebhookState>>;
  /** Newest first. */
  list(
    workspace: number,
    filter: { readonly webhook: number | undefined; readonly limit: number; readonly offset: number },
  ): Promise<{ readonly deliveries: readonly Delivery[]; readonly total: number }>;
  find(workspace: number, delivery: number): Promise<Delivery | undefined>;
  /** How often personal texts were erased from the deliveries of a webhook. */
  erasures(workspace: number, webhook: number): Promise<number>;
  /**
   * Records a requested attempt.
   *
   * @param erasures before the attempt; if texts were erased since, the response may quote them and is left out
   * @returns its id; undefined if the webhook was deleted
   */
  record(delivery: NewDelivery, erasures: number): Promise<number | undefined>;
  /** Forgets failures. */
  reset(workspace: number, webhook: number): Promise<void>;
  /** Removes everything about a webhook. */
  remove(workspace: number, webhook: number): Promise<void>;
}

// --- The queue -------------------------------------------------------------------------------------------------------

/** A webhook for which one worker delivers, until the lease ends or is released. */
export interface Claim {
  readonly workspace: number;
  readonly webhook: number;
  /** The log has been delivered up to this position. */
  readonly position: Position;
  /** Failed attempts in a row. */
  readonly failures: number;
  /** Names this claim. */
  readonly lease: string;
  /** Position of the last event that has to be delivered. */
  readonly wanted: Position;
  /** How many deliveries wait for a retry. */
  readonly waiting: number;
}

/** The result of an attempt. */
export interface Outcome {
  readonly delivery: NewDelivery;
  /** Milliseconds until the next attempt; null: there is none. */
  readonly retryInMs: number | null;
  /** New position of the webhook; undefined: unchanged. */
  readonly position: Position | undefined;
}

/**
 * When a released webhook has work again. `now`: it has more. `retry`: when its next retry is due, or a new event
 * concerns it. `event`: when a new event concerns it.
 */
export type Resume = 'now' | 'retry' | 'event';

/** For each webhook that new events concern, the position of the last of them. */
export type Wanted = ReadonlyMap<number, Position>;

export interface WebhookQueue {
  /**
   * Registers webhooks; new ones begin at `position`.
   *
   * @param alone no other process can have a claim: existing claims are those of a dead process
   */
  register(
    webhooks: readonly { readonly workspace: number; readonly id: number }[],
    position: Position,
    alone: boolean,
  ): Promise<void>;
  /**
   * Claims the webhook that has waited longest, of those with work: events up to `wanted` that no worker has looked at,
   * a retry that is due, or a claim whose worker died.
   */
  claim(wanted: Wanted): Promise<Claim | undefined>;
  /**
   * When a webhook can next be claimed: a retry is due then, or a lease ends.
   *
   * @returns waitMs undefined: no webhook has work
   * @returns wanted those with events that no worker has looked at
   */
  next(wanted: Wanted): Promise<{ readonly waitMs: number | undefined; readonly wanted: ReadonlySet<number> }>;
  /** Extends a claim. @returns false when it was lost */
  renew(claim: Claim): Promise<boolean>;
  /** Deliveries of the webhook whose retry is due, oldest first. */
  due(claim: Claim, limit: number): Promise<readonly Delivery[]>;
  /** Those of these messages that were already delivered to the webhook. */
  delivered(claim: Claim, messages: readonly string[]): Promise<ReadonlySet<string>>;
  /**
   * Records an attempt, which replaces its parent's pending retry.
   *
   * @returns the failed attempts in a row, this one included; undefined when the claim was lost
   */
  record(claim: Claim, outcome: Outcome): Promise<number | undefined>;
  /** Ends a claim. */
  release(claim: Claim, to: { readonly position: Position; readonly resume: Resume }): Promise<void>;
  /** Makes webhooks claimable whose retries were held back. @returns how many deliveries wait for a retry */
  recall(): Promise<number>;
  /** Removes everything about a deleted webhook. */
  forget(claim: Claim): Promise<void>;
  /** Removes deliveries from before this time, Unix ms, except those that wait for a retry. */
  purge(before: number): Promise<void>;
}
