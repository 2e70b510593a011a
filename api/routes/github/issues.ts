/** Issues of GitHub: listed, imported as tasks, commented on, closed. The token is the deployment's. */

import {
  answerWith,
  closeIssue,
  commentOnIssue,
  type GithubWork,
  initLabels,
  messageOf,
  requireRepository,
  syncRepository,
} from '../../../commands/github/issues.ts';
import { syncProject } from '../../../commands/schedules/github/syncs.ts';
import { findGithubProject, listSyncs } from '../../../queries/github/syncs.ts';
import { withDisplayNames } from '../../../queries/names.ts';
import { projectDirectory, projectRecord } from '../../../queries/projects/projects.ts';
import { errorSchema } from '../../../shared/contract/common.ts';
import * as contract from '../../../shared/contract/github/issues.ts';
import { invalid, notFound } from '../../../shared/errors.ts';
import { authorOf } from '../../../shared/identity.ts';
import type { Github, GithubIssue } from '../../../shared/ports/github/client.ts';
import { type Call, defineRoute, type Route } from '../../http/route.ts';

/** Responses for failures of GitHub, in addition to the route's own errors. */
export const GITHUB_FAILURES = {
  502: { description: 'GitHub cannot be reached, or refuses', schema: errorSchema },
  504: { description: 'GitHub did not respond in time', schema: errorSchema },
} as const;

/** Reads as of the arrival of the request, so that they do not wait for events that this request appended. */
export const githubWork = ({ services, context }: Pick<Write, 'services' | 'context'>): GithubWork => {
  const { commands, github, reads, now } = services;
  const then = reads.at({ since: context.startedAt });
  return { commands, github, projects: projectDirectory(then), reads: then, now };
};

/** Issues in a response. */
const LISTED = 50;

const shown = ({ labels, assignee, url, createdAt, updatedAt, ...issue }: GithubIssue) => ({
  ...issue,
  labels: labels.map(({ name, color }) => ({ name, ...(color !== null && { color }) })),
  assignee: assignee && {
    login: assignee.login,
    ...(assignee.avatarUrl !== null && { avatar_url: assignee.avatarUrl }),
  },
  html_url: url,
  created_at: createdAt,
  updated_at: updatedAt,
});

const RECENT = 10;
const LANGUAGES = 6;

async function statsOf(github: Github) {
  const [user, all] = await Promise.all([github.user(), github.repositories()]);
  const sum = (of: 'stars' | 'forks' | 'openIssues') => all.reduce((before, one) => before + one[of], 0);
  const languages = new Map<string, number>();
  for (const { language } of all) if (language !== null) languages.set(language, (languages.get(language) ?? 0) + 1);
  const hidden = all.filter(({ isPrivate }) => isPrivate).length;
  return {
    user: {
      login: user.login,
      name: user.name,
      avatar_url: user.avatarUrl,
      public_repos: user.publicRepos,
      followers: user.followers,
      following: user.following,
    },
    repos: {
      total: all.length,
      public: all.length - hidden,
      private: hidden,
      total_stars: sum('stars'),
      total_forks: sum('forks'),
      total_open_issues: sum('openIssues'),
    },
    topLanguages: [...languages]
      .map(([name, count]) => ({ name, count }))
      .sort((a, b) => b.count - a.count || a.name.localeCompare(b.name))
      .slice(0, LANGUAGES),
    recentRepos: all.slice(0, RECENT).map((one) => ({
      name: one.name,
      description: one.description,
      language: one.language,
      stars: one.stars,
      forks: one.forks,
      open_issues: one.openIssues,
      pushed_at: one.pushedAt,
      is_fork: one.isFork,
      is_private: one.isPrivate,
      html_url: one.url,
    })),
  };
}

const read = defineRoute({
  method: 'get',
  path: '/api/github',
  noPast: 'GitHub is asked',
  summary: 'Issues of a repository, or the account of the token',
  access: 'operator',
  rules: { agentKeys: 'admin', strict: 'refused', past: 'none', prompts: 'none' },
  scope: 'deployment',
  query: contract.githubQuery,
  refuses: [404],
  responses: {
    200: { description: 'Issues, or numbers of the account', schema: contract.githubReadResponse },
    ...GITHUB_FAILURES,
  },
  async respond({ query, services: { github } }) {
    if (query.action === 'stats') return statsOf(github).catch(answerWith);
    const repo = requireRepository(github, query.repo);
    const { state = 'open', labels } = query;
    const { issues } = await github.issues(repo, { state, labels, perPage: LISTED }).catch(answerWith);
    return { issues: issues.map(shown), total: issues.length, repo };
  },
});

