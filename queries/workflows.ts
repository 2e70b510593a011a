/** Workflow templates: the list, and single ones. */
import { sql } from 'kysely';
import { workflowsProjection, workflowsTable } from '../projections/workflows.ts';
import type { WorkflowRecord, WorkflowsQuery } from '../shared/contract/workflows.ts';
import { type Reads, tables } from './reads.ts';
import { columnsOf, type Executed, type Records, rowAfter } from './records.ts';

const COLUMNS = [
  'id',
  'name',
  'description',
  'model',
  'task_prompt',
  'timeout_seconds',
  'agent_role',
  'tags',
  'created_by',
  'created_at',
  'updated_at',
  'last_used_at',
  'use_count',
  'workspace_id',
] as const;

const own = (reads: Reads, workspace: number) =>
  tables(reads, workflowsProjection).selectFrom('workflows').where('workspace_id', '=', workspace);

/** The most used first, then those that were changed last. */
export async function listWorkflows(
  reads: Reads,
  workspace: number,
  { limit, offset }: WorkflowsQuery,
): Promise<WorkflowRecord[]> {
  const rows = await own(reads, workspace)
    .select(COLUMNS)
    .orderBy('use_count', 'desc')
    .orderBy('updated_at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .offset(offset)
    .execute();
  return rows as unknown as WorkflowRecord[];
}

/** A template as it is after a command. @throws AppError 404 when it was deleted by then */
export async function workflowAfter(
  records: Records,
  workspace: number,
  id: number,
  executed: Executed,
): Promise<WorkflowRecord> {
  const key = { workspace_id: workspace, id };
  const row = await rowAfter(records, 'Workflow template', [workflowsProjection, workflowsTable], key, executed);
  return columnsOf(row, COLUMNS) as unknown as WorkflowRecord;
}

type Column = Exclude<(typeof COLUMNS)[number], 'tags'>;

/** Some columns of the templates among these that exist. */
export const workflowRows = <const C extends Column>(
  reads: Reads,
  workspace: number,
  ids: readonly number[],
  columns: readonly C[],
) => own(reads, workspace).select(columns).where(sql<boolean>`id = ANY(${ids})`).execute();
