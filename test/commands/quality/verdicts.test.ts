/** Automatic reviews: what counts as a verdict, and what follows from it. */
import { expect } from 'chai';
import {
  decideReviewAbandoned,
  decideReviewRequest,
  decideReviewResponse,
  isReviewable,
  reviewPrompt,
  verdictOf,
} from '../../../commands/quality/verdicts.ts';
import { reviewTasks } from '../../../commands/schedules/quality/verdicts.ts';
import { taskDecider, taskStream } from '../../../commands/tasks/tasks.ts';
import { qualityReviewsProjection } from '../../../projections/quality/reviews.ts';
import { tasksProjection } from '../../../projections/tasks/tasks.ts';
import type { EventDraft } from '../../../shared/events/define.ts';
import { taskStatusChanged } from '../../../shared/events/tasks/changes.ts';
import type { TaskData } from '../../../shared/events/tasks/tasks.ts';
import type { WorkResponse } from '../../../shared/ports/runner.ts';
import { type Draft, eventsOf, givenFor, rowsAfter, sample } from '../../support/kit.ts';
import { memoryWorld } from '../../support/memory-world.ts';
import { at, created, placed, reviewed, statusSet } from '../../support/tasks.ts';
import { testOrigin } from '../../support/world.ts';

const given = givenFor(taskDecider);
const waiting = (fields: Partial<TaskData> = {}) => created({ status: 'review', assigned_to: 'ada', ...fields });
const LATER = at(1_000);
const requested = (fields: Partial<TaskData> = {}): Draft[] => [
  waiting(fields),
  ...decideReviewRequest(given(waiting(fields)).state, LATER),
];
const answer = (fields: Partial<WorkResponse> = {}): WorkResponse => ({
  ...{ status: 'completed', output: 'VERDICT: APPROVED\nNOTES: good', error: null, sessionId: null },
  ...fields,
});
const REJECTED = answer({ output: 'VERDICT: REJECTED\nNOTES: bad' });
const IDS = { review: 4, comment: 12 };
const answered = (drafts: readonly Draft[], said = answer(), run = 1) =>
  decideReviewResponse(given(...drafts).state, run, said, IDS, LATER);

/** It was changed, and waits for a review again. */
const redone = (from: string) =>
  sample(taskStatusChanged, {
    ...{ task_id: 7, title: 'Mend the roof', cause: 'bulk' },
    ...placed({ status: from, assigned_to: 'ada' }, { status: 'review' }),
  });

