/** Pipelines: the list, single ones, and the data for starting a run. */
import { sql } from 'kysely';
import { pipelinesProjection } from '../../projections/pipelines/pipelines.ts';
import { pipelinesTable } from '../../projections/pipelines/runs.ts';
import {
  type ListedPipeline,
  type PipelineRecord,
  type PipelinesQuery,
  pipelineSchema,
} from '../../shared/contract/pipelines/pipelines.ts';
import { UNKNOWN_TEMPLATE } from '../../shared/events/pipelines/runs.ts';
import { fieldNames } from '../../shared/fields.ts';
import { inWorkspace, type Reads, tableOf } from '../reads.ts';
import { recordAfter } from '../records.ts';
import { workflowRows } from '../workflows.ts';

const COLUMNS = fieldNames(pipelineSchema);

const own = (reads: Reads, workspace: number) => inWorkspace(reads, pipelinesProjection, 'pipelines', workspace);

const distinct = (records: readonly Pick<PipelineRecord, 'steps'>[]): number[] => [
  ...new Set(records.flatMap(({ steps }) => steps.map((step) => step.template_id))),
];

/** Most used first, then by the last change. */
export async function listPipelines(
  reads: Reads,
  workspace: number,
  { limit, offset }: PipelinesQuery,
): Promise<ListedPipeline[]> {
  const rows = await own(reads, workspace)
    .select([...COLUMNS, 'runs_total', 'runs_completed', 'runs_failed', 'runs_running'])
    .orderBy('use_count', 'desc')
    .orderBy('updated_at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .offset(offset)
    .execute();
  const templates = await workflowRows(reads, workspace, distinct(rows), ['id', 'name']);
  const names = new Map(templates.map(({ id, name }) => [id, name]));
  return rows.map(
    ({ runs_total: total, runs_completed: completed, runs_failed: failed, runs_running: running, ...record }) => ({
      ...record,
      steps: record.steps.map((step) => ({ ...step, template_name: names.get(step.template_id) ?? UNKNOWN_TEMPLATE })),
      runs: { total, completed, failed, running, ...(total > 0 && { pipeline_id: record.id }) },
    }),
  );
}

/** A pipeline after a command. */
export const pipelineAfter = recordAfter('Pipeline', [pipelinesProjection, pipelinesTable], COLUMNS, { mixed: true });

/** Those of these templates that the workspace does not have. */
export async function missingTemplates(reads: Reads, workspace: number, ids: readonly number[]): Promise<number[]> {
  const found = new Set((await workflowRows(reads, workspace, ids, ['id'])).map(({ id }) => id));
  return ids.filter((id) => !found.has(id));
}

/** What uses a template: a pipeline, or a run that has not ended. */
export interface TemplateUse {
  readonly pipeline_id: number;
  /** Of the pipeline. */
  readonly name: string;
  /** Null: the pipeline itself. */
  readonly run_id: number | null;
}

/** A pipeline that uses a template, or else a run in progress that began with it; runs of deleted pipelines end. */
export async function templateUse(reads: Reads, workspace: number, id: number): Promise<TemplateUse | undefined> {
  const pipelines = tableOf(reads, pipelinesProjection, 'pipelines');
  const step = JSON.stringify([{ template_id: id }]);
  const { rows } = await sql<TemplateUse>`
    (SELECT id AS pipeline_id, name, NULL::bigint AS run_id FROM ${pipelines}
      WHERE workspace_id = ${workspace} AND steps @> ${step}::jsonb ORDER BY id LIMIT 1)
    UNION ALL
    (SELECT p.id, p.name, r.id FROM ${pipelines} p
        JOIN ${tableOf(reads, pipelinesProjection, 'pipeline_runs')} r
          ON r.workspace_id = p.workspace_id AND r.pipeline_id = p.id
      WHERE p.workspace_id = ${workspace} AND p.runs_running > 0 AND r.status = 'running' AND r.steps @> ${step}::jsonb
      ORDER BY r.id LIMIT 1)`.execute(reads.db);
  return rows.find(({ run_id }) => run_id === null) ?? rows[0];
}

/** A pipeline with its templates, as a run stores them. */
export async function pipelineToRun(reads: Reads, workspace: number, id: number) {
  const pipeline = await own(reads, workspace).select(COLUMNS).where('id', '=', id).executeTakeFirst();
  if (!pipeline) return undefined;
  const columns = ['id', 'name', 'task_prompt', 'model', 'timeout_seconds'] as const;
  const rows = await workflowRows(reads, workspace, distinct([pipeline]), columns);
  const names = new Map(rows.map((row) => [row.id, row.name]));
  return {
    pipeline_id: id,
    pipeline_name: pipeline.name,
    steps: pipeline.steps.map(({ template_id, on_failure }) => ({
      template_id,
      template_name: names.get(template_id) ?? UNKNOWN_TEMPLATE,
      on_failure,
    })),
    templates: rows.map((row) => ({
      template_id: row.id,
      task_prompt: row.task_prompt,
      model: row.model,
      timeout_seconds: row.timeout_seconds,
    })),
  };
}
