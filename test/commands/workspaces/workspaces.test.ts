/** Decisions about workspaces, purely, and their slugs under concurrent requests. */
import { expect } from 'chai';
import { decideDefaultTenant, tenantDecider } from '../../../commands/super/tenants.ts';
import {
  createWorkspace,
  decideCreate,
  decideUpdate,
  MAX_WORKSPACES,
  workspaceOf,
} from '../../../commands/workspaces/workspaces.ts';
import { tenantStream } from '../../../shared/events/super/tenants.ts';
import { workspaceCreated, workspaceUpdated } from '../../../shared/events/workspaces/workspaces.ts';
import { type Draft, givenFor, outcomeOf } from '../../support/kit.ts';
import { memoryWorld } from '../../support/memory-world.ts';
import { testOrigin } from '../../support/world.ts';

const house = decideDefaultTenant(tenantDecider.initial, { type: 'system', id: 0, name: 'first start' }) as Draft[];
const lab = { name: 'Lab', slug: 'lab', brand: null, isolation: 'shared' as const };
const created = workspaceCreated.draft({ tenant_id: 1, workspace_id: 2, ...lab, main: false });
const given = givenFor(tenantDecider, ...house);

describe('workspace decisions', () => {
  it('the default tenant is created once, with its workspace', () => {
    expect(house.map(({ type }) => type)).to.deep.equal(['TenantCreated', 'WorkspaceCreated']);
    given().when(decideDefaultTenant, testOrigin.actor).then();
    expect(workspaceOf(given().state, 1)).to.deep.include({ slug: 'default', isolation: 'shared' });
  });

  it('a workspace is created in an existing tenant, under a unique slug', () => {
    given().when(decideCreate, 2, lab).then(created);
    givenFor(tenantDecider)().when(decideCreate, 2, lab).thenRefuses(404);
    given(created).when(decideCreate, 3, lab).thenRefuses(409);
  });

  it('the number of workspaces per tenant is limited', () => {
    const many = Array.from({ length: MAX_WORKSPACES - 1 }, (_, at) =>
      workspaceCreated.draft({ ...created.data, workspace_id: at + 2, slug: `lab-${at}` }),
    );
    given(...many)
      .when(decideCreate, 999, lab)
      .thenRefuses(409);
    expect(decideCreate(given(...many.slice(1)).state, 999, lab)).to.have.length(1);
  });

  it('an update records only differences', () => {
    const change = (changes: object) =>
      workspaceUpdated.draft({ tenant_id: 1, workspace_id: 2, name: 'Lab', slug: 'lab', changes });
    const before = given(created);
    before.when(decideUpdate, 2, { name: 'Lab' }).then();
    before.when(decideUpdate, 2, { name: 'Lab', brand: null, isolation: 'shared' }).then();
    before
      .when(decideUpdate, 2, { name: 'Works', brand: 'Acme', isolation: 'strict' })
      .then(change({ name: 'Works', brand: 'Acme', isolation: 'strict' }));
    const changed = given(created, change({ brand: 'Acme', isolation: 'strict' }));
    changed.when(decideUpdate, 2, { name: 'Lab', brand: 'Acme', isolation: 'strict' }).then();
    changed.when(decideUpdate, 2, { name: 'Lab', brand: null }).then(change({ brand: null }));
    before.when(decideUpdate, 3, { name: 'x' }).thenRefuses(404);
  });
});

describe('creating workspaces', () => {
  it('gives a slug to one of two concurrent tenants', async () => {
    const world = memoryWorld();
    const [one, other] = [world.process(), world.process()];
    const origin = (tenant: number) => ({ origin: { ...testOrigin, tenant } });
    const [tenant, workspace] = house as [Draft, Draft];
    for (const tenantId of [1, 2]) {
      await one.record(tenantStream(tenantId), origin(tenantId), [
        { ...tenant, data: { ...tenant.data, tenant_id: tenantId, main_workspace: tenantId } },
        { ...workspace, data: { ...workspace.data, tenant_id: tenantId, workspace_id: tenantId } },
      ] as never);
    }
    const outcomes = await Promise.all([
      outcomeOf(createWorkspace(one, origin(1), lab)),
      outcomeOf(createWorkspace(other, origin(2), lab)),
      outcomeOf(createWorkspace(other, origin(2), lab)),
    ]);
    expect(outcomes.sort()).to.deep.equal(['NAME_TAKEN', 'NAME_TAKEN', 'done']);
    expect(await outcomeOf(createWorkspace(one, origin(2), { ...lab, slug: 'default' }))).to.equal('NAME_TAKEN');
    const labs = world.written().filter(({ type, data }) => type === 'WorkspaceCreated' && data.slug === 'lab');
    expect(labs).to.have.length(1);
    // 1 is the default workspace, whatever the counter says.
    expect(labs[0]?.data.workspace_id).to.be.above(1);
  });
});
