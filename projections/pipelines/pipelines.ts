/** Pipelines with the counts of their runs, and the runs. */
import {
  pipelineCreated,
  pipelineDeleted,
  pipelineUpdated,
  pipelineUsed,
} from '../../shared/events/pipelines/pipelines.ts';
import { seconds } from '../../shared/time.ts';
import { defineProjection, insert, on, update } from '../projection.ts';
import { pipelineRunsTable, pipelinesTable, runHandlers } from './runs.ts';

const toSteps = (steps: readonly { readonly template_id: number; readonly on_failure: string }[]) =>
  steps.map(({ template_id, on_failure }) => ({ template_id, on_failure }));

export const pipelinesProjection = defineProjection({
  name: 'pipelines',
  version: 1,
  tables: [pipelinesTable, pipelineRunsTable],
  handlers: [
    on(pipelineCreated, ({ data, meta }) => [
      insert(pipelinesTable, {
        workspace_id: meta.workspace,
        id: data.pipeline_id,
        name: data.name,
        description: data.description,
        steps: toSteps(data.steps),
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
    on(pipelineUpdated, ({ data, meta }) => [
      update(pipelinesTable, { workspace_id: meta.workspace, id: data.pipeline_id }, (row) => ({
        ...row,
        name: data.name ?? row.name,
        description: data.description === undefined ? row.description : data.description,
        steps: data.steps ? toSteps(data.steps) : row.steps,
        updated_at: seconds(meta.at),
      })),
    ]),
    on(pipelineUsed, ({ data, meta }) => [
      update(pipelinesTable, { workspace_id: meta.workspace, id: data.pipeline_id }, (row) => ({
        ...row,
        use_count: row.use_count + 1,
        last_used_at: seconds(meta.at),
        updated_at: seconds(meta.at),
      })),
    ]),
    on(pipelineDeleted, ({ data, meta }) => [
      update(pipelinesTable, { workspace_id: meta.workspace, id: data.pipeline_id }, () => undefined),
    ]),
    ...runHandlers,
  ],
});
