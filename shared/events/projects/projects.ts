/** Changes of projects. Streams: `project-<workspace>-<id>`. They write no activity and send no frame. */
import { z } from 'zod';
import { defineEvent } from '../define.ts';

/** Fields that every event about one project has. `name` is the name before the event. */
export const projectFields = { project_id: z.int().positive(), name: z.string() };

/** Fields that callers may set when they create a project. */
const details = {
  description: z.string().nullable(),
  /** Unique per workspace; capital letters and digits. */
  ticket_prefix: z.string(),
  github_repo: z.string().nullable(),
  /** Unix seconds. */
  deadline: z.int().nullable(),
  color: z.string().nullable(),
};

export const projectCreated = defineEvent({
  type: 'ProjectCreated',
  doc: 'A project was created. `slug` is unique per workspace and never changes.',
  schema: z.object({ ...projectFields, slug: z.string(), ...details }),
});

export const projectUpdated = defineEvent({
  type: 'ProjectUpdated',
  doc: 'Fields of a project were set. A new ticket prefix applies to all of its tasks at once.',
  schema: z.object({
    ...projectFields,
    changes: z
      .object({
        name: z.string(),
        ...details,
        github_sync_enabled: z.boolean(),
        github_labels_initialized: z.boolean(),
        github_default_branch: z.string(),
      })
      .partial(),
  }),
});

export const projectArchived = defineEvent({
  type: 'ProjectArchived',
  doc: 'A project was archived: it accepts no new tasks and is left out of the default list. Its tasks remain.',
  schema: z.object(projectFields),
});

export const projectRestored = defineEvent({
  type: 'ProjectRestored',
  doc: 'An archived project was restored.',
  schema: z.object(projectFields),
});

export const projectDeletionBegun = defineEvent({
  type: 'ProjectDeletionBegun',
  doc: 'The deletion of a project began: it is no longer listed, and its tasks move to the general project.',
  schema: z.object(projectFields),
});

export const projectDeleted = defineEvent({
  type: 'ProjectDeleted',
  doc: 'The deletion of a project ended: its tasks were moved, and its slug and prefix are free.',
  schema: z.object({ ...projectFields, slug: z.string(), ticket_prefix: z.string() }),
});
