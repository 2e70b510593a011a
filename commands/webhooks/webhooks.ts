/** Webhooks: create, change, delete, and disable when deliveries fail too often. */
import { randomBytes } from 'node:crypto';
import { notFound } from '../../shared/errors.ts';
import type { EventDraft, EventOf } from '../../shared/events/define.ts';
import { notificationRaised } from '../../shared/events/monitoring/notifications.ts';
import {
  type WebhookChanges,
  type WebhookFields,
  webhookCreated,
  webhookDeleted,
  webhookTripped,
  webhookUpdated,
} from '../../shared/events/webhooks/webhooks.ts';
import { sent } from '../../shared/fields.ts';
import type { Position } from '../../shared/ports/event-log.ts';
import { DAY } from '../../shared/time.ts';
import { defineDecider, on } from '../decider.ts';
import type { CommandContext, Commands } from '../handler.ts';
import { type Limit, type LimitParts, withinLimit } from '../limits.ts';
import { createRecord, onRecord } from '../record-ids.ts';

/** Everything that deliveries need. Stored only in the log, where address and secret are sealed. */
export interface WebhookState extends Readonly<WebhookFields> {
  /** 0 before the webhook is created and after it is deleted. */
  readonly id: number;
  readonly url: string;
  readonly enabled: boolean;
  /** Replaced secrets, newest first; each signs as well until this time, Unix ms. */
  readonly formerSecrets: readonly { readonly secret: string; readonly until: number }[];
}

const NONE: WebhookState = {
  id: 0,
  name: '',
  url: '',
  secret: null,
  events: [],
  format: 'json',
  enabled: false,
  formerSecrets: [],
};

/** How long a replaced secret signs beside the new one, milliseconds. */
const OVERLAP_MS = DAY * 1_000;
/** Maximum number of replaced secrets that sign. */
const MAX_FORMER = 3;

function formerSecrets({ secret, formerSecrets: older }: WebhookState, at: number): WebhookState['formerSecrets'] {
  const replaced = secret === null ? [] : [{ secret, until: at + OVERLAP_MS }];
  return [...replaced, ...older.filter(({ until }) => until > at)].slice(0, MAX_FORMER);
}

/** The secrets that sign at this time (Unix ms), the current one first; empty: deliveries are not signed. */
export const secretsAt = (
  { secret, formerSecrets: older }: Pick<WebhookState, 'secret' | 'formerSecrets'>,
  at: number,
): readonly string[] =>
  secret === null ? [] : [secret, ...older.filter(({ until }) => until > at).map((former) => former.secret)];

export const webhookStream = (workspace: number, id: number): string => `webhook-${workspace}-${id}`;

export const webhookDecider = defineDecider<WebhookState>({
  kind: 'webhook',
  initial: NONE,
  folds: [
    on(webhookCreated, (_state, { data: { webhook_id: id, ...fields } }) => ({
      id,
      ...fields,
      url: fields.url ?? '',
      enabled: true,
      formerSecrets: [],
    })),
    on(webhookUpdated, (state, { data: { webhook_id: _, ...changes }, at }) => ({
      ...state,
      ...changes,
      url: changes.url ?? state.url,
      ...(changes.secret !== undefined && { formerSecrets: formerSecrets(state, at) }),
    })),
    on(webhookTripped, (state) => ({ ...state, enabled: false })),
    on(webhookDeleted, () => NONE),
  ],
});

/** 64 lower-case hex digits. */
export const newSecret = (): string => randomBytes(32).toString('hex');

/** Without changes, the event still updates the time of the last change. @throws AppError 404 */
export function decideChange(state: WebhookState, changes: WebhookChanges): EventDraft[] {
  if (state.id === 0) throw notFound('Webhook');
  return [webhookUpdated.draft({ webhook_id: state.id, ...sent(changes) })];
}

/** @throws AppError 404 */
export function decideDelete(state: WebhookState): EventDraft[] {
  if (state.id === 0) throw notFound('Webhook');
  return [webhookDeleted.draft({ webhook_id: state.id })];
}

/** No event when it is not enabled. */
export const decideDisable = (state: WebhookState): EventDraft[] =>
  state.enabled ? [webhookUpdated.draft({ webhook_id: state.id, enabled: false })] : [];

type Trip = Pick<EventOf<typeof webhookTripped>['data'], 'reason' | 'failures'>;

/** Disables a webhook whose receiver fails, and notifies these users. */
export function decideTrip(
  state: WebhookState,
  { reason, failures }: Trip,
  recipients: readonly string[],
): EventDraft[] {
  if (!state.enabled) return [];
  const message =
    reason === 'gone'
      ? `The receiver of the webhook ${state.name} responded with 410 Gone.`
      : `Deliveries to the webhook ${state.name} failed ${failures} times in a row.`;
  return [
    webhookTripped.draft({ webhook_id: state.id, reason, failures }),
    ...recipients.map((recipient) =>
      notificationRaised.draft({
        recipient,
        type: 'webhook_disabled',
        title: 'A webhook was disabled',
        message: `${message} Enable it again when the receiver works.`,
        source_type: 'webhook',
        source_id: state.id,
        by: null,
      }),
    ),
  ];
}

/** The limit exists because each event is checked against every webhook. */
const LIMIT: Limit = { kind: 'webhooks', most: 100, added: webhookCreated };

export interface CreatedWebhook {
  readonly id: number;
  /** The log position from which the webhook receives events. */
  readonly position: Position;
  readonly secret: string | null;
}

/** @throws AppError 409 when the workspace has reached its limit */
export const createWebhook = (
  commands: Commands,
  context: CommandContext,
  limits: LimitParts,
  fields: WebhookFields,
): Promise<CreatedWebhook> => withinLimit(limits, LIMIT, context, () => create(commands, context, fields));

async function create(commands: Commands, context: CommandContext, fields: WebhookFields): Promise<CreatedWebhook> {
  const source = ['webhook', webhookDecider, webhookStream] as const;
  const { id, executed } = await createRecord(commands, context, source, (one) => [
    webhookCreated.draft({ webhook_id: one, ...fields }),
  ]);
  const { stream, position } = executed;
  // A request that is repeated after a crash has stored the secret of its first run.
  const { state } = await commands.load(webhookDecider, stream);
  return { id, position, secret: state.id === id ? state.secret : fields.secret };
}

/** @returns the webhook as it is now @throws AppError 404 */
export async function changeWebhook(
  commands: Commands,
  context: CommandContext,
  id: number,
  changes: WebhookChanges,
): Promise<WebhookState> {
  const stream = webhookStream(context.origin.workspace, id);
  await commands.execute(webhookDecider, stream, context, (state) => decideChange(state, changes));
  return (await commands.load(webhookDecider, stream)).state;
}

/** @throws AppError 404 */
export const deleteWebhook = onRecord(webhookDecider, webhookStream, decideDelete);

/** The webhook as the log has it now. @throws AppError 404 */
export async function existingWebhook(commands: Commands, workspace: number, id: number): Promise<WebhookState> {
  const { state } = await commands.load(webhookDecider, webhookStream(workspace, id));
  if (state.id === 0) throw notFound('Webhook');
  return state;
}
