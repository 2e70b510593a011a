/** Webhooks: the list, with the state of their deliveries. */
import { sql } from 'kysely';
import { webhooksProjection } from '../../projections/webhooks/webhooks.ts';
import type { WebhookRecord } from '../../shared/contract/webhooks/webhooks.ts';
import type { WebhookState } from '../../shared/ports/webhooks/queue.ts';
import { hiddenUrl } from '../../shared/secrets.ts';
import { seconds } from '../../shared/time.ts';
import { countOf, inWorkspace, type Reads, tables } from '../reads.ts';

const own = (reads: Reads, workspace: number) => inWorkspace(reads, webhooksProjection, 'webhooks', workspace);

const HIDDEN = '\u2022'.repeat(6);

const UNUSED: WebhookState = { lastFiredAt: null, lastStatus: null, failures: 0, total: 0, successful: 0, failed: 0 };

/**
 * Newest first.
 *
 * @param states state of the deliveries by webhook; undefined: unknown for the moment that is read
 * @param attempts this many failures in a row open the circuit
 * @param seesSecrets otherwise addresses are shown without what is often secret in them
 */
export async function listWebhooks(
  reads: Reads,
  workspace: number,
  states: ReadonlyMap<number, WebhookState> | undefined,
  attempts: number,
  seesSecrets: boolean,
): Promise<WebhookRecord[]> {
  const rows = await own(reads, workspace).selectAll().orderBy('created_at', 'desc').orderBy('id', 'desc').execute();
  return rows.map(({ position: _, secret_end: end, ...row }) => {
    const state = states && (states.get(row.id) ?? UNUSED);
    const firedAt = state && (state.lastFiredAt === null ? null : seconds(state.lastFiredAt));
    return {
      ...row,
      url: seesSecrets ? row.url : hiddenUrl(row.url),
      secret: end === null ? null : HIDDEN + end,
      ...(state && {
        last_fired_at: firedAt,
        last_status: state.lastStatus,
        consecutive_failures: state.failures,
        circuit_open: state.failures >= attempts,
        total_deliveries: state.total,
        successful_deliveries: state.successful,
        failed_deliveries: state.failed,
      }),
      updated_at: Math.max(row.updated_at, firedAt ?? 0),
    };
  });
}

export const countWebhooks = (reads: Reads, workspace: number): Promise<number> => countOf(own(reads, workspace));

/** Names and addresses of those of these webhooks that exist. */
export async function webhookNames(
  reads: Reads,
  workspace: number,
  ids: readonly number[],
): Promise<ReadonlyMap<number, { readonly name: string; readonly url: string }>> {
  if (ids.length === 0) return new Map();
  const rows = await own(reads, workspace)
    .select(['id', 'name', 'url'])
    .where(sql<boolean>`id = ANY(${ids})`)
    .execute();
  return new Map(rows.map(({ id, name, url }) => [id, { name, url }]));
}

/** Every webhook of the deployment. */
export function allWebhooks(
  reads: Reads,
): Promise<{ readonly workspace: number; readonly id: number; readonly events: readonly string[] }[]> {
  return tables(reads, webhooksProjection)
    .selectFrom('webhooks')
    .select(['workspace_id as workspace', 'id', 'events'])
    .execute();
}
