/** What was done to issues of GitHub. Streams: `github_issue-<workspace>-<repository>#<number>`. */
import { z } from 'zod';
import { defineEvent } from '../define.ts';

const issueFields = {
  repo: z.string(),
  issueNumber: z.int().positive(),
  /** The task that stands for it; null: none does. */
  taskId: z.int().positive().nullable(),
};

interface AboutIssue {
  readonly repo: string;
  readonly issueNumber: number;
  readonly taskId: number | null;
}
const about = ({ repo, issueNumber, taskId }: AboutIssue) => ({
  entity_type: 'task',
  entity_id: taskId ?? 0,
  data: { github_repo: repo, github_issue: issueNumber },
});

export const githubIssueCommented = defineEvent({
  type: 'GithubIssueCommented',
  version: 1,
  doc: 'Somebody commented on an issue of GitHub. The text is there.',
  schema: z.object(issueFields),
  activity: ({ data }) => ({
    type: 'github_comment',
    description: `Commented on ${data.repo}#${data.issueNumber}`,
    ...about(data),
  }),
});

export const githubIssueClosed = defineEvent({
  type: 'GithubIssueClosed',
  version: 1,
  doc: 'Somebody closed an issue of GitHub.',
  schema: z.object(issueFields),
  activity: ({ data }) => ({
    type: 'github_close',
    description: `Closed ${data.repo}#${data.issueNumber}`,
    ...about(data),
  }),
});

export const githubIssueEvents = [githubIssueCommented, githubIssueClosed];
