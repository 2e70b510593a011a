/** Sessions of command-line tools and of gateways, and how clients show sessions. */
import { type RawBuilder, sql } from 'kysely';
import type { Row } from '../projections/projection.ts';
import { cliSessionsTable, sessionPrefsTable, sessionsProjection } from '../projections/sessions.ts';
import {
  type CliSessionRecord,
  type CliSessionsQuery,
  cliSessionSchema,
  type SessionPref,
  type SessionRecord,
} from '../shared/contract/sessions.ts';
import { NANO } from '../shared/contract/tokens/costs.ts';
import { fieldNames } from '../shared/fields.ts';
import type { GatewaySession } from '../shared/ports/admin/gateways.ts';
import { DAY, HOUR, MINUTE, seconds } from '../shared/time.ts';
import { countOf, inWorkspace, type Reads, tableOf } from './reads.ts';
import { columnsOf, type Executed, type Records, rowAfter } from './records.ts';

/** A session without a report for this long is not active. */
const ACTIVE_FOR = 15 * MINUTE;

type SessionRow = Row<typeof cliSessionsTable>;

const isActive = (row: SessionRow, now: number): boolean => !row.terminated && row.reported_at > now - ACTIVE_FOR;
const iso = (at: number): string => new Date(at * 1_000).toISOString();

const FIELDS = fieldNames(
  cliSessionSchema.omit({
    first_message_at: true,
    last_message_at: true,
    last_user_prompt: true,
    is_active: true,
    scanned_at: true,
  }),
);

const recordOf = (row: SessionRow, now: number): CliSessionRecord => ({
  ...columnsOf(row, FIELDS),
  first_message_at: iso(row.created_at),
  last_message_at: iso(row.reported_at),
  last_user_prompt: null,
  is_active: isActive(row, now) ? 1 : 0,
  scanned_at: row.reported_at,
});

const NO_TOTALS = { sessions: 0, input_tokens: 0, output_tokens: 0, cost: 0 };

/** Stored sums, and numbers that depend on the time or take one index step per project. */
async function cliSessionStats(reads: Reads, workspace: number, now: number) {
  const sessions = tableOf(reads, sessionsProjection, 'cli_sessions');
  const nextProject = (after: RawBuilder<unknown>) => sql`
    SELECT project_slug FROM ${sessions} WHERE workspace_id = ${workspace} ${after} ORDER BY project_slug LIMIT 1`;
  const { rows } = await sql<{ totals: typeof NO_TOTALS | null; active_sessions: number; unique_projects: number }>`
    WITH RECURSIVE projects AS (
      (${nextProject(sql``)})
      UNION ALL
      SELECT (${nextProject(sql`AND project_slug > projects.project_slug`)}) FROM projects
      WHERE project_slug IS NOT NULL
    )
    SELECT (SELECT count(project_slug) FROM projects) AS unique_projects,
      (SELECT count(*) FROM ${sessions}
       WHERE workspace_id = ${workspace} AND NOT terminated AND reported_at > ${now - ACTIVE_FOR}) AS active_sessions,
      (SELECT row_to_json(t) FROM ${tableOf(reads, sessionsProjection, 'session_totals')} t
       WHERE workspace_id = ${workspace}) AS totals`.execute(reads.db);
  const { totals = null, active_sessions = 0, unique_projects = 0 } = rows[0] ?? {};
  return { totals: totals ?? NO_TOTALS, active_sessions, unique_projects };
}

/** A page of sessions, last reported first, and overall numbers. @param now Unix seconds */
export async function listCliSessions(reads: Reads, workspace: number, query: CliSessionsQuery, now: number) {
  let matching = inWorkspace(reads, sessionsProjection, 'cli_sessions', workspace);
  if (query.project !== undefined) matching = matching.where('project_slug', '=', query.project);
  if (query.active === '1')
    matching = matching.where('terminated', '=', false).where('reported_at', '>', now - ACTIVE_FOR);
  const rows = await matching
    .selectAll()
    .orderBy('reported_at', 'desc')
    .orderBy('id', 'desc')
    .limit(query.limit)
    .offset(query.offset)
    .execute();
  const { totals, active_sessions, unique_projects } = await cliSessionStats(reads, workspace, now);
  // Without a project, the overall numbers include the total.
  const unfiltered = query.active === '1' ? active_sessions : totals.sessions;
  return {
    sessions: rows.map((row) => recordOf(row, now)),
    total: query.project === undefined ? unfiltered : await countOf(matching),
    stats: {
      total_sessions: totals.sessions,
      active_sessions,
      total_input_tokens: totals.input_tokens,
      total_output_tokens: totals.output_tokens,
      total_estimated_cost: Math.round((100 * totals.cost) / NANO) / 100,
      unique_projects,
    },
  };
}

/** One session; undefined when the workspace has none with this id. @param now Unix seconds */
export async function cliSession(reads: Reads, workspace: number, sessionId: string, now: number) {
  const row = await inWorkspace(reads, sessionsProjection, 'cli_sessions', workspace)
    .selectAll()
    .where('session_id', '=', sessionId)
    .executeTakeFirst();
  return row && recordOf(row, now);
}

