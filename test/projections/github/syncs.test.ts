import { expect } from 'chai';
import { githubProjection, KEPT_SYNCS } from '../../../projections/github/syncs.ts';
import { tasksProjection } from '../../../projections/tasks/tasks.ts';
import { taskIssueGone, taskLinked, taskSynced } from '../../../shared/events/github/links.ts';
import { githubSynced } from '../../../shared/events/github/syncs.ts';
import { taskBranched, taskPullOpened } from '../../../shared/events/tasks/branches.ts';
import { type Draft, eventsOf, rowsAfter, sample } from '../../support/kit.ts';
import { at, created, deleted, TASK } from '../../support/tasks.ts';

type Synced = Parameters<typeof githubSynced.draft>[0];
const synced = (fields: Partial<Synced> = {}) =>
  sample(githubSynced, {
    page: 1,
    ...{ sync_id: 5, source: 'project-3', repo: 'acme/web', project_id: 3, status: 'success' },
    ...{ issues: 4, imported: 2, updated: 1, pushed: 1, skipped: 1 },
    ...fields,
  });
const LINK = {
  ...{ task_id: 7, title: TASK.title, repo: 'acme/web', issue_number: 42, issue_updated_at: '2026-01-01T00:00:00Z' },
  issue: { title: TASK.title, body_hash: 'b', body_cut: false, state: 'open' as const, labels: [] },
  face: { title: TASK.title, description_hash: 'd', status: 'inbox', priority: 'medium' },
};
const linked = taskLinked.draft({ ...LINK, issue_url: 'https://example.org/42' });
const agreed = taskSynced.draft({
  ...{ ...LINK, direction: 'pull', issue_state: 'closed' },
  face: { ...LINK.face, status: 'review' },
});

describe('projection github', () => {
  const rows = (...drafts: readonly Draft[]) => rowsAfter(githubProjection, eventsOf(drafts));

  it('has the latest syncs of each source, and totals per project', () => {
    const { github_syncs, github_projects } = rows(
      synced(),
      synced({ sync_id: 6, earlier: 1, pushed: 0, status: 'error', error: 'away' }),
      synced({ sync_id: 7, source: 'acme/web', project_id: null }),
    );
    expect(
      github_syncs.map(({ id, slot, source, changes_pulled }) => [id, slot, source, changes_pulled]),
    ).to.have.deep.members([
      [5, 0, 'project-3', 3],
      [6, 1, 'project-3', 3],
      [7, 0, 'acme/web', 3],
    ]);
    expect(github_projects).to.deep.equal([
      {
        workspace_id: 1,
        project_id: 3,
        last_synced_at: at(2),
        total_pulled: 6,
        total_pushed: 1,
        sync_count: 2,
        position: 2,
      },
    ]);
  });

  it('keeps a limited number of syncs', () => {
    const many = Array.from({ length: KEPT_SYNCS + 3 }, (_, earlier) => synced({ sync_id: earlier + 1, earlier }));
    const { github_syncs } = rows(...many);
    expect(github_syncs).to.have.length(KEPT_SYNCS);
    expect(Math.min(...github_syncs.map(({ id }) => id))).to.equal(4);
  });

  it('stores the state on which a task and its issue agree', () => {
    const row = {
      ...{ workspace_id: 1, task_id: 7, repo: 'acme/web', issue_number: 42, title: TASK.title },
      ...{ description_hash: 'd', status: 'inbox', priority: 'medium' },
    };
    expect(rows(linked).github_links).to.deep.equal([{ ...row, position: 1 }]);
    expect(rows(linked, agreed).github_links).to.deep.equal([{ ...row, status: 'review', position: 2 }]);
    expect(rows(linked, deleted()).github_links).to.deep.equal([]);
    const gone = taskIssueGone.draft({
      task_id: LINK.task_id,
      title: 't',
      repo: LINK.repo,
      issue_number: LINK.issue_number,
    });
    expect(rows(linked, gone).github_links).to.deep.equal([]);
    expect(rows(linked, gone, agreed).github_links).to.deep.equal([{ ...row, status: 'review', position: 3 }]);
  });
});

describe('projection tasks: fields from GitHub', () => {
  const task = (...drafts: readonly Draft[]) => rowsAfter(tasksProjection, eventsOf(drafts)).tasks[0];
  const nothing = { github_branch: null, github_pr_number: null, github_pr_state: null };
  const link = { github_issue_number: 42, github_repo: 'acme/web' };

  it('contain the issue and the time of the last comparison', () => {
    expect(task(created(), linked)?.source).to.deep.equal({ ...nothing, ...link, github_synced_at: at(2) });
    const metadata = { github_issue_number: 42, github_state: 'open' };
    const row = task(created({ metadata }, 'github'), linked, agreed);
    expect(row?.source).to.deep.include({ github_synced_at: at(3) });
    expect(row?.metadata).to.deep.include({ github_state: 'closed' });
    expect(task(created(), linked, agreed)?.metadata, 'that never told of it').to.deep.equal({});
  });

  it('contain the branch and the pull request', () => {
    const branch = { task_id: 7, title: TASK.title, repo: 'acme/web', branch: 'feat/x' };
    const row = task(
      created(),
      taskBranched.draft({ ...branch, url: 'https://example.org/x' }),
      taskPullOpened.draft({ ...branch, pull_number: 9, pull_url: 'https://example.org/9' }),
    );
    const source = { github_branch: 'feat/x', github_pr_number: 9, github_pr_state: 'open' };
    expect(row?.source).to.deep.equal({
      github_issue_number: null,
      github_repo: null,
      github_synced_at: null,
      ...source,
    });
  });
});
