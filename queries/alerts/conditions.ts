/**
 * Conditions of alert rules, evaluated by the database. `shared/contract/alerts/conditions.ts` defines their meaning; a
 * property test checks that both give the same results.
 *
 * To decide, no record leaves the database, and it stops at the record that decides the result. The records of a rule
 * that triggers are named by a second statement.
 */
import { type RawBuilder, sql } from 'kysely';
import { agentsProjection } from '../../projections/agents/agents.ts';
import { activitiesProjection } from '../../projections/monitoring/activities.ts';
import type { Projection } from '../../projections/projection.ts';
import { sessionsProjection } from '../../projections/sessions.ts';
import { tasksProjection } from '../../projections/tasks/tasks.ts';
import {
  ACTIVITY_WINDOW,
  type Condition,
  type EntityType,
  fieldOf,
  isMet,
  kindOf,
  reportsOnce,
  seesAll,
  thresholdOf,
} from '../../shared/contract/alerts/conditions.ts';
import { type AlertRecord, type AlertRecords, MAX_NAMED } from '../../shared/events/alerts/rules.ts';
import { foldedPattern } from '../../shared/folding.ts';
import type { TaskView } from '../../shared/identity.ts';
import { MINUTE } from '../../shared/time.ts';
import { beatsAfter, lastSeen, lastSeenUpTo } from '../agents/leases.ts';
import { type Reads, tableOf } from '../reads.ts';
import { taskSeen } from '../tasks/visibility.ts';

interface Source {
  readonly projection: Projection;
  readonly table: string;
  /** Columns of fields whose column has another name. */
  readonly columns: Readonly<Record<string, string>>;
  /** Whether a record counts for conditions that do not cover all records. */
  readonly live: RawBuilder<unknown>;
  /** The column that names a record in an alert. Free text of activities is no name: callers may not see all of it. */
  readonly name: string;
}

const ALWAYS = sql`true`;

const SOURCES: Readonly<Record<EntityType, Source>> = {
  agent: { projection: agentsProjection, table: 'agents', columns: {}, live: sql`status <> 'offline'`, name: 'name' },
  task: { projection: tasksProjection, table: 'tasks', columns: {}, live: ALWAYS, name: 'title' },
  session: {
    projection: sessionsProjection,
    table: 'cli_sessions',
    columns: { updated_at: 'reported_at' },
    live: sql`NOT terminated`,
    name: 'session_id',
  },
  activity: { projection: activitiesProjection, table: 'activities', columns: {}, live: ALWAYS, name: 'type' },
};

/** The same as `NUMBER` in the contract. */
const NUMBER = String.raw`^-?\d{1,15}(\.\d{1,15})?$`;

/** The column of a condition. */
export function columnNameOf(condition: Condition): string {
  const { field } = fieldOf(condition);
  return SOURCES[condition.entity_type].columns[field] ?? field;
}

const columnOf = (condition: Condition): RawBuilder<unknown> => sql.ref(columnNameOf(condition));

/** `column = value`, if the type of the column can have such a value. */
function equal(condition: Condition, text: string): RawBuilder<unknown>[] {
  const column = columnOf(condition);
  const kind = kindOf(condition);
  if (kind === 'text') return [sql`${column} = ${text}`];
  if (String(Number(text)) !== text) return [];
  if (kind === 'amount') return [sql`${column} = ${Number(text)}::double precision`];
  return Number.isSafeInteger(Number(text)) ? [sql`${column} = ${Number(text)}::bigint`] : [];
}

/** `column > number` or `column < number`, in the column's own type, so that its index can be used. */
function compared(condition: Condition, greater: boolean, number: number): RawBuilder<unknown> {
  const column = columnOf(condition);
  const sign = greater ? sql`>` : sql`<`;
  const exact = sql`${number}::double precision`;
  switch (kindOf(condition)) {
    case 'text':
      return sql`CASE WHEN ${column} ~ ${NUMBER} THEN ${column}::double precision ${sign} ${exact} END`;
    case 'amount':
      return sql`${column} ${sign} ${exact}`;
    default:
      return sql`${column} ${sign} ${greater ? Math.floor(number) : Math.ceil(number)}::bigint`;
  }
}

