/**
 * The tenant: the state of its stream. The same stream has its workspaces and provisioning jobs, because they change
 * together: a new tenant, its main workspace and its first job are one append.
 */
import { notFound } from '../../shared/errors.ts';
import type { EventDraft, EventOf } from '../../shared/events/define.ts';
import { type Actor, DEFAULT_TENANT, DEFAULT_WORKSPACE } from '../../shared/events/metadata.ts';
import {
  type JobType,
  provisionJobApproved,
  provisionJobCancelled,
  provisionJobCompleted,
  provisionJobFailed,
  provisionJobQueued,
  provisionJobRejected,
  provisionJobStarted,
} from '../../shared/events/super/provision-jobs.ts';
import { type TenantStatus, tenantCreated, tenantStream } from '../../shared/events/super/tenants.ts';
import {
  type Isolation,
  workspaceCreated,
  workspaceDeleted,
  workspaceRemovalBegun,
  workspaceUpdated,
} from '../../shared/events/workspaces/workspaces.ts';
import { defineDecider, on } from '../decider.ts';
import type { CommandContext, Commands } from '../handler.ts';
import { giveUpName, type NameOwnerState, nameKey, namingFolds } from '../naming.ts';

export interface KnownWorkspace {
  readonly id: number;
  readonly slug: string;
  readonly name: string;
  readonly brand: string | null;
  readonly isolation: Isolation;
  /** Set while the workspace is being deleted. */
  readonly removal?: { readonly moves_to: number; readonly agents: number };
}

/** A provisioning job that is neither completed nor cancelled. */
export interface OpenJob {
  readonly id: number;
  readonly job_type: JobType;
  readonly dry_run: boolean;
  readonly status: 'queued' | 'approved' | 'rejected' | 'failed';
  readonly steps: readonly { readonly key: string; readonly title: string }[];
  readonly requested_by: Actor;
  readonly approvedBy: Actor | null;
}

export interface TenantState extends NameOwnerState {
  /** 0 until created. */
  readonly id: number;
  readonly slug: string;
  readonly display_name: string;
  readonly linux_user: string;
  readonly status: TenantStatus;
  readonly main_workspace: number;
  readonly workspaces: ReadonlyMap<number, KnownWorkspace>;
  /** Without completed or cancelled jobs. */
  readonly jobs: ReadonlyMap<number, OpenJob>;
}

const initial: TenantState = {
  id: 0,
  slug: '',
  display_name: '',
  linux_user: '',
  status: 'pending',
  main_workspace: 0,
  workspaces: new Map(),
  jobs: new Map(),
  givenUpNames: {},
};

/** A copy of the map with one entry added or replaced. */
export const withEntry = <K, V>(map: ReadonlyMap<K, V>, key: K, value: V): ReadonlyMap<K, V> =>
  new Map(map).set(key, value);

/** Kind of the unique slugs of workspaces (`workspaces/workspaces.ts`). */
export const WORKSPACE_SLUG = 'workspace_slug';

const withoutEntry = <K, V>(map: ReadonlyMap<K, V>, key: K): ReadonlyMap<K, V> =>
  new Map([...map].filter(([one]) => one !== key));

const withJob = (state: TenantState, id: number, changes: Partial<OpenJob>): TenantState => {
  const known = state.jobs.get(id);
  return known ? { ...state, jobs: withEntry(state.jobs, id, { ...known, ...changes }) } : state;
};

const withStatus = (state: TenantState, status: TenantStatus | null): TenantState =>
  status === null ? state : { ...state, status };

