/** All token reports as one file, written while it is read: whatever its size, only one page is in memory. */
import type { Reads } from '../../../queries/reads.ts';
import type { ExportEvidence } from '../../../queries/tokens/reports.ts';
import { added, NO_SUMS, type Sums, statsOf } from '../../../queries/tokens/usage.ts';
import { NANO } from '../../../shared/contract/tokens/costs.ts';
import type { TokenRecord } from '../../../shared/contract/tokens/reports.ts';
import { MAX_GROUPS } from '../../../shared/contract/tokens/usage.ts';
import { showPosition } from '../../http/consistency.ts';
import type { RequestContext } from '../../http/context.ts';
import { csvText, marked } from '../../http/csv.ts';
import { again, sendFile } from '../../http/files.ts';

type Pages = AsyncIterable<readonly TokenRecord[]>;
export type ExportFormat = 'json' | 'csv';

const COLUMNS =
  'timestamp,agentName,model,sessionId,operation,inputTokens,outputTokens,totalTokens,cost,duration,cacheReadTokens,cacheWriteTokens,price';

const lineOf = (one: TokenRecord): string =>
  [
    new Date(one.timestamp).toISOString(),
    ...[one.agentName, one.model, one.sessionId, one.operation].map(csvText),
    one.inputTokens,
    one.outputTokens,
    one.totalTokens,
    // A billionth of a dollar, to which costs are rounded, so that a spreadsheet's sum is exact.
    one.cost.toFixed(9),
    one.duration ?? 0,
    one.cacheReadTokens,
    one.cacheWriteTokens,
    one.price,
  ].join(',');

async function* csv(pages: Pages): AsyncGenerator<string> {
  yield COLUMNS;
  for await (const page of pages) yield page.map((one) => `\n${lineOf(one)}`).join('');
}

/** Sums by name, for the first `MAX_GROUPS` names. */
class Groups {
  readonly #sums = new Map<string, Sums>();

  add(name: string, sums: Sums): void {
    const known = this.#sums.get(name);
    if (known || this.#sums.size < MAX_GROUPS) this.#sums.set(name, added(known ?? NO_SUMS, sums));
  }

  get stats() {
    return Object.fromEntries([...this.#sums].map(([name, sums]) => [name, statsOf(sums)]));
  }

  /** Number of reports by name. */
  get requests(): readonly (readonly [string, number])[] {
    return [...this.#sums].map(([name, { requests }]) => [name, requests] as const);
  }
}

/** The summary covers exactly the records before it. */
async function* json(pages: Pages, evidence?: ExportEvidence): AsyncGenerator<string> {
  let summary: Sums = NO_SUMS;
  const models = new Groups();
  const sessions = new Groups();
  let separator = '';
  yield '{"usage":[';
  for await (const page of pages) {
    if (page.length === 0) continue;
    for (const { model, sessionId, outputTokens, totalTokens, price, ...record } of page) {
      const cost = Math.round(record.cost * NANO);
      const one: Sums = {
        requests: 1,
        input_tokens: totalTokens - outputTokens,
        output_tokens: outputTokens,
        cost,
        estimated: price === 'default' ? cost : 0,
      };
      summary = added(summary, one);
      models.add(model, one);
      sessions.add(sessionId, one);
    }
    yield separator + page.map((one) => JSON.stringify(one)).join(',');
    separator = ',';
  }
  const sums = {
    summary: statsOf(summary),
    models: models.stats,
    sessions: sessions.stats,
    evidence: await evidence?.([
      ['summary', summary.requests, {}],
      ...models.requests.map(([model, requests]) => [`models.${model}`, requests, { model }] as const),
      ...sessions.requests.map(([id, requests]) => [`sessions.${id}`, requests, { session_id: id }] as const),
    ]),
  };
  yield `],${JSON.stringify(sums).slice(1)}`;
}

/** @param now Unix ms */
export const exportName = (timeframe: string, format: ExportFormat, now: number): string =>
  `token-usage-${timeframe.replace(/[^\w-]/g, '_')}-${new Date(now).toISOString().slice(0, 10)}.${format}`;

/**
 * Sends an export as the response.
 *
 * @throws errors of reading. After the response has begun, the connection then breaks, so the caller sees that the file
 *   is incomplete
 */
export async function sendExport(
  context: Pick<RequestContext, 'req' | 'res' | 'stallMs'>,
  reads: Pick<Reads, 'position' | 'isExact'>,
  { name, format, bom }: { readonly name: string; readonly format: ExportFormat; readonly bom: boolean },
  pages: AsyncGenerator<readonly TokenRecord[]>,
  evidence?: ExportEvidence,
): Promise<void> {
  const whole = again(await pages.next(), pages);
  showPosition(context, reads.position, reads.isExact);
  const text = format === 'csv' ? marked(csv(whole), bom) : json(whole, evidence);
  await sendFile(context, format, `attachment; filename="${name}"`, text);
}
