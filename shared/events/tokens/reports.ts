/**
 * Reports of used tokens. Streams: reports with a client's id are on the pages of their workspace's ledger,
 * `token_ledger-<workspace>-<page>`; reports of heartbeats are on the stream of their agent, all others on
 * `token_reports-<workspace>`, which is never read as a whole.
 */
import { z } from 'zod';
import { PRICE_SOURCES } from '../../contract/tokens/costs.ts';
import { defineEvent } from '../define.ts';

export const ledgerStream = (workspace: number, page: number): string => `token_ledger-${workspace}-${page}`;

export const reportsStream = (workspace: number): string => `token_reports-${workspace}`;

export const tokenReport = z.object({
  /** Unique in its workspace. */
  id: z.string(),
  model: z.string(),
  session_id: z.string(),
  /** Null: no agent of the workspace had the name, and the caller did not speak for one. */
  agent_id: z.int().positive().nullable(),
  agent_name: z.string(),
  /** Without cached tokens. */
  input_tokens: z.int().nonnegative(),
  output_tokens: z.int().nonnegative(),
  cache_read_tokens: z.int().nonnegative(),
  cache_write_tokens: z.int().nonnegative(),
  /** Null: none given, or there was no such task. */
  task_id: z.int().positive().nullable(),
  operation: z.string(),
  /** Milliseconds. */
  duration: z.number().nonnegative().nullable(),
  /** When the tokens were used, Unix ms. Null: when the report was recorded. */
  used_at: z.int().nonnegative().nullable(),
  /** US dollars, at the prices at the time at which the report was recorded. */
  cost: z.number().nonnegative(),
  /** Where the cost comes from; `default`: no price matched the model. */
  price: z.enum(PRICE_SOURCES),
});
export type TokenReport = z.infer<typeof tokenReport>;

export const tokensReported = defineEvent({
  type: 'TokensReported',
  doc: 'Tokens were used: one report, or those of a batch.',
  schema: z.object({
    /** Page of the ledger; null for reports without a client's ids. */
    page: z.int().positive().nullable(),
    reports: z.array(tokenReport).min(1),
  }),
});

export const tokenPageFilled = defineEvent({
  type: 'TokenPageFilled',
  doc: 'A page of the ledger was closed. New reports go to the next page.',
  schema: z.object({ page: z.int().positive() }),
});

export const tokenReportsPurged = defineEvent({
  type: 'TokenReportsPurged',
  doc: 'Expired reports were removed from the read model. The event names each report and what it added to sums, which are reduced accordingly.',
  schema: z.object({
    ids: z.array(z.string()),
    /** By hour, and by every key of the sums. */
    used: z.array(
      tokenReport.pick({ model: true, session_id: true, agent_id: true, agent_name: true, task_id: true }).extend({
        /** Beginning of the hour, Unix ms. */
        at: z.int().nonnegative(),
        requests: z.int().positive(),
        /** With cached tokens. */
        input_tokens: z.int().nonnegative(),
        output_tokens: z.int().nonnegative(),
        /** Billionths of a US dollar. */
        cost: z.int().nonnegative(),
        /** The part of the cost that was priced by default. */
        estimated: z.int().nonnegative(),
      }),
    ),
  }),
});
