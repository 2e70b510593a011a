/** What goes from an issue to its task and back, decided purely; then syncs of several processes on one log in memory. */
import { expect } from 'chai';
import fc from 'fast-check';
import { importIssue, importIssues } from '../../../commands/github/issues.ts';
import {
  decideClaim,
  decideClosed,
  decideImport,
  decidePull,
  decidePushed,
  faceOfIssue,
  faceOfTask,
  issueDecider,
  issueStream,
  pushOf,
} from '../../../commands/github/links.ts';
import { type TaskState, taskDecider } from '../../../commands/tasks/tasks.ts';
import type { FoundProject } from '../../../queries/projects/projects.ts';
import { repositoryIn } from '../../../shared/contract/github/issues.ts';
import type { EventDraft } from '../../../shared/events/define.ts';
import { githubIssueClaimed } from '../../../shared/events/github/links.ts';
import type { taskCreated } from '../../../shared/events/tasks/tasks.ts';
import type { GithubIssue } from '../../../shared/ports/github/client.ts';
import { givenFor, stateAfter } from '../../support/kit.ts';
import { gate, memoryWorld } from '../../support/memory-world.ts';
import { at, deleted, reviewed, updated } from '../../support/tasks.ts';
import { testOrigin } from '../../support/world.ts';

const REPO = 'acme/web';
/** Seconds of the issue's n-th change: each is later than the n-th event here, and earlier than the next. */
const changedAt = (n: number) => new Date((at(n) + 0.5) * 1_000).toISOString();
const issue = (fields: Partial<GithubIssue> = {}, n = 1): GithubIssue => ({
  number: 42,
  title: 'Mend the roof',
  body: 'In rain',
  state: 'open',
  labels: [],
  assignee: null,
  url: 'https://example.org/acme/web/issues/42',
  createdAt: changedAt(0),
  updatedAt: changedAt(n),
  ...fields,
});
const labels = (...names: string[]) => names.map((name) => ({ name, color: null }));
const TICKET = { project_id: 1, project_ticket_no: 3 };
const imported = (fields: Partial<GithubIssue> = {}) =>
  decideImport(
    taskDecider.initial,
    { ...TICKET, id: 7, repo: REPO, issue: issue(fields), assigned_to: null, created_by: 'Ann' },
    at(1) * 1_000,
  );
const given = givenFor(taskDecider);
const then = (state: TaskState, drafts: readonly EventDraft[], n: number): TaskState =>
  drafts.reduce((before, draft) => taskDecider.evolve(before, { ...draft, at: at(n) * 1_000 }), state);
const dataOf = (drafts: readonly EventDraft[], type: string) => drafts.find((draft) => draft.type === type)?.data;
const pull = (state: TaskState, fields: Partial<GithubIssue>, n: number) =>
  decidePull(state, REPO, issue(fields, n), at(n));

