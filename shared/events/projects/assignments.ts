/** Agents of a project, on the project's stream. */
import { z } from 'zod';
import { defineEvent } from '../define.ts';
import { projectFields } from './projects.ts';

export const projectAgentsAssigned = defineEvent({
  type: 'ProjectAgentsAssigned',
  version: 1,
  doc: 'Agents became members of a project. They are named, and need not exist.',
  schema: z.object({
    ...projectFields,
    agents: z.array(z.object({ assignmentId: z.int().positive(), agentName: z.string(), role: z.string() })),
  }),
});

export const projectAgentsUnassigned = defineEvent({
  type: 'ProjectAgentsUnassigned',
  version: 1,
  doc: 'Agents are no longer members of a project.',
  schema: z.object({ ...projectFields, agentNames: z.array(z.string()) }),
});

export const projectAssignmentEvents = [projectAgentsAssigned, projectAgentsUnassigned];
