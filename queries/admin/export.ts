/** Rows of a workspace for an export: newest first, in pages with a limit in bytes. */
import { type RawBuilder, sql } from 'kysely';
import { agentsProjection } from '../../projections/agents/agents.ts';
import { activitiesProjection } from '../../projections/monitoring/activities.ts';
import { auditProjection } from '../../projections/monitoring/audit.ts';
import { pipelinesProjection } from '../../projections/pipelines/pipelines.ts';
import { tasksProjection } from '../../projections/tasks/tasks.ts';
import type { ExportKind, ExportQuery } from '../../shared/contract/admin/export.ts';
import type { TaskView } from '../../shared/identity.ts';
import { masked } from '../../shared/secrets.ts';
import { inPieces, nextPiece } from '../../shared/waiting.ts';
import { lastSeen } from '../agents/leases.ts';
import { type Reads, tableOf } from '../reads.ts';
import { assigneeNow } from '../tasks/tasks.ts';
import { activitySeen, taskSeen } from '../tasks/visibility.ts';

export type ExportedRow = Readonly<Record<string, string | number | null>>;

interface Source {
  /** Prefix of the file's name. */
  readonly file: string;
  /** Columns of a CSV file, in order. */
  readonly columns: readonly string[];
  /** Further columns, only in JSON. */
  readonly more: readonly string[];
  /** FROM and its joins; row `t` has id, workspace_id and created_at. */
  readonly from: (reads: Reads) => RawBuilder<unknown>;
  /** Columns that are not plain columns of row `t`. */
  readonly computed: Readonly<Record<string, RawBuilder<unknown> | ((reads: Reads) => RawBuilder<unknown>)>>;
  /** Columns with JSON from clients. Its secrets are masked, because a file can be passed on to readers without access. */
  readonly json?: readonly string[];
  /** For rows about tasks: whether the caller may see row `t`. */
  readonly seen?: (reads: Reads, view: TaskView) => RawBuilder<boolean>;
}

/** Splits a text at its blanks. */
const names = (text: string): readonly string[] => text.split(/\s+/);

export const EXPORTS: Readonly<Record<ExportKind, Source>> = {
  tasks: {
    file: 'tasks',
    columns: names(`id title description status priority assigned_to created_by created_at updated_at due_date
      estimated_hours actual_hours tags`),
    more: names(`metadata workspace_id project_id project_ticket_no outcome error_message resolution feedback_rating
      feedback_notes retry_count completed_at`),
    from: (reads) => sql`${tableOf(reads, tasksProjection, 'tasks')} t`,
    computed: {
      assigned_to: (reads) => assigneeNow(reads, 't'),
      tags: sql`t.tags::text`,
      metadata: sql`t.metadata::text`,
    },
    json: ['metadata'],
    seen: (_reads, view) => taskSeen(view, 't'),
  },
  agents: {
    file: 'agents',
    columns: names(`id name role status session_key source runtime_type hidden last_seen last_activity created_at
      updated_at config soul_content working_memory`),
    more: ['workspace_id'],
    from: (reads) => sql`${tableOf(reads, agentsProjection, 'agents')} t
      JOIN ${tableOf(reads, agentsProjection, 'agent_texts')} x ON x.workspace_id = t.workspace_id AND x.id = t.id`,
    computed: {
      last_seen: (reads) => lastSeen(reads, 't'),
      config: sql`x.config::text`,
      soul_content: sql`x.soul_content`,
      working_memory: sql`x.working_memory`,
    },
    json: ['config'],
  },
  activities: {
    file: 'activities',
    columns: names(`id type entity_type entity_id actor description data created_at`),
    more: ['workspace_id'],
    from: (reads) => sql`${tableOf(reads, activitiesProjection, 'activities')} t`,
    computed: { data: sql`t.data::text` },
    seen: (reads, view) => activitySeen(reads, view, 't'),
  },
  audit: {
    file: 'audit-log',
    columns: names(
      `id action actor actor_id target_type target_id detail ip_address user_agent workspace_id created_at`,
    ),
    more: [],
    from: (reads) => sql`${tableOf(reads, auditProjection, 'audit')} t`,
    computed: { detail: sql`t.detail::text` },
  },
  pipelines: {
    file: 'pipeline-runs',
    columns: names(`id pipeline_id pipeline_name status current_step steps_snapshot started_at completed_at triggered_by
      created_at`),
    more: ['workspace_id'],
    from: (reads) => sql`${tableOf(reads, pipelinesProjection, 'pipeline_runs')} t
      JOIN ${tableOf(reads, pipelinesProjection, 'pipelines')} p
        ON p.workspace_id = t.workspace_id AND p.id = t.pipeline_id`,
    computed: { pipeline_name: sql`p.name`, steps_snapshot: sql`t.steps::text` },
  },
};

/** Maximum number of rows per page, and of bytes of its rows together, unless it is a single row. */
const PAGE = { rows: 200, bytes: 1_000_000 };

const withoutSecrets = (row: ExportedRow, json: readonly string[]): ExportedRow => ({
  ...row,
  ...Object.fromEntries(
    json.flatMap((name) => {
      const text = row[name];
      return typeof text === 'string' ? [[name, JSON.stringify(masked(JSON.parse(text)))]] : [];
    }),
  ),
});

/** Rows of one kind that the caller may see, newest first, page by page. Rows added meanwhile are not exported. */
export async function* exportedRows(
  reads: Reads,
  view: TaskView,
  kind: ExportKind,
  { since, until, limit }: Pick<ExportQuery, 'since' | 'until' | 'limit'>,
): AsyncGenerator<readonly ExportedRow[]> {
  const { columns, more, from, computed, json = [], seen } = EXPORTS[kind];
  const selected = sql.join(
    [...columns, ...more].map((name) => {
      const column = computed[name] ?? sql.ref(`t.${name}`);
      return sql`${typeof column === 'function' ? column(reads) : column} AS ${sql.id(name)}`;
    }),
  );
  let left = limit;
  let last: ExportedRow | undefined;
  while (left > 0) {
    const conditions = [
      sql`t.workspace_id = ${view.workspace}`,
      ...(seen ? [seen(reads, view)] : []),
      ...(since === undefined ? [] : [sql`t.created_at >= ${since}`]),
      ...(until === undefined ? [] : [sql`t.created_at <= ${until}`]),
      ...(last
        ? [sql`t.created_at <= ${last.created_at} AND (t.created_at, t.id) < (${last.created_at}, ${last.id})`]
        : []),
    ];
    const size = Math.min(PAGE.rows, left);
    const { rows } = await sql<ExportedRow & { upto: number }>`
      WITH page AS (
        SELECT ${selected} FROM ${from(reads)} WHERE ${sql.join(conditions, sql` AND `)}
        ORDER BY t.created_at DESC, t.id DESC LIMIT ${size}
      ), sized AS (
        SELECT *, sum(octet_length(page::text)) OVER newest AS upto, row_number() OVER newest AS nth
        FROM page WINDOW newest AS (ORDER BY created_at DESC, id DESC)
      )
      SELECT ${sql.join([...columns, ...more].map((name) => sql.id(name)))} FROM sized
      WHERE nth = 1 OR upto <= ${PAGE.bytes} ORDER BY nth`.execute(reads.db);
    last = rows.at(-1);
    if (!last) return;
    left -= rows.length;
    await nextPiece();
    yield await inPieces(rows, (row) => withoutSecrets(row, json));
  }
}