describe('GitHub issues: decisions', () => {
  it('an issue goes to the task that claims it first', () => {
    const claim = { repo: REPO, issue_number: 42, task_id: 7 };
    expect(decideClaim(issueDecider.initial, 0, claim)).to.deep.equal([githubIssueClaimed.draft(claim)]);
    const claimed = stateAfter(issueDecider, githubIssueClaimed.draft({ ...claim, task_id: 5 }));
    expect(decideClaim(claimed, 0, claim)).to.deep.equal([]);
    expect(decideClaim(claimed, 5, claim), 'of a task that was deleted').to.have.length(1);
    expect(issueStream(1, 'Acme/Web', 4)).to.equal(issueStream(1, 'acme/web', 4));
  });

  it('a task takes the fields of its issue', () => {
    const [created, linked] = imported({ labels: labels('bug', 'Priority:High', 'mc:in-progress', '', 'bug') });
    expect(created?.data).to.deep.include({ task_id: 7, source: 'github' });
    expect((created as ReturnType<typeof taskCreated.draft>).data.task).to.deep.include({
      ...{ title: 'Mend the roof', description: 'In rain', status: 'in_progress', priority: 'high' },
      ...{ tags: ['bug', 'Priority:High', 'mc:in-progress'], created_by: 'Ann', completed_at: null },
    });
    expect(linked?.data).to.deep.include({ repo: REPO, issue_number: 42 });
    const { source } = given(...imported()).state;
    expect(source).to.deep.include({ github_repo: REPO, github_issue_number: 42, github_synced_at: at(2) });
    expect(decideImport(given(...imported()).state, {} as never, 0), 'there is one').to.deep.equal([]);
  });

  it('an issue that was already closed becomes a done task; a label alone is not enough', () => {
    const of = (fields: Partial<GithubIssue>) => given(...imported(fields)).state.task;
    expect(of({ state: 'closed' })).to.deep.include({ status: 'done', completed_at: at(1) });
    expect(of({ labels: labels('mc:done') })).to.deep.include({ status: 'review', completed_at: null });
    expect(of({ title: '  ', body: null })).to.deep.include({ title: 'Issue 42', description: null });
    expect(of({ body: 'x'.repeat(6_000) }).description).to.have.length(5_000);
  });

  it('changes at GitHub are applied to the task', () => {
    const state = given(...imported()).state;
    expect(pull(state, {}, 3), 'nothing has').to.deep.equal([]);
    const drafts = pull(state, { title: 'Mend it', body: 'Now', labels: labels('critical') }, 3);
    expect(drafts.map(({ type }) => type)).to.deep.equal(['TaskUpdated', 'TaskSynced']);
    const after = then(state, drafts, 4);
    expect(after.task).to.deep.include({
      title: 'Mend it',
      description: 'Now',
      priority: 'critical',
      tags: ['critical'],
    });
    expect(pushOf(after, true), 'nothing is left to push').to.equal(undefined);
    expect(pull(after, { title: 'Mend it', body: 'Now', labels: labels('critical') }, 5)).to.deep.equal([]);
    expect(pull(after, {}, 2), 'an old answer').to.deep.equal([]);
    expect(decidePull(state, 'acme/other', issue({ title: 'x' }, 3), at(3)), 'of another repository').to.deep.equal([]);
  });

  it('if both sides changed, the later change wins', () => {
    const here = given(
      ...imported(),
      updated({ title: 'Mine', description: 'Mine' }, { description: 'In rain' }),
    ).state;
    const earlier = then(here, pull(here, { title: 'Theirs' }, 2), 4);
    expect(earlier.task.title).to.equal('Mine');
    expect(pushOf(earlier, false)?.fields).to.deep.equal({ title: 'Mine', body: 'Mine' });
    const later = then(here, pull(here, { title: 'Theirs' }, 3), 4);
    expect(later.task).to.deep.include({ title: 'Theirs', description: 'Mine' });
    expect(pushOf(later, false)?.fields).to.deep.equal({ body: 'Mine' });
  });

  it('GitHub sets a task to done only if a review has approved it', () => {
    const state = given(...imported()).state;
    const closed = then(state, pull(state, { state: 'closed' }, 3), 4);
    expect(closed.task.status).to.equal('review');
    expect(closed.task.metadata.github_state).to.equal('closed');
    expect(pushOf(closed, true), 'and does not open it again').to.equal(undefined);
    const approved = given(
      ...imported(),
      reviewed('approved'),
      updated({ status: 'in_progress' }, { status: 'done' }),
    ).state;
    expect(then(approved, pull(approved, { state: 'closed' }, 5), 6).task.status).to.equal('done');
    const before = given(...imported({ state: 'closed' })).state;
    const opened = then(before, pull(before, { state: 'open' }, 3), 4);
    expect(opened.task.status).to.equal('inbox');
    const bugged = pull(before, { state: 'closed', labels: labels('bug') }, 3);
    expect(dataOf(bugged, 'TaskUpdated')).to.deep.include({ changed: ['tags'] });
  });

  it('changes of the task are applied to the issue, field by field', () => {
    const state = given(...imported({ labels: labels('bug', 'mc:inbox', 'priority:medium', 'mc:own') })).state;
    expect(pushOf(state, true)).to.equal(undefined);
    const busy = then(state, [updated({ status: 'in_progress', priority: 'high' }, state.task)], 3);
    expect(pushOf(busy, true)).to.deep.include({
      fields: {},
      addLabels: ['mc:in-progress', 'priority:high'],
      removeLabels: ['mc:inbox', 'priority:medium'],
    });
    expect(pushOf(busy, false)).to.deep.include({ fields: {}, addLabels: [], removeLabels: [] });
    const push = pushOf(busy, true);
    if (!push) throw new Error('there is something to push');
    const pushed = then(busy, decidePushed(busy, push, undefined), 4);
    expect(pushed.agreed?.issue.labels).to.deep.equal(['bug', 'mc:own', 'mc:in-progress', 'priority:high']);
    expect(pushOf(pushed, true)).to.equal(undefined);
    const closed = pushOf(then(busy, [reviewed('approved')], 3), false);
    expect(closed?.fields).to.deep.equal({ state: 'closed' });
  });

  it('a text that became longer at GitHub than fits here wins, and is never pushed', () => {
    const linked = then(taskDecider.initial, imported(), 1);
    const edited = then(linked, [updated({ description: 'mine' })], 9);
    const grown = { body: 'z'.repeat(5_001) };
    const pulled = then(edited, pull(edited, grown, 3), 10);
    expect(pulled.task.description).to.equal('z'.repeat(5_000));
    expect(pushOf(pulled, false)).to.equal(undefined);
    const changed = then(pulled, [updated({ description: 'mine' })], 11);
    expect(pushOf(changed, false)?.fields).to.deep.equal({});
    expect(pushOf(changed, false)?.refused[0]).to.match(/^body: .*edit it at GitHub$/);
  });

  it('changes made during a push are pushed next', () => {
    const state = then(given(...imported()).state, [updated({ title: 'One' }, given(...imported()).state.task)], 3);
    const push = pushOf(state, false);
    if (!push) throw new Error('there is something to push');
    const meanwhile = then(state, [updated({ title: 'Two' }, state.task)], 4);
    const after = then(meanwhile, decidePushed(meanwhile, push, issue({ title: 'One' }, 5)), 5);
    expect(pushOf(after, false)?.fields).to.deep.equal({ title: 'Two' });
    expect(decidePushed(taskDecider.initial, push, undefined), 'of a task that is gone').to.deep.equal([]);
  });

  it('an issue that was closed by hand is noted in the metadata, and the next sync moves its task', () => {
    const before = given(...imported());
    const closed = then(before.state, decideClosed(before.state, REPO, issue({ state: 'closed' }, 3)), 3);
    expect(closed.task).to.deep.include({ status: 'inbox' });
    expect(closed.task.metadata.github_state).to.equal('closed');
    expect(then(closed, pull(closed, { state: 'closed' }, 3), 4).task.status).to.equal('review');
    given(...imported(), deleted())
      .when(decideClosed, REPO, issue())
      .then();
  });

  it('after any pull both sides agree, or the differences are pushed', () => {
    const text = fc.constantFrom('Mend the roof', 'a', 'b');
    const side = fc.record({
      title: text,
      status: fc.constantFrom('inbox', 'in_progress'),
      priority: fc.constantFrom('low', 'high'),
    });
    const there = fc.record({
      title: text,
      state: fc.constantFrom('open' as const, 'closed' as const),
      labels: fc
        .subarray(['bug', 'priority:low', 'critical', 'mc:assigned', 'mc:done'])
        .map((names) => labels(...names)),
    });
    fc.assert(
      fc.property(side, there, fc.integer({ min: 2, max: 5 }), (mine, theirs, n) => {
        const first = given(...imported()).state;
        const state = then(first, [updated(mine, first.task)], 3);
        const after = then(state, pull(state, theirs, n), 5);
        expect(after.agreed?.issue.title).to.equal(theirs.title);
        const push = pushOf(after, true);
        const at = push?.fields.title ?? theirs.title;
        expect(at, 'the title, once all is carried over').to.equal(after.task.title);
        expect(after.task.status, 'nobody has approved it').not.to.equal('done');
        if (!push) expect(faceOfTask(after.task)).to.deep.equal(after.agreed?.face);
        else expect(pushOf(then(after, decidePushed(after, push, undefined), 6), true)).to.equal(undefined);
        expect(pull(after, theirs, n), 'the same again').to.deep.equal([]);
      }),
    );
  });

  it('a repository is recognized in common notations', () => {
    for (const text of [
      'acme/web',
      ' https://github.com/acme/web ',
      'https://github.com/acme/web.git',
      'git@github.com:acme/web.git',
    ])
      expect(repositoryIn(text), text).to.equal('acme/web');
    for (const text of ['', 'acme', 'acme/web/x', 'acme/..', '-a/b', 'https://github.com/acme'])
      expect(repositoryIn(text), text).to.equal(undefined);
    expect(faceOfIssue(issue({ labels: labels('a') }))).to.deep.include({ labels: ['a'], state: 'open' });
  });
});

