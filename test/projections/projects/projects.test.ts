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
import { seconds } from '../../../shared/time.ts';
import { type Draft, eventsOf, rowsAfter, sample, timeOf } from '../../support/kit.ts';

const about = { project_id: 7, name: 'API' };
const created = sample(projectCreated, {
  ...about,
  slug: 'api',
  ticket_prefix: 'API',
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
  it('an update sets the given fields and keeps the others', () => {
    const changes = {
      name: 'Web',
      description: 'Pages',
      ticket_prefix: 'WEB',
      github_repo: 'acme/web',
      deadline: null,
      github_sync_enabled: true,
      github_labels_initialized: true,
      github_default_branch: 'trunk',
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
    const off = { github_sync_enabled: false, github_labels_initialized: false };
    const both = [{ ...changes, ...off }].map((one) => projectUpdated.draft({ ...about, changes: one }));
    expect(row(projectUpdated.draft({ ...about, changes }), ...both)).to.include({
      github_sync_enabled: 0,
      github_labels_initialized: 0,
    });
  });
  it('a project has a status at every stage, and the row of a deleted project stays', () => {
    const life = [
      projectArchived.draft(about),
      projectRestored.draft(about),
      projectDeletionBegun.draft(about),
      projectDeleted.draft({ ...about, slug: 'api', ticket_prefix: 'API' }),
    ];
    const statuses = life.map((_, n) => row(...life.slice(0, n + 1))?.status);
    expect(statuses).to.deep.equal(['archived', 'active', 'deleting', 'deleted']);
  });
  it('agents are added and removed', () => {
    const agents = ['ada', 'bob'].map((agentName, n) => ({
      assignment_id: 5 + n,
      agent_name: agentName,
      ...(agentName === 'ada' && { agent_id: 9 }),
      role: 'member',
    }));
    const assigned = projectAgentsAssigned.draft({ ...about, agents });
    const unassigned = projectAgentsUnassigned.draft({
      ...about,
      agents: [
        { assignment_id: 5, agent_name: 'ada', agent_id: 9 },
        { assignment_id: 8, agent_name: 'other' },
      ],
    });
    const key = { workspace_id: 3, project_id: 7, role: 'member', assigned_at: seconds(timeOf(2)), position: 2 };
    expect(rows(created, assigned).project_agents).to.deep.equal([
      { ...key, agent_name: 'ada', agent_id: 9, id: 5 },
      { ...key, agent_name: 'bob', agent_id: null, id: 6 },
    ]);
    expect(rows(created, assigned, unassigned).project_agents.map((one) => one.agent_name)).to.deep.equal(['bob']);
  });
});
