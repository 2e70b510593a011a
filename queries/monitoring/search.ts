/**
 * Search: finds matching documents, then reads their records.
 *
 * Each source is queried in two steps, so that neither a common nor a rare text costs a full scan. The first step scans
 * its newest rows, which finds common texts. A text that does not reach the limit there is rare, and the trigram index
 * finds it. Texts without a trigram cannot be looked up; for them there is only the first step, with more rows.
 */
import { type RawBuilder, sql } from 'kysely';
import { agentsProjection } from '../../projections/agents/agents.ts';
import { chatProjection } from '../../projections/chat.ts';
import { activitiesProjection } from '../../projections/monitoring/activities.ts';
import { auditProjection } from '../../projections/monitoring/audit.ts';
import { type DocumentType, detailText, searchProjection } from '../../projections/monitoring/search.ts';
import { pipelinesProjection } from '../../projections/pipelines/pipelines.ts';
import type { Projection, Row, Table } from '../../projections/projection.ts';
import { tasksProjection } from '../../projections/tasks/tasks.ts';
import { webhooksProjection } from '../../projections/webhooks/webhooks.ts';
import type { ResultType, SearchQuery, SearchResult } from '../../shared/contract/monitoring/search.ts';
import { peopleOfActivity } from '../../shared/events/monitoring/activities.ts';
import { containing, folded } from '../../shared/folding.ts';
import type { TaskView } from '../../shared/identity.ts';
import { withName } from '../../shared/names.ts';
import { frontOf } from '../../shared/storable.ts';
import { ASSIGNEE, nameNow, RECIPIENT, type Reference, SENDER } from '../agents/names.ts';
import type { DisplayNames } from '../names.ts';
import { inWorkspace, type Reads, tableOf } from '../reads.ts';
import { activitySeen, messageSeen, taskIdSeen } from '../tasks/visibility.ts';

/** Rows of each source that the first step scans. */
const NEWEST = 1_000;
/** The same for texts without a trigram. */
const NEWEST_OF_SHORT = 10_000;

/** Three consecutive letters or digits: no index has shorter texts. */
const TRIGRAM = /[\p{L}\p{N}]{3}/u;

interface Hit {
  readonly type: ResultType;
  readonly id: number;
  readonly created_at: number;
}

interface Search {
  readonly reads: Reads;
  readonly workspace: number;
  readonly view: TaskView;
  /** Of LIKE, folded. */
  readonly pattern: string;
  readonly limit: number;
}

/** A unit of the search: a type of documents, or the routine activities. */
type Source = DocumentType | 'routine';
const typeOf = (source: Source): DocumentType => (source === 'routine' ? 'activity' : source);

const LATEST = sql`ORDER BY created_at DESC, id DESC`;
/** The same within a type of documents: ids increase with time, and the primary key has their order. */
const HIGHEST = sql`ORDER BY id DESC`;
const place = ({ reads }: Search, table: 'documents' | 'phrases' | 'phrase_uses') =>
  tableOf(reads, searchProjection, table);

/** Whether the caller may see the record of a source's row, which has the record's id. */
function seen({ reads, workspace, view }: Search, source: RawBuilder<unknown>, id: RawBuilder<unknown>) {
  if (view.agent === null) return sql<boolean>`true`;
  const record = (projection: Projection, table: string, condition: RawBuilder<boolean>) =>
    sql`EXISTS (SELECT FROM ${tableOf(reads, projection, table)} r
      WHERE r.workspace_id = ${workspace} AND r.id = ${id} AND ${condition})`;
  const activity = record(activitiesProjection, 'activities', activitySeen(reads, view, 'r'));
  return sql<boolean>`CASE ${source}
    WHEN 'task' THEN ${taskIdSeen(reads, view, id)}
    WHEN 'activity' THEN ${activity}
    WHEN 'routine' THEN ${activity}
    WHEN 'message' THEN ${record(chatProjection, 'messages', messageSeen(view, 'r'))}
    ELSE true END`;
}

