/**
 * Syncs projects with their repositories on a schedule: first newer changes from GitHub, then newer changes from here.
 *
 * Every step may be repeated: an issue has one task, a pull without changes is no event, and a push sets fields to
 * their final values. If a process dies halfway, the next turn does the rest.
 */
import { type GithubProject, syncedProjects, tasksToPush } from '../../../queries/github/syncs.ts';
import { repositoryIn } from '../../../shared/contract/github/issues.ts';
import { AppError } from '../../../shared/errors.ts';
import { newId } from '../../../shared/ids.ts';
import { GithubError, type GithubIssue } from '../../../shared/ports/github/client.ts';
import { seconds } from '../../../shared/time.ts';
import { type GithubWork, type Import, importIssues, messageOf } from '../../github/issues.ts';
import { decideGone, decidePull, decidePushed, issueDecider, issueStream, pushOf } from '../../github/links.ts';
import { cursorFor, decideSynced, pageFor, projectSource, syncDecider, syncStream } from '../../github/syncs.ts';
import type { CommandContext } from '../../handler.ts';
import { withoutIntents } from '../../intents.ts';
import { scheduledContext } from '../../policies/policy.ts';
import { taskDecider, taskStream } from '../../tasks/tasks.ts';
import { counted, isOn, type Place, paged, type Schedule, type Setting } from '../schedule.ts';

/** Issues per page, and pages per turn. */
const PAGE = 100;
const MAX_PAGES = 10;
/** Issues that one turn changes. */
const MAX_PUSHED = 100;
/** Projects per page. */
const PROJECTS = 100;

export interface ProjectSynced {
  readonly pulled: number;
  readonly pushed: number;
  /** What failed; each names its issue, if it is about one. */
  readonly failures: readonly unknown[];
}

interface Pulled {
  issues: number;
  imported: number;
  updated: number;
  skipped: number;
  cursor: string | null;
  page: number;
}

/** Whether an error stops the turn, because GitHub would not answer the next call either. */
const isFatal = (error: unknown): boolean =>
  !(error instanceof AppError) && !(error instanceof GithubError && ['missing', 'refused'].includes(error.fault));

/**
 * Syncs one project, and records the sync.
 *
 * @param quiet it is a scheduled sync
 * @param signal stops it; the next turn does the rest
 */
export async function syncProject(
  work: GithubWork,
  request: CommandContext,
  project: GithubProject,
  { quiet, signal }: { readonly quiet: boolean; readonly signal?: AbortSignal },
): Promise<ProjectSynced> {
  const { commands } = work;
  const context = withoutIntents(request);
  const source = projectSource(project.id);
  const stream = syncStream(project.workspace, source);
  const { state } = await commands.load(syncDecider, stream);
  const repo = repositoryIn(project.repo);
  const failures: unknown[] = [];
  const pulled: Pulled = { issues: 0, imported: 0, updated: 0, skipped: 0, cursor: null, page: 1 };
  let pushed = 0;
  try {
    if (repo === undefined) {
      throw new GithubError('refused', 'The github_repo of the project is not a repository; set it to owner/name.');
    }
    const since = { cursor: cursorFor(state, repo), page: pageFor(state, repo) };
    await pull(work, context, { ...project, repo }, since, pulled, failures, signal);
    pushed = await push(work, context, { ...project, repo }, failures, signal);
  } catch (error) {
    if (signal?.aborted) throw error;
    failures.push(error);
  }
  const [failure] = failures;
  const syncId = await commands.counters.take('github_sync');
  const synced = {
    ...pulled,
    source,
    repo: repo ?? project.repo,
    project_id: project.id,
    error: failure === undefined ? null : messageOf(failure),
    pushed,
    errors: failures.length,
  };
  await commands.execute(syncDecider, stream, { ...context }, (now) => decideSynced(now, syncId, synced, quiet));
  return { pulled: pulled.imported + pulled.updated, pushed, failures };
}

