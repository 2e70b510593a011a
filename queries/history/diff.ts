/** The differences between two moments of the log: records, their fields, and the events that changed them. */
import { sql } from 'kysely';
import { agentsProjection } from '../../projections/agents/agents.ts';
import { alertRulesProjection } from '../../projections/alerts/rules.ts';
import { usersProjection } from '../../projections/auth/users.ts';
import { pipelinesProjection } from '../../projections/pipelines/pipelines.ts';
import type { Projection } from '../../projections/projection.ts';
import { projectsProjection } from '../../projections/projects/projects.ts';
import { taskCommentsProjection } from '../../projections/tasks/comments.ts';
import { tasksProjection } from '../../projections/tasks/tasks.ts';
import { webhooksProjection } from '../../projections/webhooks/webhooks.ts';
import { workflowsProjection } from '../../projections/workflows.ts';
import { PAGE_BYTES } from '../../shared/contract/common.ts';
import {
  DIFF_RESOURCES,
  type DiffQuery,
  type DiffResource,
  type DiffResponse,
  type RecordChange,
} from '../../shared/contract/history/diff.ts';
import type { Position } from '../../shared/ports/event-log.ts';
import type { LogIndex } from '../../shared/ports/history/events.ts';
import { hiddenUrl, masked, maskedConfig } from '../../shared/secrets.ts';
import { inPieces } from '../../shared/waiting.ts';
import { type Reads, tableOf, versionsOf } from '../reads.ts';

interface Compared {
  // biome-ignore lint/suspicious/noExplicitAny: tables of any columns, with an id and a workspace.
  readonly projection: Projection<any>;
  readonly table: string;
}

const COMPARED: Readonly<Record<DiffResource, Compared>> = {
  agents: { projection: agentsProjection, table: 'agents' },
  agent_texts: { projection: agentsProjection, table: 'agent_texts' },
  tasks: { projection: tasksProjection, table: 'tasks' },
  comments: { projection: taskCommentsProjection, table: 'task_comments' },
  projects: { projection: projectsProjection, table: 'projects' },
  workflows: { projection: workflowsProjection, table: 'workflows' },
  pipelines: { projection: pipelinesProjection, table: 'pipelines' },
  alerts: { projection: alertRulesProjection, table: 'alert_rules' },
  webhooks: { projection: webhooksProjection, table: 'webhooks' },
  users: { projection: usersProjection, table: 'users' },
};

/** Columns that are not part of a record, or that its readers must not see. */
const HIDDEN: ReadonlySet<string> = new Set([
  ...['id', 'workspace_id', 'position', 'until', 'block'],
  ...['credential_id', 'session_mark', 'email_key', 'secret_end', 'priority_rank'],
]);

/** Records that are read at once. */
const RECORDS = 25;
/** Most events of a record. */
const EVENTS = 100;
/** Maximum number of versions that are read for the events of a page. */
const VERSIONS = 10_000;

type Row = Readonly<Record<string, unknown>> & { readonly id: number; readonly position: Position };
type Version = Row & { readonly until: Position };

interface Range {
  readonly reads: Reads;
  readonly workspace: number;
  readonly from: Position;
  readonly to: Position;
}

/** @param range.from not after `to` */
export async function diffBetween(
  index: LogIndex,
  range: Range,
  query: Omit<DiffQuery, 'from' | 'to'>,
  pageBytes = PAGE_BYTES,
): Promise<DiffResponse> {
  const { from, to } = range;
  const { limit, cursor } = query;
  const all = query.resource === undefined ? DIFF_RESOURCES : [query.resource];
  const changes: RecordChange[] = [];
  let bytes = 0;
  let left = limit;
  const begun = cursor ? all.indexOf(cursor.resource) : 0;
  for (const resource of begun < 0 ? [] : all.slice(begun)) {
    let after: number | undefined = cursor?.resource === resource ? cursor.after : 0;
    while (after !== undefined) {
      const page = await pageOf(range, resource, { after, id: query.id, limit: Math.min(left, RECORDS) });
      for (const change of await withEvents(index, range, resource, page.records)) {
        bytes += Buffer.byteLength(JSON.stringify(change.fields));
        if (bytes > pageBytes && changes.length > 0)
          return { from, to, changes, next_cursor: `${resource}-${change.id - 1}` };
        changes.push(change);
      }
      left -= page.records.size;
      if (left === 0 && page.next !== undefined) return { from, to, changes, next_cursor: `${resource}-${page.next}` };
      after = page.next;
    }
  }
  return { from, to, changes, next_cursor: null };
}

interface Difference {
  readonly before: Version | undefined;
  readonly after: Row | undefined;
}

