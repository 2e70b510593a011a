/** Agents of a project. */
import { z } from 'zod';
import { unixSeconds } from '../common.ts';
import { nameText, text } from '../storable.ts';

export const assignmentSchema = z
  .object({
    id: z.int(),
    project_id: z.int(),
    agent_name: z.string().describe('the present name of the agent'),
    role: z.string(),
    assigned_at: unixSeconds,
  })
  .meta({ id: 'ProjectAssignment' });
export type Assignment = z.infer<typeof assignmentSchema>;

export const assignmentsResponse = z.object({
  assignments: z.array(assignmentSchema).describe('in the order of their creation'),
});

export const assignBody = z.object({
  agent_name: nameText(100),
  role: text(100)
    .optional()
    .transform((role) => role?.trim() || undefined)
    .describe('default: member'),
});
export const unassignQuery = z.object({ agent_name: nameText(100) });
export const assignedResponse = z.object({ success: z.literal(true) });