export const tenantDecider = defineDecider<TenantState>({
  kind: 'tenant',
  initial,
  folds: [
    on(tenantCreated, (state, { data }) => ({
      ...state,
      id: data.tenant_id,
      slug: data.slug,
      display_name: data.display_name,
      linux_user: data.linux_user,
      status: data.status,
      main_workspace: data.main_workspace,
    })),
    on(workspaceCreated, (state, { data: { workspace_id: workspaceId, slug, name, brand, isolation } }) => ({
      ...state,
      workspaces: withEntry(state.workspaces, workspaceId, { id: workspaceId, slug, name, brand, isolation }),
    })),
    on(workspaceUpdated, (state, { data: { workspace_id: workspaceId, changes } }) => {
      const known = state.workspaces.get(workspaceId);
      if (!known) return state;
      return { ...state, workspaces: withEntry(state.workspaces, workspaceId, { ...known, ...changes }) };
    }),
    on(workspaceRemovalBegun, (state, { data: { workspace_id: workspaceId, moves_to, agents } }) => {
      const known = state.workspaces.get(workspaceId);
      if (!known) return state;
      return {
        ...state,
        workspaces: withEntry(state.workspaces, workspaceId, { ...known, removal: { moves_to, agents } }),
      };
    }),
    on(workspaceDeleted, (state, { data, at }) => ({
      ...state,
      workspaces: withoutEntry(state.workspaces, data.workspace_id),
      givenUpNames: giveUpName(state.givenUpNames, nameKey(WORKSPACE_SLUG, data.slug), at),
    })),
    on(provisionJobQueued, (state, { data: { job_id: id, job_type, dry_run, plan, requested_by } }) => {
      const steps = plan.map(({ key, title }) => ({ key, title }));
      const job = { id, job_type, dry_run, status: 'queued', steps, requested_by, approvedBy: null } as const;
      return { ...state, jobs: withEntry(state.jobs, id, job) };
    }),
    on(provisionJobApproved, (state, { data }) =>
      withJob(state, data.job_id, { status: 'approved', approvedBy: data.by }),
    ),
    on(provisionJobRejected, (state, { data }) => withJob(state, data.job_id, { status: 'rejected' })),
    on(provisionJobCancelled, (state, { data }) => ({ ...state, jobs: withoutEntry(state.jobs, data.job_id) })),
    on(provisionJobStarted, (state, { data }) => withStatus(state, data.tenant_status)),
    on(provisionJobCompleted, (state, { data }) =>
      withStatus({ ...state, jobs: withoutEntry(state.jobs, data.job_id) }, data.tenant_status),
    ),
    on(provisionJobFailed, (state, { data }) =>
      withStatus(withJob(state, data.job_id, { status: 'failed' }), data.tenant_status),
    ),
    ...namingFolds<TenantState>(),
  ],
});

/** The tenant of a state. @throws AppError 404 when it does not exist */
export function existing(state: TenantState): { readonly tenant_id: number } {
  if (state.id === 0) throw notFound('Tenant');
  return { tenant_id: state.id };
}

/** Slugs and the Unix account of the default tenant, which no other may have. */
export const DEFAULT_SLUG = 'default';
export const DEFAULT_LINUX_USER = 'signalbox';

/** Events of the default tenant; none when the log has them. */
export function decideDefaultTenant(
  state: TenantState,
  createdBy: EventOf<typeof tenantCreated>['data']['created_by'],
): EventDraft[] {
  if (state.id !== 0) return [];
  return [
    tenantCreated.draft({
      tenant_id: DEFAULT_TENANT,
      slug: DEFAULT_SLUG,
      display_name: 'Default Tenant',
      linux_user: DEFAULT_LINUX_USER,
      plan_tier: 'standard',
      status: 'active',
      workspace_root: '',
      gateway_port: null,
      dashboard_port: null,
      config: {},
      owner_gateway: null,
      created_by: createdBy,
      main_workspace: DEFAULT_WORKSPACE,
    }),
    workspaceCreated.draft({
      tenant_id: DEFAULT_TENANT,
      workspace_id: DEFAULT_WORKSPACE,
      slug: DEFAULT_SLUG,
      name: 'Default Workspace',
      brand: null,
      isolation: 'shared',
      main: true,
    }),
  ];
}

/** Records the default tenant if the log does not have it. */
export async function ensureDefaultTenant(commands: Commands, context: CommandContext): Promise<void> {
  await commands.execute(tenantDecider, tenantStream(DEFAULT_TENANT), context, (state) =>
    decideDefaultTenant(state, context.origin.actor),
  );
}