/** Pulls newer changes from GitHub. The first sync reads only open issues: the others are history. */
async function pull(
  work: GithubWork,
  context: CommandContext,
  project: GithubProject,
  { cursor: since, page: sincePage }: { readonly cursor: string | null; readonly page: number },
  done: Pulled,
  failures: unknown[],
  signal: AbortSignal | undefined,
): Promise<void> {
  const { repo } = project;
  const state = since === null ? 'open' : 'all';
  const known = new Set<string>();
  // An issue that changed since moved the others down, so a page is read again.
  let [from, page] = [since ?? '1970-01-01T00:00:00Z', Math.max(sincePage - 1, 1)];
  for (let read = 0; read < MAX_PAGES; read++) {
    const { issues, last, more } = await work.github.issues(repo, { state, since: from, perPage: PAGE, page }, signal);
    const fresh: Import[] = [];
    for (const issue of issues) {
      signal?.throwIfAborted();
      const version = `${issue.number} ${issue.updatedAt}`;
      if (known.has(version)) continue;
      known.add(version);
      done.issues++;
      const outcome = await pullIssue(work, context, repo, issue).catch((error) => {
        if (isFatal(error)) throw error;
        failures.push(aboutIssue(repo, issue.number, error));
        return 'known' as const;
      });
      if (outcome === 'unknown') {
        const named = { repo, issue, project_id: project.id };
        fresh.push({ ...named, assigned_to: null, created_by: 'github-sync', again: false });
      } else if (outcome === 'updated') done.updated++;
      else done.skipped++;
    }
    const imported = await importIssues(work, context, fresh);
    done.imported += imported.tasks.length;
    done.skipped += imported.skipped;
    failures.push(...imported.failures);
    // Failed issues are read again; the others of this turn go on.
    const moves = failures.length === 0;
    // Pull requests alone move the cursor only where the next page could otherwise not be reached.
    if (moves) done.cursor = (more ? last : issues.at(-1)?.updatedAt) ?? done.cursor;
    if (!more) return;
    // The next page begins with the end of this one: an issue that changes meanwhile moves to the end of the list, so
    // the others are no longer on the page of their number.
    page = last === undefined || last === from ? page + 1 : 1;
    from = last ?? from;
    if (moves) done.page = page;
  }
}

/** The same error, with the issue that it is about. */
function aboutIssue(repo: string, issue: number, error: unknown): unknown {
  const named = `Issue ${repo}#${issue}: ${messageOf(error)}`;
  if (error instanceof GithubError)
    return new GithubError(error.fault, named, {
      cause: error,
      ...(error.retryAfter && { retryAfter: error.retryAfter }),
    });
  return error instanceof AppError ? new AppError(error.status, named, { ...error.extras, cause: error }) : error;
}

/** `unknown`: no task is linked to the issue. */
async function pullIssue(
  { commands, now }: GithubWork,
  context: CommandContext,
  repo: string,
  issue: GithubIssue,
): Promise<'unknown' | 'known' | 'updated'> {
  const { workspace } = context.origin;
  const { state } = await commands.load(issueDecider, issueStream(workspace, repo, issue.number));
  if (state.task_id === 0) return issue.state === 'open' ? 'unknown' : 'known';
  const stream = taskStream(workspace, state.task_id);
  const task = await commands.load(taskDecider, stream);
  // A process claimed the issue, and died before it created the task.
  if (task.lastAt === 0) return 'unknown';
  if (decidePull(task.state, repo, issue, seconds(now())).length === 0) return 'known';
  const { events } = await commands.execute(taskDecider, stream, { ...context }, (current) =>
    decidePull(current, repo, issue, seconds(now())),
  );
  return events.length > 0 ? 'updated' : 'known';
}

/** Pushes newer changes from here. @returns how many issues were changed */
async function push(
  work: GithubWork,
  context: CommandContext,
  project: GithubProject,
  failures: unknown[],
  signal: AbortSignal | undefined,
): Promise<number> {
  let pushed = 0;
  for (const id of await tasksToPush(work.reads, project.workspace, project.id, MAX_PUSHED)) {
    signal?.throwIfAborted();
    try {
      if (await pushTask(work, context, project, id, signal)) pushed++;
    } catch (error) {
      if (isFatal(error)) throw error;
      failures.push(error);
      if (error instanceof GithubError && error.fault === 'missing') await noteGone(work, context, project, id, signal);
    }
  }
  return pushed;
}

