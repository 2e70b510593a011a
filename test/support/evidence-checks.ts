/** Checks of responses with evidence: each number has some, and follows from the log by it. */
import { expect } from 'chai';
import type { AttributionResponse } from '../../shared/contract/agents/attribution.ts';
import type { Derivation, Derivations } from '../../shared/contract/evidence.ts';
import type { EvidenceReader, Sums } from './evidence.ts';
import { evidenceNames } from './evidence-numbers.ts';

/** Evidence by the names of numbers: each number of the response has some, and each name must be asked for before the end. */
function evidenceIn(body: object) {
  const { evidence } = body as { readonly evidence?: Derivations };
  const left = new Set(Object.keys(evidence ?? {}));
  const named = evidenceNames(body as Readonly<Record<string, unknown>>);
  expect(
    [...named].filter((name) => !left.has(name)),
    'numbers without evidence',
  ).to.deep.equal([]);
  return {
    of(name: string): Derivation {
      left.delete(name);
      const found = evidence?.[name];
      if (!found) throw new Error(`no evidence for ${name}`);
      return found;
    },
    finish: () => expect([...left], 'evidence of numbers that are not shown').to.deep.equal([]),
  };
}

const rounded = (value: number): number => Math.round(value * 100) / 100;
const change = (now: number, before: number): number =>
  before === 0 ? (now > 0 ? 100 : 0) : rounded((100 * (now - before)) / before);

/** Checks that there is evidence for each number of diagnostics, and that each follows from the log. */
export function checkDiagnostics(
  // biome-ignore lint/suspicious/noExplicitAny: looked into freely.
  body: any,
  reader: EvidenceReader,
): void {
  const { of, finish } = evidenceIn(body);
  const counted = (name: string, number: number) => {
    expect(of(name).total, name).to.equal(number);
    expect(reader.count(of(name)), name).to.equal(number);
  };
  const { summary, tasks, errors, activity, trends, tokens, timeframe } = body;
  if (summary) {
    for (const name of ['tasks_completed', 'tasks_total', 'activity_count', 'error_count'])
      counted(`summary.${name}`, summary[name]);
    const rate = of('summary.error_rate_percent');
    expect(rate).to.include({ total: summary.error_rate_percent, rule: 'derived' });
    const [failed = 0, all = 0] = (rate.numbers ?? []).map((name) => reader.count(of(name)));
    expect(summary.error_rate_percent).to.equal(failed === 0 ? 0 : rounded((100 * failed) / Math.max(all, failed)));
  }
  if (tasks) {
    for (const by of ['by_status', 'by_priority'])
      for (const [name, number] of Object.entries(tasks[by])) counted(`tasks.${by}.${name}`, number as number);
    const completed = reader.count(of('tasks.throughput_per_day'));
    expect(tasks.throughput_per_day).to.equal(rounded(completed / Math.max(timeframe.hours / 24, 1)));
  }
  if (errors) {
    counted('errors.total', errors.total);
    for (const { type, count } of errors.by_type) counted(`errors.by_type.${type}`, count);
  }
  if (activity) {
    for (const { type, count } of activity.by_type) counted(`activity.by_type.${type}`, count);
    for (const { timestamp, count } of activity.timeline) counted(`activity.timeline.${timestamp}`, count);
  }
  if (trends) {
    for (const period of ['current_period', 'previous_period'])
      for (const name of ['activities', 'errors', 'tasks_completed'])
        counted(`trends.${period}.${name}`, trends[period][name]);
    for (const [name, percent] of Object.entries(trends.change)) {
      const [now = 0, before = 0] = (of(`trends.change.${name}`).numbers ?? []).map((one) => reader.count(of(one)));
      expect(percent, name)
        .to.equal(change(now, before))
        .and.to.equal(of(`trends.change.${name}`).total);
    }
  }
  if (tokens) {
    const { cost: _, estimated: __, ...total } = reader.sums(of('tokens.total'));
    expect(tokens.total).to.deep.equal(total);
    for (const { model, request_count: requests, ...sums } of tokens.by_model) {
      const { cost: ___, estimated: ____, ...own } = reader.sums(of(`tokens.by_model.${model}`));
      expect({ ...sums, requests }, model).to.deep.equal(own);
    }
  }
  finish();
}

