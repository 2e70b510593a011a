/**
 * Tokens: how long sums over a year take, by the number of reports that they are of, and how fast reports are taken in.
 * `BENCH_TOKEN_REPORTS` sets the sizes (default `1000,100000,1000000`).
 */

import { rebuildProjections } from '../../infra/read-models/rebuild/rebuild.ts';
import { projections } from '../../projections/index.ts';
import { costOf } from '../../shared/contract/tokens/costs.ts';
import { reportsStream, type TokenReport, tokensReported } from '../../shared/events/tokens/reports.ts';
import { DAY_MS } from '../../shared/time-buckets.ts';
import { KEY, startProcess } from '../support/service-process.ts';
import { testOrigin } from '../support/world.ts';
import { openPlace } from './rebuild.ts';
import { inFreshPlace, median, table, timed } from './report.ts';

const AGENTS = 100;
const TASKS = 2_000;
const MODELS = ['anthropic/claude-opus-4-7', 'anthropic/claude-sonnet-4-6', 'groq/llama-3.3-70b-versatile'];
const CHATS = ['cli', 'web', 'review'];
/** Reports per event. */
const BATCH = 100;
const IN_FLIGHT = 50;
/** Calls of each question. */
const CALLS = 30;

const headers = { 'x-api-key': KEY, 'content-type': 'application/json' };

type Place = Parameters<typeof openPlace>[0];

/** The n-th report: agents, models, chats and tasks in turn, so that every combination occurs. */
function reportAt(n: number): TokenReport {
  const agent = 1 + ((n * 7) % AGENTS);
  const said = {
    model: MODELS[n % MODELS.length] as string,
    session_id: `agent-${agent}:${CHATS[Math.floor(n / MODELS.length) % CHATS.length]}`,
    input_tokens: 500 + ((n * 7_919) % 20_000),
    output_tokens: (n * 104_729) % 3_000,
    cache_read_tokens: 0,
    cache_write_tokens: 0,
  };
  return {
    id: `bench-${n}`,
    ...said,
    agent_id: agent,
    agent_name: `agent-${agent}`,
    task_id: n % 3 === 0 ? null : 1 + (n % TASKS),
    operation: 'chat_completion',
    duration: null,
    used_at: null,
    ...costOf(said),
  };
}

/** A log of reports, evenly over the last year, and the read models. @returns reports per second of the latter */
async function fill(place: Place, reports: number): Promise<number> {
  const end = Date.now() - 1_000;
  let at = end;
  const opened = await openPlace(place, () => Math.floor(at));
  try {
    const inFlight = new Set<Promise<unknown>>();
    // Small sets are as evenly spread as large ones.
    const size = Math.max(1, Math.min(BATCH, Math.floor(reports / 1_000)));
    for (let n = 0; n < reports; n += size) {
      at = end - 365 * DAY_MS * (1 - (n + size) / reports);
      const batch = Array.from({ length: size }, (_, one) => reportAt(n + one));
      const prepared = await opened.store.prepare([tokensReported.draft({ page: null, reports: batch })], testOrigin);
      const sent: Promise<unknown> = opened.store
        .append(reportsStream(1), prepared, 'any')
        .then(() => inFlight.delete(sent));
      inFlight.add(sent);
      if (inFlight.size >= IN_FLIGHT) await Promise.all(inFlight);
    }
    await Promise.all(inFlight);
    const [ms] = await timed(() => rebuildProjections(opened, projections, { farBehind: 0 }));
    return reports / (ms / 1_000);
  } finally {
    await opened.close();
  }
}

