/**
 * The ports of webhooks: the records of what was delivered, and the queue of what is to be.
 *
 * Deliveries are not events: they are kept for a while and then removed, and nothing else follows from them. The log
 * itself is the queue: for each webhook a position says up to where the log has been delivered. Rebuilding read models
 * touches neither.
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
  /** Unix ms; null: there is no further attempt by itself. */
  readonly nextRetryAt: number | null;
  /** Unix ms. */
  readonly createdAt: number;
}
export interface Delivery extends NewDelivery {
  readonly id: number;
}

/** What the deliveries of a webhook say of it. Times in Unix ms. */
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

/** Newest deliveries that are kept for a webhook, besides those that will be tried again. */
export const KEPT_DELIVERIES = 200;

export interface WebhookRecords {
  /** Begins to deliver what comes after a position. Does nothing for a webhook that is known. */
  begin(workspace: number, webhook: number, position: Position): Promise<void>;
  /** By webhook. */
  states(workspace: number): Promise<ReadonlyMap<number, WebhookState>>;
  /** Newest first. */
  list(
    workspace: number,
    filter: { readonly webhook: number | undefined; readonly limit: number; readonly offset: number },
  ): Promise<{ readonly deliveries: readonly Delivery[]; readonly total: number }>;
  find(workspace: number, delivery: number): Promise<Delivery | undefined>;
  /** Records a requested attempt. Gives its id; undefined if the webhook was deleted. */
  record(delivery: NewDelivery): Promise<number | undefined>;
  /** Forgets failures. */
  reset(workspace: number, webhook: number): Promise<void>;
  /** Removes everything about a webhook. */
  remove(workspace: number, webhook: number): Promise<void>;
}

// --- The queue -------------------------------------------------------------------------------------------------------

/** A webhook that one worker delivers for, until the lease ends or it is released. */
export interface Claim {
  readonly workspace: number;
  readonly webhook: number;
  /** The log has been delivered up to here. */
  readonly position: Position;
  readonly failures: number;
  /** Names this claim. */
  readonly lease: string;
  /** The event up to which there was something to deliver. */
  readonly wanted: Position;
  /** How many deliveries will be tried again. */
  readonly waiting: number;
}

/** What an attempt leaves behind. */
export interface Outcome {
  readonly delivery: NewDelivery;
  readonly failures: number;
  /** Moves the webhook on; undefined: it stays where it is. */
  readonly position: Position | undefined;
}

export interface WebhookQueue {
  /**
   * Makes sure that all these webhooks are known; those that are not begin at `position`. Then wakes all.
   *
   * @param alone nobody else can have a claim: what there is of them was left by a process that died
   */
  resume(
    webhooks: readonly { readonly workspace: number; readonly id: number }[],
    position: Position,
    alone: boolean,
  ): Promise<void>;
  /**
   * There is something to deliver to these webhooks, up to a position.
   *
   * @returns for how many of them nobody knew that already
   */
  wake(webhooks: readonly number[], position: Position): Promise<number>;
  /** Takes the webhook that has waited longest; undefined when none has anything to do. */
  claim(): Promise<Claim | undefined>;
  /** When a webhook can be claimed, Unix ms: a retry is due then, or the lease on one with something to do ends. */
  next(): Promise<number | undefined>;
  /** Prolongs a claim. Gives the failures in a row, which may have been reset; undefined if the claim was lost. */
  renew(claim: Claim): Promise<number | undefined>;
  /** Deliveries of the webhook that are to be tried again by now (Unix ms), oldest first. */
  due(claim: Claim, now: number, limit: number): Promise<readonly Delivery[]>;
  /** How many deliveries of the webhook will be tried again. */
  pending(claim: Claim): Promise<number>;
  /** Those of these messages that the webhook has received. */
  told(claim: Claim, messages: readonly string[]): Promise<ReadonlySet<string>>;
  /** Records an attempt, which takes the place of the retry that its parent was waiting for. False when the claim was lost. */
  settle(claim: Claim, outcome: Outcome): Promise<boolean>;
  /**
   * Gives a claim back.
   *
   * @param to.done there is nothing more to do until the webhook is woken or a retry is due
   * @param to.retries false: those wait until the webhook is woken
   */
  release(
    claim: Claim,
    to: { readonly position: Position; readonly done: boolean; readonly retries: boolean },
  ): Promise<void>;
  /** Lets webhooks be claimed again whose retries had to wait. Gives how many deliveries wait to be tried again. */
  recall(): Promise<number>;
  /** Removes everything about a webhook that is gone. */
  forget(claim: Claim): Promise<void>;
  /** Removes deliveries from before this time, Unix ms, besides those that will be tried again. */
  purge(before: number): Promise<void>;
}