describe('automatic reviews', () => {
  it('read verdicts in all common notations; anything else is a rejection', () => {
    for (const text of [
      'VERDICT: APPROVED\nNOTES: good',
      '**Verdict:** approved.\n\n**Notes:** good',
      'verdict - APPROVE\nnotes: good',
    ])
      expect(verdictOf(text).status, text).to.equal('approved');
    expect(verdictOf('VERDICT: APPROVED\nNOTES: good\nand cheap')).to.deep.equal({
      ...{ status: 'approved', notes: 'good\nand cheap' },
    });
    expect(verdictOf('VERDICT: REJECTED').notes).to.equal('No notes were given.');
    expect(verdictOf('verdict: rejected\nNOTES: bad')).to.deep.equal({ status: 'rejected', notes: 'bad' });
    for (const text of [null, '', 'fine', 'VERDICT: APPROVEDISH', 'VERDICT: APPROVED, or VERDICT: REJECTED']) {
      const { status, notes } = verdictOf(text);
      expect(status, String(text)).to.equal('rejected');
      expect(notes).to.match(/^The reviewer gave no clear verdict\. Its text: ./);
    }
    expect(verdictOf(`VERDICT: REJECTED\nNOTES: ${'x'.repeat(9_000)}`).notes).to.have.length(4_000);
  });

  it('start with a task in review', () => {
    const [draft] = decideReviewRequest(given(waiting()).state, LATER);
    expect(draft?.data).to.deep.include({ task_id: 7, run: 1 });
    expect(given(...requested()).state.task.status).to.equal('quality_review');
    for (const drafts of [requested(), [], [created()], [created({ status: 'quality_review' })]])
      given(...drafts)
        .when(decideReviewRequest, LATER)
        .then();
  });

  it('that approve set the task to done, and it stays approved', () => {
    const drafts = answered(requested());
    expect(drafts.map(({ type }) => type)).to.deep.equal(['TaskVerdictGiven']);
    const state = given(...requested(), ...drafts).state;
    expect(state).to.deep.include({ approved: true, rejections: 0, asked: null });
    expect(state.task).to.deep.include({ status: 'done', completed_at: LATER, error_message: null });
  });

  it('that reject return the task to its agent or to any agent, and fail it the third time in a row', () => {
    let drafts: Draft[] = requested();
    for (const [nth, status] of ['assigned', 'assigned', 'failed'].entries()) {
      drafts = [...drafts, ...answered(drafts, REJECTED, nth + 1)];
      const { task, approved } = given(...drafts).state;
      expect(task).to.deep.include({ status, dispatch_attempts: nth + 1, completed_at: null });
      expect(task.error_message).to.equal('Quality review rejected by aegis: bad');
      expect(approved).to.equal(false);
      expect(drafts.at(-1)?.data).to.deep.include({ author: 'aegis', content: 'bad', comment_id: 12 });
      drafts = [...drafts, redone(status)];
      drafts = [...drafts, ...decideReviewRequest(given(...drafts).state, LATER)];
    }
    const nobody = requested({ assigned_to: null });
    expect(given(...nobody, ...answered(nobody, REJECTED)).state.task.status).to.equal('inbox');
    const approvedBetween: Draft[] = [...requested(), ...answered(requested(), REJECTED), reviewed('approved')];
    expect(given(...approvedBetween).state.rejections).to.equal(0);
  });

  it('without a verdict leave the task unchanged, and it waits longer after each one', () => {
    const failed = answered(requested(), answer({ status: 'failed', error: 'no reviewer' }));
    expect(failed[0]?.data).to.deep.include({ error: 'no reviewer' });
    let drafts: Draft[] = requested();
    for (const minutes of [1, 2, 4]) {
      drafts = [...drafts, ...decideReviewAbandoned(given(...drafts).state, given(...drafts).state.runs, 'no')];
      const state = given(...drafts).state;
      expect(state.task).to.deep.include({ status: 'review', dispatch_attempts: 0 });
      const since = state.updated_at;
      expect(isReviewable(state, since + minutes * 60 - 1)).to.equal(false);
      expect(isReviewable(state, since + minutes * 60)).to.equal(true);
      drafts = [...drafts, ...decideReviewRequest(state, LATER)];
    }
  });

  it('accept a response once, and only while the task is in this review', () => {
    const first = requested();
    const accepted = answered(first, answer({ status: 'accepted' }));
    expect(accepted.map(({ type }) => type)).to.deep.equal(['TaskReviewAccepted']);
    for (const drafts of [
      [...first, ...answered(first)],
      [...first, ...accepted],
      [...first, statusSet('quality_review', 'review')],
      [...first, reviewed('rejected')],
    ])
      expect(answered(drafts)).to.deep.equal([]);
    const given_up = decideReviewAbandoned(given(...first, ...accepted).state, 1, 'nothing was heard');
    expect(given_up, 'also when the runner had taken it').to.have.length(1);
  });

  it('without a response are given up after two hours', async () => {
    const world = memoryWorld();
    const commands = world.process();
    await commands.execute(taskDecider, taskStream(1, 7), { origin: testOrigin }, () => requested() as EventDraft[]);
    const reads = {
      assigned: async () => [],
      reviewable: async () => [{ tenant: 1, workspace: 1, id: 7, unanswered: 0 }],
      forgotten: async () => [{ tenant: 1, workspace: 1, id: 7 }],
      agent: async () => undefined,
      ...{ prefix: async () => 'TASK', rejection: async () => null },
    };
    expect(await reviewTasks({ commands, reads, locks: world.locks, now: Date.now })).to.equal(0);
    await reviewTasks({ commands, reads, locks: world.locks, now: () => Date.now() + 2 * 3_600_000 + 60_000 });
    const types = world.written().map(({ type }) => type);
    expect(types.slice(0, 3)).to.deep.equal(['TaskCreated', 'TaskReviewRequested', 'TaskReviewAbandoned']);
  });

  it('include the task and its result in the reviewer’s prompt', () => {
    const prompt = reviewPrompt(
      given(waiting({ description: 'It rains in.', resolution: 'A new roof.' })).state,
      'TASK-003',
    );
    const by = 'user admin';
    expect(prompt.slice(1, -1)).to.deep.equal([
      '[Task TASK-003]',
      { what: 'title', by, text: 'Mend the roof' },
      { what: 'description', by, text: 'It rains in.' },
      { what: 'result of ada', by, text: 'A new roof.' },
    ]);
    expect(prompt.at(-1)).to.include('VERDICT: REJECTED');
    expect(reviewPrompt(given(waiting({ assigned_to: null })).state, 'TASK-003')).to.include('The task has no result.');
  });

  it('add the review to the list and update the status of the task', () => {
    const drafts = [...requested(), ...answered(requested(), REJECTED)];
    const { quality_reviews } = rowsAfter(qualityReviewsProjection, eventsOf(drafts));
    const reviews = quality_reviews[0]?.reviews as readonly object[];
    expect(reviews).to.have.length(1);
    expect(reviews[0]).to.deep.include({ id: 4, task_id: 7, reviewer: 'aegis', status: 'rejected', notes: 'bad' });
    const { tasks } = rowsAfter(tasksProjection, eventsOf(drafts));
    expect(tasks[0]).to.deep.include({ status: 'assigned', asked: null, dispatch_attempts: 1 });
    expect(rowsAfter(tasksProjection, eventsOf(requested())).tasks[0]?.asked).to.equal('review');
    const accepted = answered(requested(), answer({ status: 'accepted' }));
    const taken = rowsAfter(tasksProjection, eventsOf([...requested(), ...accepted]));
    expect(taken.tasks[0]?.asked).to.equal('accepted');
    const back = decideReviewAbandoned(given(...requested()).state, 1, 'no');
    const { tasks: returned } = rowsAfter(tasksProjection, eventsOf([...requested(), ...back]));
    expect(returned[0]).to.deep.include({ status: 'review', asked: null });
  });
});
