/** Agents of a project, on the project's stream. */
import { z } from 'zod';
import { defineEvent } from '../define.ts';
import { projectFields } from './projects.ts';

const member = {
  assignment_id: z.int().positive(),
  /** Its name at the time of the assignment. */
  agent_name: z.string(),
  /** Undefined: no agent had this name. */
  agent_id: z.int().positive().optional(),
};

export const projectAgentsAssigned = defineEvent({
  type: 'ProjectAgentsAssigned',
  doc: 'Agents were assigned to a project. Names that no agent has may be assigned, too.',
  schema: z.object({ ...projectFields, agents: z.array(z.object({ ...member, role: z.string() })) }),
});

export const projectAgentsUnassigned = defineEvent({
  type: 'ProjectAgentsUnassigned',
  doc: 'Agents were removed from a project, or deleted.',
  schema: z.object({ ...projectFields, agents: z.array(z.object(member)) }),
});
