/** How tenants are made: unique names under concurrent requests, and nothing left behind by a refusal. */
import { expect } from 'chai';
import { createTenant } from '../../../commands/super/changes.ts';
import { newTenantBody } from '../../../shared/contract/super/tenants.ts';
import { outcomeOf } from '../../support/kit.ts';
import { memoryWorld } from '../../support/memory-world.ts';
import { testOrigin } from '../../support/world.ts';

const defaults = { tenantHomeRoot: '/srv', tenantWorkspaceDirname: 'work', defaultOwnerGateway: 'primary' };

describe('creating tenants', () => {
  const world = memoryWorld();
  const create = (body: object, process = world.process()) =>
    createTenant(
      process,
      { origin: testOrigin },
      defaults,
      newTenantBody.parse({ display_name: 'Acme', gateway_port: 2_000, ...body }),
    );

  it('writes tenant, main workspace and first job in one append', async () => {
    await create({ slug: 'acme' });
    const stream = world.written().filter(({ stream }) => stream === 'tenant-2');
    expect(stream.map(({ type }) => type)).to.deep.equal(['TenantCreated', 'WorkspaceCreated', 'ProvisionJobQueued']);
    expect(stream[0]?.data).to.deep.include({
      slug: 'acme',
      linux_user: 'acme',
      workspace_root: '/srv/acme/work',
      owner_gateway: 'primary',
      main_workspace: 2,
    });
  });

  it('creates one of two tenants with the same slug or account, and the other leaves no names behind', async () => {
    const both = await Promise.all([
      outcomeOf(create({ slug: 'birch' })),
      outcomeOf(create({ slug: 'birch', linux_user: 'other' })),
    ]);
    expect(both.sort()).to.deep.equal(['NAME_TAKEN', 'done']);
    expect(await outcomeOf(create({ slug: 'cedar', linux_user: 'acme' }))).to.equal('NAME_TAKEN');
    expect(await outcomeOf(create({ slug: 'cedar' }))).to.equal('done');
    for (const taken of [{ slug: 'default' }, { slug: 'signalbox' }])
      expect(await outcomeOf(create(taken)), taken.slug).to.equal('NAME_TAKEN');
  });

  it('derives an account name from a slug that starts with a digit', async () => {
    await create({ slug: '9-lives' });
    expect(world.written().find(({ data }) => data.slug === '9-lives')?.data).to.include({ linux_user: 't9-lives' });
  });
});
