/** Pipelines with the counts of their runs, and the runs. */
import {
  pipelineCreated,
  pipelineDeleted,
  pipelineUpdated,
  pipelineUsed,
} from '../../shared/events/pipelines/pipelines.ts';
import { seconds } from '../../shared/time.ts';
import { defineProjection, insert, on, remove, set } from '../projection.ts';
import { pipelineRunsTable, pipelinesTable, runHandlers } from './runs.ts';

export const pipelinesProjection = defineProjection({
  name: 'pipelines',
  version: 1,
  tables: [pipelinesTable, pipelineRunsTable],
  handlers: [
    on(pipelineCreated, ({ data: { pipeline_id: id, ...fields }, meta }) => [
      insert(pipelinesTable, {
        workspace_id: meta.workspace,
        id,
        ...fields,
        created_by: meta.actor.name,
        created_at: seconds(meta.at),
        updated_at: seconds(meta.at),
        use_count: 0,
        last_used_at: null,
        runs_total: 0,
        runs_completed: 0,
        runs_failed: 0,
        runs_running: 0,
      }),
    ]),
    on(pipelineUpdated, ({ data: { pipeline_id: id, ...changes }, meta }) => [
      set(pipelinesTable, { workspace_id: meta.workspace, id }, meta, changes),
    ]),
    on(pipelineUsed, ({ data, meta }) => [
      set(pipelinesTable, { workspace_id: meta.workspace, id: data.pipeline_id }, meta, (row) => ({
        use_count: row.use_count + 1,
        last_used_at: seconds(meta.at),
      })),
    ]),
    on(pipelineDeleted, ({ data, meta }) => [
      remove(pipelinesTable, { workspace_id: meta.workspace, id: data.pipeline_id }),
    ]),
    ...runHandlers,
  ],
});
