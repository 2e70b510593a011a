/** Activities: the list with its filters, and statistics for the last hours. */
import { sql } from 'kysely';
import { activitiesProjection } from '../../projections/monitoring/activities.ts';
import type { ActivitiesQuery, Activity } from '../../shared/contract/monitoring/activities.ts';
import { HOUR } from '../../shared/time.ts';
import { placeOfPage, prepared, type Reads, tables } from '../reads.ts';
import { SUBJECT_MODELS, subjectOf } from './subjects.ts';

/** Read models from which the list is made. */
export const ACTIVITY_MODELS = [activitiesProjection.name, ...SUBJECT_MODELS];

const own = (reads: Reads) => tables(reads, activitiesProjection);

type Filters = Pick<ActivitiesQuery, 'type' | 'actor' | 'entity_type' | 'since'>;

/** Splits a comma-separated list, without empty parts. */
const typesOf = (type: string | undefined): string[] =>
  (type ?? '')
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '');

/** Total for a filter: from the stored counts, or counted by index if there is a time filter. */
function totalOf(reads: Reads, workspace: number, { type, actor, entity_type, since }: Filters) {
  const types = typesOf(type);
  if (since === undefined) {
    let counts = own(reads)
      .selectFrom('activity_counts')
      .select(({ fn }) => fn.coalesce(fn.sum<number>('count'), sql<number>`0`).as('total'))
      .where('workspace_id', '=', workspace);
    if (types.length > 0) counts = counts.where('type', 'in', types);
    if (actor !== undefined) counts = counts.where('actor', '=', actor);
    if (entity_type !== undefined) counts = counts.where('entity_type', '=', entity_type);
    return counts;
  }
  let counted = own(reads)
    .selectFrom('activities')
    .select(({ fn }) => fn.countAll<number>().as('total'))
    .where('workspace_id', '=', workspace)
    .where('created_at', '>', since);
  if (types.length > 0) counted = counted.where('type', 'in', types);
  if (actor !== undefined) counted = counted.where('actor', '=', actor);
  if (entity_type !== undefined) counted = counted.where('entity_type', '=', entity_type);
  return counted;
}

/** A page of activities, newest first. */
export async function listActivities(reads: Reads, workspace: number, query: ActivitiesQuery) {
  const { actor, entity_type, since, offset } = query;
  const types = typesOf(query.type);
  const total = totalOf(reads, workspace, query);
  const { known, size, skip, fromEnd } = await placeOfPage(query, () => total.executeTakeFirst());
  let page = own(reads).selectFrom('activities').selectAll().where('workspace_id', '=', workspace);
  if (types.length === 1) page = page.where('type', '=', types[0] as string);
  else if (types.length > 1) page = page.where('type', 'in', types);
  if (actor !== undefined) page = page.where('actor', '=', actor);
  if (entity_type !== undefined) page = page.where('entity_type', '=', entity_type);
  if (since !== undefined) page = page.where('created_at', '>', since);
  page = page
    .orderBy('position', fromEnd ? 'asc' : 'desc')
    .limit(size)
    .offset(skip);
  // List and total in one statement, so that both show the same moment.
  const { rows } = await sql<{ activities: Activity[] | null; total: number }>`${types.length > 1 ? sql`` : prepared}
    WITH page AS (${page})
    SELECT json_agg(json_build_object(
      'id', p.id, 'type', p.type, 'entity_type', p.entity_type, 'entity_id', p.entity_id, 'actor', p.actor,
      'description', p.description, 'metadata', p.data, 'data', p.data, 'created_at', p.created_at,
      'workspace_id', p.workspace_id, 'entity', ${subjectOf(reads, workspace, sql`p.entity_type`, sql`p.entity_id`)}
    ) ORDER BY p.position DESC) AS activities, ${known === undefined ? sql`(${total})` : sql`${known}::bigint`} AS total
    FROM page p`.execute(reads.db);
  const [row] = rows;
  const activities = row?.activities ?? [];
  const all = Number(row?.total ?? 0);
  return { activities, total: all, hasMore: offset + activities.length < all };
}

/** What happened in the last `hours`, by type, actor and hour. */
export async function activityStats(reads: Reads, workspace: number, hours: number, now: number) {
  const since = now - hours * HOUR;
  const recent = own(reads)
    .selectFrom('activities')
    .where('workspace_id', '=', workspace)
    .where('created_at', '>', since);
  const [byType, actors, hourly] = await Promise.all([
    recent
      .select(({ fn }) => ['type', fn.countAll<number>().as('count')])
      .groupBy('type')
      .orderBy('count', 'desc')
      .orderBy('type')
      .execute(),
    recent
      .select(({ fn }) => ['actor', fn.countAll<number>().as('activity_count')])
      .groupBy('actor')
      .orderBy('activity_count', 'desc')
      .orderBy('actor')
      .limit(10)
      .execute(),
    recent
      .select(({ fn }) => [
        sql<number>`created_at / ${HOUR} * ${HOUR}`.as('timestamp'),
        fn.countAll<number>().as('count'),
      ])
      .groupBy('timestamp')
      .orderBy('timestamp')
      .execute(),
  ]);
  return {
    timeframe: `${hours} hours`,
    activityByType: byType,
    topActors: actors,
    timeline: hourly.map((row) => ({ ...row, hour: new Date(row.timestamp * 1000).toISOString() })),
  };
}
