/** Workflow templates: the list, and single ones. */
import { sql } from 'kysely';
import { workflowsProjection, workflowsTable } from '../projections/workflows.ts';
import { type WorkflowRecord, type WorkflowsQuery, workflowSchema } from '../shared/contract/workflows.ts';
import { fieldNames } from '../shared/fields.ts';
import { inWorkspace, type Reads } from './reads.ts';
import { recordAfter } from './records.ts';

const COLUMNS = fieldNames(workflowSchema);

const own = (reads: Reads, workspace: number) => inWorkspace(reads, workflowsProjection, 'workflows', workspace);

/** Most used first, then by the last change. */
export function listWorkflows(
  reads: Reads,
  workspace: number,
  { limit, offset }: WorkflowsQuery,
): Promise<WorkflowRecord[]> {
  return own(reads, workspace)
    .select(COLUMNS)
    .orderBy('use_count', 'desc')
    .orderBy('updated_at', 'desc')
    .orderBy('id', 'desc')
    .limit(limit)
    .offset(offset)
    .execute();
}

/** A template after a command. */
export const workflowAfter = recordAfter('Workflow template', [workflowsProjection, workflowsTable], COLUMNS);

/** Some columns of those of these templates that exist. */
export const workflowRows = <const C extends keyof WorkflowRecord>(
  reads: Reads,
  workspace: number,
  ids: readonly number[],
  columns: readonly C[],
) => own(reads, workspace).select(columns).where(sql<boolean>`id = ANY(${ids})`).execute();
