/**
 * The events behind the numbers of an attribution: the derivation of each number, and the events themselves, newest
 * first, page by page. Each page continues the previous one within the window of the first page, so later events
 * neither shift nor extend the pages.
 */
import { type RawBuilder, sql } from 'kysely';
import { z } from 'zod';
import { type ActionKind, agentAttributionProjection } from '../../projections/agents/attribution.ts';
import { tasksProjection } from '../../projections/tasks/tasks.ts';
import { MAX_HOURS, type Timeframe } from '../../shared/contract/agents/scope.ts';
import type { Derivation, Evidence } from '../../shared/contract/evidence.ts';
import { isStorable } from '../../shared/contract/storable.ts';
import { NANO } from '../../shared/contract/tokens/costs.ts';
import { invalid } from '../../shared/errors.ts';
import { HOUR, seconds } from '../../shared/time.ts';
import { DAY_MS } from '../../shared/time-buckets.ts';
import { derivation, REPORT_TYPES } from '../evidence.ts';
import { type Reads, tableOf } from '../reads.ts';
import { ALL_INPUT, dollars, tokensTable } from '../tokens/usage.ts';
import { ASSIGNEE, isOf } from './names.ts';

type Sql = RawBuilder<unknown>;

/** The agent of the events. No event is newer than those that the numbers count. */
interface Whose {
  readonly workspace: number;
  readonly agent: { readonly id: number; readonly name: string };
}

/** Where to find the events behind a number. Times in Unix seconds. */
export type Source = { readonly total: number; readonly upTo: number } & (
  | {
      readonly from: 'actions';
      readonly kind: ActionKind;
      readonly types: readonly string[];
      /** Set when `types` are all types. */
      readonly anyType?: true;
      readonly entity_type?: string;
      readonly since: number;
    }
  | { readonly from: 'reports'; readonly since: number; readonly model?: string; readonly day?: number }
  | { readonly from: 'tasks'; readonly statuses?: readonly string[] }
);

/** Sources by the name of the number. */
export type Sources = ReadonlyMap<string, Source>;

/** Where a page begins: its number, window and total as on the first page, and the last event of the previous page. */
export interface EvidenceCursor {
  readonly number: string;
  readonly timeframe: Timeframe;
  readonly total: number;
  readonly at: number;
  readonly tie: number;
}

const whole = z.int().nonnegative();
const cursorFields = z.tuple([
  z.string().refine(isStorable),
  whole,
  z.int().min(1).max(MAX_HOURS),
  whole,
  whole,
  whole,
]);

function writeCursor({ number, timeframe, total, at, tie }: EvidenceCursor): string {
  const fields: z.infer<typeof cursorFields> = [number, timeframe.until, timeframe.hours, total, at, tie];
  return Buffer.from(JSON.stringify(fields)).toString('base64url');
}

export const badCursor = () => invalid('cursor: must be `next` of a page of this report, unchanged');

/**
 * @param now Unix ms
 * @throws AppError 400
 */
export function readCursor(text: string, now: number): EvidenceCursor {
  const parsed = cursorFields.safeParse(jsonOf(Buffer.from(text, 'base64url').toString('utf8')));
  if (!parsed.success) throw badCursor();
  const [number, until, hours, total, at, tie] = parsed.data;
  if (until < seconds(now) - MAX_HOURS * HOUR)
    throw invalid('cursor: is too old; start again without it, at the first page');
  return { number, timeframe: { hours, since: until - hours * HOUR, until }, total, at, tie };
}

/** Undefined: no JSON. */
function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Events of actions, newest first. Each type is read separately from the index, so that rare ones are found fast. */
export const newestActions = (
  reads: Reads,
  { workspace, agent }: Whose,
  source: Extract<Source, { readonly from: 'actions' }>,
  limit: number,
  after?: Pick<EvidenceCursor, 'at' | 'tie'>,
): Sql => {
  const { kind, types, entity_type: entityType, since, upTo } = source;
  return sql`
    SELECT a.* FROM unnest(${[...types]}::text[]) AS wanted(type) CROSS JOIN LATERAL (
      SELECT x.* FROM ${tableOf(reads, agentAttributionProjection, 'actions')} x
      WHERE x.workspace_id = ${workspace} AND x.agent_id = ${agent.id} AND x.kind = ${kind} AND x.type = wanted.type
        AND x.created_at >= ${since}
        ${entityType === undefined ? sql`` : sql`AND x.entity_type = ${entityType}`}
        AND x.position <= ${upTo}
        ${after === undefined ? sql`` : sql`AND (x.created_at, x.position) < (${after.at}::bigint, ${after.tie}::bigint)`}
      ORDER BY x.created_at DESC, x.position DESC LIMIT ${sql.lit(limit)}) a
    ORDER BY a.created_at DESC, a.position DESC LIMIT ${sql.lit(limit)}`;
};