async function ask(url: string, path: string, body?: unknown): Promise<string> {
  const response = await fetch(url + path, {
    headers,
    ...(body !== undefined && { method: 'POST', body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`);
  return text;
}

const QUESTIONS: readonly (readonly [name: string, path: string])[] = [
  ['stats, all', '/api/tokens?action=stats'],
  ['stats, month', '/api/tokens?action=stats&timeframe=month'],
  ['by-agent, 365 days', '/api/tokens/by-agent?days=365'],
  ['by-agent, 30 days', '/api/tokens/by-agent?days=30'],
  ['trends', '/api/tokens?action=trends'],
  ['list', '/api/tokens?'],
  ['agent-costs, all', '/api/tokens?action=agent-costs'],
  ['task-costs, month', '/api/tokens?action=task-costs&timeframe=month'],
];

/** Median of each question, milliseconds. No URL occurs twice, so nothing comes from the response cache. */
async function measureReads(url: string): Promise<string[]> {
  const medians: string[] = [];
  for (const [, path] of QUESTIONS) {
    const times: number[] = [];
    for (let call = -3; call < CALLS; call++) {
      const begun = performance.now();
      await ask(url, `${path}&n=${call}`);
      if (call >= 0) times.push(performance.now() - begun);
    }
    medians.push(median(times).toFixed(1));
  }
  return medians;
}

/** What clients report: each has an id of its own. */
const reported = (id: number) => {
  const { model, session_id: sessionId, input_tokens: inputTokens, output_tokens: outputTokens } = reportAt(id);
  return { id: `client-${id}`, model, sessionId, inputTokens, outputTokens };
};

const BATCHED = 19_000;
const SINGLE = 2_000;
const CONNECTIONS = 32;

/** Reports with ids through HTTP, in batches and one by one. Seconds, and reports per second. */
async function measureIntake(url: string): Promise<string[]> {
  let begun = performance.now();
  for (let n = 0; n < BATCHED; n += 500) {
    await ask(url, '/api/tokens/batch', { reports: Array.from({ length: 500 }, (_, one) => reported(n + one)) });
  }
  const batched = (performance.now() - begun) / 1_000;
  let next = BATCHED;
  begun = performance.now();
  await Promise.all(
    Array.from({ length: CONNECTIONS }, async () => {
      while (next < BATCHED + SINGLE) await ask(url, '/api/tokens', reported(next++));
    }),
  );
  const single = (performance.now() - begun) / 1_000;
  const { total } = JSON.parse(await ask(url, '/api/tokens?')) as { total: number };
  if (total < BATCHED + SINGLE) throw new Error(`${total} reports instead of ${BATCHED + SINGLE} and more`);
  return [batched.toFixed(1), (BATCHED / batched).toFixed(0), (SINGLE / single).toFixed(0)];
}

async function measure(place: Place, env: Record<string, string>, reports: number): Promise<[string[], string[]]> {
  const projected = await fill(place, reports);
  const service = await startProcess(place.dataDir, env);
  try {
    return [await measureReads(service.url), [...(await measureIntake(service.url)), projected.toFixed(0)]];
  } finally {
    await service.stop();
  }
}

export async function benchTokens(): Promise<void> {
  const sizes = (process.env.BENCH_TOKEN_REPORTS ?? '1000,100000,1000000').split(',').map(Number);
  const reads: string[][] = [];
  const intake: string[][] = [];
  const add = (name: string, size: number, [read, taken]: [string[], string[]]) => {
    const reports = size.toLocaleString('en');
    reads.push([name, reports, ...read]);
    intake.push([name, reports, ...taken]);
    if (process.env.BENCH_VERBOSE) console.log(`${name}, ${reports}: ${read.join(' ')}; ${taken.join(' ')}`);
  };
  for (const size of sizes)
    await inFreshPlace(process.env.BENCH_DATABASE_URL, async (place) => {
      const { url } = place;
      add(url ? 'PostgreSQL' : 'embedded', size, await measure(place, url ? { DATABASE_URL: url } : {}, size));
    });
  console.log('\n### Tokens: sums over a year of reports, median ms\n');
  console.log(table(['', 'reports', ...QUESTIONS.map(([name]) => name)], reads));
  console.log(`\n### Tokens: ${BATCHED.toLocaleString('en')} reports in batches of 500, then ${SINGLE} one by one\n`);
  const head = ['', 'reports before', 'seconds', 'batched/s', `single/s, ${CONNECTIONS} connections`, 'rebuilt/s'];
  console.log(table(head, intake));
}
