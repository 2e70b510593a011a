import { expect } from 'chai';
import type { Intent } from '../../../commands/intents.ts';
import {
  agentOfSession,
  decideReports,
  type NewTokenReport,
  reportTokens,
  tokenLedgerDecider,
} from '../../../commands/tokens/reports.ts';
import type { AppError } from '../../../shared/errors.ts';
import { type TokenReport, tokenPageFilled, tokensReported } from '../../../shared/events/tokens/reports.ts';
import { DAY_MS } from '../../../shared/time-buckets.ts';
import { agentsMemory } from '../../support/agents-memory.ts';
import { givenFor, refusalOf } from '../../support/kit.ts';

const report = (id: string, fields: Partial<TokenReport> = {}): TokenReport => ({
  id,
  model: 'm',
  session_id: 'ada:cli',
  agent_id: 7,
  agent_name: 'ada',
  input_tokens: 1,
  output_tokens: 2,
  cache_read_tokens: 0,
  cache_write_tokens: 0,
  task_id: null,
  operation: 'chat_completion',
  duration: null,
  used_at: null,
  cost: 0.1,
  price: 'default',
  ...fields,
});
const reported = (...reports: TokenReport[]) => tokensReported.draft({ page: 1, reports });
const NOW = Date.UTC(2026, 10, 26);
const given = givenFor(tokenLedgerDecider);

describe('tokens: the ledger of reports', () => {
  it('a batch is one event', () => {
    const batch = [report('a'), report('b'), report('c')];
    given()
      .when(decideReports, 1, batch)
      .then(reported(...batch));
  });
  it('a report that is already on the page is not added again, even at another cost', () => {
    const before = given(reported(report('a'), report('b')));
    before.when(decideReports, 1, [report('b', { cost: 9, task_id: 3 }), report('c')]).then(reported(report('c')));
    before.when(decideReports, 1, [report('a')]).then();
  });
  it('the same report twice in a batch counts once', () => {
    given()
      .when(decideReports, 1, [report('a'), report('a')])
      .then(reported(report('a')));
  });
  it('an id cannot be used for a different report', () => {
    const before = given(reported(report('a')));
    for (const fields of [
      { model: 'n' },
      { session_id: 'bob:cli' },
      { input_tokens: 2 },
      { output_tokens: 3 },
      { cache_read_tokens: 1 },
      { cache_write_tokens: 1 },
      { operation: 'x' },
      { duration: 1 },
      { used_at: 1 },
    ]) {
      const refusal = refusalOf(() => decideReports(before.state, 1, [report('b'), report('a', fields)]));
      expect(refusal.status).to.equal(409);
      expect(refusal.extras.code).to.equal('TOKEN_REPORT_DIFFERS');
      expect(refusal.message).to.match(/\ba\b.*new id/);
      given()
        .when(decideReports, 1, [report('a'), report('a', fields)])
        .thenRefuses(409);
    }
  });
  it('a page with the maximum number of reports is marked as filled and accepts no more', () => {
    const many = Array.from({ length: 4_999 }, (_, n) => report(`r${n}`));
    const drafts = decideReports(given(reported(...many)).state, 1, [report('last')]);
    expect(drafts).to.deep.equal([reported(report('last')), tokenPageFilled.draft({ page: 1 })]);
    expect(decideReports(given(reported(...many.slice(1))).state, 1, [report('last')])).to.have.length(1);
    expect(() => decideReports(given(...drafts).state, 1, [report('more')])).to.throw();
    expect(() => decideReports(given(...drafts).state, 1, [report('last')])).to.throw();
  });
  it('a page with the maximum number of appends is marked as filled', () => {
    const single = Array.from({ length: 199 }, (_, n) => reported(report(`r${n}`)));
    expect(decideReports(given(...single).state, 1, [report('last')]).at(-1)?.type).to.equal(tokenPageFilled.type);
    expect(decideReports(given(...single.slice(1)).state, 1, [report('last')])).to.have.length(1);
  });
  it('a session belongs to the agent that its id starts with', () => {
    const ownerOf = (session: string, ...agents: string[]) => agentOfSession(session, (name) => agents.includes(name));
    expect(ownerOf('scout:cli', 'scout')).to.equal('scout');
    expect(ownerOf(' scout :x:y')).to.equal('scout');
    expect(ownerOf('scout')).to.equal('scout');
    expect(ownerOf(':cli')).to.equal('unknown');
    expect(ownerOf('ops:bot:cli', 'ops', 'ops:bot'), 'the longest name').to.equal('ops:bot');
    expect(ownerOf('ops:bot:cli', 'ops')).to.equal('ops');
  });
});

