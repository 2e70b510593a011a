/**
 * Searchable documents: one per record, with the folded text of the searched fields. Results are read from the records'
 * own read models; this one only has the data for a match.
 *
 * Personal and sealed fields are left out: a document reads as if every person had already been erased.
 */
import { hash } from 'node:crypto';
import { z } from 'zod';
import { auditEntriesPurged, recordsPurged } from '../../shared/events/admin/cleanup.ts';
import { agentDeleted, agentDetailsChanged, agentStatusChanged } from '../../shared/events/agents/agents.ts';
import { agentHeartbeatReceived, agentWoken } from '../../shared/events/agents/heartbeat.ts';
import { agentMessageSent } from '../../shared/events/agents/messages.ts';
import { agentRegistered } from '../../shared/events/agents/registration.ts';
import { catalogue } from '../../shared/events/catalogue.ts';
import { chatMessageSent } from '../../shared/events/chat.ts';
import { asErased, type DomainEvent, type EventDefinition } from '../../shared/events/define.ts';
import { type ActivityRecord, activityOf } from '../../shared/events/monitoring/activities.ts';
import { auditOf } from '../../shared/events/monitoring/audit.ts';
import { pipelineCreated, pipelineDeleted, pipelineUpdated } from '../../shared/events/pipelines/pipelines.ts';
import { taskUpdated } from '../../shared/events/tasks/changes.ts';
import { type TaskPlace, taskCreated, taskDeleted, taskPlace } from '../../shared/events/tasks/tasks.ts';
import { folded } from '../../shared/folding.ts';
import { masked } from '../../shared/secrets.ts';
import { seconds } from '../../shared/time.ts';
import {
  type Change,
  change,
  defineProjection,
  defineTable,
  type Handler,
  insert,
  on,
  remove,
  update,
} from '../projection.ts';

/** Kinds of searched records, by their names in responses. */
export type DocumentType = 'task' | 'agent' | 'activity' | 'audit' | 'message' | 'pipeline';

export const documentsTable = defineTable(
  'documents',
  { workspace_id: 'int', type: 'text', id: 'bigint', text: 'text', created_at: 'bigint' },
  {
    key: ['workspace_id', 'type', 'id'],
    searched: ['text'],
  },
);

/**
 * Routine activities repeat the same texts: each text is stored once, with a row for each time that it occurred. A
 * heartbeat then costs only one small row, and no work on the text index.
 */
export const phrasesTable = defineTable(
  'phrases',
  { workspace_id: 'int', phrase: 'bigint', text: 'text' },
  { key: ['workspace_id', 'phrase'], searched: ['text'] },
);

export const phraseUsesTable = defineTable(
  'phrase_uses',
  { workspace_id: 'int', phrase: 'bigint', created_at: 'bigint', id: 'bigint' },
  {
    key: ['workspace_id', 'phrase', 'created_at', 'id'],
    indexes: ['workspace_id, created_at, id'],
  },
);

/** Types of frequent activities with few different texts. */
const ROUTINE: ReadonlySet<string> = new Set([
  'agent_heartbeat',
  'agent_status_change',
  'agent_message',
  'chat_message',
]);

/** Separates fields, so that no match spans two of them; it occurs in no field. */
const BETWEEN = '\u001f';
const textOf = (fields: readonly (string | null | undefined)[]): string =>
  fields.map((field) => folded(field ?? '').replaceAll(BETWEEN, ' ')).join(BETWEEN);

const document = (
  workspace: number,
  type: DocumentType,
  id: number,
  created_at: number,
  fields: readonly (string | null)[],
): Change => insert(documentsTable, { workspace_id: workspace, type, id, text: textOf(fields), created_at });

/** Sets fields by their index; undefined: unchanged. An unchanged text is not written. */
function rewritten(
  workspace: number,
  type: DocumentType,
  id: number,
  fields: readonly (string | null | undefined)[],
): Change[] {
  if (fields.every((field) => field === undefined)) return [];
  return [
    update(documentsTable, { workspace_id: workspace, type, id }, (row) => {
      const given = row.text.split(BETWEEN);
      const text = given
        .map((old, index) => (fields[index] === undefined ? old : textOf([fields[index]])))
        .join(BETWEEN);
      return text === row.text ? row : { ...row, text };
    }),
  ];
}

const removed = (workspace: number, type: DocumentType, id: number): Change[] => [
  remove(documentsTable, { workspace_id: workspace, type, id }),
];

type AgentEvent = DomainEvent<string, { readonly agent_id: number }>;
const agentFields = (
  { data, meta }: AgentEvent,
  name?: string,
  role?: string,
  lastActivity?: string | null,
): Change[] => rewritten(meta.workspace, 'agent', data.agent_id, [name, role, lastActivity]);

/** 48 bits. Texts with the same number share a row that contains both: a search may show too much, never too little. */
const phraseOf = (text: string): number => Number.parseInt(hash('sha256', text, 'hex').slice(0, 12), 16);

