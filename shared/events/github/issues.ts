/** Actions on issues of GitHub. Streams: `github_issue-<workspace>-<repository>#<number>`. */
import { z } from 'zod';
import { defineEvent } from '../define.ts';

const issueFields = {
  repo: z.string(),
  issue_number: z.int().positive(),
  /** The task of the issue; null: none. */
  task_id: z.int().positive().nullable(),
};

interface AboutIssue {
  readonly repo: string;
  readonly issue_number: number;
  readonly task_id: number | null;
}
const about = ({ repo, issue_number: issueNumber, task_id: taskId }: AboutIssue) => ({
  entity_type: 'task',
  entity_id: taskId ?? 0,
  data: { github_repo: repo, github_issue: issueNumber },
});

export const githubIssueCommented = defineEvent({
  type: 'GithubIssueCommented',
  doc: 'A comment was added to a GitHub issue. Its text is at GitHub.',
  schema: z.object(issueFields),
  activity: ({ data }) => ({
    type: 'github_comment',
    description: `Commented on ${data.repo}#${data.issue_number}`,
    ...about(data),
  }),
});

export const githubIssueClosed = defineEvent({
  type: 'GithubIssueClosed',
  doc: 'A GitHub issue was closed.',
  schema: z.object(issueFields),
  activity: ({ data }) => ({
    type: 'github_close',
    description: `Closed ${data.repo}#${data.issue_number}`,
    ...about(data),
  }),
});
