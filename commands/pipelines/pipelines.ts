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
import type { CommandContext, Commands, Executed } from '../handler.ts';
import { createRecord } from '../reserve.ts';

export interface PipelineState {
  /** 0 until created, and again once deleted. */
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

/**
 * No change is a report that the pipeline was used.
 *
 * @throws AppError 404
 */
export function decideChange(state: PipelineState, changes: Partial<PipelineFields>): EventDraft[] {
  const { id } = state;
  if (id === 0) throw notFound('Pipeline');
  const set = sent(changes);
  const isUse = Object.keys(set).length === 0;
  return [isUse ? pipelineUsed.draft({ pipeline_id: id }) : pipelineUpdated.draft({ pipeline_id: id, ...set })];
}

/** One that is gone, or never was, is deleted already. */
export const decideDelete = ({ id }: PipelineState): EventDraft[] =>
  id === 0 ? [] : [pipelineDeleted.draft({ pipeline_id: id })];

/** Creates a pipeline of templates that exist. */
export const createPipeline = (commands: Commands, context: CommandContext, fields: PipelineFields) =>
  createRecord(commands, context, ['pipeline', pipelineDecider, pipelineStream], (id) => [
    pipelineCreated.draft({ pipeline_id: id, ...fields }),
  ]);

/** Changes a pipeline, or counts one more use of it. @throws AppError 404 */
export async function changePipeline(
  commands: Commands,
  context: CommandContext,
  id: number,
  changes: Partial<PipelineFields>,
): Promise<Executed> {
  return commands.execute(pipelineDecider, pipelineStream(context.origin.workspace, id), context, (state) =>
    decideChange(state, changes),
  );
}

/** Deletes a pipeline. Its runs are cancelled and removed by the policy that follows. */
export async function deletePipeline(commands: Commands, context: CommandContext, id: number): Promise<void> {
  await commands.execute(pipelineDecider, pipelineStream(context.origin.workspace, id), context, decideDelete);
}

/** Whether there is a pipeline with this id, as the log has it now. */
export async function pipelineExists(commands: Commands, workspace: number, id: number): Promise<boolean> {
  const { state } = await commands.load(pipelineDecider, pipelineStream(workspace, id));
  return state.id !== 0;
}