/** Records of one kind in the order of their ids; `next`: the id after which there may be more. */
async function pageOf(
  { reads, workspace, from, to }: Range,
  resource: DiffResource,
  { after, id, limit }: { readonly after: number; readonly id: number | undefined; readonly limit: number },
): Promise<{ readonly records: ReadonlyMap<number, Difference>; readonly next: number | undefined }> {
  const { projection, table } = COMPARED[resource];
  const some = sql`workspace_id = ${workspace} AND id > ${after} ${id === undefined ? sql`` : sql`AND id = ${id}`}
    ORDER BY id LIMIT ${limit + 1}`;
  const now = reads.asOf(to);
  const began =
    await sql<Row>`SELECT * FROM ${tableOf(now, projection, table)} WHERE position > ${from} AND ${some}`.execute(
      now.db,
    );
  const then = reads.asOf(from);
  const ended = await sql<Version>`SELECT * FROM ${versionsOf(projection, table)}
    WHERE block = ANY (current_setting('signalbox.as_of_blocks')::bigint[])
      AND position <= ${from} AND until > ${from} AND until <= ${to} AND ${some}`.execute(then.db);
  const before = new Map(ended.rows.map((row) => [row.id, row]));
  const later = new Map(began.rows.map((row) => [row.id, row]));
  const ids = [...new Set([...before.keys(), ...later.keys()])].toSorted((a, b) => a - b);
  const shown = ids.slice(0, limit);
  const records = new Map(shown.map((one) => [one, { before: before.get(one), after: later.get(one) }]));
  return { records, next: ids.length > limit ? (shown.at(-1) ?? after) : undefined };
}

async function withEvents(
  index: LogIndex,
  range: Range,
  resource: DiffResource,
  records: ReadonlyMap<number, Difference>,
): Promise<RecordChange[]> {
  if (records.size === 0) return [];
  const positions = await positionsOf(range, resource, records);
  const ids = await index.idsAt([...new Set([...positions.values()].flat())]);
  const changes = await inPieces([...records], ([id, { before, after }]) => {
    const fields = fieldsOf(COMPARED[resource].table, before, after);
    const isSame = before !== undefined && after !== undefined && Object.keys(fields).length === 0;
    const events = (positions.get(id) ?? []).flatMap((position) => ids.get(position) ?? []);
    const change = !before ? 'added' : after ? 'changed' : 'removed';
    return isSame ? [] : [{ resource, id, change, fields, events } as const];
  });
  return changes.flat();
}

/** By record: positions of the last events that changed it. */
async function positionsOf(
  { reads, workspace, from, to }: Range,
  resource: DiffResource,
  records: ReadonlyMap<number, Difference>,
): Promise<ReadonlyMap<number, readonly Position[]>> {
  const { projection, table } = COMPARED[resource];
  // A version that began and ended between the two positions is stored under a block between them. If the history
  // reaches back to the first position, all of them exist.
  const { rows } = await sql<{ id: number; position: Position; until: Position }>`
    SELECT id, position, until FROM ${versionsOf(projection, table)}
    WHERE block BETWEEN ${2 * from} AND ${2 * to} + 1 AND workspace_id = ${workspace} AND id = ANY(${[...records.keys()]})
      AND position > ${from} AND until <= ${to} ORDER BY position DESC LIMIT ${VERSIONS}`.execute(reads.asOf(from).db);
  const found = new Map([...records.keys()].map((id) => [id, new Set<Position>()]));
  for (const [id, { before, after }] of records) {
    if (before) found.get(id)?.add(before.until);
    if (after) found.get(id)?.add(after.position);
  }
  for (const { id, position, until } of rows) found.get(id)?.add(position).add(until);
  return new Map([...found].map(([id, all]) => [id, [...all].toSorted((a, b) => a - b).slice(-EVENTS)]));
}

type AnyRow = Readonly<Record<string, unknown>>;

/** A row without secrets, which a webhook and the action of an alert rule also have in their URLs. */
function shownRow(table: string, row: AnyRow): AnyRow {
  const shown = masked(row) as AnyRow;
  if (table === 'webhooks') return { ...shown, url: hiddenUrl(String(row.url)) };
  if (table === 'alert_rules') return { ...shown, action_config: maskedConfig(row.action_config as AnyRow) };
  return shown;
}

/** The fields in which two rows of a table differ, as displayed: secrets are masked, some columns left out. */
export function fieldsOf(table: string, before: AnyRow | undefined, after: AnyRow | undefined): RecordChange['fields'] {
  const one = before && shownRow(table, before);
  const other = after && shownRow(table, after);
  const names = Object.keys(after ?? before ?? {}).filter((name) => !HIDDEN.has(name));
  const changes = names.flatMap((name) => {
    const [was, is] = [one?.[name] ?? null, other?.[name] ?? null];
    return JSON.stringify(before?.[name] ?? null) === JSON.stringify(after?.[name] ?? null)
      ? []
      : [[name, { before: was, after: is }] as const];
  });
  return Object.fromEntries(changes);
}
