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

export const workspaceCreated = defineEvent({
  type: 'WorkspaceCreated',
  doc: 'A workspace was created. The main workspace of a tenant is created with the tenant and cannot be deleted.',
  schema: z.object({ ...workspace, brand, isolation, main: z.boolean() }),
  audit: ({ data }) => {
    const { name, slug, brand, isolation, main } = data;
    // The audit entry of a new tenant also covers its main workspace.
    return main
      ? undefined
      : {
          action: 'workspace_created',
          target: ['workspace', data.workspace_id],
          detail: { name, slug, brand, isolation },
        };
  },
});

export const workspaceUpdated = defineEvent({
  type: 'WorkspaceUpdated',
  doc: 'Fields of a workspace were set. Absent fields are unchanged. `name` is the old name.',
  schema: z.object({
    ...workspace,
    changes: z.object({ name: z.string(), brand, isolation }).partial(),
  }),
  audit: ({ data: { changes, ...data } }) => ({
    action: 'workspace_updated',
    target: ['workspace', data.workspace_id],
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
  doc: 'The deletion of a workspace began: it is no longer found. Its users, agents and projects move to another workspace of the tenant.',
  schema: z.object({
    ...workspace,
    moves_to: id,
    /** Agents that it had. */
    agents: z.int().nonnegative(),
  }),
});

export const workspaceDeleted = defineEvent({
  type: 'WorkspaceDeleted',
  doc: 'The deletion of a workspace ended. Its tasks and messages remain in the log, but no request returns them.',
  schema: z.object({ ...workspace, moves_to: id, agents: z.int().nonnegative() }),
  audit: ({ data }) => ({
    action: 'workspace_deleted',
    target: ['workspace', data.workspace_id],
    detail: { name: data.name, slug: data.slug, agents_moved: data.agents, moved_to_workspace: data.moves_to },
  }),
});
