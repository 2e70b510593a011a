/** Reports of used tokens, for tests of projections and queries. */
import type { TokenReport } from '../../shared/events/tokens/reports.ts';
import { startOf } from '../../shared/time-buckets.ts';

export const tokenReport = (id: string, fields: Partial<TokenReport> = {}): TokenReport => ({
  id,
  model: 'm',
  session_id: 'ada:cli',
  agent_id: 7,
  agent_name: 'ada',
  input_tokens: 10,
  output_tokens: 5,
  cache_read_tokens: 0,
  cache_write_tokens: 0,
  task_id: null,
  operation: 'chat_completion',
  duration: null,
  used_at: null,
  cost: 0.000000001,
  price: 'built-in',
  ...fields,
});

/** What a removed report had added to sums. @param at Unix ms */
export const usedBy = (
  at: number,
  {
    id: _,
    operation: __,
    duration: ___,
    used_at: ____,
    cost,
    price,
    cache_read_tokens: read,
    cache_write_tokens: written,
    ...report
  }: TokenReport,
) => ({
  ...report,
  input_tokens: report.input_tokens + read + written,
  at: startOf('hour', at),
  requests: 1,
  cost: Math.round(cost * 1e9),
  estimated: price === 'default' ? Math.round(cost * 1e9) : 0,
});
