/** Runs of pipelines with the state of each step. Their table is one of the projection `pipelines`. */
import { pipelineSchema } from '../../shared/contract/pipelines/pipelines.ts';
import { type RunRecord, runSchema, type StepState } from '../../shared/contract/pipelines/runs.ts';
import { recordsPurged } from '../../shared/events/admin/cleanup.ts';
import {
  HAND_OVER_FAULTS,
  pipelineRunCancelled,
  pipelineRunCompleted,
  pipelineRunFailed,
  pipelineRunRemoved,
  pipelineRunStarted,
  pipelineStepAttemptFailed,
  pipelineStepCompleted,
  pipelineStepFailed,
  pipelineStepSpawned,
  pipelineStepStarted,
} from '../../shared/events/pipelines/runs.ts';
import { seconds } from '../../shared/time.ts';
import { columnFor, columnsFor } from '../columns.ts';
import { type Change, defineTable, type Handler, insert, on, type Row, remove, update } from '../projection.ts';

export const pipelinesTable = defineTable(
  'pipelines',
  {
    workspace_id: 'int',
    ...columnsFor(pipelineSchema.omit({ workspace_id: true })),
    use_count: 'int',
    runs_total: 'int',
    runs_completed: 'int',
    runs_failed: 'int',
    runs_running: 'int',
  },
  { key: ['workspace_id', 'id'], indexes: ['workspace_id, use_count, updated_at, id'] },
);

export const pipelineRunsTable = defineTable(
  'pipeline_runs',
  {
    workspace_id: 'int',
    id: 'bigint',
    pipeline_id: 'bigint',
    status: columnFor(runSchema.shape.status),
    current_step: 'int',
    steps: columnFor(runSchema.shape.steps_snapshot),
    started_at: 'bigint?',
    completed_at: 'bigint?',
    triggered_by: 'text',
    created_at: 'bigint',
  },
  {
    key: ['workspace_id', 'id'],
    indexes: [
      'workspace_id, created_at, id',
      'workspace_id, pipeline_id, created_at, id',
      'workspace_id, pipeline_id, id',
    ],
  },
);

type RunRow = Omit<Row<typeof pipelineRunsTable>, 'position'>;
type PipelineRow = Omit<Row<typeof pipelinesTable>, 'position'>;
interface OfRun {
  readonly data: { readonly run_id: number; readonly pipeline_id: number };
  readonly meta: { readonly workspace: number; readonly at: number };
}

const ofRun = ({ data, meta }: OfRun, apply: (row: RunRow) => RunRow | undefined): Change =>
  update(pipelineRunsTable, { workspace_id: meta.workspace, id: data.run_id }, apply);

const ofPipeline = ({ data, meta }: OfRun, apply: (row: PipelineRow) => PipelineRow): Change =>
  update(pipelinesTable, { workspace_id: meta.workspace, id: data.pipeline_id }, apply);

/** Changes the step of an event. */
const ofStep = (
  event: OfRun & { readonly data: { readonly step: number } },
  apply: (step: StepState) => Partial<StepState>,
): Change =>
  ofRun(event, (row) => ({
    ...row,
    steps: row.steps.map((one) => (one.step_index === event.data.step ? { ...one, ...apply(one) } : one)),
  }));

/** Ends the step. A hand-over error stays, unless there is a newer one. */
const endStep = (
  status: StepState['status'],
  event: OfRun & { readonly data: { readonly step: number; readonly error: string | null } },
): Change =>
  ofStep(event, (step) => ({
    status,
    completed_at: seconds(event.meta.at),
    error: event.data.error ?? step.error,
    retrying: false,
  }));

/** Ends the run, and skips the remaining steps. */
const endRun = (status: RunRecord['status'], event: OfRun, skippedAt: number | null): Change =>
  ofRun(event, (row) => ({
    ...row,
    status,
    completed_at: seconds(event.meta.at),
    steps: row.steps.map((step) =>
      step.status === 'pending' || step.status === 'running'
        ? { ...step, status: 'skipped', completed_at: skippedAt ?? step.completed_at, retrying: false }
        : step,
    ),
  }));

export const runHandlers: readonly Handler[] = [
  on(pipelineRunStarted, (event) => {
    const { data, meta } = event;
    const at = seconds(meta.at);
    return [
      insert(pipelineRunsTable, {
        workspace_id: meta.workspace,
        id: data.run_id,
        pipeline_id: data.pipeline_id,
        status: 'running',
        current_step: 0,
        steps: data.steps.map(
          ({ template_id, template_name, on_failure }, index): StepState => ({
            step_index: index,
            template_id,
            template_name,
            on_failure,
            status: 'pending',
            spawn_id: null,
            started_at: null,
            completed_at: null,
            error: null,
            attempts: 0,
            retrying: false,
            last_error: null,
            output: null,
          }),
        ),
        started_at: at,
        completed_at: null,
        triggered_by: meta.actor.name,
        created_at: at,
      }),
      ofPipeline(event, (row) => ({
        ...row,
        use_count: row.use_count + 1,
        last_used_at: at,
        updated_at: at,
        runs_total: row.runs_total + 1,
        runs_running: row.runs_running + 1,
      })),
    ];
  }),
  on(pipelineStepStarted, (event) => [
    ofRun(event, (row) => ({
      ...row,
      current_step: event.data.step,
      steps: row.steps.map((step) =>
        step.step_index === event.data.step
          ? {
              ...step,
              status: 'running',
              started_at: seconds(event.meta.at),
              error: HAND_OVER_FAULTS[event.data.hand_over],
            }
          : step,
      ),
    })),
  ]),
  on(pipelineStepSpawned, (event) => [
    ofStep(event, () => ({
      spawn_id: event.data.spawn_id,
      attempts: event.data.attempt,
      output: event.data.output,
      error: null,
      retrying: false,
    })),
  ]),
  on(pipelineStepAttemptFailed, (event) => [
    ofStep(event, () => ({
      attempts: event.data.attempt,
      error: event.data.reason,
      last_error: event.data.reason,
      retrying: event.data.will_retry,
    })),
  ]),
  on(pipelineStepCompleted, (event) => [endStep('completed', event)]),
  on(pipelineStepFailed, (event) => [endStep('failed', event)]),
  on(pipelineRunCompleted, (event) => [
    endRun('completed', event, null),
    ofPipeline(event, (row) => ({
      ...row,
      runs_running: row.runs_running - 1,
      runs_completed: row.runs_completed + 1,
    })),
  ]),
  on(pipelineRunFailed, (event) => [
    endRun('failed', event, null),
    ofPipeline(event, (row) => ({ ...row, runs_running: row.runs_running - 1, runs_failed: row.runs_failed + 1 })),
  ]),
  on(pipelineRunCancelled, (event) => [
    endRun('cancelled', event, seconds(event.meta.at)),
    ofPipeline(event, (row) => ({ ...row, runs_running: row.runs_running - 1 })),
  ]),
  on(recordsPurged, ({ data, meta }) =>
    data.table === 'pipeline_runs'
      ? data.ids.map((id) => remove(pipelineRunsTable, { workspace_id: meta.workspace, id }))
      : [],
  ),
  on(pipelineRunRemoved, (event) => [ofRun(event, () => undefined)]),
];
