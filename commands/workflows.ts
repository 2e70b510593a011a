/** Workflow templates: created, changed, reported as used, deleted. */
import { notFound } from '../shared/errors.ts';
import type { EventDraft } from '../shared/events/define.ts';
import {
  type WorkflowFields,
  workflowCreated,
  workflowDeleted,
  workflowUpdated,
  workflowUsed,
} from '../shared/events/workflows.ts';
import { sent } from '../shared/fields.ts';
import { refuseInjection } from './agents/injection.ts';
import { defineDecider, on } from './decider.ts';
import type { CommandContext, Commands } from './handler.ts';
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

/** @throws AppError 404 */
export function decideDelete(state: WorkflowState): EventDraft[] {
  return [workflowDeleted.draft({ workflow_id: existing(state).id })];
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

/** @throws AppError 404 */
export const deleteWorkflow = onRecord(workflowDecider, workflowStream, decideDelete);
