/** Sessions of command-line tools, and how clients show sessions. */
import { sessionControlled, sessionPrefSet, sessionReported } from '../shared/events/sessions.ts';
import { seconds } from '../shared/time.ts';
import { change, defineProjection, defineTable, on, update } from './projection.ts';

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
    /** Levels of thinking, verbose and reasoning, as far as they are set. */
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
      '(workspace_id, reported_at DESC, id DESC) INCLUDE (terminated, project_slug, input_tokens, output_tokens, estimated_cost)',
      '(workspace_id, project_slug, reported_at DESC, id DESC) INCLUDE (terminated)',
    ],
  },
);

export const sessionPrefsTable = defineTable(
  'session_prefs',
  { workspace_id: 'int', session: 'text', name: 'text?', color: 'text?' },
  { key: ['workspace_id', 'session'] },
);

export const sessionsProjection = defineProjection({
  name: 'sessions',
  version: 1,
  tables: [cliSessionsTable, sessionPrefsTable],
  handlers: [
    on(sessionReported, ({ data, meta }) => {
      const key = { workspace_id: meta.workspace, session_id: data.sessionId };
      const at = seconds(meta.at);
      return [
        change(cliSessionsTable, key, (row) => ({
          ...key,
          id: data.id,
          agent_name: data.agentName ?? row?.agent_name ?? null,
          project_slug: data.projectSlug ?? row?.project_slug ?? data.agentName ?? 'default',
          project_path: data.projectPath ?? row?.project_path ?? null,
          model: data.model ?? row?.model ?? null,
          git_branch: data.gitBranch ?? row?.git_branch ?? null,
          user_messages: data.userMessages ?? row?.user_messages ?? 0,
          assistant_messages: data.assistantMessages ?? row?.assistant_messages ?? 0,
          tool_uses: data.toolUses ?? row?.tool_uses ?? 0,
          input_tokens: data.inputTokens ?? row?.input_tokens ?? 0,
          output_tokens: data.outputTokens ?? row?.output_tokens ?? 0,
          estimated_cost: data.estimatedCost ?? row?.estimated_cost ?? 0,
          label: row?.label ?? null,
          settings: row?.settings ?? {},
          terminated: false,
          created_at: row?.created_at ?? at,
          reported_at: at,
          updated_at: at,
        })),
      ];
    }),
    on(sessionControlled, ({ data: { sessionId, action, value }, meta }) => [
      update(cliSessionsTable, { workspace_id: meta.workspace, session_id: sessionId }, (row) => {
        if (action === 'delete') return undefined;
        const updated_at = seconds(meta.at);
        if (action === 'terminate') return { ...row, terminated: true, updated_at };
        if (action === 'set-label') return { ...row, label: value || null, updated_at };
        if (value === null) return row;
        return { ...row, settings: { ...row.settings, [action.replace('set-', '')]: value }, updated_at };
      }),
    ]),
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
