/** Branches and pull requests of tasks. */
import { z } from 'zod';
import { text } from '../storable.ts';

export const branchResponse = z.object({
  branch: z.string().nullable(),
  pr_number: z.int().nullable(),
  pr_state: z.string().nullable(),
  repo: z.string().nullable().describe("of the task's project"),
});

export const branchBody = z.object({
  action: z.enum(['create-pr']).optional().describe('create-pr: open a pull request; without it a branch is made'),
  base: text(250).min(1).optional(),
  title: text(500).min(1).optional(),
  body: text(50_000).optional(),
});

export const branchMadeResponse = z.union([
  z.object({ branch: z.string(), url: z.string() }),
  z.object({ pr_number: z.int(), pr_url: z.string(), branch: z.string() }),
]);
