/**
 * The ports of webhooks: requests to their URLs, and the records of what was delivered.
 *
 * Deliveries are not events: they are kept for a while and then removed, and nothing else follows from them. The log
 * itself is the queue: for each webhook a position says up to where the log has been delivered. Rebuilding read models
 * touches neither.
 */
import type { Position } from './event-log.ts';

// --- Requests --------------------------------------------------------------------------------------------------------

export interface OutgoingRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** How a request ended. Without an answer there is an `error`; it can be shown. */
export interface OutgoingResult {
  readonly status: number | null;
  /** The beginning of the answer's body. */
  readonly body: string | null;
  readonly error: string | null;
  readonly durationMs: number;
}

export interface Outgoing {
  /**
   * Posts to a URL that a user has given. Only public addresses are connected to, unless the operator has allowed
   * others; redirects are not followed; it takes no longer than the configured time-out.
   *
   * @throws what the signal aborts with; every other failure is a result
   */
  post(request: OutgoingRequest, signal?: AbortSignal): Promise<OutgoingResult>;
}

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
  /** Records an attempt that somebody has asked for. Gives its id; undefined when the webhook is gone. */
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
}

/** What an attempt leaves behind. */
export interface Outcome {
  readonly delivery: NewDelivery;
  readonly failures: number;
  /** Moves the webhook on; undefined: it stays where it is. */
  readonly position: Position | undefined;
}

export interface WebhookQueue {
  /** Makes sure that all these webhooks are known; those that are not begin at `position`. Then wakes all. */
  resume(webhooks: readonly { readonly workspace: number; readonly id: number }[], position: Position): Promise<void>;
  /**
   * There is something to deliver in these workspaces, up to a position.
   *
   * @returns for how many webhooks nobody knew that already
   */
  wake(workspaces: readonly number[], position: Position): Promise<number>;
  /** Takes the webhook that has waited longest; undefined when none has anything to do. */
  claim(): Promise<Claim | undefined>;
  /** Prolongs a claim. False when it was lost. */
  renew(claim: Claim): Promise<boolean>;
  /** Deliveries of the webhook that are to be tried again by now (Unix ms), oldest first. */
  due(claim: Claim, now: number, limit: number): Promise<readonly Delivery[]>;
  /** How many deliveries of the webhook will be tried again. */
  pending(claim: Claim): Promise<number>;
  /** Those of these messages that the webhook has been told of. */
  told(claim: Claim, messages: readonly string[]): Promise<ReadonlySet<string>>;
  /** Records an attempt, which takes the place of the retry that its parent was waiting for. False when the claim was lost. */
  settle(claim: Claim, outcome: Outcome): Promise<boolean>;
  /**
   * Gives a claim back.
   *
   * @param to.done there is nothing more to do until the webhook is woken or a retry is due
   * @param to.retries false: those wait until the webhook is woken
   * @returns when the next retry is due, Unix ms
   */
  release(
    claim: Claim,
    to: { readonly position: Position; readonly done: boolean; readonly retries: boolean },
  ): Promise<number | undefined>;
  /** Removes deliveries that nobody has to keep. */
  purge(before: number): Promise<void>;
}