type Write = Pick<
  Call<unknown, unknown, contract.GithubBody, 'operator'>,
  'body' | 'identity' | 'services' | 'command' | 'context'
>;

/** A field that an action requires. @throws AppError 400 */
function needed<F extends keyof contract.GithubBody>(
  body: contract.GithubBody,
  field: F,
): NonNullable<contract.GithubBody[F]> {
  const value = body[field];
  if (value === undefined || value === null) throw invalid(`${field}: is missing; ${body.action} needs it`);
  return value as NonNullable<contract.GithubBody[F]>;
}

/** @param done changes on either side @throws AppError GitHub's refusal if nothing was done */
export function outcomeOf(failures: readonly unknown[], done: number) {
  const [failure] = failures;
  if (failure !== undefined && done === 0) answerWith(failure);
  return failures.length === 0 ? { ok: true } : { ok: false, errors: failures.map(messageOf) };
}

/**
 * Syncs one project now.
 *
 * @throws AppError 400 when its sync is off, 404, and GitHub's refusal if nothing else was done
 */
export async function syncNow(call: Omit<Write, 'body'>, id: number) {
  const { services, identity, command } = call;
  const work = githubWork(call);
  const project = await findGithubProject(work.reads, identity.workspace, id);
  if (!project) {
    const record = await projectRecord(services.reads, identity.workspace, id);
    if (record?.status !== 'active') throw notFound('Project');
  }
  if (!project?.syncEnabled)
    throw invalid('This project is not synced: set its github_repo and github_sync_enabled with PATCH first.');
  if (!services.github.configured) await services.github.user().catch(answerWith);
  const { pulled, pushed, failures } = await syncProject(work, command, project, { quiet: false });
  return { ...outcomeOf(failures, pulled + pushed), pulled, pushed };
}

const actions: Readonly<Record<contract.GithubBody['action'], (call: Write) => Promise<object>>> = {
  async sync(call) {
    const { body, identity, services, command } = call;
    const repo = requireRepository(services.github, body.repo);
    const { tasks, skipped, failures } = await syncRepository(githubWork(call), command, repo, {
      state: body.state ?? 'open',
      labels: body.labels,
      assigned_to: body.assignAgent?.trim() || null,
      created_by: authorOf(identity),
    });
    const shown = await withDisplayNames(services.displayNames, identity.workspace, tasks, ['created_by']);
    return { imported: tasks.length, skipped, errors: failures.length, tasks: shown };
  },
  async comment(call) {
    const { body, services, command } = call;
    const repo = requireRepository(services.github, body.repo);
    const [issue, text] = [needed(body, 'issueNumber'), needed(body, 'body')];
    await commentOnIssue(githubWork(call), command, repo, issue, text);
    return { ok: true };
  },
  async close(call) {
    const { body, services, command } = call;
    const repo = requireRepository(services.github, body.repo);
    await closeIssue(githubWork(call), command, repo, needed(body, 'issueNumber'), body.comment);
    return { ok: true };
  },
  status: async ({ identity, services }) => ({ syncs: await listSyncs(services.reads, identity.workspace) }),
  async 'init-labels'(call) {
    const { body, services, command } = call;
    const repo = requireRepository(services.github, body.repo);
    await initLabels(githubWork(call), command, repo);
    return { ok: true, repo };
  },
  'sync-project': (call) => syncNow(call, needed(call.body, 'project_id')),
};

const write = defineRoute({
  method: 'post',
  path: '/api/github',
  summary: 'Import issues as tasks, comment on or close an issue, create labels, or sync a project',
  description:
    'An issue has at most one task, even if it is imported repeatedly or concurrently. A project is synchronised both ways: newer changes of its issues are copied to their tasks, then newer changes of the tasks to the issues.',
  access: 'operator',
  rules: { agentKeys: 'admin', strict: 'refused', past: 'none', prompts: 'screened' },
  scope: 'deployment',
  body: contract.githubBody,
  refuses: [404],
  responses: { 200: { description: 'What was done', schema: contract.githubWriteResponse }, ...GITHUB_FAILURES },
  respond: async (call) => (await actions[call.body.action](call)) as never,
});

export const githubIssueRoutes: readonly Route[] = [read, write];