/**
 * Records a missing issue, so that it is not requested again: that would fail every time. The repository has just been
 * read. GitHub also responds 404 to a token without write access, so the issue is looked up first.
 */
async function noteGone(
  { commands, github }: GithubWork,
  context: CommandContext,
  { workspace, repo }: GithubProject,
  id: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  const stream = taskStream(workspace, id);
  const { state } = await commands.load(taskDecider, stream);
  const [gone] = decideGone(state, repo);
  const { github_issue_number: issue } = state.source ?? {};
  if (!gone || !issue || (await github.hasIssue(repo, issue, signal))) return;
  await commands.execute(taskDecider, stream, { ...context }, (current) => decideGone(current, repo));
}

async function pushTask(
  { commands, github }: GithubWork,
  context: CommandContext,
  { workspace, labels }: GithubProject,
  id: number,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const stream = taskStream(workspace, id);
  const { state } = await commands.load(taskDecider, stream);
  const wanted = pushOf(state, labels);
  const { github_repo: repo, github_issue_number: issue } = state.source ?? {};
  if (!wanted || !repo || !issue) return false;
  const { fields, addLabels, removeLabels, refused } = wanted;
  const isChange = Object.keys(fields).length + addLabels.length + removeLabels.length > 0;
  try {
    const changed = Object.keys(fields).length > 0 ? await github.updateIssue(repo, issue, fields, signal) : undefined;
    if (addLabels.length > 0) await github.addLabels(repo, issue, addLabels, signal);
    for (const label of removeLabels) await github.removeLabel(repo, issue, label, signal);
    if (isChange || refused.length === 0)
      await commands.execute(taskDecider, stream, { ...context }, (current) => decidePushed(current, wanted, changed));
  } catch (error) {
    throw isFatal(error) ? error : aboutIssue(repo, issue, error);
  }
  if (refused.length > 0) throw new GithubError('refused', `Issue ${repo}#${issue}, ${refused.join('; ')}.`);
  return isChange;
}

/**
 * Syncs all projects whose sync is on. A failed project does not stop the others, unless GitHub is unreachable or
 * refuses further requests.
 *
 * @param options.workspace only projects of this one
 */
export async function syncProjects(
  work: GithubWork,
  options: { readonly signal?: AbortSignal; readonly workspace?: number; readonly context?: CommandContext },
): Promise<{
  readonly projects: number;
  readonly pulled: number;
  readonly pushed: number;
  readonly failures: readonly unknown[];
}> {
  const { signal, workspace, context } = options;
  const run = newId();
  const total = { projects: 0, pulled: 0, pushed: 0, failures: [] as unknown[] };
  const page = (after: Place, limit: number) => syncedProjects(work.reads, after, limit, workspace);
  for await (const project of paged(page, PROJECTS)) {
    signal?.throwIfAborted();
    const own = context ?? scheduledContext(run, project.tenant, project.workspace);
    const quiet = context === undefined;
    const { pulled, pushed, failures } = await syncProject(work, own, project, { quiet, ...(signal && { signal }) });
    total.projects++;
    total.pulled += pulled;
    total.pushed += pushed;
    total.failures.push(...failures);
    if (failures.some(isFatal)) break;
  }
  return total;
}

export function githubSchedule(parts: GithubWork & { readonly setting: Setting; readonly everyMs: number }): Schedule {
  const { github, setting, everyMs } = parts;
  const on = isOn(setting, 'general.github_sync');
  return {
    id: 'github_sync',
    kind: 'github-sync',
    name: 'Sync projects with their GitHub repositories',
    everyMs,
    enabled: async () => github.configured && (await on()),
    async run(_asked, signal) {
      if (!github.configured) return 'GitHub is not connected: GITHUB_TOKEN is not set.';
      const { projects, pulled, pushed, failures } = await syncProjects(parts, { signal });
      if (failures.length > 0) throw failures[0];
      return `${counted(projects, 'project was', 'projects were')} synced: ${pulled} pulled, ${pushed} pushed.`;
    },
  };
}
