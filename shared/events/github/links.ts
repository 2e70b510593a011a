/** Links between tasks and issues of GitHub, and the state of both at their last agreement. */
import { z } from 'zod';
import { seconds } from '../../time.ts';
import { defineEvent } from '../define.ts';
import { taskFields } from '../tasks/tasks.ts';

export const githubIssueClaimed = defineEvent({
  type: 'GithubIssueClaimed',
  doc: 'A task was reserved for a GitHub issue, so that no other task represents it. Written to the issue’s stream before the task is created.',
  schema: z.object({ repo: z.string(), issue_number: z.int().positive(), task_id: z.int().positive() }),
});

/** The compared fields of an issue. */
export const issueFace = z.object({
  title: z.string(),
  /** MD5 of the text; it only detects changes, and protects nothing. */
  body_hash: z.string(),
  /** Whether the text is longer than the description of a task, which then has only its beginning. */
  body_cut: z.boolean(),
  state: z.enum(['open', 'closed']),
  labels: z.array(z.string()),
});
export type IssueFace = z.infer<typeof issueFace>;

/** The compared fields of a task. */
export const taskFace = z.object({
  title: z.string(),
  description_hash: z.string(),
  status: z.string(),
  priority: z.string(),
});
export type TaskFace = z.infer<typeof taskFace>;

const linkFields = {
  ...taskFields,
  repo: z.string(),
  issue_number: z.int().positive(),
  /** ISO 8601: of the issue's last change when it was read. */
  issue_updated_at: z.string(),
  issue: issueFace,
  face: taskFace,
};

const shown = (
  { task_id: taskId, repo, issue_number: issueNumber }: { task_id: number; repo: string; issue_number: number },
  at: number,
) => ({ id: taskId, github_repo: repo, github_issue_number: issueNumber, github_synced_at: seconds(at) });

export const taskLinked = defineEvent({
  type: 'TaskLinked',
  doc: 'A task was linked to a GitHub issue.',
  schema: z.object({ ...linkFields, issue_url: z.string() }),
  frames: ({ data, meta }) => [{ type: 'task.updated', data: shown(data, meta.at) }],
});

export const taskSynced = defineEvent({
  type: 'TaskSynced',
  doc: 'A task and its issue were synced: newer values were copied both ways. `issue` and `face` are the values that both agree on; a field that differs from them remains to be copied.',
  schema: z.object({
    ...linkFields,
    /** `pull`: from the issue to the task. */
    direction: z.enum(['pull', 'push']),
    /** Of the issue, now. */
    issue_state: z.enum(['open', 'closed']),
  }),
  frames: ({ data, meta }) => [{ type: 'task.updated', data: shown(data, meta.at) }],
});

export const taskIssueGone = defineEvent({
  type: 'TaskIssueGone',
  doc: 'The issue of a task is missing at GitHub, although the repository exists. It is not synced until the issue is found again. The task remains.',
  schema: z.object({ ...taskFields, repo: z.string(), issue_number: z.int().positive() }),
});

type Metadata = Readonly<Record<string, unknown>>;

/** The metadata of a task whose issue is in this state; unchanged unless it names an issue. `at`: Unix ms. */
export const withIssueState = (metadata: Metadata, state: 'open' | 'closed', at: number): Record<string, unknown> =>
  'github_issue_number' in metadata
    ? { ...metadata, github_state: state, github_synced_at: new Date(at).toISOString() }
    : { ...metadata };
