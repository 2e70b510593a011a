/**
 * Heartbeats that changed nothing, by agent and window. Rows never change, so they have no versions, however long the
 * history is. What no summary in the log has yet is in the leases (`queries/agents/leases.ts`).
 */
import { heartbeatSummariesRemoved, heartbeatsReceived } from '../../shared/events/agents/heartbeat.ts';
import type { EventOf } from '../../shared/events/define.ts';
import { defineProjection, defineTable, insert, on, remove } from '../projection.ts';

export const heartbeatWindowsTable = defineTable(
  'windows',
  {
    // An agent has 288 rows a day, so both columns of four bytes come first: they need no padding then.
    workspace_id: 'int',
    beats: 'int',
    agent_id: 'bigint',
    /** Increases with time. */
    window_id: 'bigint',
    /** Unix seconds. */
    last_at: 'bigint',
  },
  { key: ['workspace_id', 'agent_id', 'window_id'] },
);

const countOf = ({ agents }: EventOf<typeof heartbeatSummariesRemoved>['data']): number =>
  agents.reduce((sum, { windows }) => sum + windows.length, 0);

export const leasesProjection = defineProjection({
  name: 'leases',
  version: 1,
  tables: [heartbeatWindowsTable],
  weigh: ({ type, data }) =>
    type === heartbeatsReceived.type
      ? (data as EventOf<typeof heartbeatsReceived>['data']).agents.length
      : countOf(data as EventOf<typeof heartbeatSummariesRemoved>['data']),
  handlers: [
    on(heartbeatsReceived, ({ data: { window, from, agents }, meta: { workspace: workspace_id } }) =>
      agents.map(([agent_id, beats, _first, last]) =>
        insert(heartbeatWindowsTable, {
          workspace_id,
          beats,
          agent_id,
          window_id: window,
          last_at: from + last,
        }),
      ),
    ),
    on(heartbeatSummariesRemoved, ({ data: { agents }, meta: { workspace: workspace_id } }) =>
      agents.flatMap(({ agent_id, windows }) =>
        windows.map((window_id) => remove(heartbeatWindowsTable, { workspace_id, agent_id, window_id })),
      ),
    ),
  ],
});
