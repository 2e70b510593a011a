/**
 * The tenant: the state of its stream. Its workspaces and provisioning jobs stand in the same stream, because they
 * change together with it: a new tenant, its main workspace and its first job are one append.
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
  /** Set while it is being deleted. */
  readonly removal?: { readonly movesTo: number; readonly agents: number };
}

/** A provisioning job that has not ended for good. */
export interface OpenJob {
  readonly id: number;
  readonly jobType: JobType;
  readonly dryRun: boolean;
  readonly status: 'queued' | 'approved' | 'rejected' | 'failed';
  readonly steps: readonly { readonly key: string; readonly title: string }[];
  readonly requestedBy: Actor;
  readonly approvedBy: Actor | null;
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
  /** Without those that were completed or cancelled. */
  readonly jobs: ReadonlyMap<number, OpenJob>;
}

const initial: TenantState = {
  id: 0,
  slug: '',
  displayName: '',
  linuxUser: '',
  status: 'pending',
  mainWorkspace: 0,
  workspaces: new Map(),
  jobs: new Map(),
  givenUpNames: {},
};

/** A map with one more entry, or another value of one. */
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
    on(workspaceRemovalBegun, (state, { data: { workspaceId, movesTo, agents } }) => {
      const known = state.workspaces.get(workspaceId);
      if (!known) return state;
      return {
        ...state,
        workspaces: withEntry(state.workspaces, workspaceId, { ...known, removal: { movesTo, agents } }),
      };
    }),
    on(workspaceDeleted, (state, { data, at }) => ({
      ...state,
      workspaces: withoutEntry(state.workspaces, data.workspaceId),
      givenUpNames: giveUpName(state.givenUpNames, nameKey(WORKSPACE_SLUG, data.slug), at),
    })),
    on(provisionJobQueued, (state, { data: { jobId: id, jobType, dryRun, plan, requestedBy } }) => {
      const steps = plan.map(({ key, title }) => ({ key, title }));
      const job = { id, jobType, dryRun, status: 'queued', steps, requestedBy, approvedBy: null } as const;
      return { ...state, jobs: withEntry(state.jobs, id, job) };
    }),
    on(provisionJobApproved, (state, { data }) =>
      withJob(state, data.jobId, { status: 'approved', approvedBy: data.by }),
    ),
    on(provisionJobRejected, (state, { data }) => withJob(state, data.jobId, { status: 'rejected' })),
    on(provisionJobCancelled, (state, { data }) => ({ ...state, jobs: withoutEntry(state.jobs, data.jobId) })),
    on(provisionJobStarted, (state, { data }) => withStatus(state, data.tenantStatus)),
    on(provisionJobCompleted, (state, { data }) =>
      withStatus({ ...state, jobs: withoutEntry(state.jobs, data.jobId) }, data.tenantStatus),
    ),
    on(provisionJobFailed, (state, { data }) =>
      withStatus(withJob(state, data.jobId, { status: 'failed' }), data.tenantStatus),
    ),
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
