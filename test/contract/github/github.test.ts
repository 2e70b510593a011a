/** GitHub, played by a local server: issues become tasks, and projects stay in step with their repositories. */
import { expect } from 'chai';
import { updateProject } from '../../../commands/projects/changes.ts';
import {
  githubDoneResponse,
  githubImportResponse,
  githubIssuesResponse,
  githubLabelsResponse,
  githubStatsResponse,
  githubStatusResponse,
  githubSyncedResponse,
} from '../../../shared/contract/github/issues.ts';
import { githubProjectsResponse, githubTriggerResponse } from '../../../shared/contract/github/syncs.ts';
import { fixture } from '../../support/fixture.ts';
import { GITHUB_TOKEN, startFakeGithub } from '../../support/github.ts';
import { testOrigin } from '../../support/world.ts';
import { conforms } from '../../support/worlds/agents.ts';
import { startTasksWorld } from '../../support/worlds/tasks.ts';

describe('GitHub', function () {
  this.timeout(60_000);
  let other: string;
  const github = fixture(startFakeGithub);
  // The clock would sync between two steps of a test.
  const world = fixture(() =>
    startTasksWorld({
      GITHUB_API_URL: github.url,
      GITHUB_TOKEN,
      GITHUB_DEFAULT_REPO: 'acme/web',
      GITHUB_TIMEOUT_MS: '400',
      GITHUB_SYNC_INTERVAL_MS: '86400000',
    }),
  );
  before(async () => {
    other = await world.world.makeSession({ username: 'stranger', role: 'admin', workspace: 2, tenant: 2 });
    github.repo('acme/web');
  });
  beforeEach(() => {
    github.mode = 'well';
    github.seen.length = 0;
  });

  const { ask } = world;
  const act = (action: string, body: object = {}) => ask('POST', '/api/github', { action, ...body });
  const syncedActivities = async (type: string) =>
    (await ask('GET', `/api/activities?type=${type}&limit=200`)).body.activities as Record<string, unknown>[];
  let repos = 0;
  /** A repository of its own, and a project that is in step with it. */
  async function project(labels = false) {
    const repo = `acme/app-${++repos}`;
    github.repo(repo);
    const id = await world.project(`App${repos}`, `APP${repos}`, `https://github.com/${repo}.git`);
    const { commands } = world.world.service.core;
    await updateProject(commands, { origin: testOrigin }, id, {
      github_sync_enabled: true,
      github_labels_initialized: labels,
    });
    return { repo, id, sync: async () => (await act('sync-project', { project_id: id })).body };
  }
  const tasksOf = async (id: number) =>
    (await ask('GET', `/api/projects/${id}/tasks`)).body.tasks as Record<string, unknown>[];
  /** Its tasks with these titles. The list's order depends on the second in which each was imported. */
  const titled = async (id: number, ...titles: string[]) => {
    const tasks = await tasksOf(id);
    return titles.map((title) => tasks.find((task) => task.title === title) as { id: number } | undefined);
  };

  describe('GET /api/github', () => {
    it('lists issues without pull requests', async () => {
      const repo = 'acme/listed';
      github.issue(repo, { title: 'Roof leaks', body: 'In rain', labels: ['bug'] });
      github.issue(repo, { title: 'A pull request', isPull: true });
      github.issue(repo, { title: 'Old', state: 'closed' });
      const body = conforms(githubIssuesResponse, await ask('GET', `/api/github?action=issues&repo=${repo}`));
      expect(body).to.deep.include({ total: 1, repo });
      expect(body.issues[0]).to.deep.include({
        ...{ number: 1, title: 'Roof leaks', body: 'In rain', state: 'open' },
        labels: [{ name: 'bug', color: 'ededed' }],
        assignee: { login: 'octo', avatar_url: 'https://example.org/octo.png' },
      });
      const all = await ask('GET', `/api/github?action=issues&repo=${repo}&state=all`);
      expect(all.body.issues.map(({ title }: { title: string }) => title)).to.deep.equal(['Old', 'Roof leaks']);
      const labelled = await ask('GET', `/api/github?action=issues&repo=${repo}&state=all&labels=bug`);
      expect(labelled.body.total).to.equal(1);
      expect((await ask('GET', '/api/github?action=issues')).body.repo, 'the default').to.equal('acme/web');
    });

    it('summarizes the account of the token', async () => {
      const body = conforms(githubStatsResponse, await ask('GET', '/api/github?action=stats'));
      expect(body.repos).to.deep.equal({
        ...{ total: 2, public: 1, private: 1, total_stars: 4, total_forks: 2, total_open_issues: 10 },
      });
      expect(body.topLanguages).to.deep.equal([{ name: 'TypeScript', count: 2 }]);
    });

    it('rejects invalid requests and other tenants', async () => {
      await world.refused('GET', '/api/github', undefined, 400, /action/);
      await world.refused('GET', '/api/github?action=repos', undefined, 400, /action/);
      for (const repo of ['acme', 'acme/web/x', 'acme/..', '../web'])
        await world.refused('GET', `/api/github?action=issues&repo=${repo}`, undefined, 400, /owner\/name/);
      await world.refused('GET', '/api/github?action=issues&repo=acme/nowhere', undefined, 404, /GITHUB_MISSING/);
      expect((await ask('GET', '/api/github?action=stats', undefined, other)).status).to.equal(403);
      expect(github.seen.map(({ line }) => line).join(), 'asked of GitHub').not.to.match(/user|acme\/web\/x/);
    });
  });

  describe('when GitHub fails', () => {
    const refused = (status: number, says: RegExp) =>
      world.refused('GET', '/api/github?action=issues', undefined, status, says);

    it('returns the error', async () => {
      github.mode = 'broken';
      await refused(502, /status 500: oops/);
      github.mode = 'garbage';
      await refused(502, /something other than a list of issues/);
      github.mode = 'redirects';
      await refused(404, /moved/);
      github.mode = 'silent';
      await refused(504, /within 400 ms/);
    });

    it('no response and no event contains the token', async () => {
      github.mode = 'broken';
      expect(JSON.stringify((await refused(502, /500/)).body)).not.to.contain(GITHUB_TOKEN);
      expect(await world.world.rawLog()).not.to.contain(GITHUB_TOKEN);
    });
  });

  describe('POST /api/github', () => {
    it('imports each issue once as a task', async () => {
      const repo = 'Acme/Imports';
      github.issue(repo, { title: 'Roof leaks', body: 'In rain, @nobody', labels: ['bug', 'priority:high'] });
      github.issue(repo, { title: 'Done before', state: 'closed' });
      const body = conforms(githubImportResponse, await act('sync', { repo, state: 'all', assignAgent: 'ada' }));
      expect(body).to.deep.include({ imported: 2, skipped: 0, errors: 0 });
      const [open, closed] = body.tasks;
      expect(open).to.deep.include({
        ...{ title: 'Roof leaks', description: 'In rain, @nobody', status: 'assigned', priority: 'high' },
        ...{ assigned_to: 'ada', created_by: 'API Access', tags: ['bug', 'priority:high'] },
        ...{ github_repo: repo, github_issue_number: 1 },
      });
      expect(open.metadata).to.deep.include({
        ...{ github_repo: repo, github_issue_number: 1, github_state: 'open' },
        github_issue_url: `https://example.org/${repo}/issues/1`,
      });
      expect(closed).to.deep.include({ status: 'done', priority: 'medium' });
      expect(closed.completed_at).to.be.a('number');
      expect(await world.taskNow(open.id), 'what the list has').to.deep.equal(open);
      // GitHub does not tell capital letters apart.
      const again = await act('sync', { repo: repo.toLowerCase(), state: 'all' });
      expect(again.body).to.deep.equal({ imported: 0, skipped: 2, errors: 0, tasks: [] });

      await world.stream.until(() => world.framesOf('task.created', open.id).length > 0);
      const [activity] = await world.activities('task_created', open.id);
      expect(activity.metadata).to.deep.equal({ github_issue: 1, github_repo: repo });
      await world.stream.until(() =>
        world.stream.frames.some((frame) => frame.type === 'github.synced' && frame.data.repo === repo),
      );
      const status = await act('status');
      conforms(githubStatusResponse, status);
      expect(status.body.syncs[0]).to.deep.include({ ...{ issue_count: 2, status: 'success', changes_pulled: 0 } });
      expect(status.body.syncs[1]).to.deep.include({ repo, sync_direction: 'inbound', changes_pulled: 2 });
    });

    it('a deleted task is created again by another import of its issues', async () => {
      const repo = 'acme/gone';
      github.issue(repo, {});
      const [task] = (await act('sync', { repo })).body.tasks;
      expect((await ask('DELETE', `/api/tasks/${task.id}`)).status).to.equal(200);
      const again = (await act('sync', { repo })).body;
      expect(again.imported).to.equal(1);
      expect(again.tasks[0].id).not.to.equal(task.id);
    });

    it('comments on issues and closes them', async () => {
      const repo = 'acme/talk';
      github.issue(repo, {});
      const [task] = (await act('sync', { repo })).body.tasks;
      conforms(githubDoneResponse, await act('comment', { repo, issueNumber: 1, body: 'On it' }));
      conforms(githubDoneResponse, await act('close', { repo, issueNumber: 1, comment: 'Mended' }));
      expect(github.repo(repo).comments.map(({ body }) => body)).to.deep.equal(['On it', 'Mended']);
      expect(github.repo(repo).issues[0]?.state).to.equal('closed');
      const now = await world.taskNow(task.id);
      expect(now.metadata.github_state).to.equal('closed');
      expect(now.status, 'for whoever judges the work').to.equal('inbox');
      for (const type of ['github_comment', 'github_close']) {
        const [activity] = await syncedActivities(type);
        expect(activity).to.deep.include({ entity_type: 'task', entity_id: task.id });
      }
      await world.refused('POST', '/api/github', { action: 'comment', repo, issueNumber: 1 }, 400, /body/);
      await world.refused('POST', '/api/github', { action: 'close', repo }, 400, /issueNumber/);
      await world.refused('POST', '/api/github', { action: 'close', repo, issueNumber: 99 }, 404, /GITHUB_MISSING/);
    });

    it('creates labels, and marks the projects that use them', async () => {
      const { repo, id } = await project();
      const reply = await act('init-labels', { repo });
      conforms(githubLabelsResponse, reply);
      conforms(githubLabelsResponse, await act('init-labels', { repo }));
      expect([...github.repo(repo).labels]).to.include.members(['mc:in-progress', 'mc:done', 'priority:critical']);
      expect((await ask('GET', `/api/projects/${id}`)).body.project.github_labels_initialized).to.equal(1);
    });
  });

  describe('a project', () => {
    it('is not synced unless sync is enabled', async () => {
      const id = await world.project('Unsynced', 'UNS', 'acme/web');
      await world.refused('POST', '/api/github', { action: 'sync-project', project_id: id }, 400, /not synced/);
      await world.refused('POST', '/api/github', { action: 'sync-project', project_id: 999_999 }, 404);
      await world.refused('POST', '/api/github', { action: 'sync-project' }, 400, /project_id/);
      await world.refused('POST', '/api/github/sync', { action: 'trigger' }, 400, /project_id/);
      await world.refused('POST', '/api/github/sync', { action: 'stop' }, 400, /action/);
    });

    it('imports new and changed issues', async () => {
      const { repo, id, sync } = await project();
      github.issue(repo, { title: 'Closed long ago', state: 'closed' });
      github.issue(repo, { title: 'Roof leaks', body: 'In rain', labels: ['bug'] });
      const body = conforms(githubSyncedResponse, await act('sync-project', { project_id: id }));
      expect(body).to.deep.equal({ ok: true, pulled: 1, pushed: 0 });
      const [task] = await tasksOf(id);
      expect(task).to.deep.include({ title: 'Roof leaks', created_by: 'github-sync', status: 'inbox', project_id: id });
      expect(await sync(), 'nothing is new').to.deep.equal({ ok: true, pulled: 0, pushed: 0 });

      github.issue(repo, {
        number: 2,
        title: 'Roof leaks badly',
        labels: ['bug', 'priority:critical', 'mc:in-progress'],
      });
      expect(await sync()).to.deep.equal({ ok: true, pulled: 1, pushed: 0 });
      const changed = {
        title: 'Roof leaks badly',
        priority: 'critical',
        status: 'in_progress',
        description: 'In rain',
      };
      expect((await tasksOf(id))[0]).to.deep.include(changed);
      const [activity] = (await syncedActivities('github_sync')).filter(({ entity_id }) => entity_id === id);
      expect(activity?.metadata).to.deep.include({ repo, pulled: 1, pushed: 0 });
    });

    it('misses no issue when another one changes while pages are read', async () => {
      const { repo, id, sync } = await project();
      for (let number = 1; number <= 102; number++) github.issue(repo, {});
      github.answered = (line) => {
        if (!line.includes('/issues?')) return;
        github.answered = () => undefined;
        github.issue(repo, { number: 50, title: 'Changed' });
      };
      expect(await sync()).to.deep.equal({ ok: true, pulled: 103, pushed: 0 });
      expect(await titled(id, 'Issue 101', 'Changed')).not.to.include(undefined);
      expect(await sync(), 'nothing is new').to.deep.equal({ ok: true, pulled: 0, pushed: 0 });
    });

    it('gets past any number of pull requests', async () => {
      const { repo, id, sync } = await project();
      for (let number = 1; number <= 1_000; number++) github.issue(repo, { isPull: true });
      github.issue(repo, { title: 'Behind pull requests' });
      await sync();
      await sync();
      expect(await titled(id, 'Behind pull requests')).not.to.include(undefined);
    });

    it('pushes local changes and nothing else', async () => {
      const { repo, id, sync } = await project(true);
      github.issue(repo, { title: 'Roof leaks', body: 'x'.repeat(9_000), labels: ['bug', 'mc:inbox'] });
      await sync();
      const [task] = (await tasksOf(id)) as { id: number }[];
      await ask('PUT', `/api/tasks/${task?.id}`, { title: 'Roof', priority: 'low', status: 'in_progress' });
      expect(await sync()).to.deep.equal({ ok: true, pulled: 0, pushed: 1 });
      const [issue] = github.repo(repo).issues;
      expect(issue).to.deep.include({
        title: 'Roof',
        state: 'open',
        labels: ['bug', 'mc:in-progress', 'priority:low'],
      });
      expect(issue?.body, 'a text that is longer than that of a task').to.have.length(9_000);
      github.seen.length = 0;
      expect(await sync(), 'its own change is no news').to.deep.equal({ ok: true, pulled: 0, pushed: 0 });
      expect(github.seen.map(({ line }) => line.split(' ')[0])).to.deep.equal(['GET']);
      await world.approve(task?.id ?? 0);
      await sync();
      expect(issue?.state).to.equal('closed');
    });

    it('never pushes a text that was cut here, and refuses an edit of it with the reason', async () => {
      const { repo, id, sync } = await project(true);
      const text = `${'x'.repeat(5_000)}${'y'.repeat(7_018)}`;
      github.issue(repo, { title: 'Long', body: text });
      await sync();
      const [task] = (await tasksOf(id)) as { id: number; description: string }[];
      expect(task?.description).to.have.length(5_000);
      const edit = await ask('PUT', `/api/tasks/${task?.id}`, { description: 'short' });
      expect([edit.status, edit.body.code]).to.deep.equal([409, 'ISSUE_TEXT_CUT']);
      expect(edit.body.error).to.match(/edit it at GitHub/);
      const same = { title: 'Longer', description: task?.description };
      expect((await ask('PUT', `/api/tasks/${task?.id}`, same)).status).to.equal(200);
      expect(await sync()).to.deep.equal({ ok: true, pulled: 0, pushed: 1 });
      const [issue] = github.repo(repo).issues;
      expect([issue?.title, issue?.body]).to.deep.equal(['Longer', text]);
      // What fits is edited as ever.
      github.issue(repo, { number: 1, body: 'fits' });
      await sync();
      expect((await ask('PUT', `/api/tasks/${task?.id}`, { description: 'edited' })).status).to.equal(200);
      await sync();
      expect(issue?.body).to.equal('edited');
    });

    it('names the issue and the field of a title that GitHub does not take, and the others go on', async () => {
      const { repo, id, sync } = await project(true);
      github.issue(repo, { title: 'One' });
      github.issue(repo, { title: 'Two' });
      await sync();
      const tasks = (await tasksOf(id)) as { id: number; title: string }[];
      const idOf = (title: string) => tasks.find((one) => one.title === title)?.id;
      await ask('PUT', `/api/tasks/${idOf('One')}`, { title: 't'.repeat(300), description: 'goes on' });
      await ask('PUT', `/api/tasks/${idOf('Two')}`, { title: 'Second' });
      const errors = [`Issue ${repo}#1, title: has 300 characters, and GitHub takes 256; shorten it.`];
      expect(await sync()).to.deep.equal({ ok: false, errors, pulled: 0, pushed: 1 });
      const [one, two] = github.repo(repo).issues;
      expect([one?.title, one?.body, two?.title]).to.deep.equal(['One', 'goes on', 'Second']);
      await world.refused('POST', '/api/github/sync', { action: 'trigger', project_id: id }, 502, /#1, title: has 300/);
      await ask('PUT', `/api/tasks/${idOf('One')}`, { title: 'First' });
      expect(await sync()).to.deep.equal({ ok: true, pulled: 0, pushed: 1 });
      expect(one?.title).to.equal('First');
    });

    it('gets past more than a thousand issues that changed in one second', async () => {
      const { repo, id, sync } = await project();
      for (let number = 1; number <= 1_250; number++) github.issue(repo, { isPull: true });
      github.issue(repo, { title: 'Behind a second' });
      const { issues } = github.repo(repo);
      const last = Math.max(...issues.map(({ updatedAt }) => updatedAt));
      for (const issue of issues) issue.updatedAt = last;
      for (let turn = 1; turn <= 3; turn++) await sync();
      expect(await titled(id, 'Behind a second')).not.to.include(undefined);
      expect(await sync(), 'nothing is new').to.deep.equal({ ok: true, pulled: 0, pushed: 0 });
    });

    it('does not restore a deleted task', async () => {
      const { repo, id, sync } = await project();
      github.issue(repo, {});
      await sync();
      const [task] = (await tasksOf(id)) as { id: number }[];
      await ask('DELETE', `/api/tasks/${task?.id}`);
      github.issue(repo, { number: 1, title: 'Still here' });
      await sync();
      expect(await tasksOf(id)).to.deep.equal([]);
    });

    it('requests an issue deleted at GitHub once, until it reappears', async () => {
      const { repo, id, sync } = await project();
      github.issue(repo, { title: 'Gone' });
      github.issue(repo, { title: 'Stays' });
      await sync();
      const [stays, gone] = await titled(id, 'Stays', 'Gone');
      const { issues } = github.repo(repo);
      const [deleted] = issues.splice(0, 1);
      const rename = (task: typeof gone, title: string) => ask('PUT', `/api/tasks/${task?.id}`, { title });
      await rename(gone, 'Gone here');
      await rename(stays, 'Stays here');
      expect(await sync()).to.deep.equal({
        ok: false,
        errors: [`Issue ${repo}#1: GitHub has no such record, or the token may not see it: Not Found.`],
        pulled: 0,
        pushed: 1,
      });
      expect(issues.map(({ title }) => title)).to.deep.equal(['Stays here']);
      const [first] = (await act('status')).body.syncs;
      expect(first).to.deep.include({ project_id: id, status: 'partial', changes_pushed: 1 });
      expect(first.error).to.include('GitHub has no such record');

      github.seen.length = 0;
      expect(await sync()).to.deep.equal({ ok: true, pulled: 0, pushed: 0 });
      expect(github.seen.map(({ line }) => line.split(' ')[0])).to.deep.equal(['GET']);
      await rename(gone, 'Gone for good');
      expect(await sync()).to.deep.equal({ ok: true, pulled: 0, pushed: 0 });
      expect((await world.taskNow(gone?.id ?? 0)).title).to.equal('Gone for good');

      issues.push(deleted as (typeof issues)[number]);
      github.issue(repo, { number: 1 });
      await sync();
      await sync();
      expect(github.repo(repo).issues.find(({ number }) => number === 1)?.title).to.equal('Gone for good');
    });

    it('does not treat an issue as deleted if the token may only read it', async () => {
      const { repo, id, sync } = await project();
      github.issue(repo, {});
      await sync();
      const [task] = (await tasksOf(id)) as { id: number }[];
      await ask('PUT', `/api/tasks/${task?.id}`, { title: 'Renamed' });
      github.mode = 'read-only';
      await act('sync-project', { project_id: id });
      expect(github.repo(repo).issues[0]?.title).to.equal('Issue 1');
      github.mode = 'well';
      expect(await sync()).to.deep.equal({ ok: true, pulled: 0, pushed: 1 });
      expect(github.repo(repo).issues[0]?.title).to.equal('Renamed');
    });

    it('reports the error and resumes from its last position', async () => {
      const { repo, id, sync } = await project();
      github.issue(repo, {});
      github.mode = 'broken';
      await world.refused('POST', '/api/github/sync', { action: 'trigger', project_id: id }, 502, /status 500/);
      const [failed] = (await act('status')).body.syncs;
      expect(failed).to.deep.include({
        project_id: id,
        status: 'error',
        error: 'GitHub responded with status 500: oops.',
      });
      github.mode = 'well';
      expect(await sync()).to.deep.equal({ ok: true, pulled: 1, pushed: 0 });
    });

    it('is synchronized on a schedule, and with all others on request', async () => {
      const { repo, id } = await project();
      github.issue(repo, { title: 'By the clock' });
      const ran = await ask('POST', '/api/scheduler', { task_id: 'github_sync' });
      expect(ran.body, JSON.stringify(ran.body)).to.deep.include({ ok: true });
      expect((await tasksOf(id))[0]).to.deep.include({ title: 'By the clock' });
      github.issue(repo, { number: 1, title: 'By hand' });
      const body = conforms(githubTriggerResponse, await ask('POST', '/api/github/sync', { action: 'trigger-all' }));
      expect(body).to.deep.include({ pulled: 1, pushed: 0 });
      expect(body.projects_synced).to.equal(repos);
      const list = await ask('GET', '/api/github/sync');
      conforms(githubProjectsResponse, list);
      expect(list.body.poller).to.deep.include({ running: true, interval: 86_400_000 });
      const own = list.body.syncs.find(({ project_id }: { project_id: number }) => project_id === id);
      expect(own).to.deep.include({ total_pulled: 2, total_pushed: 0, sync_count: 2 });
      expect((await ask('GET', '/api/github/sync', undefined, other)).status).to.equal(403);
    });
  });

  describe('/api/tasks/{id}/branch', () => {
    it('does not use the token of the deployment for other tenants or strict workspaces', async () => {
      const repo = 'acme/elsewhere';
      github.repo(repo);
      const lab = await ask('POST', '/api/workspaces', { name: 'Strict branch', isolation: 'strict' });
      const customer = { slug: 'branch', display_name: 'Branch', gateway_port: 2_000 };
      const { tenant } = (await ask('POST', '/api/super/tenants', customer)).body;
      for (const [status, place] of [
        [503, { tenant: tenant.id, workspace: tenant.workspace_id }],
        [403, { tenant: 1, workspace: lab.body.workspace.id }],
      ] as const) {
        const as = await world.world.makeSession({ username: `of-${status}`, role: 'admin', ...place });
        const fields = { name: `Own of ${status}`, ticket_prefix: 'OWN', github_repo: repo };
        const { project: own } = (await ask('POST', '/api/projects', fields, as)).body;
        const { id } = await world.task({ project_id: own.id }, as);
        const reply = await ask('POST', `/api/tasks/${id}/branch`, {}, as);
        expect(reply.status, JSON.stringify(reply.body)).to.equal(status);
      }
      expect([...github.repo(repo).branches.keys()]).to.deep.equal(['main']);
      expect(github.seen).to.deep.equal([]);
    });

    it('creates a branch and a pull request once', async () => {
      const { repo, id, sync } = await project();
      github.issue(repo, { title: 'Mend the Roof!', body: 'In rain' });
      await sync();
      const [task] = (await tasksOf(id)) as { id: number }[];
      const path = `/api/tasks/${task?.id}/branch`;
      await world.refused('POST', path, { action: 'create-pr' }, 400, /branch/);
      // The branch has the prefix that the project has now, not the one that it had when the task was made.
      await ask('PATCH', `/api/projects/${id}`, { ticket_prefix: `NEW${repos}` });
      const branch = `feat/new${repos}-1-mend-the-roof`;
      for (let turn = 0; turn < 2; turn++) {
        const reply = await ask('POST', path, {});
        expect(reply.body, JSON.stringify(reply.body)).to.deep.include({ branch });
      }
      expect(github.repo(repo).branches.has(branch)).to.equal(true);
      for (let turn = 0; turn < 2; turn++) {
        const reply = await ask('POST', path, { action: 'create-pr' });
        expect(reply.body).to.deep.equal({ pr_number: 500, pr_url: `https://example.org/${repo}/pull/500`, branch });
      }
      expect(github.repo(repo).pulls).to.have.length(1);
      expect(github.repo(repo).pulls[0]).to.deep.include({ base: 'main', head: branch, body: 'In rain\n\nCloses #1' });
      expect(github.repo(repo).pulls[0]?.title).to.equal(`NEW${repos}-001: Mend the Roof!`);
      const there = (await ask('GET', path)).body;
      expect(there).to.deep.include({ branch, pr_number: 500, pr_state: 'open' });
      const now = await world.taskNow(task?.id ?? 0);
      expect(now).to.deep.include({ github_branch: branch, github_pr_number: 500, github_issue_number: 1 });
      const { tasks } = (await ask('GET', `/api/projects/${id}/tasks`)).body;
      expect(tasks).to.deep.equal([now]);
      const github_columns = Object.fromEntries(Object.entries(now).filter(([field]) => field.startsWith('github_')));
      await ask('PUT', `/api/tasks/${task?.id}`, { due_date: 1 });
      const { overdueTasks } = (await ask('POST', '/api/standup', {})).body.standup;
      const overdue = overdueTasks.find((one: { id: number }) => one.id === task?.id);
      expect(overdue).to.deep.include(github_columns);
      expect(await world.activities('task_updated', task?.id ?? 0)).to.have.length(2);
    });
  });

  // Last: GitHub is not asked again before it wants to be.
  describe('when rate-limited by GitHub', () => {
    it('the response says when to retry, and GitHub is not called until then', async () => {
      github.mode = 'limited';
      const reply = await world.refused('GET', '/api/github?action=issues', undefined, 503, /GITHUB_LIMITED/);
      expect(reply.headers.get('retry-after')).to.equal('7');
      github.mode = 'well';
      github.seen.length = 0;
      await world.refused('GET', '/api/github?action=issues', undefined, 503, /try again in \d+ s/);
      expect(github.seen).to.deep.equal([]);
    });
  });
});
