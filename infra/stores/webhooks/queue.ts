/**
 * Webhooks' queue and the records of their deliveries (`shared/ports/webhooks/queue.ts`) on `service.webhooks` and
 * `service.webhook_deliveries`.
 *
 * A worker delivers for a webhook while it holds the lease on its row. Every statement that follows from a claim names
 * the lease, so that a worker that has lost it changes nothing. Leases and retries use the database's clock, because the
 * clocks of hosts differ.
 */
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import {
  type Claim,
  type Delivery,
  KEPT_DELIVERIES,
  type NewDelivery,
  type Wanted,
  type WebhookQueue,
  type WebhookRecords,
} from '../../../shared/ports/webhooks/queue.ts';
import { nextTurn } from '../../../shared/waiting.ts';
import { PIECE } from '../pieces.ts';

/** The database's clock, Unix ms; `now()` would be the start of the transaction. */
const NOW = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint';

const RETURNED = `id, workspace_id AS workspace, webhook_id AS "webhookId", message_id AS "messageId",
  event_type AS "eventType", payload, status_code AS "statusCode", response_body AS "responseBody", error,
  duration_ms AS "durationMs", attempt, parent_id AS "parentId", next_retry_at AS "nextRetryAt",
  created_at AS "createdAt"`;

const COLUMNS = `workspace_id, webhook_id, message_id, event_type, payload, status_code, response_body, error,
  duration_ms, attempt, parent_id, created_at`;
const valuesOf = (one: NewDelivery): unknown[] => [
  one.workspace,
  one.webhookId,
  one.messageId,
  one.eventType,
  one.payload,
  one.statusCode,
  one.responseBody,
  one.error,
  one.durationMs,
  one.attempt,
  one.parentId,
  one.createdAt,
];
/** As in `valuesOf`; the types are needed because the values are selected. */
const GIVEN = `$1::int, $2::bigint, $3::text, $4::text, $5::text, $6::int, $7::text, $8::text,
  $9::int, $10::int, $11::bigint, $12::bigint`;
/** The columns of the webhook that an attempt sets. */
const FIRED = 'last_fired_at = $12::bigint, last_status = coalesce($6::int, -1)';

const SUCCEEDED = 'status_code BETWEEN 200 AND 299';

export function createWebhookRecords(pool: pg.Pool): WebhookRecords {
  return {
    async begin(workspace, webhook, position) {
      await pool.query(
        `INSERT INTO service.webhooks (webhook_id, workspace_id, position, seen) VALUES ($1, $2, $3, $3)
         ON CONFLICT (webhook_id) DO NOTHING`,
        [webhook, workspace, position],
      );
    },
    async states(workspace) {
      const { rows } = await pool.query(
        `SELECT w.webhook_id AS id, w.last_fired_at AS "lastFiredAt", w.last_status AS "lastStatus", w.failures,
           count(d.id) AS total,
           count(d.id) FILTER (WHERE d.${SUCCEEDED}) AS successful,
           count(d.id) FILTER (WHERE d.error IS NOT NULL OR NOT d.${SUCCEEDED}) AS failed
         FROM service.webhooks w LEFT JOIN service.webhook_deliveries d USING (webhook_id)
         WHERE w.workspace_id = $1 GROUP BY w.webhook_id`,
        [workspace],
      );
      return new Map(rows.map(({ id, ...state }) => [id, state]));
    },
    async list(workspace, { webhook, limit, offset }) {
      const where = 'workspace_id = $1 AND ($2::bigint IS NULL OR webhook_id = $2)';
      const counted = await pool.query(`SELECT count(*) AS total FROM service.webhook_deliveries WHERE ${where}`, [
        workspace,
        webhook ?? null,
      ]);
      const { rows } = await pool.query(
        `SELECT ${RETURNED} FROM service.webhook_deliveries WHERE ${where} ORDER BY id DESC LIMIT $3 OFFSET $4`,
        [workspace, webhook ?? null, limit, offset],
      );
      return { deliveries: rows as Delivery[], total: (counted.rows[0] as { total: number }).total };
    },
    async find(workspace, delivery) {
      const { rows } = await pool.query(
        `SELECT ${RETURNED} FROM service.webhook_deliveries WHERE workspace_id = $1 AND id = $2`,
        [workspace, delivery],
      );
      return rows[0] as Delivery | undefined;
    },
    async erasures(workspace, webhook) {
      const { rows } = await pool.query(
        'SELECT erasures FROM service.webhooks WHERE webhook_id = $1 AND workspace_id = $2',
        [webhook, workspace],
      );
      return (rows[0] as { erasures: number } | undefined)?.erasures ?? 0;
    },
    async record(delivery, erasures) {
      const { rows } = await pool.query(
        `WITH fired AS (
           UPDATE service.webhooks SET ${FIRED} WHERE webhook_id = $2 AND workspace_id = $1
           RETURNING webhook_id, erasures
         ), spared AS (
           -- What has arrived need not be tried again.
           UPDATE service.webhook_deliveries SET next_retry_at = NULL
           WHERE id = $11 AND $6::int BETWEEN 200 AND 299 AND webhook_id IN (SELECT webhook_id FROM fired)
         )
         INSERT INTO service.webhook_deliveries (${COLUMNS})
         SELECT ${GIVEN.replace('$7::text', 'CASE WHEN erasures = $13 THEN $7::text END')} FROM fired RETURNING id`,
        [...valuesOf(delivery), erasures],
      );
      await pool.query(PRUNE, [delivery.webhookId]);
      return (rows[0] as { id: number } | undefined)?.id;
    },
    async reset(workspace, webhook) {
      await pool.query('UPDATE service.webhooks SET failures = 0 WHERE webhook_id = $1 AND workspace_id = $2', [
        webhook,
        workspace,
      ]);
    },
    async remove(workspace, webhook) {
      await pool.query(
        // Its deliveries are deleted with it.
        'DELETE FROM service.webhooks WHERE webhook_id = $1 AND workspace_id = $2',
        [webhook, workspace],
      );
    },
  };
}

