/** Activities: the list with its filters, and statistics for the last hours. */
import { sql } from 'kysely';
import { activitiesProjection } from '../../projections/monitoring/activities.ts';
import type { ActivitiesQuery, Activity } from '../../shared/contract/monitoring/activities.ts';
import type { TaskView } from '../../shared/identity.ts';
import { HOUR } from '../../shared/time.ts';
import { inWorkspace, isText, placeOfPage, prepared, type Reads, upToSize } from '../reads.ts';
import { activitySeen } from '../tasks/visibility.ts';
import { SUBJECT_MODELS, subjectOf } from './subjects.ts';

/** Read models from which the list is built. */
export const ACTIVITY_MODELS = [activitiesProjection.name, ...SUBJECT_MODELS];

type Filters = Pick<ActivitiesQuery, 'type' | 'actor' | 'entity_type' | 'since'>;

/** Splits a comma-separated list, without empty parts. */
const typesOf = (type: string | undefined): string[] =>
  (type ?? '')
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '');

/** Total for a filter: from the stored counts, or counted by index if there is a time filter or a bound caller. */
function totalOf(reads: Reads, view: TaskView, filters: Filters) {
  const { workspace } = view;
  const { type, actor, entity_type, since } = filters;
  const types = typesOf(type);
  if (since === undefined && view.agent === null) {
    let counts = inWorkspace(reads, activitiesProjection, 'activity_counts', workspace).select(({ fn }) =>
      fn.coalesce(fn.sum<number>('count'), sql<number>`0`).as('total'),
    );
    if (types.length > 0) counts = counts.where('type', 'in', types);
    if (actor !== undefined) counts = counts.where('actor', '=', actor);
    if (entity_type !== undefined) counts = counts.where('entity_type', '=', entity_type);
    return counts;
  }
  return matching(reads, view, filters).select(({ fn }) => fn.countAll<number>().as('total'));
}

/** Activities that the caller may see and a filter matches. */
function matching(reads: Reads, view: TaskView, { type, actor, entity_type, since }: Filters) {
  const types = typesOf(type);
  let found = inWorkspace(reads, activitiesProjection, 'activities', view.workspace).where(
    activitySeen(reads, view, 'activities'),
  );
  if (types.length > 0) {
    const ways = types.map((one) => isText('type', one));
    found = found.where(sql<boolean>`(${sql.join(ways, sql` OR `)})`);
  }
  if (actor !== undefined) found = found.where(isText('actor', actor));
  if (entity_type !== undefined) found = found.where(isText('entity_type', entity_type));
  if (since !== undefined) found = found.where('created_at', '>', since);
  return found;
}

/** A page of the activities that the caller may see, newest first. */
export async function listActivities(reads: Reads, view: TaskView, query: ActivitiesQuery) {
  const types = typesOf(query.type);
  const total = totalOf(reads, view, query);
  const { known, size, skip, fromEnd } = await placeOfPage(query, () => total.executeTakeFirst());
  const page = matching(reads, view, query)
    .selectAll()
    .orderBy('position', fromEnd ? 'asc' : 'desc')
    .limit(size)
    .offset(skip);
  // List and total in one statement, so that both show the same moment.
  const { rows } = await sql<{ activities: Activity[] | null; total: number }>`${types.length > 1 ? sql`` : prepared}
    WITH page AS (${upToSize(page, sql`position DESC`)})
    SELECT json_agg(json_build_object(
      'id', p.id, 'type', p.type, 'entity_type', p.entity_type, 'entity_id', p.entity_id, 'actor', p.actor,
      'description', p.description, 'metadata', p.data, 'data', p.data, 'created_at', p.created_at,
      'workspace_id', p.workspace_id, 'entity', ${subjectOf(reads, view, sql`p.entity_type`, sql`p.entity_id`)}
    ) ORDER BY p.position DESC) AS activities, ${known === undefined ? sql`(${total})` : sql`${known}::bigint`} AS total
    FROM page p`.execute(reads.db);
  const [row] = rows;
  const activities = row?.activities ?? [];
  const all = Number(row?.total ?? 0);
  return { activities, total: all, hasMore: query.offset + activities.length < all };
}

/** Number of activities in the last `hours`, by type, actor and hour. */
export async function activityStats(reads: Reads, view: TaskView, hours: number, now: number) {
  const every = { type: undefined, actor: undefined, entity_type: undefined };
  const all = matching(reads, view, { ...every, since: now - hours * HOUR });
  // In the past no event is later than "now", but without this limit everything since then would be read.
  const recent = reads.past === undefined ? all : all.where('created_at', '<=', now);
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

/**
 * A log position before all events of the workspace from this time on, and close to them if possible.
 *
 * @param at Unix seconds
 */
export async function positionBefore(reads: Reads, workspace: number, at: number): Promise<number> {
  const row = await inWorkspace(reads, activitiesProjection, 'activities', workspace)
    .select('position')
    .where('created_at', '<', at)
    .orderBy('created_at', 'desc')
    .orderBy('position')
    .limit(1)
    .executeTakeFirst();
  return row?.position ?? 0;
}
