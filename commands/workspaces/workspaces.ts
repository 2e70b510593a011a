/** Workspaces: create, change, and look up in the log for records that are placed in one. */
import type { NewWorkspaceBody, WorkspaceChangesBody } from '../../shared/contract/workspaces/workspaces.ts';
import { conflict, invalid, notFound } from '../../shared/errors.ts';
import type { EventDraft } from '../../shared/events/define.ts';
import { DEFAULT_WORKSPACE } from '../../shared/events/metadata.ts';
import { tenantStream } from '../../shared/events/super/tenants.ts';
import { workspaceCreated, workspaceUpdated } from '../../shared/events/workspaces/workspaces.ts';
import type { NameKind } from '../claims.ts';
import { type CommandContext, type Commands, type Executed, originWith } from '../handler.ts';
import { type Claim, executeWithNames, type Named } from '../naming.ts';
import { makeGeneral } from '../projects/changes.ts';
import { reserveId } from '../record-ids.ts';
import {
  DEFAULT_SLUG,
  existing,
  type KnownWorkspace,
  type TenantState,
  tenantDecider,
  WORKSPACE_SLUG,
} from '../super/tenants.ts';

/** Maximum number of workspaces per tenant, because their list has no pages. */
export const MAX_WORKSPACES = 200;

const hasSlug = ({ workspaces }: TenantState, slug: string): boolean =>
  [...workspaces.values()].some((one) => one.slug === slug);

const takenSlug = (slug: string) => `There is a workspace with the slug "${slug}" already; send another slug.`;

/** Slugs of workspaces, unique in the deployment: scope is `all`. */
export const workspaceSlugKind: NameKind<TenantState> = {
  kind: WORKSPACE_SLUG,
  owner: tenantDecider,
  holds(state, slug) {
    if (state.id !== 0) return hasSlug(state, slug) ? 'yes' : 'not yet';
    // A stream whose first claim was voided never becomes a tenant.
    return Object.keys(state.givenUpNames).length > 0 ? 'never' : 'not yet';
  },
  taken: takenSlug,
  refuse(slug) {
    // The default workspace has this slug without a claim.
    if (slug === DEFAULT_SLUG) throw conflict(takenSlug(slug), { code: 'NAME_TAKEN' });
  },
};

export const slugClaim = (slug: string): Claim<TenantState> => ({ kind: workspaceSlugKind, scope: 'all', name: slug });

export const namedTenant: Named<TenantState> = {
  decider: tenantDecider,
  existing,
  held: (_, { workspaces }) =>
    [...workspaces.values()].filter(({ id }) => id !== DEFAULT_WORKSPACE).map(({ slug }) => slugClaim(slug)),
};

// --- Decisions --------------------------------------------------------------------------------------------------------

/** @throws AppError 404 for an unknown tenant, 409 when it has too many */
export function decideCreate(
  state: TenantState,
  workspaceId: number,
  { name, slug, brand, isolation }: NewWorkspaceBody,
): EventDraft[] {
  const tenant = existing(state);
  if (hasSlug(state, slug)) throw conflict(takenSlug(slug), { code: 'NAME_TAKEN' });
  if (state.workspaces.size >= MAX_WORKSPACES)
    throw conflict(`There are ${MAX_WORKSPACES} workspaces already, which is the limit; delete one first.`);
  return [workspaceCreated.draft({ ...tenant, workspace_id: workspaceId, name, slug, brand, isolation, main: false })];
}

/** The workspace of a tenant. @throws AppError 404, also while it is being deleted */
export function workspaceOf(state: TenantState, id: number): KnownWorkspace {
  const known = state.workspaces.get(id);
  if (!known || known.removal) throw notFound('Workspace');
  return known;
}

/** No event when nothing differs. @throws AppError 404 */
export function decideUpdate(state: TenantState, id: number, body: WorkspaceChangesBody): EventDraft[] {
  const known = workspaceOf(state, id);
  const { name, brand, isolation } = body;
  const changes = {
    ...(name !== known.name && { name }),
    ...(brand !== undefined && brand !== known.brand && { brand }),
    ...(isolation !== undefined && isolation !== known.isolation && { isolation }),
  };
  if (Object.keys(changes).length === 0) return [];
  return [
    workspaceUpdated.draft({ ...existing(state), workspace_id: id, name: known.name, slug: known.slug, changes }),
  ];
}

// --- Commands ---------------------------------------------------------------------------------------------------------

/** Takes the next id of a counter. The first is that of the default, which the first start creates without a counter. */
export async function reserveAfterDefault(
  commands: Commands,
  context: CommandContext,
  counter: 'tenant' | 'workspace',
): Promise<number> {
  for (;;) {
    const id = await reserveId(commands, context, counter, (one) => `${counter}-${one}`);
    if (id !== DEFAULT_WORKSPACE) return id;
  }
}

/** Creates a workspace of the caller's tenant, with its general project. @throws AppError 404, 409 */
export async function createWorkspace(
  commands: Commands,
  context: CommandContext,
  body: NewWorkspaceBody,
): Promise<{ readonly id: number; readonly executed: Executed }> {
  const { tenant } = context.origin;
  const id = await reserveAfterDefault(commands, context, 'workspace');
  const claims = [slugClaim(body.slug)];
  const executed = await executeWithNames(commands, context, namedTenant, tenantStream(tenant), claims, (state) =>
    decideCreate(state, id, body),
  );
  await makeGeneral(commands, { origin: originWith(context.origin, { workspace: id }) });
  return { id, executed };
}

/** Changes a workspace of the caller's tenant. @throws AppError 404 */
export async function updateWorkspace(
  commands: Commands,
  context: CommandContext,
  id: number,
  body: WorkspaceChangesBody,
): Promise<Executed> {
  return commands.execute(tenantDecider, tenantStream(context.origin.tenant), context, (state) =>
    decideUpdate(state, id, body),
  );
}

/** A workspace with its tenant, as referenced by users and keys. */
export interface Place {
  readonly tenant: number;
  readonly workspace: number;
}

/** @throws AppError 400 when the log does not have the workspace, or it was deleted */
export async function mustBeThere(commands: Commands, { tenant, workspace }: Place): Promise<void> {
  const { state } = await commands.load(tenantDecider, tenantStream(tenant));
  const known = state.workspaces.get(workspace);
  if (!known || known.removal) throw noSuchWorkspace(workspace);
}

export const noSuchWorkspace = (id: number) =>
  invalid(`workspace_id: there is no workspace ${id}; GET /api/workspaces lists those of your tenant`, [
    `workspace_id: there is no workspace ${id}`,
  ]);
