/** Agents of a project, on the project's stream. */
import { z } from 'zod';
import { defineEvent } from '../define.ts';
import { projectFields } from './projects.ts';

export const projectAgentsAssigned = defineEvent({
  type: 'ProjectAgentsAssigned',
  version: 2,
  doc: 'Agents became members of a project. They are named, and need not exist.',
  schema: z.object({
    ...projectFields,
    agents: z.array(z.object({ assignment_id: z.int().positive(), agent_name: z.string(), role: z.string() })),
  }),
});

export const projectAgentsUnassigned = defineEvent({
  type: 'ProjectAgentsUnassigned',
  version: 2,
  doc: 'Agents are no longer members of a project.',
  schema: z.object({ ...projectFields, agent_names: z.array(z.string()) }),
});

export const projectAssignmentEvents = [projectAgentsAssigned, projectAgentsUnassigned];
