/** Pipelines: created, changed, reported as used, deleted. */
import { notFound } from '../../shared/errors.ts';
import type { EventDraft } from '../../shared/events/define.ts';
import {
  type PipelineFields,
  pipelineCreated,
  pipelineDeleted,
  pipelineUpdated,
  pipelineUsed,
} from '../../shared/events/pipelines/pipelines.ts';
import { sent } from '../../shared/fields.ts';
import { defineDecider, on } from '../decider.ts';
import type { CommandContext, Commands } from '../handler.ts';
import { createRecord, onRecord } from '../record-ids.ts';

export interface PipelineState {
  /** 0 before the pipeline is created and after it is deleted. */
  readonly id: number;
}

export const pipelineStream = (workspace: number, id: number): string => `pipeline-${workspace}-${id}`;

export const pipelineDecider = defineDecider<PipelineState>({
  kind: 'pipeline',
  initial: { id: 0 },
  snapshotVersion: 1,
  folds: [
    on(pipelineCreated, (_state, { data }) => ({ id: data.pipeline_id })),
    on(pipelineDeleted, () => ({ id: 0 })),
  ],
});

/** Without changes, records that the pipeline was used. @throws AppError 404 */
export function decideChange(state: PipelineState, changes: Partial<PipelineFields>): EventDraft[] {
  const { id } = state;
  if (id === 0) throw notFound('Pipeline');
  const set = sent(changes);
  const isUse = Object.keys(set).length === 0;
  return [isUse ? pipelineUsed.draft({ pipeline_id: id }) : pipelineUpdated.draft({ pipeline_id: id, ...set })];
}

/** No event for an unknown pipeline: it counts as deleted. */
export const decideDelete = ({ id }: PipelineState): EventDraft[] =>
  id === 0 ? [] : [pipelineDeleted.draft({ pipeline_id: id })];

/** Creates a pipeline from existing templates. */
export const createPipeline = (commands: Commands, context: CommandContext, fields: PipelineFields) =>
  createRecord(commands, context, ['pipeline', pipelineDecider, pipelineStream], (id) => [
    pipelineCreated.draft({ pipeline_id: id, ...fields }),
  ]);

/** Changes a pipeline, or counts one more use of it. @throws AppError 404 */
export const changePipeline = onRecord(pipelineDecider, pipelineStream, decideChange);

/** Deletes a pipeline. A policy then cancels and removes its runs. */
export const deletePipeline = onRecord(pipelineDecider, pipelineStream, decideDelete);

/** Whether the pipeline with this id exists, according to the log. */
export async function pipelineExists(commands: Commands, workspace: number, id: number): Promise<boolean> {
  const { state } = await commands.load(pipelineDecider, pipelineStream(workspace, id));
  return state.id !== 0;
}
