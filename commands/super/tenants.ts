/**
 * The tenant: the state of its stream. Its workspaces and provisioning jobs stand in the same stream, because they
 * change together with it: a new tenant, its main workspace and its first job are one append.
 */
import { notFound } from '../../shared/errors.ts';
import type { EventDraft, EventOf } from '../../shared/events/define.ts';
import { DEFAULT_TENANT, DEFAULT_WORKSPACE } from '../../shared/events/metadata.ts';
import { type TenantStatus, tenantCreated, tenantStream } from '../../shared/events/super/tenants.ts';
import { type Isolation, workspaceCreated, workspaceUpdated } from '../../shared/events/workspaces/workspaces.ts';
import { defineDecider, on } from '../decider.ts';
import type { CommandContext, Commands } from '../handler.ts';
import { type NameOwnerState, namingFolds } from '../naming.ts';

export interface KnownWorkspace {
  readonly id: number;
  readonly slug: string;
  readonly name: string;
  readonly brand: string | null;
  readonly isolation: Isolation;
}

export interface TenantState extends NameOwnerState {
  /** 0 until created. */
  readonly id: number;
  readonly slug: string;
  readonly displayName: string;
  readonly linuxUser: string;
  readonly status: TenantStatus;
  readonly mainWorkspace: number;
  readonly workspaces: ReadonlyMap<number, KnownWorkspace>;
}

const initial: TenantState = {
  id: 0,
  slug: '',
  displayName: '',
  linuxUser: '',
  status: 'pending',
  mainWorkspace: 0,
  workspaces: new Map(),
  givenUpNames: {},
};

/** A map with one more entry, or another value of one. */
export const withEntry = <K, V>(map: ReadonlyMap<K, V>, key: K, value: V): ReadonlyMap<K, V> =>
  new Map(map).set(key, value);

export const tenantDecider = defineDecider<TenantState>({
  kind: 'tenant',
  initial,
  folds: [
    on(tenantCreated, (state, { data }) => ({
      ...state,
      id: data.tenantId,
      slug: data.slug,
      displayName: data.displayName,
      linuxUser: data.linuxUser,
      status: data.status,
      mainWorkspace: data.mainWorkspace,
    })),
    on(workspaceCreated, (state, { data: { workspaceId, slug, name, brand, isolation } }) => ({
      ...state,
      workspaces: withEntry(state.workspaces, workspaceId, { id: workspaceId, slug, name, brand, isolation }),
    })),
    on(workspaceUpdated, (state, { data: { workspaceId, changes } }) => {
      const known = state.workspaces.get(workspaceId);
      if (!known) return state;
      const set = Object.fromEntries(Object.entries(changes).filter(([, value]) => value !== undefined));
      return { ...state, workspaces: withEntry(state.workspaces, workspaceId, { ...known, ...set }) };
    }),
    ...namingFolds<TenantState>(),
  ],
});

/** The tenant of a state. @throws AppError 404 when there is none */
export function existing(state: TenantState): { readonly tenantId: number } {
  if (state.id === 0) throw notFound('Tenant');
  return { tenantId: state.id };
}

/** Slugs and the Unix account of the default tenant, which no other may have. */
export const DEFAULT_SLUG = 'default';
export const DEFAULT_LINUX_USER = 'signalbox';

/** Events of the default tenant; none when the log has them. */
export function decideDefaultTenant(
  state: TenantState,
  createdBy: EventOf<typeof tenantCreated>['data']['createdBy'],
): EventDraft[] {
  if (state.id !== 0) return [];
  return [
    tenantCreated.draft({
      tenantId: DEFAULT_TENANT,
      slug: DEFAULT_SLUG,
      displayName: 'Default Tenant',
      linuxUser: DEFAULT_LINUX_USER,
      planTier: 'standard',
      status: 'active',
      workspaceRoot: '',
      gatewayPort: null,
      dashboardPort: null,
      config: {},
      ownerGateway: null,
      createdBy,
      mainWorkspace: DEFAULT_WORKSPACE,
    }),
    workspaceCreated.draft({
      tenantId: DEFAULT_TENANT,
      workspaceId: DEFAULT_WORKSPACE,
      slug: DEFAULT_SLUG,
      name: 'Default Workspace',
      brand: null,
      isolation: 'shared',
      main: true,
    }),
  ];
}

/** Records the default tenant where the log has none yet: a new one, or one from before there were tenants. */
export async function ensureDefaultTenant(commands: Commands, context: CommandContext): Promise<void> {
  await commands.execute(tenantDecider, tenantStream(DEFAULT_TENANT), context, (state) =>
    decideDefaultTenant(state, context.origin.actor),
  );
}
