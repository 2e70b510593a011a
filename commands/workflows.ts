/** Workflow templates: created, changed, reported as used, deleted. */
import { type TemplateUse, templateUse } from '../queries/pipelines/pipelines.ts';
import type { Reads } from '../queries/reads.ts';
import { conflict, notFound } from '../shared/errors.ts';
import type { EventDraft } from '../shared/events/define.ts';
import {
  type WorkflowFields,
  workflowCreated,
  workflowDeleted,
  workflowUpdated,
  workflowUsed,
} from '../shared/events/workflows.ts';
import { sent } from '../shared/fields.ts';
import type { Locks } from '../shared/ports/locks.ts';
import { atHead } from '../shared/ports/read-models.ts';
import { refuseInjection } from './agents/injection.ts';
import { defineDecider, on } from './decider.ts';
import type { CommandContext, Commands, Executed } from './handler.ts';
import { createRecord, onRecord } from './record-ids.ts';

/** The state omits the text of a template: commands only need to know whether it exists. */
export interface WorkflowState {
  /** 0 before the template is created and after it is deleted. */
  readonly id: number;
}

export const workflowStream = (workspace: number, id: number): string => `workflow-${workspace}-${id}`;

export const workflowDecider = defineDecider<WorkflowState>({
  kind: 'workflow template',
  initial: { id: 0 },
  snapshotVersion: 1,
  folds: [
    on(workflowCreated, (_state, { data }) => ({ id: data.workflow_id })),
    on(workflowDeleted, () => ({ id: 0 })),
  ],
});

/** @throws AppError 404 */
function existing(state: WorkflowState): WorkflowState {
  if (state.id === 0) throw notFound('Workflow template');
  return state;
}

/** Without changes, records that the template was used. @throws AppError 404 */
export function decideChange(state: WorkflowState, changes: Partial<WorkflowFields>): EventDraft[] {
  const { id } = existing(state);
  const set = sent(changes);
  const isUse = Object.keys(set).length === 0;
  return [isUse ? workflowUsed.draft({ workflow_id: id }) : workflowUpdated.draft({ workflow_id: id, ...set })];
}

/** @param use what uses the template, with the remedy @throws AppError 404; 409 when there is a use */
export function decideDelete(state: WorkflowState, use?: string): EventDraft[] {
  const { id } = existing(state);
  if (use !== undefined) throw conflict(use, { code: 'TEMPLATE_IN_USE' });
  return [workflowDeleted.draft({ workflow_id: id })];
}

/** @throws AppError 422 when the prompt tries to take over an agent */
function screened<F extends Partial<WorkflowFields>>(fields: F): F {
  if (fields.task_prompt !== undefined) refuseInjection('The prompt', fields.task_prompt);
  return fields;
}

/** Creates a template. @throws AppError 422 */
export async function createWorkflow(commands: Commands, context: CommandContext, fields: WorkflowFields) {
  screened(fields);
  return createRecord(commands, context, ['workflow', workflowDecider, workflowStream], (id) => [
    workflowCreated.draft({ workflow_id: id, ...fields }),
  ]);
}

/** Changes a template, or counts one more use of it. @throws AppError 404, 422 */
export const changeWorkflow = onRecord(workflowDecider, workflowStream, (state, changes: Partial<WorkflowFields>) =>
  decideChange(state, screened(changes)),
);

/** Dependencies of commands that rely on which templates exist, or which are in use. */
export interface TemplateParts {
  readonly commands: Commands;
  readonly locks: Locks;
  readonly reads: Reads;
}

/**
 * Runs work while no other caller, in any process, deletes a template of the workspace, or begins to use one in a
 * pipeline or a run.
 *
 * @param work its reads show everything that earlier work has appended; its appends must depend on `lost`
 * @throws AppError 409 `BUSY` when others take too long; what `work` throws
 */
export const holdingTemplates = <T>(
  { locks, reads }: TemplateParts,
  workspace: number,
  work: (reads: Reads, lost: AbortSignal) => Promise<T>,
): Promise<T> =>
  locks.holding(`workflow templates of workspace ${workspace}`, (lost) => work(reads.at(atHead()), lost));

/** @throws AppError 404; 409 `TEMPLATE_IN_USE` that names a pipeline or a run that uses the template */
export function deleteWorkflow(parts: TemplateParts, context: CommandContext, id: number): Promise<Executed> {
  const { workspace } = context.origin;
  return holdingTemplates(parts, workspace, async (reads, lost) => {
    const use = await templateUse(reads, workspace, id);
    const decide = (state: WorkflowState) => decideDelete(state, use && inUse(use));
    return parts.commands.execute(workflowDecider, workflowStream(workspace, id), context, decide, { unless: lost });
  });
}

function inUse({ pipeline_id, name, run_id }: TemplateUse): string {
  const pipeline = `pipeline ${pipeline_id} (“${name}”)`;
  return run_id === null
    ? `The ${pipeline} uses this template; change its steps or delete it first.`
    : `Run ${run_id} of ${pipeline} uses this template; wait until it has ended, or cancel it.`;
}
