/**
 * The current agents. Texts and the config are in a separate table, so that a heartbeat, which changes only some times
 * and the status, does not rewrite them.
 */
import {
  agentDeleted,
  agentDetailsChanged,
  agentHidden,
  agentShown,
  agentStatusChanged,
} from '../../shared/events/agents/agents.ts';
import { agentHeartbeatReceived, agentWoken } from '../../shared/events/agents/heartbeat.ts';
import { agentMemoryCleared, agentMemoryFieldsSet, agentMemoryWritten } from '../../shared/events/agents/memory.ts';
import { agentRegistered, agentReturned } from '../../shared/events/agents/registration.ts';
import { agentSoulChanged } from '../../shared/events/agents/souls.ts';
import type { DomainEvent } from '../../shared/events/define.ts';
import { sent } from '../../shared/fields.ts';
import { seconds } from '../../shared/time.ts';
import {
  type Change,
  defineProjection,
  defineTable,
  insert,
  on,
  type RowOf,
  remove,
  set,
  update,
} from '../projection.ts';

export const agentsTable = defineTable(
  'agents',
  {
    workspace_id: 'int',
    id: 'bigint',
    tenant_id: 'int',
    name: 'text',
    role: 'text',
    status: 'text',
    session_key: 'text?',
    last_seen: 'bigint?',
    last_activity: 'text?',
    created_at: 'bigint',
    updated_at: 'bigint',
    /** Last sign of life, Unix seconds: a heartbeat, a status set by a caller, or the registration. */
    alive_at: 'bigint',
    source: 'text',
    hidden: 'int',
    runtime_type: 'text?',
  },
  {
    key: ['workspace_id', 'id'],
    createdAt: 'created_at',
    // Messages show the names of their agents.
    concerns: ({ name }, other) => (other?.name === name ? {} : 'all'),
    indexes: [
      'workspace_id, name',
      'workspace_id, created_at, id',
      'workspace_id, status, created_at, id',
      'workspace_id, role, created_at, id',
      // Handles of mentions.
      'workspace_id, lower(name)',
      String.raw`workspace_id, lower(regexp_replace(name, '\s+', '-', 'g'))`,
    ],
  },
);

export const agentTextsTable = defineTable(
  'agent_texts',
  {
    workspace_id: 'int',
    id: 'bigint',
    config: 'jsonb',
    soul_content: 'text?',
    working_memory: 'text',
    /** The keys of the memory besides its text. */
    memory_fields: 'jsonb',
    soul_updated_at: 'bigint?',
    memory_updated_at: 'bigint?',
  },
  { key: ['workspace_id', 'id'], sized: true },
);

type Agent = RowOf<(typeof agentsTable)['columns']>;
type Texts = RowOf<(typeof agentTextsTable)['columns']>;

type AgentEvent = DomainEvent<string, { readonly agent_id: number }>;

const keyOf = ({ meta, data }: AgentEvent) => ({ workspace_id: meta.workspace, id: data.agent_id });

const agent = (event: AgentEvent, columns: Partial<Agent>): Change =>
  set(agentsTable, keyOf(event), event.meta, columns);

const texts = (event: AgentEvent, columns: (row: Texts) => Partial<Texts>): Change =>
  update(agentTextsTable, keyOf(event), (row) => ({ ...row, ...columns(row) }));

const seenAt = (at: number) => ({ last_seen: seconds(at), alive_at: seconds(at) });

export const agentsProjection = defineProjection({
  name: 'agents',
  version: 1,
  tables: [agentsTable, agentTextsTable],
  handlers: [
    on(agentRegistered, (event) => {
      const { data, meta } = event;
      const at = seconds(meta.at);
      return [
        insert(agentsTable, {
          ...keyOf(event),
          tenant_id: meta.tenant,
          name: data.name,
          role: data.role,
          status: data.status,
          session_key: data.session_key,
          last_seen: data.via === 'self' ? at : null,
          last_activity: null,
          created_at: at,
          updated_at: at,
          alive_at: at,
          source: data.source,
          hidden: 0,
          runtime_type: data.runtime_type,
        }),
        insert(agentTextsTable, {
          ...keyOf(event),
          config: data.config,
          soul_content: data.soul_content,
          working_memory: '',
          memory_fields: {},
          soul_updated_at: data.soul_content === null ? null : at,
          memory_updated_at: null,
        }),
      ];
    }),
    on(agentReturned, (event) => [agent(event, { status: 'idle', ...seenAt(event.meta.at) })]),
    on(agentStatusChanged, (event) => {
      const { to, last_activity, seen, cause } = event.data;
      const at = event.meta.at;
      return [
        agent(event, {
          status: to,
          ...(last_activity !== null && { last_activity }),
          ...(cause !== 'sweep' && { alive_at: seconds(at) }),
          ...(seen && seenAt(at)),
        }),
      ];
    }),
    on(agentHeartbeatReceived, (event) => [
      agent(event, { status: 'idle', last_activity: event.data.last_activity, ...seenAt(event.meta.at) }),
    ]),
    on(agentWoken, (event) => [
      agent(event, { status: 'idle', last_activity: event.data.last_activity, ...seenAt(event.meta.at) }),
    ]),
    on(agentDetailsChanged, (event) => {
      const { changes, via, status } = event.data;
      const { config, soul_content, ...row } = changes;
      const rows = [agent(event, { ...row, ...(via === 'name' && status !== null && seenAt(event.meta.at)) })];
      if (config !== undefined || soul_content !== undefined) {
        const soul_updated_at = soul_content === undefined ? undefined : seconds(event.meta.at);
        rows.push(texts(event, () => sent({ config, soul_content, soul_updated_at })));
      } else {
        // Unchanged: a row that is read here stays in memory, and the response to the call shows both rows.
        rows.push(update(agentTextsTable, keyOf(event), (row) => row));
      }
      return rows;
    }),
    on(agentSoulChanged, (event) => [
      agent(event, {}),
      texts(event, () => ({ soul_content: event.data.soul_content, soul_updated_at: seconds(event.meta.at) })),
    ]),
    on(agentMemoryWritten, (event) => [
      agent(event, {}),
      texts(event, ({ working_memory }) => ({
        working_memory: event.data.append ? working_memory + event.data.text : event.data.text,
        memory_updated_at: seconds(event.meta.at),
      })),
    ]),
    on(agentMemoryFieldsSet, (event) => [
      agent(event, {}),
      texts(event, () => ({ memory_fields: event.data.fields, memory_updated_at: seconds(event.meta.at) })),
    ]),
    on(agentMemoryCleared, (event) => [
      agent(event, {}),
      texts(event, () => ({ working_memory: '', memory_fields: {}, memory_updated_at: seconds(event.meta.at) })),
    ]),
    on(agentHidden, (event) => [agent(event, { hidden: 1 })]),
    on(agentShown, (event) => [agent(event, { hidden: 0 })]),
    on(agentDeleted, (event) => [remove(agentsTable, keyOf(event)), remove(agentTextsTable, keyOf(event))]),
  ],
});
