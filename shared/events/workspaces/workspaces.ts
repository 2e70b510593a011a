/** Changes of workspaces, in the stream of their tenant: `tenant-<id>`. */
import { z } from 'zod';
import { defineEvent } from '../define.ts';

/** `strict`: callers of the workspace have no access to shared resources. */
export const ISOLATIONS = ['shared', 'strict'] as const;
export type Isolation = (typeof ISOLATIONS)[number];

const id = z.int().positive();
const workspace = { tenant_id: id, workspace_id: id, name: z.string(), slug: z.string() };
const brand = z.string().nullable();
const isolation = z.enum(ISOLATIONS);
const target = (data: { readonly workspace_id: number }) => ({
  target_type: 'workspace',
  target_id: data.workspace_id,
});

export const workspaceCreated = defineEvent({
  type: 'WorkspaceCreated',
  version: 2,
  doc: 'A tenant has one more workspace. Its main workspace comes with the tenant and stays as long as the tenant does.',
  schema: z.object({ ...workspace, brand, isolation, main: z.boolean() }),
  audit: ({ data }) => {
    const { name, slug, brand, isolation, main } = data;
    // The audit entry of a new tenant also covers its main workspace.
    return main
      ? undefined
      : { action: 'workspace_created', ...target(data), detail: { name, slug, brand, isolation } };
  },
});

export const workspaceUpdated = defineEvent({
  type: 'WorkspaceUpdated',
  version: 2,
  doc: 'Fields of a workspace were set. Those that are missing stayed as they were. `name` is the one from before.',
  schema: z.object({
    ...workspace,
    changes: z.object({ name: z.string(), brand, isolation }).partial(),
  }),
  audit: ({ data: { changes, ...data } }) => ({
    action: 'workspace_updated',
    ...target(data),
    detail: {
      old_name: data.name,
      new_name: changes.name ?? data.name,
      ...(changes.brand !== undefined && { brand: changes.brand }),
      ...(changes.isolation !== undefined && { isolation: changes.isolation }),
    },
  }),
});

export const workspaceRemovalBegun = defineEvent({
  type: 'WorkspaceRemovalBegun',
  version: 2,
  doc: 'A workspace is being deleted: from now on nobody finds it. Its users, agents and projects go to another workspace of the tenant.',
  schema: z.object({
    ...workspace,
    moves_to: id,
    /** Agents that it had. */
    agents: z.int().nonnegative(),
  }),
});

export const workspaceDeleted = defineEvent({
  type: 'WorkspaceDeleted',
  version: 2,
  doc: 'A workspace is gone. Its tasks and messages stay in the log, where no call finds them.',
  schema: z.object({ ...workspace, moves_to: id, agents: z.int().nonnegative() }),
  audit: ({ data }) => ({
    action: 'workspace_deleted',
    ...target(data),
    detail: { name: data.name, slug: data.slug, agents_moved: data.agents, moved_to_workspace: data.moves_to },
  }),
});

export const workspaceEvents = [workspaceCreated, workspaceUpdated, workspaceRemovalBegun, workspaceDeleted];
