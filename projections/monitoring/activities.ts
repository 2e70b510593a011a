/** Activities of all resources, and their number per kind and hour, so that totals need no counting. */
import { recordsPurged } from '../../shared/events/admin/cleanup.ts';
import { catalogue } from '../../shared/events/catalogue.ts';
import { activityOf } from '../../shared/events/monitoring/activities.ts';
import { HOUR } from '../../shared/time.ts';
import { ALL, defineOpenHour, opening } from '../open-hours.ts';
import {
  defineProjection,
  defineTable,
  type Handler,
  insert,
  on,
  remove,
  tally,
  unversioned,
  update,
} from '../projection.ts';

const SECOND_MS = 1_000;

/** Types of activities that an agent is shown if they mention it since it has its name. All of them are about tasks. */
export const URGENT: readonly string[] = ['task_created', 'task_assigned', 'high_priority_alert'];

export const activitiesTable = defineTable(
  'activities',
  {
    workspace_id: 'int',
    id: 'bigint',
    type: 'text',
    entity_type: 'text',
    entity_id: 'bigint',
    actor: 'text',
    description: 'text',
    data: 'jsonb?',
    created_at: 'bigint',
  },
  {
    key: ['workspace_id', 'id'],
    sized: true,
    concerns: ({ type, description }) => (URGENT.includes(type) ? { mentionedIn: description } : {}),
    // "Newest first" is by position, because the order of the log is the same for every reader.
    indexes: [
      'workspace_id, position',
      // By hashes, which take a third of the space of these texts (`isText` in `queries/reads.ts`).
      'workspace_id, hashtext(type), position',
      'workspace_id, hashtext(actor), position',
      'workspace_id, actor, created_at',
      'workspace_id, hashtext(entity_type), position',
      'workspace_id, created_at',
      // What waits for an agent is read with its heartbeat.
      `(workspace_id, created_at, position) WHERE type IN (${URGENT.map((type) => `'${type}'`).join(', ')})`,
    ],
  },
);

export const activityCountsTable = defineTable(
  'activity_counts',
  { workspace_id: 'int', type: 'text', actor: 'text', entity_type: 'text', count: 'bigint' },
  { key: ['workspace_id', 'type', 'actor', 'entity_type'] },
);

/** Number of activities by actor, hour and type. Activities that retention removes from the list stay counted here. */
export const activityHoursTable = defineTable(
  'activity_hours',
  {
    workspace_id: 'int',
    actor: 'text',
    /** Beginning of the hour, Unix seconds. */
    start: 'bigint',
    type: 'text',
    count: 'bigint',
  },
  {
    key: ['workspace_id', 'actor', 'start', 'type'],
    indexes: ['workspace_id, start'],
    counted: {
      of: 'activities',
      open: `open_hour / ${SECOND_MS}`,
      where: `r.actor = b.actor AND r.type = b.type AND r.created_at >= b.start AND r.created_at < b.start + ${HOUR}`,
    },
  },
);

/** The hour of the newest activity. */
const openHourTable = defineOpenHour();

const handlers: Handler[] = [...catalogue.values()]
  .filter((definition) => definition.activity)
  .map((definition) => ({
    type: definition.type,
    handle(event) {
      const record = activityOf(definition, event);
      if (!record) return [];
      const { workspace_id, type, actor, entity_type } = record;
      const key = { workspace_id, type, actor, entity_type };
      const hour = { workspace_id, actor, start: record.created_at - (record.created_at % HOUR), type };
      const { opened, isOpen } = opening(openHourTable, ALL, event.meta.at);
      return [
        opened,
        insert(activitiesTable, record),
        tally(activityCountsTable, key),
        unversioned(tally(activityHoursTable, hour), () => isOpen('hour', hour.start * SECOND_MS)),
      ];
    },
  }));

export const activitiesProjection = defineProjection({
  name: 'activities',
  version: 1,
  tables: [activitiesTable, activityCountsTable, activityHoursTable, openHourTable],
  handlers: [
    ...handlers,
    on(recordsPurged, ({ data, meta: { workspace: workspace_id, at } }) =>
      data.table !== 'activities'
        ? []
        : [
            // The removed activities stay counted in their hours, so these are closed.
            opening(openHourTable, ALL, at + HOUR * SECOND_MS).opened,
            ...data.ids.map((id) => remove(activitiesTable, { workspace_id, id })),
            ...data.counts.map(({ type, actor, entity_type, count }) =>
              update(activityCountsTable, { workspace_id, type, actor, entity_type }, (row) => ({
                ...row,
                count: row.count - count,
              })),
            ),
          ],
    ),
  ],
});
