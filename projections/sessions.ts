/** Sessions of command-line tools, and how clients show sessions. */

import { NANO } from '../shared/contract/tokens/costs.ts';
import { sessionControlled, sessionPrefSet, sessionReported } from '../shared/events/sessions.ts';
import { seconds } from '../shared/time.ts';
import { type Change, change, defineProjection, defineTable, observed, on, type RowOf } from './projection.ts';

export const cliSessionsTable = defineTable(
  'cli_sessions',
  {
    workspace_id: 'int',
    session_id: 'text',
    id: 'bigint',
    agent_name: 'text?',
    project_slug: 'text',
    project_path: 'text?',
    model: 'text?',
    git_branch: 'text?',
    user_messages: 'bigint',
    assistant_messages: 'bigint',
    tool_uses: 'bigint',
    input_tokens: 'bigint',
    output_tokens: 'bigint',
    estimated_cost: 'double',
    label: 'text?',
    /** Levels of thinking, verbose and reasoning; only those that are set. */
    settings: 'jsonb',
    terminated: 'boolean',
    created_at: 'bigint',
    /** Last report, Unix seconds. */
    reported_at: 'bigint',
    updated_at: 'bigint',
  },
  {
    key: ['workspace_id', 'session_id'],
    indexes: [
      '(workspace_id, reported_at, id) INCLUDE (terminated)',
      '(workspace_id, project_slug, reported_at, id) INCLUDE (terminated)',
    ],
  },
);

/** Sums over all sessions of a workspace. */
export const sessionTotalsTable = defineTable(
  'session_totals',
  {
    workspace_id: 'int',
    sessions: 'bigint',
    input_tokens: 'double',
    output_tokens: 'double',
    /** Billionths of a US dollar: sums of whole numbers stay exact. */
    cost: 'double',
  },
  { key: ['workspace_id'] },
);

type Session = RowOf<(typeof cliSessionsTable)['columns']>;

const amounts = (row: Session | undefined) =>
  row === undefined
    ? { sessions: 0, input_tokens: 0, output_tokens: 0, cost: 0 }
    : {
        sessions: 1,
        input_tokens: row.input_tokens,
        output_tokens: row.output_tokens,
        cost: Math.round(row.estimated_cost * NANO),
      };

/** A change of a session, and of the sums that include it. */
function session(
  key: { readonly workspace_id: number; readonly session_id: string },
  apply: (row: Session | undefined) => Session | undefined,
): Change[] {
  const { workspace_id } = key;
  const { change: first, turn } = observed(cliSessionsTable, key, apply);
  const totals = change(sessionTotalsTable, { workspace_id }, (row) => {
    const { before, now } = turn();
    if (before === now) return row;
    const [was, is] = [amounts(before), amounts(now)];
    const sum = (field: keyof typeof is) => (row?.[field] ?? 0) + is[field] - was[field];
    return {
      workspace_id,
      sessions: sum('sessions'),
      input_tokens: sum('input_tokens'),
      output_tokens: sum('output_tokens'),
      cost: sum('cost'),
    };
  });
  return [first, totals];
}

export const sessionPrefsTable = defineTable(
  'session_prefs',
  { workspace_id: 'int', session: 'text', name: 'text?', color: 'text?' },
  { key: ['workspace_id', 'session'] },
);

export const sessionsProjection = defineProjection({
  name: 'sessions',
  version: 1,
  tables: [cliSessionsTable, sessionTotalsTable, sessionPrefsTable],
  handlers: [
    on(sessionReported, ({ data, meta }) => {
      const key = { workspace_id: meta.workspace, session_id: data.session_id };
      const at = seconds(meta.at);
      return session(key, (row) => ({
        ...key,
        id: data.id,
        agent_name: data.agent_name ?? row?.agent_name ?? null,
        project_slug: data.project_slug ?? row?.project_slug ?? data.agent_name ?? 'default',
        project_path: data.project_path ?? row?.project_path ?? null,
        model: data.model ?? row?.model ?? null,
        git_branch: data.git_branch ?? row?.git_branch ?? null,
        user_messages: data.user_messages ?? row?.user_messages ?? 0,
        assistant_messages: data.assistant_messages ?? row?.assistant_messages ?? 0,
        tool_uses: data.tool_uses ?? row?.tool_uses ?? 0,
        input_tokens: data.input_tokens ?? row?.input_tokens ?? 0,
        output_tokens: data.output_tokens ?? row?.output_tokens ?? 0,
        estimated_cost: data.estimated_cost ?? row?.estimated_cost ?? 0,
        label: row?.label ?? null,
        settings: row?.settings ?? {},
        terminated: false,
        created_at: row?.created_at ?? at,
        reported_at: at,
        updated_at: at,
      }));
    }),
    on(sessionControlled, ({ data: { session_id, action, value }, meta }) =>
      session({ workspace_id: meta.workspace, session_id }, (row) => {
        if (row === undefined || action === 'delete') return undefined;
        const updated_at = seconds(meta.at);
        if (action === 'terminate') return { ...row, terminated: true, updated_at };
        if (action === 'set-label') return { ...row, label: value || null, updated_at };
        if (value === null) return row;
        return { ...row, settings: { ...row.settings, [action.replace('set-', '')]: value }, updated_at };
      }),
    ),
    on(sessionPrefSet, ({ data, meta }) => {
      const key = { workspace_id: meta.workspace, session: data.key };
      return [
        change(sessionPrefsTable, key, (row) => {
          const name = data.name === undefined ? (row?.name ?? null) : data.name;
          const color = data.color === undefined ? (row?.color ?? null) : data.color;
          return name === null && color === null ? undefined : { ...key, name, color };
        }),
      ];
    }),
  ],
});
