/** Whenever a task waits for a review, the agent runner is asked for a verdict, as in `../tasks/dispatch.ts`. */
import { taskReviewRequested } from '../../../shared/events/quality/verdicts.ts';
import { handleJob, type JobHandler } from '../../../shared/ports/jobs.ts';
import { seconds } from '../../../shared/time.ts';
import { decideReviewAbandoned, decideReviewResponse, reviewPrompt } from '../../quality/verdicts.ts';
import { definePolicy, wantJob, whenever } from '../policy.ts';
import { askJob, type Errand, payloadOf, type RunnerWork, runErrand } from '../tasks/dispatch.ts';

export const reviewJob = askJob('task-review-run');

export const reviewPolicy = definePolicy(
  'task-review',
  [whenever(taskReviewRequested, (event) => [wantJob(reviewJob, payloadOf(event))])],
  'beginning',
);

export const reviewJobs = (work: RunnerWork): readonly JobHandler[] => [
  handleJob(reviewJob, (payload, job) => runErrand(work, reviewErrand(work), payload, job)),
];

const reviewErrand = ({ commands, now }: RunnerWork): Errand => ({
  what: 'review',
  request: async (state, _, ticket) => ({
    specific: { kind: 'review' },
    prompt: reviewPrompt(state, ticket),
    also: [],
  }),
  async answered(response) {
    const [review, comment] = [await commands.counters.take('quality_review'), await commands.counters.take('comment')];
    return (state, run) => decideReviewResponse(state, run, response, { review, comment }, seconds(now()));
  },
  failed: decideReviewAbandoned,
});