/** Matches among the newest rows of a source. */
function amongNewest(search: Search, source: Source, rows: number): RawBuilder<unknown> {
  const { workspace, pattern, limit } = search;
  const newest =
    source === 'routine'
      ? sql`SELECT u.id, u.created_at, p.text
          FROM (SELECT * FROM ${place(search, 'phrase_uses')} WHERE workspace_id = ${workspace} ${LATEST} LIMIT ${rows}) u
          JOIN ${place(search, 'phrases')} p USING (workspace_id, phrase)`
      : sql`SELECT id, created_at, text FROM ${place(search, 'documents')}
          WHERE workspace_id = ${workspace} AND type = ${source} ${HIGHEST} LIMIT ${rows}`;
  return sql`(SELECT ${source}::text AS source, id, created_at FROM (${newest}) newest
    WHERE text LIKE ${pattern} AND ${seen(search, sql.lit(source), sql.ref('newest.id'))} ${source === 'routine' ? LATEST : HIGHEST} LIMIT ${limit})`;
}

/** Matches among all documents of some types. The inner query has no order, which could make the planner scan. */
function amongDocuments(search: Search, types: readonly Source[]): RawBuilder<unknown> {
  const { workspace, pattern, limit } = search;
  return sql`(SELECT source, id, created_at FROM (
      SELECT source, id, created_at, row_number() OVER (PARTITION BY source ${HIGHEST}) AS place FROM (
        SELECT type AS source, id, created_at FROM ${place(search, 'documents')}
        WHERE text LIKE ${pattern} AND workspace_id = ${workspace} AND type = ANY(${types}) OFFSET 0
      ) matching WHERE ${seen(search, sql.ref('matching.source'), sql.ref('matching.id'))}
    ) placed WHERE place <= ${limit})`;
}

/** Matches among all routine activities: the texts that match, then the latest uses of each. */
function amongRoutine(search: Search): RawBuilder<unknown> {
  const { workspace, pattern, limit } = search;
  return sql`(SELECT 'routine' AS source, u.id, u.created_at
    FROM (SELECT phrase FROM ${place(search, 'phrases')}
          WHERE text LIKE ${pattern} AND workspace_id = ${workspace} OFFSET 0) p
    CROSS JOIN LATERAL (
      SELECT id, created_at FROM ${place(search, 'phrase_uses')} u
      WHERE u.workspace_id = ${workspace} AND u.phrase = p.phrase AND ${seen(search, sql.lit('routine'), sql.ref('u.id'))}
      ${LATEST} LIMIT ${limit}
    ) u ${LATEST} LIMIT ${limit})`;
}

type Found = ReadonlyMap<Source, readonly Hit[]>;

async function found({ reads }: Search, queries: readonly RawBuilder<unknown>[]): Promise<Found> {
  const hits = new Map<Source, Hit[]>();
  if (queries.length === 0) return hits;
  const { rows } = await sql<{ source: Source; id: number; created_at: number }>`
    ${sql.join(queries, sql` UNION ALL `)}`.execute(reads.db);
  for (const { source, id, created_at } of rows) {
    const some = hits.get(source) ?? [];
    some.push({ type: typeOf(source), id, created_at });
    hits.set(source, some);
  }
  return hits;
}

const latest = (one: Hit, other: Hit): number => other.created_at - one.created_at || other.id - one.id;

/** The newest matches of each type, at most `limit` of each. */
async function hitsOf(search: Search, types: readonly DocumentType[], isIndexed: boolean): Promise<Hit[]> {
  const sources: Source[] = types.flatMap((type): Source[] => (type === 'activity' ? [type, 'routine'] : [type]));
  const rows = isIndexed ? NEWEST : NEWEST_OF_SHORT;
  const near = await found(
    search,
    sources.map((source) => amongNewest(search, source, rows)),
  );
  const rare = isIndexed ? sources.filter((source) => (near.get(source)?.length ?? 0) < search.limit) : [];
  const documents = rare.filter((source) => source !== 'routine');
  const far = await found(search, [
    ...(documents.length > 0 ? [amongDocuments(search, documents)] : []),
    ...(rare.includes('routine') ? [amongRoutine(search)] : []),
  ]);
  const all = sources.flatMap((source) => (rare.includes(source) ? far : near).get(source) ?? []);
  return types.flatMap((type) =>
    all
      .filter((hit) => hit.type === type)
      .sort(latest)
      .slice(0, search.limit),
  );
}

