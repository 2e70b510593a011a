/** Workspaces of a tenant: the record, new workspaces, changes. */
import { z } from 'zod';
import { ISOLATIONS } from '../../events/workspaces/workspaces.ts';
import { unixSeconds } from '../common.ts';
import { slugOf } from '../projects/projects.ts';
import { filledText } from '../storable.ts';

const MAX_NAME = 200;

export const workspaceSchema = z
  .object({
    id: z.int(),
    slug: z.string().describe('unique in the deployment; never changes'),
    name: z.string(),
    tenant_id: z.int(),
    brand: z.string().nullable(),
    isolation: z.enum(ISOLATIONS).describe('`strict`: callers get nothing that workspaces share, such as gateways'),
    created_at: unixSeconds,
    updated_at: unixSeconds,
  })
  .meta({ id: 'Workspace' });
export type WorkspaceRecord = z.infer<typeof workspaceSchema>;

const name = filledText(MAX_NAME);
const brand = filledText(64).nullable();
const isolation = z.enum(ISOLATIONS);

export const newWorkspaceBody = z
  .object({
    name,
    slug: z.string().max(MAX_NAME).nullable().optional().describe('default: derived from the name'),
    brand: brand.default(null),
    isolation: isolation.default('shared'),
  })
  .transform((body, context) => {
    const slug = slugOf(body.slug || body.name);
    if (slug === '')
      context.addIssue({
        code: 'custom',
        path: ['slug'],
        message: 'must contain a letter from a to z or a digit; send a slug that does',
      });
    return { ...body, slug };
  });
export type NewWorkspaceBody = z.output<typeof newWorkspaceBody>;

export const workspaceChangesBody = z.object({
  name,
  brand: brand.optional().describe('null: none from now on'),
  isolation: isolation.optional(),
});
export type WorkspaceChangesBody = z.infer<typeof workspaceChangesBody>;

export const workspacesResponse = z.object({
  workspaces: z.array(workspaceSchema),
  active_workspace_id: z.int().describe("the caller's"),
  tenant_id: z.int(),
});
export const workspaceResponse = z.object({ workspace: workspaceSchema });
export const workspaceDeletedResponse = z.object({
  success: z.literal(true),
  deleted: z.string().describe('its name'),
  agents_moved_to: z.int(),
});
export const workspaceDetailResponse = z.object({ workspace: workspaceSchema.extend({ agent_count: z.int() }) });
