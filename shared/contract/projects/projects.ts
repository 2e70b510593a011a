/** Projects: the record, list, create, change, delete, and the tasks of a project. */
import { z } from 'zod';
import { changesOf } from '../../fields.ts';
import { limitParam, offsetParam, unixSeconds } from '../common.ts';
import { filledText, isStorable, text, UNSTORABLE_TEXT } from '../storable.ts';
import { taskSchema } from '../tasks/tasks.ts';

export const PROJECT_STATUSES = ['active', 'archived'] as const;

// --- Record -----------------------------------------------------------------------------------------------------------

export const projectSchema = z
  .object({
    id: z.int(),
    workspace_id: z.int(),
    name: z.string(),
    slug: z.string().describe('unique in the workspace; never changes'),
    description: z.string().nullable(),
    ticket_prefix: z.string().describe('capital letters and digits; unique in the workspace'),
    ticket_counter: z.int().describe('the last ticket number that was given to a task'),
    status: z.string().describe(PROJECT_STATUSES.join(' or ')),
    github_repo: z.string().nullable(),
    deadline: unixSeconds.nullable(),
    color: z.string().nullable(),
    github_sync_enabled: z.int().describe('0 or 1'),
    github_labels_initialized: z.int().describe('0 or 1'),
    github_default_branch: z.string().nullable(),
    created_at: unixSeconds,
    updated_at: unixSeconds.describe('Unix seconds, UTC; moves with every ticket too'),
  })
  .meta({ id: 'Project' });
export type ProjectRecord = z.infer<typeof projectSchema>;

const assignedAgents = z.array(z.string()).describe('names, in the order in which they were assigned');
export const projectWithAgentsSchema = projectSchema
  .extend({ assigned_agents: assignedAgents })
  .meta({ id: 'ProjectWithAgents' });
export const listedProjectSchema = projectWithAgentsSchema
  .extend({ task_count: z.int().describe('tasks of every status') })
  .meta({ id: 'ListedProject' });
export type ListedProject = z.infer<typeof listedProjectSchema>;

/** Maximum number of listed projects. */
const LISTED = 1_000;

export const projectsQuery = z.object({
  includeArchived: z.string().optional().describe('`1`: archived projects too'),
  limit: limitParam(LISTED, LISTED),
  offset: offsetParam,
});
export type ProjectsQuery = z.infer<typeof projectsQuery>;
export const projectsResponse = z.object({ projects: z.array(listedProjectSchema) });
export const projectResponse = z.object({ project: listedProjectSchema });

// --- Create -----------------------------------------------------------------------------------------------------------

const MAX_NAME = 200;
const MAX_DESCRIPTION = 5_000;
const MAX_REPO = 200;
const MAX_COLOR = 32;
const MAX_SLUG = 64;
const MAX_PREFIX = 12;
/** A prefix as sent; characters other than letters and digits are removed. */
const MAX_SENT_PREFIX = 64;
/** 1 January 2100, Unix seconds. */
const LAST_MOMENT = 4_102_444_800;

/** `My Site!` → `my-site`. Empty when no character is left. */
export const slugOf = (name: string): string =>
  name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, MAX_SLUG + 1)
    .replace(/^-/, '')
    .slice(0, MAX_SLUG)
    .replace(/-$/, '');

/** `my-site` → `MYSITE`. Empty when no character is left. */
export const ticketPrefixOf = (sent: string): string =>
  sent
    .toUpperCase()
    .replace(/[^A-Z0-9]+/g, '')
    .slice(0, MAX_PREFIX);

/** Characters of the name that form a prefix if none is sent. */
const OF_NAME = 5;

const optionalText = (max: number) =>
  z
    .string()
    .max(max)
    .refine(isStorable, UNSTORABLE_TEXT)
    .nullable()
    .transform((value) => value?.trim() || null);

const fields = {
  description: optionalText(MAX_DESCRIPTION).default(null),
  github_repo: optionalText(MAX_REPO).default(null),
  deadline: z.int().min(0).max(LAST_MOMENT).nullable().describe('Unix seconds, UTC').default(null),
  color: optionalText(MAX_COLOR).default(null),
};

