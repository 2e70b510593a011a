/**
 * Whenever a rule with the action `webhook` triggers, its URL is called.
 *
 * At least once: the job retries until the receiver has responded with a success; the id of the message is derived from
 * the event's. The body is the event as it was, but the URL is the rule's current one, so that the next attempt uses a
 * corrected URL. The action `notification` needs no job: the notification follows from the event.
 */
import { z } from 'zod';
import type { EventStore } from '../../../shared/event-store.ts';
import { alertRuleTriggered } from '../../../shared/events/alerts/rules.ts';
import { catalogue } from '../../../shared/events/catalogue.ts';
import { messagesOf, type WebhookMessage } from '../../../shared/events/webhooks/messages.ts';
import { defineJob, handleJob, type JobHandler, type JobRun } from '../../../shared/ports/jobs.ts';
import type { Outgoing } from '../../../shared/ports/outgoing.ts';
import { DAY } from '../../../shared/time.ts';
import { ruleDecider, ruleStream } from '../../alerts/rules.ts';
import type { Commands } from '../../handler.ts';
import { bodyOf, headersOf } from '../../webhooks/signatures.ts';
import { definePolicy, type Policy, wantJob, whenever } from '../policy.ts';

/** Longer than the maximum time-out for a receiver (`WEBHOOK_TIMEOUT_MS`), milliseconds. */
const TIMEOUT_MS = 70_000;
/** Older triggers are not sent, milliseconds: a log that was moved must not raise its alerts again. */
const STALE_MS = DAY * 1_000;

export const alertCallJob = defineJob({
  name: 'alert-webhook',
  schema: z.object({
    workspace: z.int(),
    rule: z.int(),
    /** Revision of the event in the rule's stream. */
    revision: z.int(),
    /** When the rule triggered, Unix ms. */
    at: z.int(),
  }),
  timeoutMs: TIMEOUT_MS,
});
type CallPayload = z.infer<typeof alertCallJob.schema>;

/** A rule may trigger before any process has run the policies. */
export const alertPolicies: readonly Policy[] = [
  definePolicy(
    'alert-webhooks',
    [
      whenever(alertRuleTriggered, ({ data, meta, revision }) =>
        data.action_type === 'webhook'
          ? [wantJob(alertCallJob, { workspace: meta.workspace, rule: data.rule_id, revision, at: meta.at })]
          : [],
      ),
    ],
    'beginning',
  ),
];

export interface AlertCalls {
  readonly commands: Commands;
  readonly store: Pick<EventStore, 'log' | 'decode'>;
  readonly outgoing: Outgoing;
  /** Unix ms */
  readonly now: () => number;
}

/** The receiver did not accept a message. The error message may be shown. */
class UndeliveredError extends Error {}

export const alertJobs = (parts: AlertCalls): readonly JobHandler[] => [
  handleJob(alertCallJob, (payload, job) => call(parts, payload, job)),
];

/** @throws UndeliveredError when the call should be retried */
async function call(parts: AlertCalls, { workspace, rule: id, revision, at }: CallPayload, job: JobRun): Promise<void> {
  const { commands, store, outgoing, now } = parts;
  if (now() - at > STALE_MS) return;
  const stream = ruleStream(workspace, id);
  const { state } = await commands.load(ruleDecider, stream);
  const { url, secret } = state.rule.action_config;
  // The rule was deleted, or its action is now a notification.
  if (state.id === 0 || state.rule.action_type !== 'webhook' || typeof url !== 'string') return;
  const message = await messageAt(store, stream, revision);
  const sentAt = now();
  const body = bodyOf(message, sentAt);
  const secrets = typeof secret === 'string' ? [secret] : [];
  const headers = headersOf(message, { format: 'json', secrets, body, at: sentAt });
  const { status, error } = await outgoing.post({ url, headers, body }, job.signal);
  if (status !== null && status >= 200 && status < 300) return;
  throw new UndeliveredError(error ?? `The receiver responded with status ${status}.`);
}

/** The webhook message for a trigger event of a stream. */
async function messageAt(store: AlertCalls['store'], stream: string, revision: number): Promise<WebhookMessage> {
  const definition = catalogue.get(alertRuleTriggered.type);
  for await (const [event] of store.log.readStream(stream, { from: revision, limit: 1 })) {
    const message = event && definition && messagesOf(definition, await store.decode(event)).find(isTrigger);
    if (message) return message;
  }
  throw new Error(`${stream} has no trigger at revision ${revision}`);
}

const isTrigger = ({ type }: WebhookMessage): boolean => type === 'alert.triggered';
