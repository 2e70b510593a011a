/** Projects that are synced with their repositories. */
import { z } from 'zod';
import { idValue, notInThePast, unixSeconds } from '../common.ts';
import { githubOutcome, githubSyncedResponse } from './issues.ts';

export const githubProjectsResponse = z.object({
  syncs: z
    .array(
      z.object({
        project_id: z.int(),
        project_name: z.string(),
        github_repo: z.string().nullable(),
        last_synced_at: unixSeconds
          .nullable()
          .describe('Unix seconds, UTC: when a sync last found something to do; null: never'),
        total_pushed: z.int(),
        total_pulled: z.int(),
        sync_count: z.int().describe('syncs that found something to do'),
      }),
    )
    .describe('projects with github_sync_enabled, and those that were synced before; at most 200'),
  poller: notInThePast(
    z.object({
      running: z.boolean().describe('whether projects are synchronised on a schedule'),
      interval: z.int().describe('milliseconds'),
      lastRun: z.int().optional().describe('Unix milliseconds'),
    }),
  ),
});

export const githubTriggerBody = z.object({
  action: z.enum(['trigger', 'trigger-all']),
  project_id: idValue.optional().describe('for trigger'),
});
export const githubTriggerResponse = z.union([
  z.object({ ...githubOutcome, projects_synced: z.int(), pulled: z.int(), pushed: z.int() }),
  githubSyncedResponse,
]);
