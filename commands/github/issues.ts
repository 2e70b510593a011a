/** Issues of GitHub: imported as tasks, commented on, closed, and given labels. */

import { projectsWithRepo } from '../../queries/github/syncs.ts';
import type { ProjectDirectory } from '../../queries/projects/projects.ts';
import type { Reads } from '../../queries/reads.ts';
import { priorityLabel, repositoryIn, statusLabel } from '../../shared/contract/github/issues.ts';
import type { TaskRecord } from '../../shared/contract/tasks/tasks.ts';
import { PRIORITIES, TASK_STATUSES } from '../../shared/contract/tasks/tasks.ts';
import { AppError, invalid } from '../../shared/errors.ts';
import { githubIssueClosed, githubIssueCommented } from '../../shared/events/github/issues.ts';
import { projectFields } from '../../shared/events/tasks/tasks.ts';
import { type Github, GithubError, type GithubIssue, type IssuesQuery } from '../../shared/ports/github/client.ts';
import type { CommandContext, Commands } from '../handler.ts';
import { withoutIntents } from '../intents.ts';
import { updateProject } from '../projects/changes.ts';
import { takeTicket } from '../projects/tickets.ts';
import { recordOf, taskDecider, taskStream } from '../tasks/tasks.ts';
import { decideClaim, decideClosed, decideImport, issueDecider, issueStream } from './links.ts';
import { decideSynced, repositorySource, syncDecider, syncStream } from './syncs.ts';

export interface GithubWork {
  readonly commands: Commands;
  readonly github: Github;
  readonly projects: ProjectDirectory;
  readonly reads: Reads;
  /** Unix ms. */
  readonly now: () => number;
}

/** Translates an error of GitHub for the caller. @throws AppError; any other error unchanged */
export function answerWith(error: unknown): never {
  if (!(error instanceof GithubError)) throw error;
  const { fault, message, retryAfter } = error;
  const code = `GITHUB_${fault.toUpperCase()}`;
  if (fault === 'unset') throw new AppError(400, message, { code });
  if (fault === 'limited')
    throw new AppError(503, message, { code, cause: error, headers: { 'Retry-After': String(retryAfter ?? 60) } });
  throw new AppError(fault === 'late' ? 504 : fault === 'missing' ? 404 : 502, message, { code, cause: error });
}

/** The repository of a request. @throws AppError 400 */
export function requireRepository({ defaultRepo }: Pick<Github, 'defaultRepo'>, given: string | undefined): string {
  const repo = repositoryIn(given ?? defaultRepo ?? '');
  if (repo === undefined) throw invalid('repo: is missing; send owner/name, or set GITHUB_DEFAULT_REPO');
  return repo;
}

export interface Import {
  readonly repo: string;
  readonly issue: GithubIssue;
  /** Undefined: the general project. */
  readonly project_id: number | undefined;
  readonly assigned_to: string | null;
  readonly created_by: string;
  /** Whether an issue whose task was deleted gets a new one. */
  readonly again: boolean;
}

/** Creates the task of an issue; undefined if it exists, or another process is creating it. */
export async function importIssue(
  { commands, projects, now }: Pick<GithubWork, 'commands' | 'projects' | 'now'>,
  context: CommandContext,
  { repo, issue, project_id: projectId, again, ...rest }: Import,
): Promise<TaskRecord | undefined> {
  const { workspace } = context.origin;
  const stream = issueStream(workspace, repo, issue.number);
  const known = (await commands.load(issueDecider, stream)).state.task_id;
  let id = known;
  if (known !== 0) {
    const { state, lastAt } = await commands.load(taskDecider, taskStream(workspace, known));
    const deleted = state.id === 0 && lastAt > 0;
    if (state.id !== 0 || (deleted && !again)) return undefined;
    if (deleted) id = 0;
  }
  if (id === 0) {
    const taskId = await commands.counters.take('task');
    const claim = { repo, issue_number: issue.number, task_id: taskId };
    const { events } = await commands.execute(issueDecider, stream, context, (state) =>
      decideClaim(state, known, claim),
    );
    if (events.length === 0) return undefined;
    id = taskId;
  }
  const { ticket, project } = await takeTicket(commands, context, projects, projectId);
  const imported = { id, repo, issue, ...rest, ...ticket };
  const { events } = await commands.execute(
    taskDecider,
    taskStream(workspace, id),
    context,
    (state) => decideImport(state, imported, now()),
    { fresh: true },
  );
  if (events.length === 0) return undefined;
  const state = events.reduce(
    (before, event) => taskDecider.evolve(before, { at: event.meta.at, ...event }),
    taskDecider.initial,
  );
  return { ...recordOf(state, workspace), ...projectFields(project, ticket.project_ticket_no) };
}

/** Maximum number of issues per import request. */
const IMPORTED = 100;
/** Issues that are imported concurrently. */
const AT_ONCE = 5;

export interface ImportOutcome {
  readonly tasks: readonly TaskRecord[];
  readonly skipped: number;
  readonly failures: readonly unknown[];
}

