/** Agents of a project, on the project's stream. */
import { z } from 'zod';
import { defineEvent } from '../define.ts';
import { projectFields } from './projects.ts';

export const projectAgentsAssigned = defineEvent({
  type: 'ProjectAgentsAssigned',
  doc: 'Agents were assigned to a project by name. They need not exist.',
  schema: z.object({
    ...projectFields,
    agents: z.array(z.object({ assignment_id: z.int().positive(), agent_name: z.string(), role: z.string() })),
  }),
});

export const projectAgentsUnassigned = defineEvent({
  type: 'ProjectAgentsUnassigned',
  doc: 'Agents were removed from a project.',
  schema: z.object({ ...projectFields, agent_names: z.array(z.string()) }),
});
