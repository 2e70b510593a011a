/** Requests reviews, as many as the agent runner has room for; `commands/policies/quality/verdicts.ts` asks it. */
import { seconds } from '../../../shared/time.ts';
import { decideReviewAbandoned, decideReviewRequest } from '../../quality/verdicts.ts';
import { counted, EVERY_MINUTE_MS, isOn, type Schedule, type Setting } from '../schedule.ts';
import { askAbout, type Dispatching, failForgotten, NO_RUNNER } from '../tasks/dispatch.ts';

/** Candidates of a workspace that one turn reads: some may have to wait after reviews without a verdict. */
const CANDIDATES = 20;

/**
 * Checks all workspaces once.
 *
 * @returns how many reviews begin now
 * @throws AppError 409 `BUSY` while another process does the same
 */
export function reviewTasks(parts: Dispatching): Promise<number> {
  const { commands, reads, locks, now } = parts;
  return locks.holding('reviews by the agent runner', async () => {
    await failForgotten(parts, 'review', decideReviewAbandoned);
    return askAbout(commands, await reads.reviewable(CANDIDATES), (state) =>
      decideReviewRequest(state, seconds(now())),
    );
  });
}

/** @param parts.hasRunner whether an agent runner is configured */
export const reviewsSchedule = (
  parts: Dispatching & { readonly setting: Setting; readonly hasRunner: boolean },
): Schedule => ({
  id: 'aegis_review',
  kind: 'aegis-review',
  name: 'Review the results of tasks',
  everyMs: EVERY_MINUTE_MS,
  enabled: isOn(parts.setting, 'general.aegis_review'),
  async run() {
    if (!parts.hasRunner) return NO_RUNNER;
    return `${counted(await reviewTasks(parts), 'review was', 'reviews were')} begun.`;
  },
});
