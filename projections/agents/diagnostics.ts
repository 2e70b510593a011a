/**
 * The data of diagnostics besides activities and tokens: completed tasks and failures, one by one and by hour, under
 * the name that the agent had; and the agents' names and statuses over time.
 */
import { agentDetailsChanged, agentStatusChanged } from '../../shared/events/agents/agents.ts';
import { agentWoken } from '../../shared/events/agents/heartbeat.ts';
import { agentRegistered, agentReturned } from '../../shared/events/agents/registration.ts';
import { catalogue } from '../../shared/events/catalogue.ts';
import type { DomainEvent } from '../../shared/events/define.ts';
import { HOUR, seconds } from '../../shared/time.ts';
import { type Change, defineProjection, defineTable, type Handler, insert, on, tally } from '../projection.ts';

/** Names of agents, each valid from its start until the agent's next row. */
export const namesOverTimeTable = defineTable(
  'names',
  {
    workspace_id: 'int',
    agent_id: 'bigint',
    /** Number of the event. */
    id: 'bigint',
    name: 'text',
    /** Unix seconds. */
    since: 'bigint',
  },
  { key: ['workspace_id', 'agent_id', 'id'] },
);

/** Changes of status, in the order of the log. */
export const statusesTable = defineTable(
  'statuses',
  {
    workspace_id: 'int',
    agent_id: 'bigint',
    /** Number of the event. */
    id: 'bigint',
    status: 'text',
    /** Unix seconds. */
    since: 'bigint',
  },
  { key: ['workspace_id', 'agent_id', 'id'], indexes: ['workspace_id, agent_id, since, position'] },
);

export const signalsTable = defineTable(
  'signals',
  {
    workspace_id: 'int',
    /** Number of the event. */
    id: 'bigint',
    /** `completed` or `failed`. */
    kind: 'text',
    agent: 'text',
    type: 'text',
    description: 'text',
    data: 'jsonb',
    created_at: 'bigint',
  },
  { key: ['workspace_id', 'id', 'kind'], indexes: ['workspace_id, agent, kind, created_at, id'] },
);

export const signalHoursTable = defineTable(
  'signal_hours',
  {
    workspace_id: 'int',
    agent: 'text',
    kind: 'text',
    /** Beginning of the hour, Unix seconds. */
    start: 'bigint',
    type: 'text',
    count: 'bigint',
  },
  { key: ['workspace_id', 'agent', 'kind', 'start', 'type'] },
);

function signalChanges(event: DomainEvent): Change[] {
  const { workspace: workspace_id, number: id, at } = event.meta;
  const created_at = seconds(at);
  const signals = catalogue.get(event.type)?.signals?.(event) ?? [];
  return signals.flatMap(({ kind, agent, type, description, data }) => {
    const hour = { workspace_id, agent, kind, start: created_at - (created_at % HOUR), type };
    return [
      insert(signalsTable, { workspace_id, id, kind, agent, type, description, data, created_at }),
      tally(signalHoursTable, hour),
    ];
  });
}

const named = ({ meta, data }: DomainEvent<string, { readonly agent_id: number }>, name: string): Change =>
  insert(namesOverTimeTable, {
    workspace_id: meta.workspace,
    agent_id: data.agent_id,
    id: meta.number,
    name,
    since: seconds(meta.at),
  });

const became = ({ meta, data }: DomainEvent<string, { readonly agent_id: number }>, status: string): Change =>
  insert(statusesTable, {
    workspace_id: meta.workspace,
    agent_id: data.agent_id,
    id: meta.number,
    status,
    since: seconds(meta.at),
  });

/** Further changes, by event type: signals come from the catalogue. */
const ownHandlers: readonly Handler[] = [
  on(agentRegistered, (event) => [named(event, event.data.name), became(event, event.data.status)]),
  // A heartbeat that changes the status is accompanied by an AgentStatusChanged; these two are not.
  on(agentReturned, (event) => [became(event, 'idle')]),
  on(agentWoken, (event) => [became(event, 'idle')]),
  on(agentStatusChanged, (event) => [became(event, event.data.to), ...signalChanges(event)]),
  on(agentDetailsChanged, (event) => {
    const { name } = event.data.changes;
    return name === undefined ? [] : [named(event, name)];
  }),
];

export const diagnosticsProjection = defineProjection({
  name: 'diagnostics',
  version: 1,
  tables: [namesOverTimeTable, statusesTable, signalsTable, signalHoursTable],
  handlers: [
    ...ownHandlers,
    ...[...catalogue.values()]
      .filter(({ type, signals }) => signals && !ownHandlers.some((one) => one.type === type))
      .map((definition): Handler => ({ type: definition.type, handle: signalChanges })),
  ],
});