/** Creates the tasks of issues; a failure of one does not stop the others. */
export async function importIssues(
  work: Pick<GithubWork, 'commands' | 'projects' | 'now'>,
  context: CommandContext,
  imports: readonly Import[],
): Promise<ImportOutcome> {
  const settled: PromiseSettledResult<TaskRecord | undefined>[] = [];
  for (let from = 0; from < imports.length; from += AT_ONCE) {
    const some = imports.slice(from, from + AT_ONCE).map((one) => importIssue(work, { ...context }, one));
    settled.push(...(await Promise.allSettled(some)));
  }
  const made = settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const tasks = made.filter((task) => task !== undefined);
  return {
    tasks,
    skipped: made.length - tasks.length,
    failures: settled.flatMap((one) => (one.status === 'rejected' ? [one.reason] : [])),
  };
}

export const messageOf = (error: unknown): string =>
  error instanceof GithubError || error instanceof AppError ? error.message : 'An issue could not be stored.';

/** Imports issues of a repository as tasks, and records the import. @throws AppError */
export async function syncRepository(
  work: GithubWork,
  request: CommandContext,
  repo: string,
  options: Pick<IssuesQuery, 'state' | 'labels'> & { readonly assigned_to: string | null; readonly created_by: string },
): Promise<ImportOutcome> {
  const { commands, github, reads } = work;
  const context = withoutIntents(request);
  const { workspace } = context.origin;
  const { state, labels, assigned_to, created_by } = options;
  const { issues } = await github.issues(repo, { state, labels, perPage: IMPORTED }).catch(answerWith);
  const [project] = await projectsWithRepo(reads, workspace, repo);
  // Oldest first, so that the tasks are numbered in the order of the issues.
  const imports = issues.toReversed().map((issue): Import => {
    return { repo, issue, project_id: project?.id, assigned_to, created_by, again: true };
  });
  const outcome = await importIssues(work, context, imports);
  const [failure] = outcome.failures;
  const synced = {
    source: repositorySource(repo),
    repo,
    project_id: null,
    error: failure === undefined ? null : messageOf(failure),
    issues: issues.length,
    imported: outcome.tasks.length,
    updated: 0,
    pushed: 0,
    skipped: outcome.skipped,
    errors: outcome.failures.length,
    cursor: null,
    page: 1,
  };
  const syncId = await commands.counters.take('github_sync');
  await commands.execute(syncDecider, syncStream(workspace, synced.source), context, (one) =>
    decideSynced(one, syncId, synced, false),
  );
  return outcome;
}

/** The task of an issue; null if there is none. */
async function taskOf(commands: Commands, workspace: number, repo: string, issue: number): Promise<number | null> {
  return (await commands.load(issueDecider, issueStream(workspace, repo, issue))).state.task_id || null;
}

/** @throws AppError */
export async function commentOnIssue(
  { commands, github }: Pick<GithubWork, 'commands' | 'github'>,
  context: CommandContext,
  repo: string,
  issueNumber: number,
  body: string,
): Promise<void> {
  const { workspace } = context.origin;
  await github.comment(repo, issueNumber, body).catch(answerWith);
  const taskId = await taskOf(commands, workspace, repo, issueNumber);
  const event = githubIssueCommented.draft({ repo, issue_number: issueNumber, task_id: taskId });
  await commands.record(issueStream(workspace, repo, issueNumber), context, [event]);
}

/** @param comment is posted before the issue is closed @throws AppError */
export async function closeIssue(
  { commands, github }: Pick<GithubWork, 'commands' | 'github'>,
  context: CommandContext,
  repo: string,
  issueNumber: number,
  comment: string | undefined,
): Promise<void> {
  const { workspace } = context.origin;
  if (comment) await github.comment(repo, issueNumber, comment).catch(answerWith);
  const issue = await github.updateIssue(repo, issueNumber, { state: 'closed' }).catch(answerWith);
  const taskId = await taskOf(commands, workspace, repo, issueNumber);
  const event = githubIssueClosed.draft({ repo, issue_number: issueNumber, task_id: taskId });
  await commands.record(issueStream(workspace, repo, issueNumber), context, [event]);
  if (taskId === null) return;
  await commands.execute(taskDecider, taskStream(workspace, taskId), context, (state) =>
    decideClosed(state, repo, issue),
  );
}

const COLORS: Readonly<Record<string, string>> = {
  critical: 'b60205',
  high: 'd93f0b',
  medium: 'fbca04',
  low: '0e8a16',
};
const STATUS_COLOR = '5319e7';

/** Creates the labels for status and priority in a repository, and marks its projects. @throws AppError */
export async function initLabels(work: GithubWork, context: CommandContext, repo: string): Promise<void> {
  const { commands, github, reads } = work;
  const labels = [
    ...TASK_STATUSES.map((status) => ({
      name: statusLabel(status),
      color: STATUS_COLOR,
      description: `The task is in ${status}`,
    })),
    ...PRIORITIES.map((priority) => ({
      name: priorityLabel(priority),
      color: COLORS[priority] ?? STATUS_COLOR,
      description: `Priority: ${priority}`,
    })),
  ];
  for (const label of labels) await github.createLabel(repo, label).catch(answerWith);
  for (const { id } of await projectsWithRepo(reads, context.origin.workspace, repo)) {
    await updateProject(commands, withoutIntents(context), id, { github_labels_initialized: true });
  }
}