/** Removes all but the newest deliveries of webhook `$1`, and those that wait for a retry. */
const PRUNE = `DELETE FROM service.webhook_deliveries WHERE webhook_id = $1 AND next_retry_at IS NULL AND id <= (
  SELECT id FROM service.webhook_deliveries WHERE webhook_id = $1 ORDER BY id DESC OFFSET ${KEPT_DELIVERIES} LIMIT 1
)`;

/**
 * Removes deliveries from before `$1` (Unix ms) among the next ones after the id `$2`, without those that wait for a retry.
 * Ids and times ascend together: where none is old, all later ones are newer.
 */
const PURGE = `
  WITH part AS (SELECT id, created_at, next_retry_at FROM service.webhook_deliveries WHERE id > $2 ORDER BY id LIMIT ${PIECE}),
  gone AS (
    DELETE FROM service.webhook_deliveries
    WHERE id = ANY (ARRAY(SELECT id FROM part WHERE created_at < $1 AND next_retry_at IS NULL))
  )
  SELECT max(id) AS last, count(*) FILTER (WHERE created_at < $1)::int AS old FROM part`;

/** Parameters `$1` and `$2` of `WANTED`. */
const wantedArrays = (wanted: Wanted): unknown[] => [[...wanted.keys()], [...wanted.values()]];
/** Webhooks with the position of the last event that concerns them; null: no new event is known. */
const WANTED = `service.webhooks s
  LEFT JOIN unnest($1::bigint[], $2::bigint[]) AS w (webhook_id, wanted) USING (webhook_id)`;