/** Mutually exclusive conditions, of which a matching record meets one. */
function alternatives(condition: Condition, now: number): readonly RawBuilder<unknown>[] {
  const { condition_operator: operator, condition_value: given } = condition;
  const kind = kindOf(condition);
  if (kind === 'none') return [];
  const column = columnOf(condition);
  const isSet = kind === 'text' ? sql`${column} <> ''` : sql`${column} IS NOT NULL`;
  switch (operator) {
    case 'equals':
      return equal(condition, given);
    case 'not_equals': {
      // As two ranges, so that an index can be used.
      if (kind === 'text') return [sql`${column} < ${given}`, sql`${column} > ${given}`];
      return [sql`${column} IS NOT NULL AND NOT (${equal(condition, given)[0] ?? sql`false`})`];
    }
    case 'greater_than':
    case 'less_than':
      return [compared(condition, operator === 'greater_than', Number(given))];
    case 'contains':
      return [sql`normalize(${column}::text COLLATE "C", NFC) ~ ${foldedPattern(given)}`];
    case 'age_minutes_above':
      return kind === 'time' ? [sql`${column} < ${now - Number(given) * MINUTE}::bigint`] : [];
    default: {
      const { wanted } = fieldOf(condition);
      return wanted === undefined ? [isSet] : equal(condition, wanted);
    }
  }
}

/** Whether the value of a condition depends on heartbeats that changed nothing, which are not in the row of the agent. */
export const isLeased = (condition: Condition): boolean =>
  condition.entity_type === 'agent' && columnNameOf(condition) === 'last_seen';

/**
 * The records of a workspace that a condition covers.
 *
 * @param upTo those that have not changed since this position, as they were there; default: all, as they are now
 */
function lookedAt(reads: Reads, workspace: number, condition: Condition, upTo?: number): RawBuilder<unknown> {
  const { projection, table, live } = SOURCES[condition.entity_type];
  const seen = seesAll(condition) ? ALWAYS : live;
  const rows = tableOf(reads, projection, table);
  const old = upTo === undefined ? sql`` : sql`AND position <= ${upTo}`;
  if (!isLeased(condition)) return sql`${rows} WHERE workspace_id = ${workspace} AND ${seen} ${old}`;
  const at = upTo === undefined ? lastSeen(reads, 'g') : lastSeenUpTo(reads, 'g', upTo);
  const unchanged = upTo === undefined ? ALWAYS : sql`NOT ${beatsAfter(reads, 'g', upTo)}`;
  return sql`(SELECT g.workspace_id, g.id, g.status, g.position, ${at} AS last_seen FROM ${rows} g WHERE ${unchanged}) agents
    WHERE workspace_id = ${workspace} AND ${seen} ${old}`;
}

/** How many records match, counted up to `limit`. */
async function countUpTo(
  reads: Reads,
  from: RawBuilder<unknown>,
  matches: readonly RawBuilder<unknown>[],
  limit: number,
): Promise<number> {
  if (matches.length === 0 || limit === 0) return 0;
  const found = matches.map((match) => sql`(SELECT 1 FROM ${from} AND ${match} LIMIT ${limit})`);
  const { rows } = await sql<{ found: number }>`
    SELECT count(*) AS found FROM (SELECT 1 FROM (${sql.join(found, sql` UNION ALL `)}) each_one LIMIT ${limit}) counted
  `.execute(reads.db);
  return Number(rows[0]?.found ?? 0);
}

/** When and for what a condition is evaluated. */
export interface Evaluated {
  readonly workspace: number;
  readonly condition: Condition;
  /** Unix seconds. */
  readonly now: number;
  /** Position of the newest activity that was reported: only later ones are. Counts cover all. */
  readonly reportedTo: number;
  /** Ids of records that are left out, because they are in a cooldown of their own. */
  readonly quiet?: readonly number[];
}

/** The records of which a condition is true now, if they match one of its alternatives. */
function evaluatedFrom(reads: Reads, { workspace, condition, now, reportedTo, quiet = [] }: Evaluated) {
  const all = lookedAt(reads, workspace, condition);
  const loud = quiet.length === 0 ? all : sql`${all} AND NOT (id = ANY(${quiet}))`;
  if (condition.entity_type !== 'activity') return loud;
  const isNew = reportsOnce(condition) ? sql`position > ${reportedTo}` : ALWAYS;
  return sql`${loud} AND created_at > ${now - ACTIVITY_WINDOW} AND created_at <= ${now} AND ${isNew}`;
}

