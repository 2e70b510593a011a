/** Reports of used tokens, and data derived from them: sums by time, and lookups for commands. */
import {
  type TokenReport,
  tokenPageFilled,
  tokenReportsPurged,
  tokensReported,
} from '../../shared/events/tokens/reports.ts';
import { type Change, change, defineProjection, defineTable, insert, on, remove } from '../projection.ts';
import { tokenDaysTable, tokenOpenHoursTable, tokenUsageTable, usageChanges, usageRemoved } from './usage.ts';

export const tokenReportsTable = defineTable(
  'reports',
  {
    workspace_id: 'int',
    id: 'text',
    /** When the tokens were used, Unix ms: `used_at`, else the time of the event. */
    at: 'bigint',
    /** Index among the reports of its event, from 0. */
    place: 'int',
    model: 'text',
    session_id: 'text',
    agent_id: 'bigint?',
    agent_name: 'text',
    input_tokens: 'double',
    output_tokens: 'double',
    cache_read_tokens: 'double',
    cache_write_tokens: 'double',
    /** US dollars. */
    cost: 'double',
    /** Where the cost comes from. */
    price: 'text',
    operation: 'text',
    task_id: 'bigint?',
    duration: 'double?',
    /** As the caller reported it. */
    used_at: 'bigint?',
  },
  {
    key: ['workspace_id', 'id'],
    indexes: ['workspace_id, at, position, place', 'workspace_id, agent_id, at, position'],
  },
);

/** The name under which an agent last reported, for deleted agents. */
export const tokenAgentsTable = defineTable(
  'agents',
  { workspace_id: 'int', agent_id: 'bigint', name: 'text' },
  { key: ['workspace_id', 'agent_id'] },
);

/** The open page of each ledger. */
export const tokenLedgersTable = defineTable(
  'ledgers',
  { workspace_id: 'int', page: 'bigint' },
  { key: ['workspace_id'] },
);

function changesOf(workspace: number, at: number, reports: readonly TokenReport[]): Change[] {
  const names = new Map(
    reports.flatMap(({ agent_id: agentId, agent_name: agentName }) => (agentId === null ? [] : [[agentId, agentName]])),
  );
  return [
    ...reports.map((one, place) =>
      insert(tokenReportsTable, { workspace_id: workspace, at: one.used_at ?? at, place, ...one }),
    ),
    ...[...names].map(([agent_id, name]) =>
      change(tokenAgentsTable, { workspace_id: workspace, agent_id }, (row) =>
        row?.name === name ? row : { workspace_id: workspace, agent_id, name },
      ),
    ),
    ...usageChanges(workspace, at, reports),
  ];
}

/** Page `page` or a later one is open. */
const opened = (workspace_id: number, page: number): Change =>
  change(tokenLedgersTable, { workspace_id }, (row) => (row && row.page >= page ? row : { workspace_id, page }));

export const tokensProjection = defineProjection({
  name: 'tokens',
  version: 1,
  tables: [
    tokenReportsTable,
    tokenOpenHoursTable,
    tokenUsageTable,
    tokenDaysTable,
    tokenAgentsTable,
    tokenLedgersTable,
  ],
  weigh({ data }) {
    const many = data.reports ?? data.ids;
    return Array.isArray(many) ? many.length : 1;
  },
  handlers: [
    on(tokensReported, ({ data, meta }) => [
      ...changesOf(meta.workspace, meta.at, data.reports),
      ...(data.page === null ? [] : [opened(meta.workspace, data.page)]),
    ]),
    on(tokenReportsPurged, ({ data, meta: { workspace } }) => [
      ...data.ids.map((id) => remove(tokenReportsTable, { workspace_id: workspace, id })),
      ...usageRemoved(workspace, data.used),
    ]),
    on(tokenPageFilled, ({ data, meta }) => [opened(meta.workspace, data.page + 1)]),
  ],
});