/** The fields of a record that a result shows; `titleCounts`: it ranks higher when the title contains the text. */
interface Shown {
  readonly id: number;
  readonly created_at: number;
  readonly title: string;
  readonly subtitle?: string;
  /** The username in title or subtitle, which is shown as a display name. */
  readonly by?: string;
  /** Shown as an excerpt around the match; `whole`: shown completely. */
  readonly body?: string | null;
  readonly whole?: true;
  readonly titleCounts?: true;
}

type Lookup = (reads: Reads, workspace: number, ids: readonly number[]) => Promise<Shown[]>;

type Named<T extends Table, N extends string> = Row<Extract<T, { readonly name: N }>>;

/**
 * Reads records of a table by their ids.
 *
 * @param columns those that `shownOf` needs
 * @param agents of these, the columns that refer to an agent: its present name is read
 */
const lookup =
  <T extends Table, const N extends T['name'], const C extends keyof Named<T, N> & string>(
    projection: Projection<T>,
    table: N,
    columns: readonly C[],
    shownOf: (row: Pick<Named<T, N>, C>) => Omit<Shown, 'id' | 'created_at'>,
    agents: readonly Reference[] = [],
  ): Lookup =>
  async (reads, workspace, ids) => {
    const named = columns.map((column) => {
      const reference = agents.find(({ name }) => name === column);
      return reference ? sql`${nameNow(reads, 't', reference)} AS ${sql.ref(column)}` : sql.ref(`t.${column}`);
    });
    const records = sql<Pick<Named<T, N>, C> & Pick<Shown, 'id' | 'created_at'>>`
      SELECT t.id, t.created_at, ${sql.join(named)}
      FROM ${tableOf(reads, projection, table)} t WHERE t.workspace_id = ${workspace} AND t.id = ANY(${ids})`;
    const { rows } = await records.execute(reads.db);
    return rows.map((row) => ({ id: row.id, created_at: row.created_at, ...shownOf(row) }));
  };

const SHOWN: Readonly<Record<DocumentType, Lookup>> = {
  task: lookup(
    tasksProjection,
    'tasks',
    ['title', 'status', 'assigned_to', 'description'],
    (task) => ({
      title: task.title,
      subtitle: task.assigned_to === null ? `${task.status} ` : `${task.status} · ${task.assigned_to}`,
      body: task.description,
      titleCounts: true,
    }),
    [ASSIGNEE],
  ),
  agent: lookup(agentsProjection, 'agents', ['name', 'role', 'status', 'last_activity'], (agent) => ({
    title: agent.name,
    subtitle: `${agent.role} · ${agent.status}`,
    body: agent.last_activity,
    whole: true,
    titleCounts: true,
  })),
  activity: lookup(activitiesProjection, 'activities', ['description', 'actor', 'type'], (activity) => ({
    title: activity.description,
    subtitle: `by ${activity.actor}`,
    ...(peopleOfActivity(activity).length > 0 && { by: activity.actor }),
  })),
  audit: lookup(auditProjection, 'audit', ['action', 'actor', 'detail'], ({ action, actor, detail }) => ({
    title: action,
    subtitle: `by ${actor}`,
    body: detail && detailText(detail),
  })),
  message: lookup(
    chatProjection,
    'messages',
    ['from_agent', 'to_agent', 'conversation', 'content'],
    (message) => ({
      title: `${message.from_agent} → ${message.to_agent || 'all'}`,
      subtitle: message.conversation,
      by: message.from_agent,
      body: message.content,
    }),
    [SENDER, RECIPIENT],
  ),
  pipeline: lookup(pipelinesProjection, 'pipelines', ['name', 'description'], ({ name, description }) => ({
    title: name,
    body: description,
    titleCounts: true,
  })),
};

/** Maximum number of webhooks that are searched, newest first. A workspace has few of them. */
const WEBHOOKS = 1_000;

/**
 * Webhooks with the text in their names. They have no documents: their URLs often contain a token, which is sealed in
 * the log. Only admins, who can list webhooks, may find and see URLs.
 */
