/** Connections of command-line tools, past and present. Those of a deleted agent stay, and are not shown. */
import { heartbeatsReceived } from '../shared/events/agents/heartbeat.ts';
import { connectionClosed, connectionOpened, connectionSeen } from '../shared/events/connections.ts';
import type { EventOf } from '../shared/events/define.ts';
import type { Metadata } from '../shared/events/metadata.ts';
import { seconds } from '../shared/time.ts';
import { type Change, defineProjection, defineTable, insert, on, type RowOf, set, update } from './projection.ts';

export const connectionsTable = defineTable(
  'connections',
  {
    workspace_id: 'int',
    connection_id: 'text',
    tenant_id: 'int',
    id: 'bigint',
    agent_id: 'bigint',
    tool_name: 'text',
    tool_version: 'text?',
    status: 'text',
    metadata: 'jsonb?',
    last_heartbeat: 'bigint',
    created_at: 'bigint',
    updated_at: 'bigint',
  },
  {
    key: ['workspace_id', 'connection_id'],
    indexes: ['workspace_id, created_at, id', "(last_heartbeat) WHERE status = 'connected'"],
  },
);

type Connection = RowOf<(typeof connectionsTable)['columns']>;

const connection = (meta: Metadata, connection_id: string, columns: Partial<Connection>): Change =>
  set(connectionsTable, { workspace_id: meta.workspace, connection_id }, meta, columns);

const connectionsIn = (data: unknown) => (data as EventOf<typeof heartbeatsReceived>['data']).connections;

export const connectionsProjection = defineProjection({
  name: 'connections',
  version: 1,
  tables: [connectionsTable],
  // Few agents have a connection.
  wants: ({ type, data }) => type !== heartbeatsReceived.type || connectionsIn(data).length > 0,
  weigh: ({ type, data }) => (type === heartbeatsReceived.type ? connectionsIn(data).length : 1),
  handlers: [
    on(connectionOpened, ({ data: { name: _, already_online: __, replaces, ...fields }, meta }) => [
      insert(connectionsTable, {
        workspace_id: meta.workspace,
        tenant_id: meta.tenant,
        ...fields,
        status: 'connected',
        last_heartbeat: seconds(meta.at),
        created_at: seconds(meta.at),
        updated_at: seconds(meta.at),
      }),
      ...(replaces === null ? [] : [connection(meta, replaces, { status: 'disconnected' })]),
    ]),
    on(connectionSeen, ({ data, meta }) => [
      connection(meta, data.connection_id, { last_heartbeat: seconds(meta.at) }),
    ]),
    on(heartbeatsReceived, ({ data: { from, connections }, meta }) =>
      connections.map(([, id, last]) =>
        update(connectionsTable, { workspace_id: meta.workspace, connection_id: id }, (row) =>
          row.last_heartbeat >= from + last ? row : { ...row, last_heartbeat: from + last },
        ),
      ),
    ),
    on(connectionClosed, ({ data, meta }) => [connection(meta, data.connection_id, { status: 'disconnected' })]),
  ],
});