export async function conditionMet(reads: Reads, evaluated: Evaluated): Promise<boolean> {
  const { condition, now } = evaluated;
  const { least } = thresholdOf(condition);
  const from = evaluatedFrom(reads, evaluated);
  return isMet(condition, await countUpTo(reads, from, alternatives(condition, now), least));
}

/** The matching records of a condition. */
export interface Matching extends AlertRecords {
  readonly total: number;
  /** The lowest ids, at most `most`. */
  readonly ids: readonly number[];
  /** Position of the newest matching activity; null: the records are no activities, or none matches. */
  readonly reported_to: number | null;
}

/**
 * The matching records of a condition by id, as named in an alert, from one statement. It reads all that match, so it is
 * for rules that trigger.
 *
 * @param view what the recipient of the alert may see
 * @param most maximum number of ids
 */
export async function matchingRecords(
  reads: Reads,
  evaluated: Evaluated,
  view: TaskView,
  most: number,
): Promise<Matching> {
  const { condition, now } = evaluated;
  const matches = alternatives(condition, now);
  if (matches.length === 0) return { records: [], more: 0, total: 0, ids: [], reported_to: null };
  const { projection, table, name } = SOURCES[condition.entity_type];
  const from = evaluatedFrom(reads, evaluated);
  const found = matches.map((match) => sql`(SELECT id, position FROM ${from} AND ${match})`);
  const shown = condition.entity_type === 'task' ? taskSeen(view, 'named') : ALWAYS;
  const { rows } = await sql<{
    total: number;
    newest: number | null;
    ids: number[] | null;
    records: AlertRecord[] | null;
  }>`
    WITH matched AS MATERIALIZED (${sql.join(found, sql` UNION ALL `)})
    SELECT (SELECT count(*) FROM matched) AS total, (SELECT max(position) FROM matched) AS newest,
      (SELECT json_agg(id ORDER BY id) FROM (SELECT id FROM matched ORDER BY id LIMIT ${most}) first) AS ids,
      (SELECT json_agg(json_build_object('id', id, 'name', ${sql.ref(`named.${name}`)}, 'shown', coalesce(${shown}, false)) ORDER BY id)
        FROM ${tableOf(reads, projection, table)} named WHERE workspace_id = ${evaluated.workspace}
          AND id IN (SELECT id FROM matched ORDER BY id LIMIT ${MAX_NAMED})) AS records`.execute(reads.db);
  const records = rows[0]?.records ?? [];
  const total = Number(rows[0]?.total ?? 0);
  const newest = condition.entity_type === 'activity' ? (rows[0]?.newest ?? null) : null;
  return { records, more: total - records.length, total, ids: rows[0]?.ids ?? [], reported_to: newest };
}

/** The contribution to a condition of the records that have not changed since an event. */
export interface Unchanged {
  /** Number of matching records, apart from conditions on time; counted up to a limit. */
  readonly matching: number;
  /**
   * For ages: the times of the covered records, Unix seconds. Of records that reach the age by the same evaluation, the
   * oldest one.
   */
  readonly times: readonly number[];
}

/**
 * Activities never change, so a condition on activities has no such records.
 *
 * @param position of the event
 * @param evaluations the first evaluation and the interval, seconds; undefined: the oldest of all times is enough
 */
export async function unchangedSince(
  reads: Reads,
  workspace: number,
  condition: Condition,
  position: number,
  limit: number,
  evaluations?: { readonly first: number; readonly everySeconds: number },
): Promise<Unchanged> {
  if (condition.entity_type === 'activity') return { matching: 0, times: [] };
  const from = lookedAt(reads, workspace, condition, position);
  if (condition.condition_operator !== 'age_minutes_above')
    return { matching: await countUpTo(reads, from, alternatives(condition, 0), limit), times: [] };
  if (kindOf(condition) !== 'time') return { matching: 0, times: [] };
  const column = columnOf(condition);
  const age = Number(condition.condition_value) * MINUTE;
  const together =
    evaluations &&
    sql`GROUP BY greatest(0, ceil((${column} + ${age}::bigint + 1 - ${evaluations.first}::bigint)::double precision / ${evaluations.everySeconds}))`;
  const { rows } = await sql<{
    oldest: number | null;
  }>`SELECT min(${column}) AS oldest FROM ${from} ${together ?? sql``}`.execute(reads.db);
  return { matching: 0, times: rows.flatMap(({ oldest }) => oldest ?? []) };
}