/** Sums as statistics show them. */
function statsFrom({ requests, input_tokens, output_tokens, cost, estimated }: Sums) {
  const [tokens, dollars] = [input_tokens + output_tokens, cost / 1e9];
  return {
    totalTokens: tokens,
    totalCost: dollars,
    estimatedCost: estimated / 1e9,
    requestCount: requests,
    avgTokensPerRequest: requests === 0 ? 0 : Math.round(tokens / requests),
    avgCostPerRequest: requests === 0 ? 0 : dollars / requests,
  };
}

/** Checks that each number of a response about tokens has evidence, and follows from the log. */
export function checkTokens(
  // biome-ignore lint/suspicious/noExplicitAny: looked into freely.
  body: any,
  reader: EvidenceReader,
): void {
  const evidence = evidenceIn(body);
  const of = (name: string): Derivation => {
    const found = evidence.of(name);
    expect(reader.reports(found).length, name).to.equal(found.total);
    return found;
  };
  const stats = (name: string) => statsFrom(reader.sums(of(name)));
  const hasDays = (name: string, timeline: readonly { readonly date: string }[]) => {
    for (const { date, ...day } of timeline) {
      const { input_tokens, output_tokens, cost } = reader.sums(of(`${name}.timeline.${date}`));
      expect(day, `${name} ${date}`).to.deep.equal({ cost: cost / 1e9, tokens: input_tokens + output_tokens });
    }
  };
  if (body.usage && !body.summary) expect(body.total).to.equal(of('total').total);
  if (body.recordCount !== undefined && !body.models) expect(body.recordCount).to.equal(of('recordCount').total);
  // Statistics, and sums of an export.
  if (body.models) {
    if (body.recordCount !== undefined) expect(body.recordCount).to.equal(evidence.of('summary').total);
    expect(body.summary).to.deep.equal(stats('summary'));
    for (const by of ['models', 'sessions', 'agents'])
      for (const [name, shown] of Object.entries(body[by] ?? {}))
        expect(shown, `${by}.${name}`).to.deep.equal(stats(`${by}.${name}`));
  }
  if (body.tasks) checkTaskCosts(body, { of, stats, hasDays }, reader);
  else if (body.recordCount !== undefined && !body.models)
    for (const [agent, shown] of Object.entries<{ stats: object; models: object; timeline: { date: string }[] }>(
      body.agents,
    )) {
      expect(shown.stats, agent).to.deep.equal(stats(`agents.${agent}`));
      for (const [model, own] of Object.entries(shown.models))
        expect(own, model).to.deep.equal(stats(`agents.${agent}.models.${model}`));
      hasDays(`agents.${agent}`, shown.timeline);
    }
  for (const { timestamp, ...hour } of body.trends ?? []) {
    const { requests, input_tokens, output_tokens, cost } = reader.sums(of(`trends.${timestamp}`));
    expect(hour, timestamp).to.deep.equal({ tokens: input_tokens + output_tokens, cost: cost / 1e9, requests });
  }
  if (Array.isArray(body.agents)) {
    const all = reader.reports(of('summary'));
    const { cost, estimated, input_tokens, output_tokens } = reader.sums(of('summary'));
    expect(body.summary).to.deep.equal({
      total_cost: cost / 1e9,
      estimated_cost: estimated / 1e9,
      total_tokens: input_tokens + output_tokens,
      agent_count: new Set(all.map(({ agent_id: agentId, agent_name: agentName }) => agentId ?? agentName)).size,
      days: body.summary.days,
    });
    for (const { agent, models, ...shown } of body.agents) {
      const sums = reader.sums(of(`agents.${agent}`));
      const own = reader.reports(of(`agents.${agent}`));
      expect(shown, agent).to.deep.equal({
        agent_id: own[0]?.agent_id,
        total_input_tokens: sums.input_tokens,
        total_output_tokens: sums.output_tokens,
        total_tokens: sums.input_tokens + sums.output_tokens,
        total_cost: sums.cost / 1e9,
        estimated_cost: sums.estimated / 1e9,
        session_count: new Set(own.map(({ session_id: sessionId }) => sessionId)).size,
        request_count: sums.requests,
        last_active: new Date(Math.max(...own.map(({ at }) => at))).toISOString(),
      });
      for (const { model, request_count: requests, cost: dollars, estimated_cost: guessed, ...tokens } of models)
        expect(
          { ...tokens, requests, cost: Math.round(dollars * 1e9), estimated: Math.round(guessed * 1e9) },
          model,
        ).to.deep.equal(reader.sums(of(`agents.${agent}.models.${model}`)));
    }
  }
  evidence.finish();
}

