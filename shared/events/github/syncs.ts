/** Syncs with repositories of GitHub. Streams: `github_sync-<workspace>-<source>`. */
import { z } from 'zod';
import { seconds } from '../../time.ts';
import { defineEvent } from '../define.ts';

const count = z.int().nonnegative();

export const githubSynced = defineEvent({
  type: 'GithubSynced',
  doc: 'A sync of a repository changed something or failed. A scheduled sync that finds nothing, or fails like the one before, writes no event.',
  schema: z.object({
    sync_id: z.int().positive(),
    /** `project-<id>`, or the repository in lower case. */
    source: z.string(),
    /** Number of earlier syncs of this source. */
    earlier: count,
    repo: z.string(),
    /** Null: a repository was imported, not a project. */
    project_id: z.int().positive().nullable(),
    status: z.enum(['success', 'partial', 'error']),
    error: z.string().nullable(),
    /** Number of issues that were read. */
    issues: count,
    /** Tasks that were made. */
    imported: count,
    /** Tasks that were changed. */
    updated: count,
    /** Number of issues that were changed. */
    pushed: count,
    skipped: count,
    errors: count,
    /** ISO 8601: issues that last changed before this time need not be read again. */
    cursor: z.string().nullable(),
    /** The page to continue with among issues that last changed at or after that time; above 1 only if many changed in one second. */
    page: z.int().positive(),
  }),
  activity: ({ data }) => ({
    type: 'github_sync',
    entity_type: 'project',
    entity_id: data.project_id ?? 0,
    description:
      data.status === 'error'
        ? `Sync with ${data.repo} failed`
        : `Synced with ${data.repo}: ${data.imported + data.updated} pulled, ${data.pushed} pushed`,
    data: {
      repo: data.repo,
      pulled: data.imported + data.updated,
      pushed: data.pushed,
      skipped: data.skipped,
      errors: data.errors,
      ...(data.error !== null && { error: data.error }),
    },
  }),
  frames: ({ data, meta }) => [
    {
      type: 'github.synced',
      data: {
        repo: data.repo,
        imported: data.imported,
        skipped: data.skipped,
        errors: data.errors,
        timestamp: seconds(meta.at),
        pulled: data.imported + data.updated,
        pushed: data.pushed,
        ...(data.project_id !== null && { project_id: data.project_id }),
      },
    },
  ],
});
