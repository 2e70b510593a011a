/** Which projects are synced with the deployment's token, and which of their tasks wait: in the database. */
import { expect } from 'chai';
import { githubProjection } from '../../../projections/github/syncs.ts';
import { projectsProjection } from '../../../projections/projects/projects.ts';
import { tasksProjection } from '../../../projections/tasks/tasks.ts';
import { workspacesProjection } from '../../../projections/workspaces/workspaces.ts';
import { findGithubProject, projectsWithRepo, syncedProjects } from '../../../queries/github/syncs.ts';
import { projectCreated, projectUpdated } from '../../../shared/events/projects/projects.ts';
import { workspaceCreated } from '../../../shared/events/workspaces/workspaces.ts';
import { readModels, type Told } from '../../support/rows.ts';

const REPO = 'acme/web';

/** Tenants of workspaces: 1 and 3 are the deployment's own, 3 is strict, and 2 is of another tenant. */
const TENANTS: Readonly<Record<number, number>> = { 1: 1, 2: 2, 3: 1 };

describe('GitHub sync queries', () => {
  const models = readModels([githubProjection, projectsProjection, tasksProjection, workspacesProjection]);
  before(async () => {
    const told: Told[] = [];
    for (const [name, tenant] of Object.entries(TENANTS)) {
      const workspace = Number(name);
      const meta = { tenant, workspace };
      const isolation = workspace === 3 ? 'strict' : 'shared';
      const place = { tenant_id: tenant, workspace_id: workspace, slug: `w${name}`, name, brand: null, main: false };
      told.push([workspaceCreated.draft({ ...place, isolation }), meta]);
      for (const at of [1, 2]) {
        const project = { project_id: workspace * 10 + at, name: `p${workspace}${at}` };
        const details = { description: null, ticket_prefix: `P${workspace}${at}`, deadline: null, color: null };
        told.push([projectCreated.draft({ ...project, slug: project.name, ...details, github_repo: REPO }), meta]);
        told.push([projectUpdated.draft({ ...project, changes: { github_sync_enabled: at === 1 } }), meta]);
      }
    }
    await models.tell(...told);
  });

  const idsOf = (found: readonly { readonly id: number }[]) => found.map(({ id }) => id);
  const start = { workspace: 0, id: 0 };

  it('find projects of the default tenant for the schedule, but none of a strictly isolated workspace', async () => {
    expect(idsOf(await syncedProjects(models.reads, start, 10))).to.deep.equal([11]);
    expect(idsOf(await syncedProjects(models.reads, start, 10, 1))).to.deep.equal([11]);
    for (const workspace of [2, 3])
      expect(await syncedProjects(models.reads, start, 10, workspace), String(workspace)).to.deep.equal([]);
  });

  it('find projects in their own workspace, by repository and by id', async () => {
    for (const workspace of [1, 2, 3])
      expect(idsOf(await projectsWithRepo(models.reads, workspace, REPO)), String(workspace)).to.deep.equal([
        workspace * 10 + 1,
        workspace * 10 + 2,
      ]);
    expect(await findGithubProject(models.reads, 1, 11)).to.include({ id: 11, workspace: 1, tenant: 1 });
    expect(await findGithubProject(models.reads, 1, 21)).to.equal(undefined);
    expect(await findGithubProject(models.reads, 2, 11)).to.equal(undefined);
  });
});
