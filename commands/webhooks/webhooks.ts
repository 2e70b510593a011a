/** Webhooks: created, changed, deleted, and disabled when deliveries fail too often. */
import { randomBytes } from 'node:crypto';
import type { WebhookFormat } from '../../shared/contract/webhooks/webhooks.ts';
import { notFound } from '../../shared/errors.ts';
import type { EventDraft } from '../../shared/events/define.ts';
import {
  webhookCreated,
  webhookDeleted,
  webhookTripped,
  webhookUpdated,
} from '../../shared/events/webhooks/webhooks.ts';
import type { Position } from '../../shared/ports/event-log.ts';
import { defineDecider, on } from '../decider.ts';
import type { CommandContext, Commands } from '../handler.ts';
import { type Limit, type LimitParts, withinLimit } from '../limits.ts';
import { reserveId } from '../reserve.ts';

/** Everything that deliveries need. Saved nowhere but in the log, where address and secret are sealed. */
export interface WebhookState {
  /** 0 until created, and again once deleted. */
  readonly id: number;
  readonly name: string;
  readonly url: string;
  readonly secret: string | null;
  readonly events: readonly string[];
  readonly format: WebhookFormat;
  readonly enabled: boolean;
}

const NONE: WebhookState = { id: 0, name: '', url: '', secret: null, events: [], format: 'json', enabled: false };

export const webhookStream = (workspace: number, id: number): string => `webhook-${workspace}-${id}`;

export const webhookDecider = defineDecider<WebhookState>({
  kind: 'webhook',
  initial: NONE,
  folds: [
    on(webhookCreated, (_state, { data: { webhook_id: webhookId, name, url, secret, events, format } }) => ({
      id: webhookId,
      name,
      url: url ?? '',
      secret,
      events,
      format,
      enabled: true,
    })),
    on(webhookUpdated, (state, { data: { name, url, secret, events, format, enabled } }) => ({
      ...state,
      name: name ?? state.name,
      url: url ?? state.url,
      secret: secret === undefined ? state.secret : secret,
      events: events ?? state.events,
      format: format ?? state.format,
      enabled: enabled ?? state.enabled,
    })),
    on(webhookTripped, (state) => ({ ...state, enabled: false })),
    on(webhookDeleted, () => NONE),
  ],
});

/** 64 lower-case hex digits. */
export const newSecret = (): string => randomBytes(32).toString('hex');

export interface WebhookChanges {
  readonly name: string | undefined;
  readonly url: string | undefined;
  readonly events: readonly string[] | undefined;
  readonly format: WebhookFormat | undefined;
  readonly enabled: boolean | undefined;
  readonly secret: string | undefined;
}

/** Without any change, the time of the last one is new. @throws AppError 404 */
export function decideChange(state: WebhookState, changes: WebhookChanges): EventDraft[] {
  if (state.id === 0) throw notFound('Webhook');
  const set = Object.entries(changes).filter(([, value]) => value !== undefined);
  return [webhookUpdated.draft({ webhook_id: state.id, ...Object.fromEntries(set) })];
}

/** @throws AppError 404 */
export function decideDelete(state: WebhookState): EventDraft[] {
  if (state.id === 0) throw notFound('Webhook');
  return [webhookDeleted.draft({ webhook_id: state.id })];
}

/** No event when it is not enabled. */
export const decideDisable = (state: WebhookState): EventDraft[] =>
  state.enabled ? [webhookUpdated.draft({ webhook_id: state.id, enabled: false })] : [];

/** Disables a webhook whose receiver has failed this often in a row. */
export const decideTrip = (state: WebhookState, failures: number): EventDraft[] =>
  state.enabled ? [webhookTripped.draft({ webhook_id: state.id, failures })] : [];

export interface NewWebhook {
  readonly name: string;
  readonly url: string;
  readonly events: string[];
  readonly format: WebhookFormat;
  readonly secret: string | null;
}

/** Each event is looked at for each of them. */
const LIMIT: Limit = { kind: 'webhooks', most: 100, added: webhookCreated };

export interface CreatedWebhook {
  readonly id: number;
  /** Where in the log it begins. */
  readonly position: Position;
  readonly secret: string | null;
}

/** @throws AppError 409 when the workspace has too many */
export const createWebhook = (
  commands: Commands,
  context: CommandContext,
  limits: LimitParts,
  fields: NewWebhook,
): Promise<CreatedWebhook> => withinLimit(limits, LIMIT, context, () => create(commands, context, fields));

async function create(commands: Commands, context: CommandContext, fields: NewWebhook): Promise<CreatedWebhook> {
  const { workspace } = context.origin;
  const id = await reserveId(commands, context, 'webhook', (one) => webhookStream(workspace, one));
  const stream = webhookStream(workspace, id);
  const { position } = await commands.execute(webhookDecider, stream, context, () => [
    webhookCreated.draft({ webhook_id: id, ...fields }),
  ]);
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
export async function deleteWebhook(commands: Commands, context: CommandContext, id: number): Promise<void> {
  await commands.execute(webhookDecider, webhookStream(context.origin.workspace, id), context, decideDelete);
}

/** The webhook as the log has it now. @throws AppError 404 */
export async function existingWebhook(commands: Commands, workspace: number, id: number): Promise<WebhookState> {
  const { state } = await commands.load(webhookDecider, webhookStream(workspace, id));
  if (state.id === 0) throw notFound('Webhook');
  return state;
}