/** Events that reported tokens, each with the sums of its reports. */
function newestReports(
  reads: Reads,
  { workspace, agent }: Whose,
  { since, model, day, upTo }: Extract<Source, { readonly from: 'reports' }>,
  limit: number,
  after?: EvidenceCursor,
): Sql {
  const from = Math.max(since * 1_000, day === undefined ? 0 : day * 1_000);
  return sql`
    SELECT r.position, r.at, count(*) AS count, sum(${ALL_INPUT}) AS input_tokens,
      sum(r.output_tokens) AS output_tokens, sum(round(r.cost * ${NANO})) AS cost
    FROM ${tokensTable(reads, 'reports')} r
    WHERE r.workspace_id = ${workspace} AND r.agent_id = ${agent.id} AND r.at >= ${from}
      ${day === undefined ? sql`` : sql`AND r.at < ${day * 1_000 + DAY_MS}`}
      ${model === undefined ? sql`` : sql`AND r.model = ${model}`}
      AND r.position <= ${upTo}
      ${after === undefined ? sql`` : sql`AND (r.at, r.position) < (${after.at}::bigint, ${after.tie}::bigint)`}
    GROUP BY r.at, r.position ORDER BY r.at DESC, r.position DESC LIMIT ${sql.lit(limit)}`;
}

/** The events that last changed each task of an agent. */
function newestTasks(
  reads: Reads,
  { workspace, agent }: Whose,
  { statuses }: Extract<Source, { readonly from: 'tasks' }>,
  limit: number,
  after?: EvidenceCursor,
): Sql {
  const page = (having: Sql) => sql`
    SELECT t.position, t.updated_at, t.created_at, t.id FROM ${tableOf(reads, tasksProjection, 'tasks')} t
    WHERE t.workspace_id = ${workspace} AND ${isOf('t', ASSIGNEE, agent)} ${having}
      ${after === undefined ? sql`` : sql`AND (t.created_at, t.id) < (${after.at}::bigint, ${after.tie}::bigint)`}
    ORDER BY t.created_at DESC, t.id DESC LIMIT ${sql.lit(limit)}`;
  if (!statuses) return page(sql``);
  return sql`
    SELECT a.* FROM unnest(${[...statuses]}::text[]) AS wanted(status)
    CROSS JOIN LATERAL (${page(sql`AND t.status = wanted.status`)}) a
    ORDER BY a.created_at DESC, a.id DESC LIMIT ${sql.lit(limit)}`;
}

interface Found {
  readonly number: string;
  readonly position: number;
  /** Sort key; `tie` breaks ties. */
  readonly at: number;
  readonly tie: number;
  readonly created_at: number;
  readonly count: number;
  readonly input_tokens: number | null;
  readonly output_tokens: number | null;
  readonly cost: number | null;
}

/** One row for each event behind a number. */
function rowsOf(reads: Reads, whose: Whose, number: string, source: Source, limit: number, after?: EvidenceCursor) {
  const none = sql`NULL::double precision`;
  if (source.from === 'actions')
    return sql`(SELECT ${number} AS number, e.position, e.created_at AS at, e.position AS tie, e.created_at,
      1::bigint AS count, ${none} AS input_tokens, ${none} AS output_tokens, ${none} AS cost
      FROM (${newestActions(reads, whose, source, limit, after)}) e)`;
  if (source.from === 'tasks')
    return sql`(SELECT ${number} AS number, e.position, e.created_at AS at, e.id AS tie, e.updated_at AS created_at,
      1::bigint AS count, ${none} AS input_tokens, ${none} AS output_tokens, ${none} AS cost
      FROM (${newestTasks(reads, whose, source, limit, after)}) e)`;
  return sql`(SELECT ${number} AS number, e.position, e.at, e.position AS tie, e.at / 1000 AS created_at,
    e.count, e.input_tokens, e.output_tokens, e.cost
    FROM (${newestReports(reads, whose, source, limit, after)}) e)`;
}

