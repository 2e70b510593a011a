/** Branches and pull requests of tasks, created on GitHub. */

import { invalid } from '../../shared/errors.ts';
import type { EventDraft } from '../../shared/events/define.ts';
import { taskBranched, taskPullOpened } from '../../shared/events/tasks/branches.ts';
import { ticketRef } from '../../shared/events/tasks/tasks.ts';
import type { Github } from '../../shared/ports/github/client.ts';
import { answerWith } from '../github/issues.ts';
import type { CommandContext, Commands } from '../handler.ts';
import { requireHolder, type TaskCaller } from './access.ts';
import { existing, ofTask, type TaskState, taskDecider, taskStream } from './tasks.ts';

/** Maximum number of characters in a branch's name. */
const MAX_NAME = 60;

/** `feat/api-42-mend-the-roof`: prefix of the project, number of the issue or else id of the task, and its title. */
export function branchName({ id, task, source }: Pick<TaskState, 'id' | 'task' | 'source'>, prefix: string): string {
  const slug = task.title
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '');
  return `feat/${prefix.toLowerCase()}-${source?.github_issue_number ?? id}${slug === '' ? '' : `-${slug}`}`
    .slice(0, MAX_NAME)
    .replace(/-$/, '');
}

/** No event when the task already has a branch. @throws AppError 404 */
export function decideBranch(
  state: TaskState,
  made: { readonly repo: string; readonly branch: string; readonly url: string },
): EventDraft[] {
  return existing(state).source?.github_branch ? [] : [taskBranched.draft({ ...ofTask(state), ...made })];
}

/** No event when the task already has this pull request. @throws AppError 404 */
export function decidePull(
  state: TaskState,
  pull: { readonly repo: string; readonly branch: string; readonly pull_number: number; readonly pull_url: string },
): EventDraft[] {
  if (existing(state).source?.github_pr_number === pull.pull_number) return [];
  return [taskPullOpened.draft({ ...ofTask(state), ...pull })];
}

interface Place {
  /** `owner/name`. */
  readonly repo: string;
  /** The branch to start from, and to merge into. */
  readonly base: string;
  /** Ticket prefix of the project. */
  readonly prefix: string;
}

/** Creates the branch of a task, or returns the existing one. @throws AppError 404, 409 `HELD_BY_ANOTHER_AGENT` */
export async function makeBranch(
  { commands, github }: { readonly commands: Commands; readonly github: Github },
  context: CommandContext,
  taskId: number,
  { repo, base, prefix }: Place,
  caller: TaskCaller,
): Promise<{ readonly branch: string; readonly url: string }> {
  const stream = taskStream(context.origin.workspace, taskId);
  const state = existing((await commands.load(taskDecider, stream)).state);
  requireHolder(caller, state);
  const known = state.source?.github_branch;
  if (known) return { branch: known, url: github.branchUrl(repo, known) };
  const branch = branchName(state, prefix);
  const url = github.branchUrl(repo, branch);
  await github.createBranch(repo, branch, base).catch(answerWith);
  await commands.execute(taskDecider, stream, context, (now) => decideBranch(now, { repo, branch, url }));
  return { branch, url };
}

/**
 * Opens a pull request of a task's branch, or returns the open one.
 *
 * @throws AppError 400 when the task has no branch, 404, 409 `HELD_BY_ANOTHER_AGENT`
 */
export async function openPull(
  { commands, github }: { readonly commands: Commands; readonly github: Github },
  context: CommandContext,
  taskId: number,
  {
    repo,
    base,
    prefix,
    title,
    body,
  }: Place & { readonly title: string | undefined; readonly body: string | undefined },
  caller: TaskCaller,
): Promise<{ readonly pr_number: number; readonly pr_url: string; readonly branch: string }> {
  const stream = taskStream(context.origin.workspace, taskId);
  const state = existing((await commands.load(taskDecider, stream)).state);
  requireHolder(caller, state);
  const { task, source } = state;
  const branch = source?.github_branch;
  if (!branch) throw invalid('This task has no branch to open a pull request from; create the branch first.');
  const issue = source.github_repo?.toLowerCase() === repo.toLowerCase() ? source.github_issue_number : null;
  const text = body ?? `${task.description ?? ''}${issue === null ? '' : `\n\nCloses #${issue}`}`.trim();
  const named = title ?? `${ticketRef(prefix, task.project_ticket_no)}: ${task.title}`;
  const { number, url } = await github.openPull(repo, { branch, base, title: named, body: text }).catch(answerWith);
  const pull = { repo, branch, pull_number: number, pull_url: url };
  await commands.execute(taskDecider, stream, context, (now) => decidePull(now, pull));
  return { pr_number: number, pr_url: url, branch };
}