describe('GitHub issues: several processes', () => {
  const GENERAL: FoundProject = { id: 1, name: 'General', prefix: 'TASK', slug: 'general', status: 'active' };
  const projects = { find: async () => GENERAL, general: async () => GENERAL, placeFor: async () => GENERAL };
  const context = () => ({ origin: testOrigin });
  const one = { repo: REPO, issue: issue(), project_id: undefined, assigned_to: null, created_by: 'Ann', again: false };

  it('create one task per issue', async () => {
    const world = memoryWorld();
    const runs = [1, 2, 3].map(() =>
      importIssues({ commands: world.process(), projects, now: Date.now }, context(), [one]),
    );
    const outcomes = await Promise.all(runs);
    expect(outcomes.flatMap(({ tasks }) => tasks)).to.have.length(1);
    expect(outcomes.flatMap(({ failures }) => failures)).to.deep.equal([]);
    expect(world.written().filter(({ type }) => type === 'TaskCreated')).to.have.length(1);
  });

  it('complete the task after a process dies between claim and creation', async () => {
    const world = memoryWorld();
    const death = gate();
    world.beforeAppend = (stream) => (stream.startsWith('task-') ? death.wait() : Promise.resolve());
    const dying = importIssue({ commands: world.process(), projects, now: Date.now }, context(), one);
    dying.catch(() => undefined);
    await death.reached;
    world.beforeAppend = async () => undefined;
    const task = await importIssue({ commands: world.process(), projects, now: Date.now }, context(), one);
    expect(task).to.deep.include({ github_issue_number: 42 });
    death.open();
    expect(await dying, 'the slow one').to.equal(undefined);
    expect(world.written().filter(({ type }) => type === 'TaskCreated')).to.have.length(1);
  });
});