/** One page of events for each of the numbers. */
export async function evidenceOf(
  reads: Reads,
  whose: Whose,
  sources: Sources,
  page: { readonly timeframe: Timeframe; readonly limit: number; readonly after?: EvidenceCursor },
): Promise<Record<string, Evidence>> {
  const { timeframe, limit, after } = page;
  const wanted = [...sources].filter(([, { total }]) => total > 0);
  const parts = wanted.map(([number, source]) => rowsOf(reads, whose, number, source, limit + 1, after));
  const rows =
    parts.length === 0
      ? []
      : (
          await sql<Found>`SELECT * FROM (${sql.join(parts, sql` UNION ALL `)}) e ORDER BY number, at DESC, tie DESC`.execute(
            reads.db,
          )
        ).rows;
  const byNumber = new Map<string, Found[]>(wanted.map(([number]) => [number, []]));
  for (const row of rows) byNumber.get(row.number)?.push(row);
  /** All events of a number; undefined: there are more, or cleanup has removed some. */
  const eventsOf = (number: string, { total }: Source) => {
    const found = byNumber.get(number) ?? [];
    return found.length <= limit && found.reduce((sum, { count }) => sum + Number(count), 0) === total
      ? found
      : undefined;
  };
  const many = after ? [] : wanted.filter(([number, source]) => eventsOf(number, source) === undefined);
  const first = await firstPositions(reads, whose, many);
  return Object.fromEntries(
    [...sources].map(([number, source]) => {
      const total = after?.total ?? source.total;
      const found = byNumber.get(number) ?? [];
      const shown = found.slice(0, limit);
      const last = shown.at(-1);
      const next =
        last && found.length > limit ? writeCursor({ number, timeframe, total, at: last.at, tie: last.tie }) : null;
      const page = { total, events: shown.map(eventOf), next };
      if (after) return [number, page];
      const events = { events: eventsOf(number, source), from: first.get(number) ?? 0, to: source.upTo };
      return [number, { ...derived(whose, source, timeframe, events), ...page }];
    }),
  );
}

const eventOf = ({ position, created_at, count, input_tokens, output_tokens, cost }: Found) => ({
  position,
  created_at,
  count: Number(count),
  ...(input_tokens !== null && { input_tokens }),
  ...(output_tokens !== null && { output_tokens }),
  ...(cost !== null && { cost: dollars(cost) }),
});

/** Clocks of processes may differ by this much, seconds. */
const SKEW = 60;

/** Positions before which a number has no events. Tasks can be older than the agent, so they are left out. */
async function firstPositions(
  reads: Reads,
  { workspace, agent }: Whose,
  sources: readonly (readonly [string, Source])[],
): Promise<ReadonlyMap<string, number>> {
  /** The smallest position among the events with the oldest times. */
  const firstOf = (rows: Sql, since: number) => sql`
    SELECT min(position) AS position FROM ${rows} AND created_at >= ${since}
      AND created_at <= (SELECT min(created_at) FROM ${rows} AND created_at >= ${since}) + ${SKEW}::bigint`;
  const parts = sources.flatMap(([number, source]) => {
    if (source.from === 'tasks') return [];
    if (source.from === 'reports') {
      // A late report may be older than reports at earlier positions.
      return [
        sql`SELECT ${number} AS number, min(position) AS position FROM ${tokensTable(reads, 'reports')}
          WHERE workspace_id = ${workspace} AND agent_id = ${agent.id} AND at >= ${source.since * 1_000}`,
      ];
    }
    const own = sql`${tableOf(reads, agentAttributionProjection, 'actions')}
      WHERE workspace_id = ${workspace} AND agent_id = ${agent.id} AND kind = ${source.kind} AND type = wanted.type`;
    return [
      sql`SELECT ${number} AS number, min(f.position) AS position FROM unnest(${[...source.types]}::text[]) AS wanted(type)
        CROSS JOIN LATERAL (${firstOf(own, source.since)}) f`,
    ];
  });
  if (parts.length === 0) return new Map();
  const { rows } = await sql<{ number: string; position: number | null }>`
    SELECT number, position::bigint AS position FROM (${sql.join(parts, sql` UNION ALL `)}) a`.execute(reads.db);
  return new Map(rows.map(({ number, position }) => [number, position ?? 0]));
}

/** One, or one of several. */
const oneOf = (values: readonly string[]) => (values.length === 1 ? (values[0] as string) : [...values]);

/** The derivation of a number. */
function derived(
  { agent }: Whose,
  source: Source,
  { until }: Timeframe,
  found: { readonly events: readonly Found[] | undefined; readonly from: number; readonly to: number },
): Derivation {
  const all = () => true;
  if (source.from === 'tasks') {
    const filter = {
      assignee_id: agent.id,
      assigned_to: agent.name,
      ...(source.statuses && { status: oneOf(source.statuses) }),
    };
    return derivation({ rule: 'tasks', ...found }, source.total, filter, all);
  }
  if (source.from === 'reports') {
    const { model, day } = source;
    const since = Math.max(source.since, day ?? 0) * 1_000;
    const filter = {
      agent_id: agent.id,
      ...(model !== undefined && { model }),
      since,
      ...(day !== undefined && { until: day * 1_000 + DAY_MS }),
      purged_until: until * 1_000 + 999,
    };
    return derivation({ rule: 'reports', types: REPORT_TYPES, ...found }, source.total, filter, all);
  }
  const { kind, types, anyType, entity_type, since } = source;
  const filter = {
    agent_id: agent.id,
    kind,
    ...(!anyType && { type: oneOf(types) }),
    ...(entity_type !== undefined && { entity_type }),
    since,
  };
  return derivation({ rule: 'actions', ...found }, source.total, filter, all);
}
