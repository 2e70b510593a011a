/** Branches and pull requests of tasks. They are on the task's own stream. */
import { z } from 'zod';
import { defineEvent } from '../define.ts';
import { aboutTask, taskFields } from './tasks.ts';

const fields = { ...taskFields, repo: z.string(), branch: z.string() };

export const taskBranched = defineEvent({
  type: 'TaskBranched',
  version: 1,
  doc: 'A branch was made for a task.',
  schema: z.object({ ...fields, url: z.string() }),
  activity: ({ data: { taskId, title, repo, branch } }) => ({
    type: 'task_updated',
    ...aboutTask(taskId),
    description: `Made branch ${branch} for task "${title}"`,
    data: { branch, repo },
  }),
  frames: ({ data }) => [{ type: 'task.updated', data: { id: data.taskId, github_branch: data.branch } }],
});

export const taskPullOpened = defineEvent({
  type: 'TaskPullOpened',
  version: 1,
  doc: "A pull request of a task's branch was opened.",
  schema: z.object({ ...fields, pullNumber: z.int().positive(), pullUrl: z.string() }),
  activity: ({ data: { taskId, title, pullNumber, pullUrl } }) => ({
    type: 'task_updated',
    ...aboutTask(taskId),
    description: `Opened pull request ${pullNumber} for task "${title}"`,
    data: { pr_number: pullNumber, pr_url: pullUrl },
  }),
  frames: ({ data }) => [
    { type: 'task.updated', data: { id: data.taskId, github_pr_number: data.pullNumber, github_pr_state: 'open' } },
  ],
});

export const taskBranchEvents = [taskBranched, taskPullOpened];