const NO_SLUG = 'must contain a letter from a to z or a digit; send a slug that does';
const NO_PREFIX = 'must contain a letter from A to Z or a digit; send a ticket_prefix that does';

export const createProjectBody = z
  .object({
    name: z.preprocess((value) => (typeof value === 'number' ? String(value) : value), filledText(MAX_NAME)),
    slug: z.string().max(MAX_NAME).nullable().optional().describe('default: derived from the name'),
    ticket_prefix: z.string().max(MAX_SENT_PREFIX).nullable().optional().describe('default: derived from the name'),
    ticketPrefix: z.string().max(MAX_SENT_PREFIX).nullable().optional().meta({ undocumented: true }),
    ...fields,
  })
  .transform(({ ticketPrefix: alias, ...body }, context) => {
    const slug = slugOf(body.slug || body.name);
    const sent = body.ticket_prefix || alias;
    const ticketPrefix = ticketPrefixOf(sent || body.name.slice(0, OF_NAME));
    if (slug === '') context.addIssue({ code: 'custom', path: ['slug'], message: NO_SLUG });
    if (ticketPrefix === '') context.addIssue({ code: 'custom', path: ['ticket_prefix'], message: NO_PREFIX });
    return { ...body, slug, ticket_prefix: ticketPrefix };
  });

export const createdProjectResponse = z.object({ project: projectSchema });

// --- Change -----------------------------------------------------------------------------------------------------------

const sentPrefix = z
  .string()
  .max(MAX_SENT_PREFIX)
  .transform(ticketPrefixOf)
  .refine((prefix) => prefix !== '', NO_PREFIX)
  .describe('capital letters and digits are kept, 12 of them at most');

const flag = z
  .union([z.boolean(), z.literal(0), z.literal(1)])
  .transform(Boolean)
  .meta({ override: { anyOf: [{ type: 'boolean' }, { type: 'integer', enum: [0, 1] }] } });

export const MAX_ASSIGNED = 100;

export const updateProjectBody = z
  .strictObject({
    name: filledText(MAX_NAME).optional(),
    ticket_prefix: sentPrefix.optional(),
    ticketPrefix: sentPrefix.optional().meta({ undocumented: true }),
    status: z.enum(PROJECT_STATUSES).optional(),
    ...changesOf(fields),
    github_sync_enabled: flag.optional(),
    github_labels_initialized: flag.optional(),
    github_default_branch: filledText(255).optional(),
    assigned_agents: z
      .array(filledText(100))
      .max(MAX_ASSIGNED)
      .refine((names) => new Set(names).size === names.length, 'must not name an agent twice')
      .optional()
      .describe('names of agents of the workspace: the complete list for the project'),
  })
  .refine((body) => body.ticket_prefix === undefined || body.ticketPrefix === undefined, {
    path: ['ticketPrefix'],
    message: 'is the same as ticket_prefix: send one of them',
  })
  .refine((body) => Object.values(body).some((value) => value !== undefined), {
    message: 'must have at least one field to change',
  });
export type UpdateProject = z.infer<typeof updateProjectBody>;

export const updatedProjectResponse = z.object({ project: projectWithAgentsSchema });

// --- Delete -----------------------------------------------------------------------------------------------------------

export const deleteProjectQuery = z.object({
  mode: text(100)
    .optional()
    .transform((mode) => (mode === 'delete' ? ('delete' as const) : ('archive' as const)))
    .meta({ override: { type: 'string', enum: ['archive', 'delete'], default: 'archive' } })
    .describe('`delete`: for good; its tasks move to the general project, under new ticket numbers'),
});
export const deletedProjectResponse = z.object({ success: z.literal(true), mode: z.enum(['archive', 'delete']) });

// --- Tasks ------------------------------------------------------------------------------------------------------------

export const projectTasksQuery = z.object({ limit: limitParam(LISTED, LISTED), offset: offsetParam });

export const projectHeader = projectSchema.pick({
  id: true,
  workspace_id: true,
  name: true,
  slug: true,
  description: true,
  ticket_prefix: true,
  ticket_counter: true,
  status: true,
  created_at: true,
  updated_at: true,
});
export const projectTasksResponse = z.object({ project: projectHeader, tasks: z.array(taskSchema) });
