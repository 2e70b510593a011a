/**
 * Webhooks' queue and the records of their deliveries (`shared/ports/webhooks/deliveries.ts`) on `service.webhooks` and
 * `service.webhook_deliveries`.
 *
 * A worker delivers for a webhook while it holds the lease on its row. Every statement that follows from a claim names
 * the lease, so that a worker that has lost it changes nothing. Leases use the database's clock, because the clocks of
 * hosts differ.
 */
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import {
  type Claim,
  type Delivery,
  KEPT_DELIVERIES,
  type NewDelivery,
  type WebhookQueue,
  type WebhookRecords,
} from '../../../shared/ports/webhooks/deliveries.ts';

/** The database's clock, Unix ms; `now()` would be the start of the transaction. */
const NOW = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint';

const RETURNED = `id, workspace_id AS workspace, webhook_id AS "webhookId", message_id AS "messageId",
  event_type AS "eventType", payload, status_code AS "statusCode", response_body AS "responseBody", error,
  duration_ms AS "durationMs", attempt, parent_id AS "parentId", next_retry_at AS "nextRetryAt",
  created_at AS "createdAt"`;

const COLUMNS = `workspace_id, webhook_id, message_id, event_type, payload, status_code, response_body, error,
  duration_ms, attempt, parent_id, next_retry_at, created_at`;
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
  one.nextRetryAt,
  one.createdAt,
];
/** As in `valuesOf`; the types are needed because the values are selected. */
const GIVEN = `$1::int, $2::bigint, $3::text, $4::text, $5::text, $6::int, $7::text, $8::text,
  $9::int, $10::int, $11::bigint, $12::bigint, $13::bigint`;
/** The columns of the webhook that an attempt sets. */
const FIRED = 'last_fired_at = $13::bigint, last_status = coalesce($6::int, -1)';

const SUCCEEDED = 'status_code BETWEEN 200 AND 299';

