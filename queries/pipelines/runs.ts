/**
 * Runs of pipelines. Runs of a deleted pipeline are hidden from the moment of its deletion; their rows are removed one
 * by one.
 */
import { pipelinesProjection } from '../../projections/pipelines/pipelines.ts';
import { pipelineRunsTable } from '../../projections/pipelines/runs.ts';
import type { ListedRun, RunRecord } from '../../shared/contract/pipelines/runs.ts';
import { inWorkspace, type Reads, tables } from '../reads.ts';
import { columnsOf, type Executed, type Records, rowAfter } from '../records.ts';

const OWN = (Object.keys(pipelineRunsTable.columns) as (keyof (typeof pipelineRunsTable)['columns'])[]).filter(
  (column) => column !== 'steps',
);
const COLUMNS = [...OWN.map((column) => `r.${column}` as const), 'r.steps as steps_snapshot'] as const;

const own = (reads: Reads, workspace: number) =>
  tables(reads, pipelinesProjection)
    .selectFrom('pipeline_runs as r')
    .innerJoin('pipelines as p', (join) =>
      join.onRef('p.workspace_id', '=', 'r.workspace_id').onRef('p.id', '=', 'r.pipeline_id'),
    )
    .where('r.workspace_id', '=', workspace);

/** The latest first. */
export async function listRuns(
  reads: Reads,
  workspace: number,
  { pipeline_id, limit }: { readonly pipeline_id?: number | undefined; readonly limit: number },
): Promise<ListedRun[]> {
  let runs = own(reads, workspace);
  if (pipeline_id !== undefined) runs = runs.where('r.pipeline_id', '=', pipeline_id);
  return runs
    .select([...COLUMNS, 'p.name as pipeline_name'])
    .orderBy('r.created_at', 'desc')
    .orderBy('r.id', 'desc')
    .limit(limit)
    .execute();
}

export async function runRecord(reads: Reads, workspace: number, id: number): Promise<RunRecord | undefined> {
  return own(reads, workspace).select(COLUMNS).where('r.id', '=', id).executeTakeFirst();
}

/** A run after a command. @throws AppError 404 when it has been removed */
export async function runAfter(
  records: Records,
  workspace: number,
  id: number,
  executed: Executed,
): Promise<RunRecord> {
  const key = { workspace_id: workspace, id };
  const table = [pipelinesProjection, pipelineRunsTable] as const;
  const { steps, ...row } = await rowAfter(records, 'Pipeline run', table, key, executed, { mixed: true });
  return { ...columnsOf(row, OWN), steps_snapshot: steps };
}

const PAGE = 200;

/** Ids of a pipeline's runs, even if it was deleted: ascending, after `after`, one page. */
export async function runsOfPipeline(
  reads: Reads,
  workspace: number,
  pipeline: number,
  after: number,
): Promise<readonly number[]> {
  const rows = await inWorkspace(reads, pipelinesProjection, 'pipeline_runs', workspace)
    .select('id')
    .where('pipeline_id', '=', pipeline)
    .where('id', '>', after)
    .orderBy('id')
    .limit(PAGE)
    .execute();
  return rows.map(({ id }) => id);
}