describe('tokens: a repeated request with reports', () => {
  const one = (id: string | null, model: string): NewTokenReport => ({
    ...{ id, model, session_id: 'ada:cli', input_tokens: 1, output_tokens: 2 },
    ...{ cache_read_tokens: 0, cache_write_tokens: 0 },
    ...{ operation: 'chat_completion', duration: null, task_id: null, used_at: null },
  });

  it('adds no report twice, with or without ids, wherever the first run stopped', async () => {
    const reports = [one(null, 'm1'), one('a', 'm2'), one(null, 'm3')];
    for (const steps of [1, 2]) {
      const { world, commands, context } = agentsMemory();
      // The read model shows none of it yet.
      const knowledge = { reports: new Map(), agents: new Map(), tasks: new Set(), prices: [], page: 1 };
      const directory = { lookUp: async () => knowledge as never };
      const reporting = { directory, subscribedProviders: [], now: () => NOW };
      const kept: Intent[] = [];
      const record = async (step: number, intent: Intent) => {
        kept[step] = intent;
      };
      const first = { ...context(), intents: { recorded: [], record } };
      await reportTokens(commands, first, reporting, reports, null);
      const again = { ...context(), intents: { recorded: kept.slice(0, steps), record } };
      await reportTokens(commands, again, reporting, reports, null);
      const models = world.written().flatMap(({ data }) => (data.reports as TokenReport[]).map(({ model }) => model));
      expect(models, `${steps} steps of the first run`).to.deep.equal(['m1', 'm3', 'm2']);
    }
  });
});

describe('tokens: when they were used', () => {
  const used = (id: string | null, used_at: number | null): NewTokenReport => ({
    ...{ id, model: 'm', session_id: 'ada:cli', input_tokens: 1, output_tokens: 2, cache_read_tokens: 0 },
    ...{ cache_write_tokens: 0, operation: 'chat_completion', duration: null, task_id: null, used_at },
  });

  /** Reports, of which the read model knows some, and the reports that are recorded. */
  async function recordedOf(reports: readonly NewTokenReport[], known: readonly TokenReport[] = []) {
    const { world, commands, context } = agentsMemory();
    const found = new Map(known.map((one) => [one.id, { ...one, at: one.used_at ?? NOW }]));
    const directory = {
      lookUp: async () => ({ reports: found, agents: new Map(), tasks: new Set(), prices: [], page: 1 }) as never,
    };
    const reporting = { directory, subscribedProviders: [], now: () => NOW };
    const pathOf = (n: number) => `reports.${n}.`;
    const result = await reportTokens(commands, context(), reporting, reports, null, pathOf).then(
      (all) => all.map(({ report: { at } }) => at),
      (error: AppError) => error,
    );
    return {
      result,
      times: world.written().flatMap(({ data }) => (data.reports as TokenReport[]).map((r) => r.used_at)),
    };
  }

  it('is recorded from 90 days ago to 5 minutes ahead', async () => {
    const times = [NOW - 90 * DAY_MS, NOW, NOW + 5 * 60_000];
    expect(await recordedOf(times.map((at) => used(null, at)))).to.deep.equal({ result: times, times });
  });
  it('is refused beyond, with the report, and then no report of the batch is recorded', async () => {
    for (const [at, shown] of [
      [NOW - 90 * DAY_MS - 1, '2026-08-27T23:59:59.999Z'],
      [NOW + 5 * 60_000 + 1, '2026-11-26T00:05:00.001Z'],
    ] as const)
      for (const id of [null, 'a']) {
        const { result, times } = await recordedOf([used(null, null), used('b', NOW), used(id, at)]);
        expect(result).to.include({ status: 400 });
        expect((result as AppError).message).to.match(/^reports\.2\.timestamp: must be from 90 days ago to 5 minutes/);
        expect((result as AppError).message).to.include(shown);
        expect(times).to.deep.equal([]);
      }
  });
  it('a report that is known is the same at any later time', async () => {
    const at = NOW - 90 * DAY_MS - 1;
    const known = report('a', { ...used('a', at), id: 'a' });
    expect(await recordedOf([used('a', at)], [known])).to.deep.equal({ result: [at], times: [] });
    expect((await recordedOf([used('a', at + 1)], [known])).result).to.include({ status: 409 });
  });
});