/** @param leaseMs duration of a claim; longer than the longest attempt */
export function createWebhookQueue(pool: pg.Pool, leaseMs: number): WebhookQueue {
  return {
    async register(webhooks, position, alone) {
      await pool.query(
        `INSERT INTO service.webhooks (webhook_id, workspace_id, position, seen)
         SELECT *, $3, $3 FROM unnest($1::bigint[], $2::int[])
         ON CONFLICT (webhook_id) DO NOTHING`,
        [webhooks.map(({ id }) => id), webhooks.map(({ workspace }) => workspace), position],
      );
      if (alone) await pool.query('UPDATE service.webhooks SET lease = NULL, leased_until = 0');
    },
    async claim(wanted) {
      // Until it is released, the webhook has work: a worker that dies leaves it to the next one.
      const { rows } = await pool.query(
        `UPDATE service.webhooks w SET lease = $3, leased_until = ${NOW} + $4, claimed_at = ${NOW},
           seen = greatest(w.seen, due.wanted), resume_at = 0
         FROM (
           SELECT webhook_id, wanted FROM ${WANTED}
           WHERE (wanted > seen OR resume_at <= ${NOW}) AND leased_until <= ${NOW}
           ORDER BY claimed_at, webhook_id LIMIT 1 FOR UPDATE OF s SKIP LOCKED
         ) due
         WHERE w.webhook_id = due.webhook_id
         RETURNING w.workspace_id AS workspace, w.webhook_id AS webhook, w.position, w.failures, w.lease,
           w.seen AS wanted, (
             SELECT count(*) FROM service.webhook_deliveries d
             WHERE d.webhook_id = w.webhook_id AND d.next_retry_at IS NOT NULL
           ) AS waiting`,
        [...wantedArrays(wanted), randomUUID(), leaseMs],
      );
      return rows[0] as Claim | undefined;
    },
    async next(wanted) {
      const { rows } = await pool.query(
        `SELECT webhook_id AS webhook, coalesce(wanted > seen, false) AS unseen,
           greatest(leased_until, CASE WHEN wanted > seen THEN 0 ELSE resume_at END) - ${NOW} AS "waitMs"
         FROM ${WANTED} WHERE wanted > seen OR resume_at IS NOT NULL`,
        wantedArrays(wanted),
      );
      const found = rows as { readonly webhook: number; readonly unseen: boolean; readonly waitMs: number }[];
      return {
        waitMs: found.length === 0 ? undefined : Math.max(0, Math.min(...found.map(({ waitMs }) => waitMs))),
        wanted: new Set(found.filter(({ unseen }) => unseen).map(({ webhook }) => webhook)),
      };
    },
    async renew({ webhook, lease }) {
      const { rowCount } = await pool.query(
        `UPDATE service.webhooks SET leased_until = ${NOW} + $3 WHERE webhook_id = $1 AND lease = $2`,
        [webhook, lease, leaseMs],
      );
      return rowCount === 1;
    },
    async due({ webhook }, limit) {
      const { rows } = await pool.query(
        `SELECT ${RETURNED} FROM service.webhook_deliveries WHERE webhook_id = $1 AND next_retry_at <= ${NOW}
         ORDER BY next_retry_at, id LIMIT $2`,
        [webhook, limit],
      );
      return rows as Delivery[];
    },
    async delivered({ webhook }, messages) {
      const { rows } = await pool.query(
        'SELECT message_id FROM service.webhook_deliveries WHERE webhook_id = $1 AND message_id = ANY($2::text[])',
        [webhook, messages],
      );
      return new Set((rows as { message_id: string }[]).map(({ message_id }) => message_id));
    },
    async record({ lease }, { delivery, retryInMs, position }) {
      // Failures are counted here, because an operator may reset them during the attempt.
      const { rows } = await pool.query(
        `WITH fired AS (
           UPDATE service.webhooks SET ${FIRED}, position = coalesce($15::bigint, position),
             failures = CASE WHEN $6::int BETWEEN 200 AND 299 THEN 0 ELSE failures + 1 END
           WHERE webhook_id = $2 AND lease = $13 RETURNING webhook_id, failures
         ), tried AS (
           UPDATE service.webhook_deliveries SET next_retry_at = NULL
           WHERE id = $11 AND webhook_id IN (SELECT webhook_id FROM fired)
         ), written AS (
           INSERT INTO service.webhook_deliveries (${COLUMNS}, next_retry_at)
           SELECT ${GIVEN}, ${NOW} + $14::bigint FROM fired
         )
         SELECT failures FROM fired`,
        [...valuesOf(delivery), lease, retryInMs, position ?? null],
      );
      return (rows[0] as { failures: number } | undefined)?.failures;
    },
    async release({ webhook, lease }, { position, resume }) {
      await pool.query(
        `WITH pruned AS (${PRUNE})
         UPDATE service.webhooks SET position = $3, resume_at = CASE $4::text
             WHEN 'now' THEN 0
             WHEN 'retry' THEN (SELECT min(next_retry_at) FROM service.webhook_deliveries WHERE webhook_id = $1)
           END, lease = NULL, leased_until = 0
         WHERE webhook_id = $1 AND lease = $2`,
        [webhook, lease, position, resume],
      );
    },
    async recall() {
      const { rows } = await pool.query(
        `WITH waiting AS (
           SELECT webhook_id, min(next_retry_at) AS at, count(*) AS deliveries FROM service.webhook_deliveries
           WHERE next_retry_at IS NOT NULL GROUP BY webhook_id
         ), recalled AS (
           UPDATE service.webhooks w SET resume_at = waiting.at FROM waiting
           WHERE w.webhook_id = waiting.webhook_id AND w.resume_at IS NULL
         )
         SELECT coalesce(sum(deliveries), 0) AS waiting FROM waiting`,
      );
      return (rows[0] as { waiting: number }).waiting;
    },
    async forget({ webhook, lease }) {
      await pool.query('DELETE FROM service.webhooks WHERE webhook_id = $1 AND lease = $2', [webhook, lease]);
    },
    async purge(before) {
      for (let after = 0; ; ) {
        const { rows } = await pool.query(PURGE, [before, after]);
        const { last, old } = rows[0] as { last: number | null; old: number };
        if (last === null || old === 0) return;
        after = last;
        await nextTurn();
      }
    },
  };
}
