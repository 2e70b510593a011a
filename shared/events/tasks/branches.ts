/** Branches and pull requests of tasks. They are on the task's own stream. */
import { z } from 'zod';
import { defineEvent } from '../define.ts';
import { aboutTask, taskFields } from './tasks.ts';

const fields = { ...taskFields, repo: z.string(), branch: z.string() };

export const taskBranched = defineEvent({
  type: 'TaskBranched',
  doc: 'A branch was created for a task.',
  schema: z.object({ ...fields, url: z.string() }),
  activity: ({ data: { task_id: taskId, title, repo, branch } }) => ({
    type: 'task_updated',
    ...aboutTask(taskId),
    description: `Made branch ${branch} for task "${title}"`,
    data: { branch, repo },
  }),
  frames: ({ data }) => [{ type: 'task.updated', data: { id: data.task_id, github_branch: data.branch } }],
});

export const taskPullOpened = defineEvent({
  type: 'TaskPullOpened',
  doc: "A pull request of a task's branch was opened.",
  schema: z.object({ ...fields, pull_number: z.int().positive(), pull_url: z.string() }),
  activity: ({ data: { task_id: taskId, title, pull_number: pullNumber, pull_url: pullUrl } }) => ({
    type: 'task_updated',
    ...aboutTask(taskId),
    description: `Opened pull request ${pullNumber} for task "${title}"`,
    data: { pr_number: pullNumber, pr_url: pullUrl },
  }),
  frames: ({ data }) => [
    { type: 'task.updated', data: { id: data.task_id, github_pr_number: data.pull_number, github_pr_state: 'open' } },
  ],
});
