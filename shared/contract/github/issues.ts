/** Issues of GitHub: list, import as tasks, comment, close; and statistics of the token's account. */
import { z } from 'zod';
import { idValue, unixSeconds } from '../common.ts';
import { filledText, text } from '../storable.ts';
import { PRIORITIES, TASK_STATUSES, type TaskStatus, taskSchema } from '../tasks/tasks.ts';

/** `owner/name`, in the characters that GitHub allows. */
export const REPOSITORY = /^[A-Za-z0-9][A-Za-z0-9-]{0,38}\/(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}$/;
const NO_REPOSITORY = 'must be a repository as owner/name';

/** `owner/name` from common notations of a repository, including its URL; undefined: not a repository. */
export function repositoryIn(given: string): string | undefined {
  const name = given
    .trim()
    .replace(/^(https?:\/\/|git@)[^/:]+[/:]/, '')
    .replace(/\.git$|\/+$/g, '');
  return REPOSITORY.test(name) ? name : undefined;
}

const repository = text(200)
  .trim()
  .regex(REPOSITORY, NO_REPOSITORY)
  .describe('owner/name; default: GITHUB_DEFAULT_REPO');
const state = z.enum(['open', 'closed', 'all']);
const labels = text(500).describe('names with commas in between: only issues that have all of them');

export const githubQuery = z.object({
  action: z.enum(['issues', 'stats']),
  repo: repository.optional(),
  state: state.optional().describe('default open'),
  labels: labels.optional(),
});

const isoTime = z.string().describe('ISO 8601, UTC');

export const githubIssueSchema = z
  .object({
    number: z.int(),
    title: z.string(),
    body: z.string().nullable(),
    state: z.enum(['open', 'closed']),
    labels: z.array(z.object({ name: z.string(), color: z.string().optional() })),
    assignee: z.object({ login: z.string(), avatar_url: z.string().optional() }).nullable(),
    html_url: z.string(),
    created_at: isoTime,
    updated_at: isoTime,
  })
  .meta({ id: 'GithubIssue' });

export const githubIssuesResponse = z.object({
  issues: z.array(githubIssueSchema).describe('at most 50, changed last first, without pull requests'),
  total: z.int().describe('issues in this response'),
  repo: z.string(),
});

export const githubStatsResponse = z.object({
  user: z.object({
    login: z.string(),
    name: z.string().nullable(),
    avatar_url: z.string().nullable(),
    public_repos: z.int(),
    followers: z.int(),
    following: z.int(),
  }),
  repos: z.object({
    total: z.int(),
    public: z.int(),
    private: z.int(),
    total_stars: z.int(),
    total_forks: z.int(),
    total_open_issues: z.int(),
  }),
  topLanguages: z.array(z.object({ name: z.string(), count: z.int() })).describe('at most 6'),
  recentRepos: z
    .array(
      z.object({
        name: z.string(),
        description: z.string().nullable(),
        language: z.string().nullable(),
        stars: z.int(),
        forks: z.int(),
        open_issues: z.int(),
        pushed_at: z.string().nullable(),
        is_fork: z.boolean(),
        is_private: z.boolean(),
        html_url: z.string(),
      }),
    )
    .describe('at most 10, pushed to last first'),
});

export const githubReadResponse = z.union([githubIssuesResponse, githubStatsResponse]);

/** Highest issue number; GitHub counts issues from 1 in each repository. */
const MAX_ISSUE = 999_999_999;

export const GITHUB_ACTIONS = ['sync', 'comment', 'close', 'status', 'init-labels', 'sync-project'] as const;

export const githubBody = z.object({
  action: z.enum(GITHUB_ACTIONS),
  repo: repository.optional(),
  labels: labels.optional(),
  state: state.optional().describe('of issues to import; default open'),
  assignAgent: text(100).optional().describe('whom the new tasks are assigned to'),
  issueNumber: z.int().positive().max(MAX_ISSUE).optional().describe('for comment and close'),
  body: filledText(60_000).optional().describe('for comment'),
  comment: text(60_000).optional().describe('for close: said before'),
  project_id: idValue.optional().describe('for sync-project'),
});
export type GithubBody = z.infer<typeof githubBody>;

export const githubSyncSchema = z
  .object({
    id: z.int(),
    repo: z.string(),
    last_synced_at: unixSeconds,
    issue_count: z.int().describe('issues that were checked'),
    sync_direction: z.string().describe('inbound, or both for a project'),
    status: z.enum(['success', 'partial', 'error']),
    error: z.string().nullable(),
    created_at: unixSeconds,
    project_id: z.int().nullable(),
    changes_pushed: z.int(),
    changes_pulled: z.int(),
    workspace_id: z.int(),
  })
  .meta({ id: 'GithubSync' });
export type GithubSyncRecord = z.infer<typeof githubSyncSchema>;

export const githubImportResponse = z.object({
  imported: z.int(),
  skipped: z.int().describe('issues that have a task already'),
  errors: z.int(),
  tasks: z.array(taskSchema).describe('those that were created'),
});
export const githubDoneResponse = z.object({ ok: z.literal(true) });
export const githubLabelsResponse = z.object({ ok: z.literal(true), repo: z.string() });
export const githubStatusResponse = z.object({ syncs: z.array(githubSyncSchema).describe('newest first, at most 20') });
/** Of a sync: what it did, and whether anything failed meanwhile. */
export const githubOutcome = {
  ok: z.boolean().describe('false: something failed; `errors` says what, and the rest was done'),
  errors: z
    .array(z.string())
    .optional()
    .describe('if ok is false: each names its issue, and the field if one is refused'),
};
export const githubSyncedResponse = z.object({
  ...githubOutcome,
  pulled: z.int().describe('tasks that were created or changed'),
  pushed: z.int().describe('issues that were changed'),
});
export const githubWriteResponse = z.union([
  githubImportResponse,
  githubStatusResponse,
  githubLabelsResponse,
  githubSyncedResponse,
  githubDoneResponse,
]);

// --- What issues say about tasks --------------------------------------------------------------------------------------

const STATUS_LABEL = 'mc:';
const PRIORITY_LABEL = 'priority:';

/** The label of a status: `in_progress` is `mc:in-progress`. */
export const statusLabel = (status: string): string => `${STATUS_LABEL}${status.replaceAll('_', '-')}`;
export const priorityLabel = (priority: string): string => `${PRIORITY_LABEL}${priority}`;

/** The status of a label among these; undefined: none. */
export const statusIn = (labels: readonly string[]): TaskStatus | undefined =>
  TASK_STATUSES.find((status) => labels.some((label) => label.toLowerCase() === statusLabel(status)));

/** The priority of a label among these, the most urgent one of several; undefined: none. */
export const priorityIn = (labels: readonly string[]): (typeof PRIORITIES)[number] | undefined =>
  PRIORITIES.find((priority) =>
    labels.some((label) => [priority, priorityLabel(priority)].includes(label.toLowerCase())),
  );
