/** Pipelines: created, changed, reported as used, deleted. */
import { missingTemplates } from '../../queries/pipelines/pipelines.ts';
import type { Reads } from '../../queries/reads.ts';
import { invalid, notFound } from '../../shared/errors.ts';
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
import { createRecord, onRecord } from '../record-ids.ts';
import { holdingTemplates, type TemplateParts } from '../workflows.ts';

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

/** @throws AppError 400 that names the unknown templates */
async function requireTemplates(reads: Reads, workspace: number, steps: PipelineFields['steps']): Promise<void> {
  const missing = await missingTemplates(reads, workspace, [...new Set(steps.map((step) => step.template_id))]);
  if (missing.length === 0) return;
  const details = steps.flatMap(({ template_id }, index) =>
    missing.includes(template_id) ? [`steps.${index}.template_id: there is no template ${template_id}`] : [],
  );
  throw invalid(details[0] as string, details);
}

/** Creates a pipeline from existing templates. @throws AppError 400 */
export function createPipeline(parts: TemplateParts, context: CommandContext, fields: PipelineFields) {
  const { workspace } = context.origin;
  return holdingTemplates(parts, workspace, async (reads, lost) => {
    await requireTemplates(reads, workspace, fields.steps);
    const draft = (id: number) => [pipelineCreated.draft({ pipeline_id: id, ...fields })];
    const record = ['pipeline', pipelineDecider, pipelineStream] as const;
    return createRecord(parts.commands, context, record, draft, { unless: lost });
  });
}

/** Changes a pipeline, or counts one more use of it. @throws AppError 400, 404 */
export function changePipeline(
  parts: TemplateParts,
  context: CommandContext,
  id: number,
  changes: Partial<PipelineFields>,
): Promise<Executed> {
  const { workspace } = context.origin;
  const { steps } = changes;
  const change = (unless?: AbortSignal) =>
    parts.commands.execute(
      pipelineDecider,
      pipelineStream(workspace, id),
      context,
      (state) => decideChange(state, changes),
      { unless },
    );
  if (!steps) return change();
  return holdingTemplates(parts, workspace, async (reads, lost) => {
    await requireTemplates(reads, workspace, steps);
    return change(lost);
  });
}

/** Deletes a pipeline. A policy then cancels and removes its runs. */
export const deletePipeline = onRecord(pipelineDecider, pipelineStream, decideDelete);

/** Whether the pipeline with this id exists, according to the log. */
export async function pipelineExists(commands: Commands, workspace: number, id: number): Promise<boolean> {
  const { state } = await commands.load(pipelineDecider, pipelineStream(workspace, id));
  return state.id !== 0;
}
