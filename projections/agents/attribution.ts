/**
 * What agents did: one row for each activity and each audit entry that an event attributes to an agent, and their number
 * by hour and day (UTC), so that a window of any length is a few hundred rows.
 */
import { auditEntriesPurged, recordsPurged } from '../../shared/events/admin/cleanup.ts';
import { type Attributed, attributedTo } from '../../shared/events/agents/attribution.ts';
import { catalogue } from '../../shared/events/catalogue.ts';
import type { DomainEvent } from '../../shared/events/define.ts';
import type { Metadata } from '../../shared/events/metadata.ts';
import { activityOf } from '../../shared/events/monitoring/activities.ts';
import { auditOf } from '../../shared/events/monitoring/audit.ts';
import { seconds } from '../../shared/time.ts';
import { DAY_MS, HOUR_MS, startOf } from '../../shared/time-buckets.ts';
import { ALL, defineOpenHour, opening } from '../open-hours.ts';
import {
  type Change,
  defineProjection,
  defineTable,
  type Handler,
  insert,
  on,
  tally,
  unversioned,
  update,
} from '../projection.ts';

/** Records that an event can leave behind. */
export type ActionKind = 'activity' | 'audit';

export const COMMENT = 'comment_added';

/** The longest window of reports; details of older actions may be removed together with their records. */
const WINDOW_MS = 30 * DAY_MS;

export const agentActionsTable = defineTable(
  'actions',
  {
    workspace_id: 'int',
    kind: 'text',
    /** Id of the activity or the audit entry. */
    id: 'bigint',
    agent_id: 'bigint',
    /** Type of the activity, action of the audit entry. */
    type: 'text',
    /** Kind of the affected record: `task`, `agent` and so on; empty: none in particular. */
    entity_type: 'text',
    entity_id: 'bigint',
    /** How the agent is known (`Attribution`). */
    known_by: 'text',
    created_at: 'bigint',
  },
  {
    key: ['workspace_id', 'kind', 'id'],
    indexes: ['workspace_id, agent_id, kind, type, created_at, position'],
  },
);

export const agentActionCountsTable = defineTable(
  'action_counts',
  {
    workspace_id: 'int',
    agent_id: 'bigint',
    /** `hour`, `day`; for comments also `all`, which starts at 0. */
    unit: 'text',
    /** Unix ms. */
    start: 'bigint',
    kind: 'text',
    type: 'text',
    entity_type: 'text',
    count: 'bigint',
  },
  {
    key: ['workspace_id', 'agent_id', 'unit', 'start', 'kind', 'type', 'entity_type'],
    counted: {
      of: 'actions',
      open: `open_hour - open_hour % CASE b.unit WHEN 'hour' THEN ${HOUR_MS} WHEN 'day' THEN ${DAY_MS} END`,
      where: `r.agent_id = b.agent_id AND r.kind = b.kind AND r.type = b.type AND r.entity_type = b.entity_type
        AND r.created_at >= b.start / 1000
        AND r.created_at < (b.start + CASE b.unit WHEN 'hour' THEN ${HOUR_MS} ELSE ${DAY_MS} END) / 1000`,
    },
  },
);

/** The hour of the newest action. */
const openHourTable = defineOpenHour();

/** The fields of an action that come from the activity or the audit entry. */
interface Action {
  readonly kind: ActionKind;
  readonly type: string;
  readonly entity_type: string;
  readonly entity_id: number;
}

/** An action with its hour and day buckets. */
function acted(
  { meta }: DomainEvent,
  { agent_id, by: known_by }: Attributed,
  action: Action,
  isOpen: ReturnType<typeof opening>['isOpen'],
): Change[] {
  const { at, number: id, workspace: workspace_id } = meta;
  const { kind, type, entity_type } = action;
  const counted = (unit: string, start: number) =>
    tally(agentActionCountsTable, { workspace_id, agent_id, unit, start, kind, type, entity_type });
  const bucket = (unit: 'hour' | 'day', start = startOf(unit, at)) =>
    unversioned(counted(unit, start), () => isOpen(unit, start));
  const changes = [
    insert(agentActionsTable, { workspace_id, id, agent_id, known_by, created_at: seconds(at), ...action }),
    bucket('hour'),
    bucket('day'),
  ];
  if (kind === 'activity' && type === COMMENT) changes.push(counted('all', 0));
  return changes;
}

/**
 * The numbers of a window must not change; rows are removed with their activities and audit entries only after no
 * window includes them. They stay counted in their buckets, which are closed by then.
 */
const forgotten = (kind: ActionKind, ids: readonly number[], { at, workspace }: Metadata): Change[] => [
  opening(openHourTable, ALL, at).opened,
  ...ids.map((id) =>
    update(agentActionsTable, { workspace_id: workspace, kind, id }, (row) =>
      row.type === COMMENT || row.created_at * 1_000 >= at - WINDOW_MS ? row : undefined,
    ),
  ),
];

const handlers: Handler[] = [...catalogue.values()]
  .filter(({ activity, audit }) => activity || audit)
  .map((definition) => ({
    type: definition.type,
    handle(event) {
      const attributed = attributedTo(definition, event);
      if (!attributed) return [];
      const activity = activityOf(definition, event);
      const entry = auditOf(definition, event);
      const actions: Action[] = [];
      if (activity) {
        const { type, entity_type, entity_id } = activity;
        actions.push({ kind: 'activity', type, entity_type, entity_id });
      }
      if (entry) {
        const { action: type, target_type, target_id } = entry;
        actions.push({ kind: 'audit', type, entity_type: target_type ?? '', entity_id: target_id ?? 0 });
      }
      if (actions.length === 0) return [];
      const { opened, isOpen } = opening(openHourTable, ALL, event.meta.at);
      return [opened, ...actions.flatMap((action) => acted(event, attributed, action, isOpen))];
    },
  }));

export const agentAttributionProjection = defineProjection({
  name: 'agent_attribution',
  version: 1,
  tables: [agentActionsTable, agentActionCountsTable, openHourTable],
  handlers: [
    ...handlers,
    on(recordsPurged, ({ data, meta }) => (data.table === 'activities' ? forgotten('activity', data.ids, meta) : [])),
    on(auditEntriesPurged, ({ data, meta }) => forgotten('audit', data.ids, meta)),
  ],
});