export function createWebhookRecords(pool: pg.Pool): WebhookRecords {
  return {
    async begin(workspace, webhook, position) {
      await pool.query(
        `INSERT INTO service.webhooks (webhook_id, workspace_id, position, wanted, seen) VALUES ($1, $2, $3, $3, $3)
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
    async record(delivery) {
      const { rows } = await pool.query(
        `WITH fired AS (
           UPDATE service.webhooks SET ${FIRED} WHERE webhook_id = $2 AND workspace_id = $1 RETURNING webhook_id
         ), spared AS (
           -- What has arrived need not be tried again.
           UPDATE service.webhook_deliveries SET next_retry_at = NULL
           WHERE id = $11 AND $6::int BETWEEN 200 AND 299 AND webhook_id IN (SELECT webhook_id FROM fired)
         )
         INSERT INTO service.webhook_deliveries (${COLUMNS}) SELECT ${GIVEN} FROM fired RETURNING id`,
        valuesOf(delivery),
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

/** @param leaseMs duration of a claim; longer than the longest attempt */
export function createWebhookQueue(pool: pg.Pool, leaseMs: number): WebhookQueue {
  return {
    async resume(webhooks, position, alone) {
      await pool.query(
        `INSERT INTO service.webhooks (webhook_id, workspace_id, position, wanted)
         SELECT *, $3, $3 FROM unnest($1::bigint[], $2::int[])
         ON CONFLICT (webhook_id) DO NOTHING`,
        [webhooks.map(({ id }) => id), webhooks.map(({ workspace }) => workspace), position],
      );
      await pool.query('UPDATE service.webhooks SET wanted = greatest(wanted, $1), seen = 0', [position]);
      if (alone) await pool.query('UPDATE service.webhooks SET lease = NULL, leased_until = 0');
    },
    async wake(webhooks, position) {
      const { rows } = await pool.query(
        `WITH asleep AS (
           SELECT webhook_id, wanted <= seen AND leased_until <= ${NOW} AS idle FROM service.webhooks
           WHERE webhook_id = ANY($1::bigint[]) AND wanted < $2 ORDER BY webhook_id FOR UPDATE
         ), woken AS (
           UPDATE service.webhooks w SET wanted = $2 FROM asleep a WHERE w.webhook_id = a.webhook_id RETURNING a.idle
         )
         SELECT count(*) FILTER (WHERE idle) AS idle FROM woken`,
        [webhooks, position],
      );
      return (rows[0] as { idle: number }).idle;
    },
    async claim() {
      const { rows } = await pool.query(
        `UPDATE service.webhooks w SET lease = $1, leased_until = ${NOW} + $2, claimed_at = ${NOW}
         WHERE webhook_id = (
           SELECT webhook_id FROM service.webhooks
           WHERE (wanted > seen OR resume_at <= ${NOW}) AND leased_until <= ${NOW}
           ORDER BY claimed_at, webhook_id LIMIT 1 FOR UPDATE SKIP LOCKED
         )
         RETURNING workspace_id AS workspace, webhook_id AS webhook, position, failures, lease, wanted, (
           SELECT count(*) FROM service.webhook_deliveries d
           WHERE d.webhook_id = w.webhook_id AND d.next_retry_at IS NOT NULL
         ) AS waiting`,
        [randomUUID(), leaseMs],
      );
      return rows[0] as Claim | undefined;
    },
    async next() {
      const { rows } = await pool.query(
        `SELECT min(greatest(leased_until, CASE WHEN wanted > seen THEN 0 ELSE resume_at END)) AS at
         FROM service.webhooks WHERE wanted > seen OR resume_at IS NOT NULL`,
      );
      return (rows[0] as { at: number | null }).at ?? undefined;
    },
    async renew({ webhook, lease }) {
      const { rows } = await pool.query(
        `UPDATE service.webhooks SET leased_until = ${NOW} + $3 WHERE webhook_id = $1 AND lease = $2 RETURNING failures`,
        [webhook, lease, leaseMs],
      );
      return (rows[0] as { failures: number } | undefined)?.failures;
    },
    async due({ webhook }, now, limit) {
      const { rows } = await pool.query(
        `SELECT ${RETURNED} FROM service.webhook_deliveries WHERE webhook_id = $1 AND next_retry_at <= $2
         ORDER BY next_retry_at, id LIMIT $3`,
        [webhook, now, limit],
      );
      return rows as Delivery[];
    },
    async pending({ webhook }) {
      const { rows } = await pool.query(
        `SELECT count(*) AS pending FROM service.webhook_deliveries WHERE webhook_id = $1 AND next_retry_at IS NOT NULL`,
        [webhook],
      );
      return (rows[0] as { pending: number }).pending;
    },
    async told({ webhook }, messages) {
      const { rows } = await pool.query(
        'SELECT message_id FROM service.webhook_deliveries WHERE webhook_id = $1 AND message_id = ANY($2::text[])',
        [webhook, messages],
      );
      return new Set((rows as { message_id: string }[]).map(({ message_id }) => message_id));
    },
    async settle({ lease }, { delivery, failures, position }) {
      const { rows } = await pool.query(
        `WITH fired AS (
           UPDATE service.webhooks SET ${FIRED}, failures = $15, position = coalesce($16::bigint, position)
           WHERE webhook_id = $2 AND lease = $14 RETURNING webhook_id
         ), tried AS (
           UPDATE service.webhook_deliveries SET next_retry_at = NULL
           WHERE id = $11 AND webhook_id IN (SELECT webhook_id FROM fired)
         ), written AS (
           INSERT INTO service.webhook_deliveries (${COLUMNS}) SELECT ${GIVEN} FROM fired
         )
         SELECT webhook_id FROM fired`,
        [...valuesOf(delivery), lease, failures, position ?? null],
      );
      return rows.length === 1;
    },
    async release({ webhook, lease, wanted }, { position, done, retries }) {
      await pool.query(
        `WITH pruned AS (${PRUNE})
         UPDATE service.webhooks SET position = $3, seen = CASE WHEN $4::boolean THEN $5::bigint ELSE seen END,
           resume_at = CASE WHEN $6::boolean THEN
             (SELECT min(next_retry_at) FROM service.webhook_deliveries WHERE webhook_id = $1) END,
           lease = NULL, leased_until = 0
         WHERE webhook_id = $1 AND lease = $2`,
        [webhook, lease, position, done, wanted, retries],
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
      await pool.query('DELETE FROM service.webhook_deliveries WHERE created_at < $1 AND next_retry_at IS NULL', [
        before,
      ]);
    },
  };
}
