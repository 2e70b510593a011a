/** The current workflow templates. */
import { workflowSchema } from '../shared/contract/workflows.ts';
import { workflowCreated, workflowDeleted, workflowUpdated, workflowUsed } from '../shared/events/workflows.ts';
import { seconds } from '../shared/time.ts';
import { columnsFor } from './columns.ts';
import { defineProjection, defineTable, insert, on, remove, set } from './projection.ts';

export const workflowsTable = defineTable(
  'workflows',
  {
    workspace_id: 'int',
    ...columnsFor(workflowSchema.omit({ workspace_id: true })),
    timeout_seconds: 'int',
    use_count: 'int',
  },
  { key: ['workspace_id', 'id'], indexes: ['workspace_id, use_count, updated_at, id'] },
);

export const workflowsProjection = defineProjection({
  name: 'workflows',
  version: 1,
  tables: [workflowsTable],
  handlers: [
    on(workflowCreated, ({ data: { workflow_id: id, ...fields }, meta }) => [
      insert(workflowsTable, {
        workspace_id: meta.workspace,
        id,
        ...fields,
        created_by: meta.actor.name,
        created_at: seconds(meta.at),
        updated_at: seconds(meta.at),
        last_used_at: null,
        use_count: 0,
      }),
    ]),
    on(workflowUpdated, ({ data: { workflow_id: id, ...changes }, meta }) => [
      set(workflowsTable, { workspace_id: meta.workspace, id }, meta, changes),
    ]),
    on(workflowUsed, ({ data, meta }) => [
      set(workflowsTable, { workspace_id: meta.workspace, id: data.workflow_id }, meta, (row) => ({
        use_count: row.use_count + 1,
        last_used_at: seconds(meta.at),
      })),
    ]),
    on(workflowDeleted, ({ data, meta }) => [
      remove(workflowsTable, { workspace_id: meta.workspace, id: data.workflow_id }),
    ]),
  ],
});
