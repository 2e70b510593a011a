/** Rows of projects and of their agents. */
import { expect } from 'chai';
import { projectsProjection } from '../../../projections/projects/projects.ts';
import { projectAgentsAssigned, projectAgentsUnassigned } from '../../../shared/events/projects/assignments.ts';
import {
  projectArchived,
  projectCreated,
  projectDeleted,
  projectDeletionBegun,
  projectRestored,
  projectUpdated,
} from '../../../shared/events/projects/projects.ts';
import { taskMoved } from '../../../shared/events/tasks/tasks.ts';
import { seconds } from '../../../shared/time.ts';
import { type Draft, eventsOf, rowsAfter, timeOf } from '../../support/kit.ts';
import * as task from '../../support/tasks.ts';

const about = { projectId: 7, name: 'API' };
const created = projectCreated.draft({
  ...about,
  slug: 'api',
  description: null,
  ticketPrefix: 'API',
  githubRepo: null,
  deadline: 1_800_000_000,
  color: '#fff',
});
const rows = (...drafts: readonly Draft[]) =>
  rowsAfter(projectsProjection, eventsOf(drafts, { workspace: 3, tenant: 2 }));
const row = (...drafts: readonly Draft[]) => rows(created, ...drafts).projects[0];

describe('projection projects', () => {
  it('a new project is active and has no tickets', () => {
    expect(rows(created).projects).to.deep.equal([
      {
        workspace_id: 3,
        id: 7,
        tenant_id: 2,
        name: 'API',
        slug: 'api',
        description: null,
        ticket_prefix: 'API',
        ticket_counter: 0,
        status: 'active',
        github_repo: null,
        deadline: 1_800_000_000,
        color: '#fff',
        github_sync_enabled: 0,
        github_labels_initialized: 0,
        github_default_branch: 'main',
        created_at: seconds(timeOf(1)),
        updated_at: seconds(timeOf(1)),
        position: 1,
      },
    ]);
  });
  it('what is set is set, what is not stays', () => {
    const changes = {
      name: 'Web',
      description: 'Pages',
      ticketPrefix: 'WEB',
      githubRepo: 'acme/web',
      deadline: null,
      githubSyncEnabled: true,
      githubLabelsInitialized: true,
      githubDefaultBranch: 'trunk',
    };
    expect(row(projectUpdated.draft({ ...about, changes }))).to.include({
      name: 'Web',
      slug: 'api',
      description: 'Pages',
      ticket_prefix: 'WEB',
      github_repo: 'acme/web',
      deadline: null,
      color: '#fff',
      github_sync_enabled: 1,
      github_labels_initialized: 1,
      github_default_branch: 'trunk',
      updated_at: seconds(timeOf(2)),
    });
    expect(row(projectUpdated.draft({ ...about, changes: { color: null } }))).to.include({ name: 'API', color: null });
    const off = { githubSyncEnabled: false, githubLabelsInitialized: false };
    const both = [{ ...changes, ...off }].map((one) => projectUpdated.draft({ ...about, changes: one }));
    expect(row(projectUpdated.draft({ ...about, changes }), ...both)).to.include({
      github_sync_enabled: 0,
      github_labels_initialized: 0,
    });
  });
  it('a life has a status at every step; the row of a deleted project stays', () => {
    const life = [
      projectArchived.draft(about),
      projectRestored.draft(about),
      projectDeletionBegun.draft(about),
      projectDeleted.draft({ ...about, slug: 'api', ticketPrefix: 'API' }),
    ];
    const statuses = life.map((_, n) => row(...life.slice(0, n + 1))?.status);
    expect(statuses).to.deep.equal(['archived', 'active', 'deleting', 'deleted']);
  });
  it('agents come and go', () => {
    const agents = ['ada', 'bob'].map((agentName, n) => ({ assignmentId: 5 + n, agentName, role: 'member' }));
    const assigned = projectAgentsAssigned.draft({ ...about, agents });
    const unassigned = projectAgentsUnassigned.draft({ ...about, agentNames: ['ada', 'nobody'] });
    const key = { workspace_id: 3, project_id: 7, role: 'member', assigned_at: seconds(timeOf(2)), position: 2 };
    expect(rows(created, assigned).project_agents).to.deep.equal([
      { ...key, agent_name: 'ada', id: 5 },
      { ...key, agent_name: 'bob', id: 6 },
    ]);
    expect(rows(created, assigned, unassigned).project_agents.map((one) => one.agent_name)).to.deep.equal(['bob']);
  });
  it('the counter is the highest number given to a task, in whatever order they come', () => {
    const given = (ticketNo: number, projectId = 7) => task.created({ projectId, ticketNo });
    expect(row(given(2), given(1), given(9, 8))).to.include({ ticket_counter: 2, updated_at: seconds(timeOf(3)) });
    const moved = { projectName: 'API', projectPrefix: 'API', ticketNo: 4 };
    expect(row(given(1, 8), task.updated({ projectId: 7, ticketNo: 5 }, { projectId: 8 }))).to.include({
      ticket_counter: 5,
      updated_at: seconds(timeOf(3)),
    });
    expect(row(given(2), task.updated({ title: 'x', ticketNo: 2 }, { projectId: 7, ticketNo: 2 }))).to.include({
      ticket_counter: 2,
      updated_at: seconds(timeOf(2)),
    });
    const places = task.placed({ projectId: 8 }, { projectId: 7 });
    expect(row(taskMoved.draft({ taskId: 7, title: 't', ...places, ...moved }))).to.include({ ticket_counter: 4 });
  });
});