async function webhooksWith({ reads, workspace, limit }: Search, query: string, withUrls: boolean): Promise<Shown[]> {
  const wanted = folded(query);
  const rows = await inWorkspace(reads, webhooksProjection, 'webhooks', workspace)
    .select(['id', 'created_at', 'name', 'url'])
    .orderBy('created_at', 'desc')
    .orderBy('id', 'desc')
    .limit(WEBHOOKS)
    .execute();
  return rows
    .filter(({ name, url }) => folded(name).includes(wanted) || (withUrls && folded(url).includes(wanted)))
    .slice(0, limit)
    .map(({ id, created_at, name, url }) => ({
      id,
      created_at,
      title: name,
      ...(withUrls && { subtitle: url }),
      titleCounts: true,
    }));
}

async function withNames(names: DisplayNames, workspace: number, records: readonly Shown[]): Promise<readonly Shown[]> {
  const usernames = records.flatMap(({ by }) => by ?? []);
  if (usernames.length === 0) return records;
  const shownAs = await names.of(workspace, usernames);
  return records.map(({ by = '', title, subtitle = '', ...record }) => {
    const named = (text: string) => withName(text, by, shownAs(by, record.created_at));
    return { ...record, title: named(title), subtitle: named(subtitle) };
  });
}

const isSearched = (type: ResultType): type is DocumentType => type in SHOWN;

/** Characters of an excerpt before the match, after it, and without a match. */
const BEFORE = 40;
const BEHIND = 80;
const BEGINNING = 120;

/** The text around the first match, with `...` where it is truncated; undefined for an empty text. */
export function excerptOf(whole: string, query: string): string | undefined {
  if (whole.trim() === '') return undefined;
  const text = whole.normalize('NFC');
  const at = folded(text).indexOf(folded(query));
  if (at === -1) return text.length > BEGINNING ? `${frontOf(text, BEGINNING)}...` : text;
  const from = Math.max(0, at - BEFORE);
  const to = at + query.length + BEHIND;
  // Do not split a surrogate pair on either side.
  const start = from > 0 && /[\uDC00-\uDFFF]/.test(text.charAt(from)) ? from + 1 : from;
  const part = frontOf(text.slice(start), to - start);
  return `${start > 0 ? '...' : ''}${part}${start + part.length < text.length ? '...' : ''}`;
}

function resultOf(type: ResultType, shown: Shown, query: string): SearchResult {
  const { id, created_at, title, subtitle, body, whole, titleCounts } = shown;
  const excerpt = whole ? (body ?? undefined) : excerptOf(body ?? '', query);
  const relevance = titleCounts && folded(title).includes(folded(query)) ? 2 : 1;
  return {
    type,
    id,
    title,
    ...(subtitle !== undefined && { subtitle }),
    ...(excerpt !== undefined && { excerpt, snippet: excerpt }),
    created_at,
    relevance,
    score: relevance,
  };
}

/** @param isAdmin other callers get no audit entries @param withUrls URLs of webhooks are searched and shown */
export async function searchRecords(
  reads: Reads,
  names: DisplayNames,
  view: TaskView,
  { q, type, limit }: SearchQuery,
  isAdmin: boolean,
  withUrls: boolean,
) {
  const { workspace } = view;
  const types = type.filter(isSearched).filter((one) => isAdmin || one !== 'audit');
  const search: Search = { reads, workspace, view, pattern: containing(folded(q)), limit };
  const hits = await hitsOf(search, types, TRIGRAM.test(q));
  const results: SearchResult[] = [];
  for (const one of types) {
    const ids = hits.filter((hit) => hit.type === one).map(({ id }) => id);
    if (ids.length === 0) continue;
    const records = await SHOWN[one](reads, workspace, ids);
    for (const shown of await withNames(names, workspace, records)) results.push(resultOf(one, shown, q));
  }
  if (type.includes('webhook'))
    for (const shown of await webhooksWith(search, q, withUrls)) results.push(resultOf('webhook', shown, q));
  results.sort((one, other) => other.relevance - one.relevance || latest(one, other));
  return { query: q, count: results.length, total: results.length, results: results.slice(0, limit) };
}