function activity(record: ActivityRecord): Change[] {
  const { workspace_id, id, type, description, actor, created_at } = record;
  if (!ROUTINE.has(type)) return [document(workspace_id, 'activity', id, created_at, [description, actor])];
  const text = textOf([description, actor]);
  const phrase = phraseOf(text);
  return [
    change(phrasesTable, { workspace_id, phrase }, (row) => {
      if (!row) return { workspace_id, phrase, text };
      return row.text.includes(text) ? row : { ...row, text: `${row.text}${BETWEEN}${text}` };
    }),
    insert(phraseUsesTable, { workspace_id, phrase, created_at, id }),
  ];
}

/** Documents of activities and audit entries, of all records. */
function told(definition: EventDefinition, event: DomainEvent): Change[] {
  const safe = asErased(definition, event);
  const said = activityOf(definition, safe);
  const audited = auditOf(definition, safe);
  const { workspace_id = 0, id = 0, action = '', actor = '', detail = null, created_at = 0 } = audited ?? {};
  return [
    ...(said ? activity(said) : []),
    ...(audited
      ? [document(workspace_id, 'audit', id, created_at, [action, actor, detail && detailText(detail)])]
      : []),
  ];
}

/** Details of an audit entry as they are searched and quoted. */
export const detailText = (detail: object): string => JSON.stringify(masked(detail));

/** Records with a document of their own, besides those of their activities. */
const records: readonly Handler[] = [
  on(agentRegistered, ({ data, meta }) => [
    document(meta.workspace, 'agent', data.agent_id, seconds(meta.at), [data.name, data.role, null]),
  ]),
  on(agentDetailsChanged, (event) => {
    const { name, role, last_activity: lastActivity } = event.data.changes;
    return agentFields(event, name, role, lastActivity);
  }),
  on(agentStatusChanged, (event) =>
    event.data.last_activity === null ? [] : agentFields(event, undefined, undefined, event.data.last_activity),
  ),
  on(agentHeartbeatReceived, (event) => agentFields(event, undefined, undefined, event.data.last_activity)),
  on(agentWoken, (event) => agentFields(event, undefined, undefined, event.data.last_activity)),
  on(agentDeleted, ({ data, meta }) => removed(meta.workspace, 'agent', data.agent_id)),
  on(agentMessageSent, ({ data, meta }) => [
    document(meta.workspace, 'message', data.message_id, seconds(meta.at), [data.content, data.from]),
  ]),
  on(chatMessageSent, ({ data, meta }) => [
    document(meta.workspace, 'message', data.message_id, seconds(meta.at), [data.content, data.from]),
  ]),
  on(taskCreated, ({ data: { task_id: taskId, task }, meta }) => [
    document(meta.workspace, 'task', taskId, seconds(meta.at), [task.title, task.description, task.assigned_to]),
  ]),
  on(taskUpdated, ({ data: { task_id: taskId, task, before }, meta }) => {
    const same = !('title' in before || 'assigned_to' in before || 'description' in before);
    return same ? [] : rewritten(meta.workspace, 'task', taskId, [task.title, task.description, task.assigned_to]);
  }),
  on(pipelineCreated, ({ data: { pipeline_id: pipelineId, name, description }, meta }) => [
    document(meta.workspace, 'pipeline', pipelineId, seconds(meta.at), [name, description]),
  ]),
  on(pipelineUpdated, ({ data: { pipeline_id: pipelineId, name, description }, meta }) =>
    rewritten(meta.workspace, 'pipeline', pipelineId, [name, description]),
  ),
  on(pipelineDeleted, ({ data, meta }) => removed(meta.workspace, 'pipeline', data.pipeline_id)),
  on(taskDeleted, ({ data, meta }) => removed(meta.workspace, 'task', data.task_id)),
  on(recordsPurged, ({ data, meta: { workspace: workspace_id } }) =>
    data.table !== 'activities'
      ? []
      : [
          ...data.ids.flatMap((id) => removed(workspace_id, 'activity', id)),
          ...data.phrases.map(({ phrase, created_at, id }) =>
            remove(phraseUsesTable, { workspace_id, phrase, created_at, id }),
          ),
        ],
  ),
  on(auditEntriesPurged, ({ data, meta }) => data.ids.flatMap((id) => removed(meta.workspace, 'audit', id))),
];

/** A task whose assignee changes, for any event. */
function reassigned({ data, meta }: DomainEvent): Change[] {
  const { task_id: taskId, before, after } = data as { task_id: number; before: TaskPlace; after: TaskPlace };
  if (before.assigned_to === after.assigned_to) return [];
  return rewritten(meta.workspace, 'task', taskId, [undefined, undefined, after.assigned_to]);
}

const movesTasks = ({ schema }: EventDefinition): boolean =>
  schema instanceof z.ZodObject && schema.shape.after === taskPlace;

const handlers: readonly Handler[] = [...catalogue.values()].flatMap((definition) => {
  const { type } = definition;
  const ofRecord = records.find((handler) => handler.type === type)?.handle ?? (movesTasks(definition) && reassigned);
  if (!ofRecord && !definition.activity && !definition.audit) return [];
  return [
    {
      type,
      handle: (event: DomainEvent) => [...(ofRecord ? ofRecord(event) : []), ...told(definition, event)],
    },
  ];
});

export const searchProjection = defineProjection({
  name: 'search',
  version: 1,
  tables: [documentsTable, phrasesTable, phraseUsesTable],
  handlers,
});