/** Checks the costs of tasks, agents and projects. */
function checkTaskCosts(
  // biome-ignore lint/suspicious/noExplicitAny: looked into freely.
  body: any,
  {
    of,
    stats,
    hasDays,
  }: {
    readonly of: (name: string) => Derivation;
    readonly stats: (name: string) => object;
    readonly hasDays: (name: string, timeline: readonly { readonly date: string }[]) => void;
  },
  reader: EvidenceReader,
): void {
  expect(body.attributedRecordCount).to.equal(of('attributedRecordCount').total);
  for (const name of ['summary', 'unattributed']) expect(body[name], name).to.deep.equal(stats(name));
  for (const { taskId, stats: shown, models, timeline } of body.tasks) {
    expect(shown, taskId).to.deep.equal(stats(`tasks.${taskId}`));
    for (const [model, own] of Object.entries(models))
      expect(own, model).to.deep.equal(stats(`tasks.${taskId}.models.${model}`));
    hasDays(`tasks.${taskId}`, timeline);
  }
  for (const by of ['agents', 'projects'])
    for (const [name, shown] of Object.entries<{ stats: object; taskCount: number; taskIds: number[] }>(body[by])) {
      const number = `${by}.${name}`;
      const tasks = new Set(reader.reports(of(number)).map(({ task_id: taskId }) => taskId));
      expect(shown.stats, number).to.deep.equal(stats(number));
      expect([shown.taskCount, new Set(shown.taskIds)], number).to.deep.equal([tasks.size, tasks]);
    }
}

/** Checks that each number of a response about alert rules has evidence, and follows from the log. */
export function checkAlerts(
  // biome-ignore lint/suspicious/noExplicitAny: looked into freely.
  body: any,
  reader: EvidenceReader,
): void {
  const { of, finish } = evidenceIn(body);
  const counted = (name: string, number: number) => {
    expect(of(name).total, name).to.equal(number);
    expect(reader.count(of(name)), name).to.equal(number);
  };
  for (const { id, trigger_count } of body.rules ?? []) counted(`rules.${id}.trigger_count`, trigger_count);
  if (body.rule) counted('rule.trigger_count', body.rule.trigger_count);
  if (body.results) {
    counted('evaluated', body.evaluated);
    counted('triggered', body.triggered);
  }
  if (body.triggers) {
    const { rule, filter } = of('evaluated');
    const every = Number(filter?.every_seconds);
    expect([rule, filter?.since, filter?.until]).to.deep.equal(['derived', body.since, body.until]);
    expect(body.evaluated).to.equal(Math.floor(body.until / every) - Math.ceil(body.since / every) + 1);
    counted('triggered', body.triggered);
    expect(body.triggers).to.deep.equal(reader.triggers(of('triggered')).slice(0, 100));
  }
  finish();
}

/** Checks that each number of an attribution has evidence, and follows from the log. */
export function checkAttribution(body: AttributionResponse, reader: EvidenceReader): void {
  const { of, finish } = evidenceIn(body);
  const counted = (path: string, numbers: object) => {
    for (const [name, number] of Object.entries(numbers)) {
      // The leases have heartbeats that the log does not have yet.
      if (typeof number !== 'number' || name === 'heartbeats') continue;
      const found = of(`${path}.${name}`);
      expect(found.total, `${path}.${name}`).to.equal(number);
      expect(reader.count(found), `${path}.${name}`).to.equal(number);
    }
  };
  const { identity, audit, mutations, cost } = body;
  counted('identity.lifetime_stats', identity?.lifetime_stats ?? {});
  counted('audit', audit ?? {});
  counted('audit.by_type', audit?.by_type ?? {});
  counted('audit.by_action', audit?.by_action ?? {});
  counted('mutations.summary', mutations?.summary ?? {});
  if (cost) {
    const summed = (
      name: string,
      requests: number,
      shown: Omit<Sums, 'requests' | 'estimated'> & { estimated_cost: number },
    ) => {
      expect(of(name).total, name).to.equal(requests);
      const { input_tokens, output_tokens } = shown;
      const nanos = { cost: Math.round(shown.cost * 1e9), estimated: Math.round(shown.estimated_cost * 1e9) };
      expect({ requests, input_tokens, output_tokens, ...nanos }, name).to.deep.equal(reader.sums(of(name)));
    };
    summed('cost.total', cost.total.requests, cost.total);
    for (const one of cost.by_model) summed(`cost.by_model.${one.model}`, one.request_count, one);
    for (const one of cost.daily_trend) summed(`cost.daily_trend.${one.date}`, one.requests, one);
  }
  finish();
}
