/** Projects through HTTP: the record, its names, changes, archiving. Agents of projects run on the same service. */
import { expect } from 'chai';
import {
  createdProjectResponse,
  deletedProjectResponse,
  projectResponse,
  projectsResponse,
  updatedProjectResponse,
} from '../../../shared/contract/projects/projects.ts';
import { fixture } from '../../support/fixture.ts';
import { conforms } from '../../support/worlds/agents.ts';
import { startProjectsWorld } from '../../support/worlds/projects.ts';

describe('contract: projects', function () {
  this.timeout(120_000);
  const world = fixture(startProjectsWorld);

  const { createProject: create } = world;
  const get = async (id: number) => (await world.ask('GET', `/api/projects/${id}`)).body.project;
  const patch = (id: number, body: unknown) => world.ask('PATCH', `/api/projects/${id}`, body);

  describe('the general project', () => {
    const find = async () => {
      const { projects } = (await world.ask('GET', '/api/projects')).body;
      return projects.find(({ slug }: { slug: string }) => slug === 'general');
    };
    it('exists from the first start on', async () => {
      expect(await find()).to.deep.include({
        id: 1,
        name: 'General',
        ticket_prefix: 'TASK',
        ticket_counter: 0,
        status: 'active',
        task_count: 0,
        assigned_agents: [],
        workspace_id: 1,
      });
    });
    it('cannot be archived or deleted, but can be updated', async () => {
      await world.refused('PATCH', '/api/projects/1', { status: 'archived' }, 400, /general/);
      await world.refused('DELETE', '/api/projects/1', undefined, 400, /general/);
      await world.refused('DELETE', '/api/projects/1?mode=delete', undefined, 400, /general/);
      expect((await patch(1, { description: 'Whatever comes', status: 'active' })).body.project).to.include({
        description: 'Whatever comes',
        status: 'active',
      });
    });
    it('is created in a workspace without one with its first project, and keeps its names', async () => {
      const as = await world.world.makeSession({ username: 'elsewhere', role: 'operator', tenant: 7, workspace: 7 });
      expect((await world.ask('GET', '/api/projects', undefined, as)).body).to.deep.equal({ projects: [] });
      const taken = await world.ask('POST', '/api/projects', { name: 'General' }, as);
      expect(taken.status).to.equal(409);
      expect((await world.ask('POST', '/api/projects', { name: 'x', ticket_prefix: 'task' }, as)).status).to.equal(409);
      const { projects } = (await world.ask('GET', '/api/projects', undefined, as)).body;
      expect(projects).to.have.length(1);
      expect(projects[0]).to.include({ slug: 'general', ticket_prefix: 'TASK', workspace_id: 7 });
    });
  });

  describe('POST', () => {
    it('derives slug and prefix from the name', async () => {
      const { project } = conforms(
        createdProjectResponse,
        await world.ask('POST', '/api/projects', { name: '  Über Café No. 1! ' }),
        201,
      );
      expect(project).to.include({
        name: 'Über Café No. 1!',
        slug: 'ber-caf-no-1',
        ticket_prefix: 'BER',
        description: null,
        github_repo: null,
        deadline: null,
        color: null,
        ticket_counter: 0,
        status: 'active',
        github_sync_enabled: 0,
        github_labels_initialized: 0,
        github_default_branch: 'main',
      });
      expect(await get(project.id)).to.deep.equal({ ...project, task_count: 0, assigned_agents: [] });
    });
    it('accepts the given values trimmed, and ignores unknown fields', async () => {
      const project = await create({
        name: 42,
        slug: ' My Slug ',
        ticketPrefix: 'ignored: the other one counts',
        description: '  ',
        github_repo: ' acme/site ',
        color: ' #fff ',
        deadline: 1_800_000_000,
        status: 'archived',
        no_such_field: 1,
      });
      expect(project).to.include({
        name: '42',
        slug: 'my-slug',
        description: null,
        github_repo: 'acme/site',
        color: '#fff',
        deadline: 1_800_000_000,
        status: 'active',
      });
      expect(await create({ ticket_prefix: undefined, ticketPrefix: 'cam-el 1' })).to.include({
        ticket_prefix: 'CAMEL1',
      });
      expect(await create({ ticket_prefix: 'abcdefghijklmnop' })).to.include({ ticket_prefix: 'ABCDEFGHIJKL' });
    });
    it('rejects values that leave the name, slug or prefix empty', async () => {
      await world.refused('POST', '/api/projects', {}, 400, /name/);
      await world.refused('POST', '/api/projects', { name: '  ' }, 400, /name/);
      await world.refused('POST', '/api/projects', { name: 'Работа', ticket_prefix: 'RAB' }, 400, /slug/);
      await world.refused('POST', '/api/projects', { name: 'Работа', slug: 'rabota' }, 400, /ticket_prefix/);
      await world.refused('POST', '/api/projects', { name: 'x', ticket_prefix: '-' }, 400, /ticket_prefix/);
    });
    it('rejects values of a wrong type and texts that are too long, and names the field', async () => {
      for (const [field, value] of [
        ['name', { a: 1 }],
        ['name', 'n'.repeat(201)],
        ['description', 5],
        ['description', 'd'.repeat(5_001)],
        ['slug', 5],
        ['deadline', 'tomorrow'],
        ['deadline', 4_102_444_801],
        ['github_repo', ['a']],
        ['color', 'c'.repeat(33)],
      ] as const) {
        await world.refused('POST', '/api/projects', { name: 'Odd', [field]: value }, 400, new RegExp(`${field}: `));
      }
    });
    it('rejects a slug or a prefix of another project, even an archived one', async () => {
      const { id, slug, ticket_prefix } = await create();
      const body = { name: 'Another', ticket_prefix: 'ANOTH' };
      await world.refused('POST', '/api/projects', { ...body, slug }, 409, /slug/);
      await world.refused('POST', '/api/projects', { ...body, ticket_prefix }, 409, /ticket_prefix/);
      await world.ask('DELETE', `/api/projects/${id}`);
      await world.refused('POST', '/api/projects', { ...body, slug }, 409, /archived/);
      // What was refused has taken nothing.
      expect((await world.ask('POST', '/api/projects', body)).status).to.equal(201);
    });
  });

  describe('GET', () => {
    it('lists active projects by name in any letter case, and archived ones on request', async () => {
      const [b, a] = [await create({ name: 'zz beta' }), await create({ name: 'ZZ Alpha' })];
      await world.ask('DELETE', `/api/projects/${b.id}`);
      const active = await world.ask('GET', '/api/projects');
      conforms(projectsResponse, active);
      const ids = (reply: typeof active) => reply.body.projects.map(({ id }: { id: number }) => id);
      expect(ids(active)).to.include(a.id).and.not.include(b.id);
      const all = ids(await world.ask('GET', '/api/projects?includeArchived=1'));
      expect(all.indexOf(b.id)).to.equal(all.indexOf(a.id) + 1);
      expect(ids(await world.ask('GET', '/api/projects?includeArchived=yes'))).not.to.include(b.id);
    });
    it('returns a project, even an archived one, and otherwise 404 or 400', async () => {
      const { id } = await create();
      await world.ask('DELETE', `/api/projects/${id}`);
      const body = conforms(projectResponse, await world.ask('GET', `/api/projects/${id}`));
      expect(body.project.status).to.equal('archived');
      await world.refused('GET', '/api/projects/999999', undefined, 404);
      await world.refused('GET', '/api/projects/x', undefined, 400);
    });
  });

  describe('PATCH', () => {
    it('updates the given fields and returns agents, but no task count', async () => {
      const { id, slug } = await create({ description: 'old' });
      const body = {
        name: ' New name ',
        description: ' ',
        ticket_prefix: 'new-1',
        github_repo: 'acme/new',
        deadline: 5,
        color: 'red',
        github_sync_enabled: true,
        github_labels_initialized: 1,
        github_default_branch: 'trunk',
      };
      const reply = await patch(id, body);
      conforms(updatedProjectResponse, reply);
      expect(reply.body.project).to.deep.include({
        ...body,
        id,
        slug,
        name: 'New name',
        description: null,
        ticket_prefix: 'NEW1',
        github_sync_enabled: 1,
        assigned_agents: [],
      });
      const cleared = { github_repo: null, deadline: null, color: '', github_sync_enabled: false };
      expect((await patch(id, cleared)).body.project).to.include({
        name: 'New name',
        github_repo: null,
        deadline: null,
        color: null,
        github_sync_enabled: 0,
        github_labels_initialized: 1,
      });
    });
    it('archives and restores', async () => {
      const { id } = await create();
      expect((await patch(id, { status: 'archived' })).body.project.status).to.equal('archived');
      expect((await patch(id, { name: 'Still here' })).body.project).to.include({ status: 'archived' });
      expect((await patch(id, { status: 'active' })).body.project.status).to.equal('active');
    });
    it('rejects unknown keys, an empty body, two prefixes and values out of bounds', async () => {
      const { id } = await create();
      const path = `/api/projects/${id}`;
      const before = await get(id);
      for (const [body, says] of [
        [{}, /at least one/],
        [{ name: 'x', slug: 'y' }, /slug/],
        [{ name: ' ' }, /name: /],
        [{ ticket_prefix: 'A', ticketPrefix: 'B' }, /ticketPrefix/],
        [{ ticketPrefix: '--' }, /ticketPrefix/],
        [{ status: 'paused' }, /status/],
        [{ description: 5 }, /description/],
        [{ deadline: 1.5 }, /deadline/],
        [{ github_sync_enabled: 2 }, /github_sync_enabled/],
        [{ github_default_branch: '' }, /github_default_branch/],
        [{ assigned_agents: ['a', ' a'] }, /assigned_agents/],
        [{ assigned_agents: Array.from({ length: 101 }, (_, n) => `a${n}`) }, /assigned_agents/],
      ] as const) {
        await world.refused('PATCH', path, body, 400, says);
      }
      await world.refused('PATCH', '/api/projects/999999', { name: 'x' }, 404);
      expect(await get(id)).to.deep.equal(before);
    });
  });

  describe('DELETE', () => {
    it('archives by default', async () => {
      for (const query of ['', '?mode=archive', '?mode=purge']) {
        const { id } = await create();
        const body = conforms(deletedProjectResponse, await world.ask('DELETE', `/api/projects/${id}${query}`));
        expect(body).to.deep.equal({ success: true, mode: 'archive' });
        expect((await get(id)).status).to.equal('archived');
      }
      await world.refused('DELETE', '/api/projects/999999', undefined, 404);
    });
  });

  it('a caller whose workspace belongs to another tenant is rejected and audited', async () => {
    const as = await world.world.makeSession({ username: 'astray', role: 'admin', tenant: 9, workspace: 1 });
    const { id } = await create();
    for (const [method, path, body] of [
      ['GET', '/api/projects', undefined],
      ['POST', '/api/projects', { name: 'Mine' }],
      ['GET', `/api/projects/${id}`, undefined],
      ['PATCH', `/api/projects/${id}`, { name: 'Mine' }],
      ['DELETE', `/api/projects/${id}`, undefined],
      ['GET', `/api/projects/${id}/tasks`, undefined],
      ['GET', `/api/projects/${id}/agents`, undefined],
      ['POST', `/api/projects/${id}/agents`, { agent_name: 'x' }],
      ['DELETE', `/api/projects/${id}/agents?agent_name=x`, undefined],
    ] as const) {
      expect((await world.ask(method, path, body, as)).status, `${method} ${path}`).to.equal(403);
    }
    await world.world.service.securityEvents?.drain();
    const denied = await world.world.audit('tenant_access_denied');
    expect(
      denied.map(({ actor, target_type, target_id, detail }) => ({ actor, target_type, target_id, detail })),
    ).to.deep.include({
      actor: 'astray',
      target_type: 'workspace',
      target_id: 1,
      detail: { tenant_id: 9, route: 'GET /api/projects/{id}', count: 1 },
    });
    expect((await get(id)).name).to.match(/^Project/);
  });
});