/** A session after a report. @param now Unix seconds */
export async function cliSessionAfter(
  records: Records,
  workspace: number,
  sessionId: string,
  executed: Executed,
  now: number,
): Promise<CliSessionRecord> {
  const key = { workspace_id: workspace, session_id: sessionId };
  return recordOf(await rowAfter(records, 'Session', [sessionsProjection, cliSessionsTable], key, executed), now);
}

/** 1234567 as 1.2m, 35000 as 35k. */
export function shortened(count: number): string {
  if (count >= 1e6) return `${Math.floor(count / 1e5) / 10}m`;
  return count >= 1_000 ? `${Math.floor(count / 1_000)}k` : String(count);
}

/** @param age seconds */
export function ageText(age: number): string {
  if (age < MINUTE) return 'now';
  if (age < HOUR) return `${Math.floor(age / MINUTE)}m`;
  return age < DAY ? `${Math.floor(age / HOUR)}h` : `${Math.floor(age / DAY)}d`;
}

/** Maximum number of sessions in the list of all kinds. */
const LISTED = 100;

/** A gateway session without an update for this long is not active. */
const GATEWAY_ACTIVE_FOR = HOUR;

/** @param now Unix seconds */
export function gatewaySessionRecord(session: GatewaySession, now: number): SessionRecord {
  const { id, key, agent, kind, model, channel, label, settings, usedTokens, contextTokens, updatedAt } = session;
  const age = now - seconds(updatedAt);
  const percentage = Math.round((100 * usedTokens) / contextTokens);
  return {
    id,
    key,
    agent,
    kind,
    age: updatedAt === 0 ? '-' : ageText(age),
    model,
    tokens: `${shortened(usedTokens)}/${shortened(contextTokens)} (${percentage}%)`,
    channel,
    flags: [],
    active: age < GATEWAY_ACTIVE_FOR,
    startTime: updatedAt,
    lastActivity: updatedAt,
    source: 'gateway',
    label,
    settings,
  };
}

/**
 * Sessions of all kinds, last active first.
 *
 * @param now Unix seconds
 * @param live those of the gateway, last updated first
 */
export async function listSessions(
  reads: Reads,
  workspace: number,
  now: number,
  live: readonly GatewaySession[],
): Promise<SessionRecord[]> {
  const rows = await inWorkspace(reads, sessionsProjection, 'cli_sessions', workspace)
    .selectAll()
    .orderBy('reported_at', 'desc')
    .orderBy('id', 'desc')
    .limit(LISTED)
    .execute();
  const local = rows.map((row): SessionRecord => {
    const active = isActive(row, now);
    return {
      id: row.session_id,
      key: row.project_slug,
      agent: row.agent_name ?? row.project_slug,
      kind: 'claude-code',
      age: active ? 'now' : ageText(now - row.reported_at),
      model: row.model ?? 'unknown',
      tokens: `${shortened(row.input_tokens)}/${shortened(row.output_tokens)}`,
      channel: 'local',
      flags: row.git_branch === null ? [] : [row.git_branch],
      active,
      startTime: row.created_at * 1_000,
      lastActivity: row.reported_at * 1_000,
      source: 'local' as const,
      userMessages: row.user_messages,
      assistantMessages: row.assistant_messages,
      toolUses: row.tool_uses,
      estimatedCost: row.estimated_cost,
      lastUserPrompt: null,
      workingDir: row.project_path,
      totalTokens: row.input_tokens + row.output_tokens,
      label: row.label,
      settings: row.settings as Record<string, string>,
    };
  });
  if (live.length === 0) return local;
  return [...local, ...live.map((session) => gatewaySessionRecord(session, now))]
    .sort((a, b) => b.lastActivity - a.lastActivity)
    .slice(0, LISTED);
}

/** Maximum number of preferences in a response. */
const PREFS = 5_000;

const prefOf = ({ name, color }: { readonly name: string | null; readonly color: string | null }): SessionPref => ({
  ...(name !== null && { name }),
  ...(color !== null && { color }),
});

/** How clients show sessions, by session. */
export async function sessionPrefs(reads: Reads, workspace: number): Promise<Record<string, SessionPref>> {
  const rows = await inWorkspace(reads, sessionsProjection, 'session_prefs', workspace)
    .select(['session', 'name', 'color'])
    .orderBy('session')
    .limit(PREFS)
    .execute();
  return Object.fromEntries(rows.map((row) => [row.session, prefOf(row)]));
}

/** How clients show one session after a command; undefined when no preference is set. */
export async function sessionPrefAfter(
  records: Records,
  workspace: number,
  session: string,
  executed: Executed,
): Promise<SessionPref | undefined> {
  const key = { workspace_id: workspace, session };
  const [row] = await records.after(sessionsProjection, [sessionPrefsTable], key, executed);
  return row && prefOf(row);
}
