/** Creates tenants: with unique names, a main workspace and a first job. */
import { randomUUID } from 'node:crypto';
import type { NewTenantBody } from '../../shared/contract/super/tenants.ts';
import { conflict } from '../../shared/errors.ts';
import type { EventDraft, EventOf } from '../../shared/events/define.ts';
import { tenantCreated, tenantStream } from '../../shared/events/super/tenants.ts';
import { workspaceCreated } from '../../shared/events/workspaces/workspaces.ts';
import { systemActor } from '../../shared/identity.ts';
import type { NameKind } from '../claims.ts';
import type { CommandContext, Commands, Executed } from '../handler.ts';
import { type Claim, createWithNames } from '../naming.ts';
import { makeGeneral } from '../projects/changes.ts';
import { reserveAfterDefault, slugClaim } from '../workspaces/workspaces.ts';
import { decideQueue, planFor, reserveJob } from './provision-jobs.ts';
import { DEFAULT_LINUX_USER, DEFAULT_SLUG, type TenantState, tenantDecider } from './tenants.ts';

const nameOfTenants = (
  kind: string,
  held: (state: TenantState) => string,
  ofDefault: string,
  taken: (name: string) => string,
): NameKind<TenantState> => ({
  kind,
  owner: tenantDecider,
  holds(state, name) {
    if (state.id !== 0) return held(state) === name ? 'yes' : 'never';
    // A stream whose first claim was voided never becomes a tenant.
    return Object.keys(state.givenUpNames).length > 0 ? 'never' : 'not yet';
  },
  taken,
  refuse(name) {
    // The default tenant has this name without a claim.
    if (name === ofDefault) throw conflict(taken(name), { code: 'NAME_TAKEN' });
  },
});

const slugs = nameOfTenants(
  'tenant_slug',
  ({ slug }) => slug,
  DEFAULT_SLUG,
  (slug) => `There is a tenant with the slug "${slug}" already; send another slug.`,
);
const linuxUsers = nameOfTenants(
  'linux_user',
  ({ linux_user: linuxUser }) => linuxUser,
  DEFAULT_LINUX_USER,
  (name) => `Another tenant has the linux_user "${name}"; send another one.`,
);

type Created = Omit<EventOf<typeof tenantCreated>['data'], 'tenant_id'>;

/** @throws AppError 409 if a claim of the stream was voided: the name now has another owner */
export function decideCreateTenant(state: TenantState, tenantId: number, tenant: Created): EventDraft[] {
  if (state.id !== 0 || Object.keys(state.givenUpNames).length > 0)
    throw conflict('The slug or the linux_user of this tenant was taken in the meantime; try again.');
  const { slug, display_name: name, main_workspace: workspaceId } = tenant;
  return [
    tenantCreated.draft({ tenant_id: tenantId, ...tenant }),
    workspaceCreated.draft({
      tenant_id: tenantId,
      workspace_id: workspaceId,
      name,
      slug,
      brand: null,
      isolation: 'shared',
      main: true,
    }),
  ];
}

export interface TenantDefaults {
  readonly tenantHomeRoot: string;
  readonly tenantWorkspaceDirname: string;
  readonly defaultOwnerGateway: string;
}

/**
 * Creates a tenant with its main workspace and its bootstrap job, in one append; then the general project.
 *
 * @throws AppError 409 when slug or linux_user is taken
 */
export async function createTenant(
  commands: Commands,
  context: CommandContext,
  defaults: TenantDefaults,
  body: NewTenantBody,
): Promise<{ readonly tenant: number; readonly job: number; readonly executed: Executed }> {
  const { origin } = context;
  const tenant = await reserveAfterDefault(commands, context, 'tenant');
  const mainWorkspace = await reserveAfterDefault(commands, context, 'workspace');
  const job = await reserveJob(commands, context);
  const { slug, linux_user } = body;
  const created: Created = {
    slug,
    display_name: body.display_name,
    linux_user,
    plan_tier: body.plan_tier,
    status: 'pending',
    workspace_root: [defaults.tenantHomeRoot, linux_user, defaults.tenantWorkspaceDirname].join('/'),
    gateway_port: body.gateway_port,
    dashboard_port: body.dashboard_port,
    config: body.config,
    owner_gateway: body.owner_gateway ?? defaults.defaultOwnerGateway,
    created_by: origin.actor,
    main_workspace: mainWorkspace,
  };
  const queued = {
    job_type: 'bootstrap',
    dry_run: body.dry_run,
    request: { slug, linux_user, gateway_port: body.gateway_port, dashboard_port: body.dashboard_port },
    plan: planFor('bootstrap', { slug, linux_user }, { remove_linux_user: false, remove_state_dirs: false }),
    requested_by: origin.actor,
    idempotency_key: randomUUID(),
    reason: null,
  } as const;

  const stream = tenantStream(tenant);
  const claims: Claim<TenantState>[] = [
    { kind: slugs, scope: 'all', name: slug },
    { kind: linuxUsers, scope: 'all', name: linux_user },
    slugClaim(slug),
  ];
  const executed = await createWithNames(commands, context, tenantDecider, stream, claims, (state) => [
    ...decideCreateTenant(state, tenant, created),
    ...decideQueue({ ...state, id: tenant }, job, queued),
  ]);
  // Recorded in the new workspace, which must not see the caller's name and address.
  const { requestId, correlationId, causationId } = origin;
  const actor = systemActor('first start');
  const own = { tenant, workspace: mainWorkspace, actor, ip: null, userAgent: null };
  await makeGeneral(commands, { origin: { ...own, requestId, correlationId, causationId } });
  return { tenant, job, executed };
}
