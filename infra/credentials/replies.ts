/**
 * Stored replies of other services, in which personal texts are masked when a person is erased: responses of webhooks'
 * receivers, and what the service logged and said about its scheduled tasks, which quotes GitHub, gateways and the agent
 * runner. What is in the log of events is described in `docs/erasure.md`.
 */
import type pg from 'pg';
import { OWN_SOURCE } from '../../shared/contract/monitoring/logs.ts';
import { erasedIn, erasing } from '../../shared/erased-texts.ts';
import { DEFAULT_WORKSPACE } from '../../shared/events/metadata.ts';

/** Rows that are read together. */
const PAGE = 500;

interface Replies {
  readonly table: string;
  /** A unique column in which the rows are read; of the type `keyType`. */
  readonly key: string;
  readonly keyType: 'bigint' | 'text';
  /** Columns with texts of others, each with the type of its value. */
  readonly columns: Readonly<Record<string, 'text' | 'json'>>;
  /** The rows that may have such texts. */
  readonly where?: string;
  /** The column of the workspace; without it, the rows are about the whole deployment. */
  readonly workspace?: string;
}

const REPLIES: readonly Replies[] = [
  {
    table: 'service.webhook_deliveries',
    key: 'id',
    keyType: 'bigint',
    columns: { response_body: 'text', error: 'text' },
    workspace: 'workspace_id',
  },
  {
    // Lines of the service itself; those that agents wrote stay.
    table: 'service.log_entries',
    key: 'seq',
    keyType: 'bigint',
    columns: { message: 'text', data: 'json' },
    where: `source = '${OWN_SOURCE}' AND workspace = ${DEFAULT_WORKSPACE}`,
  },
  {
    table: 'service.schedule_runs',
    key: 'schedule',
    keyType: 'text',
    columns: { last_message: 'text', asked_message: 'text' },
  },
];

/** @param workspaces those of the person; undefined: all */
export async function eraseReplies(
  pool: pg.Pool,
  texts: readonly string[],
  workspaces: readonly number[] | undefined,
): Promise<void> {
  const erase = erasing(texts);
  for (const { table, key, keyType, columns, where = 'true', workspace } of REPLIES) {
    const names = Object.keys(columns);
    const within = workspace !== undefined && workspaces !== undefined;
    for (let after: unknown = keyType === 'text' ? '' : 0; ; ) {
      const { rows } = await pool.query(
        `SELECT ${[key, ...names].join(', ')} FROM ${table}
         WHERE ${key} > $1::${keyType} AND ${where} ${within ? `AND ${workspace} = ANY($3)` : ''} ORDER BY ${key} LIMIT $2`,
        within ? [after, PAGE, workspaces] : [after, PAGE],
      );
      for (const row of rows as Record<string, unknown>[]) {
        const erased = names.map((name) => erasedIn(row[name], erase));
        if (names.every((name, at) => JSON.stringify(erased[at]) === JSON.stringify(row[name]))) continue;
        const values = names.map((name, at) => (columns[name] === 'json' ? JSON.stringify(erased[at]) : erased[at]));
        await pool.query(
          `UPDATE ${table} SET ${names.map((name, at) => `${name} = $${at + 2}::${columns[name]}`).join(', ')}
           WHERE ${key} = $1`,
          [row[key], ...values],
        );
      }
      if (rows.length < PAGE) break;
      after = rows.at(-1)?.[key];
    }
  }
}
