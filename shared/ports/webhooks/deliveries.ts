/**
 * The ports of webhooks: the records of deliveries, and the queue of pending ones.
 *
 * Deliveries are not events: they are kept for a while and then removed, and nothing else depends on them. The log
 * itself is the queue: each webhook has a position up to which the log has been delivered. Rebuilding read models
 * changes neither.
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
  /** Unix ms; null: there is no further automatic attempt. */
  readonly nextRetryAt: number | null;
  /** Unix ms. */
  readonly createdAt: number;
}
export interface Delivery extends NewDelivery {
  readonly id: number;
}

/** The state of a webhook according to its deliveries. Times in Unix ms. */
export interface WebhookState {
  readonly lastFiredAt: number | null;
  /** -1: no answer. */
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
  /** Records a requested attempt. @returns its id; undefined if the webhook was deleted */
  record(delivery: NewDelivery): Promise<number | undefined>;
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
  readonly failures: number;
  /** New position of the webhook; undefined: unchanged. */
  readonly position: Position | undefined;
}

export interface WebhookQueue {
  /**
   * Registers all these webhooks; new ones begin at `position`. Then notifies all.
   *
   * @param alone no other process can have a claim: existing claims are those of a dead process
   */
  resume(
    webhooks: readonly { readonly workspace: number; readonly id: number }[],
    position: Position,
    alone: boolean,
  ): Promise<void>;
  /** Notifies webhooks of events to deliver, up to a position. @returns how many of them had not been notified yet */
  wake(webhooks: readonly number[], position: Position): Promise<number>;
  /** Takes the webhook that has waited longest; undefined when none has pending work. */
  claim(): Promise<Claim | undefined>;
  /** When a webhook can next be claimed, Unix ms: a retry is due then, or the lease of one with pending work ends. */
  next(): Promise<number | undefined>;
  /** Extends a claim. @returns the failures in a row, which may have been reset; undefined if the claim was lost */
  renew(claim: Claim): Promise<number | undefined>;
  /** Deliveries of the webhook whose retry is due (Unix ms), oldest first. */
  due(claim: Claim, now: number, limit: number): Promise<readonly Delivery[]>;
  /** How many deliveries of the webhook wait for a retry. */
  pending(claim: Claim): Promise<number>;
  /** Those of these messages that were already delivered to the webhook. */
  told(claim: Claim, messages: readonly string[]): Promise<ReadonlySet<string>>;
  /** Records an attempt, which replaces its parent's pending retry. @returns false when the claim was lost */
  settle(claim: Claim, outcome: Outcome): Promise<boolean>;
  /**
   * Releases a claim.
   *
   * @param to.done no work is left until the webhook is notified or a retry is due
   * @param to.retries false: retries wait until the webhook is notified
   */
  release(
    claim: Claim,
    to: { readonly position: Position; readonly done: boolean; readonly retries: boolean },
  ): Promise<void>;
  /** Makes webhooks with held-back retries claimable again. @returns how many deliveries wait for a retry */
  recall(): Promise<number>;
  /** Removes everything about a deleted webhook. */
  forget(claim: Claim): Promise<void>;
  /** Removes deliveries from before this time, Unix ms, except those that wait for a retry. */
  purge(before: number): Promise<void>;
}
