/**
 * GitHub over its REST API. Only one base URL is called: redirects are not followed. Responses are read up to a limit.
 * After GitHub has responded that there were too many requests, it is not called before the time that it named.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { z } from 'zod';
import {
  type Github,
  GithubError,
  type GithubIssue,
  type GithubRepository,
  type IssuesQuery,
} from '../../../shared/ports/github/client.ts';
import { frontOf, storableText } from '../../../shared/storable.ts';
import type { Config } from '../../config.ts';
import { VERSION } from '../../version.ts';
import { type Gate, OutgoingError, parsed, request } from '../request.ts';

type Settings = Pick<Config, 'githubApiUrl' | 'githubToken' | 'githubDefaultRepo' | 'githubTimeoutMs'> & {
  readonly gate?: Gate;
};

/** Maximum number of bytes in a response: a hundred issues with long texts. */
const MAX_ANSWER = 10_000_000;
/** Characters of GitHub's own words that an error quotes. */
const QUOTED = 200;
/** The minimum wait that GitHub asks for if a response names no time, seconds. */
const LIMITED_FOR = 60;
/** The maximum wait, even if the named time is further ahead, seconds. */
const LIMITED_AT_MOST = 3_600;
const REPOSITORY_PAGES = 3;
const PAGE = 100;

const words = z.string().transform(storableText);
const short = (length: number) => words.transform((text) => frontOf(text, length));

const ISSUE = z
  .object({
    number: z.int().positive(),
    title: short(500),
    body: words.nullish(),
    state: z.enum(['open', 'closed']),
    labels: z.array(
      z.union([
        short(100).transform((name) => ({ name, color: null })),
        z.object({ name: short(100), color: short(20).nullish() }),
      ]),
    ),
    assignee: z.object({ login: short(100), avatar_url: short(2_000).nullish() }).nullish(),
    html_url: short(2_000),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
    pull_request: z.unknown().optional(),
  })
  .transform(({ pull_request, html_url, created_at, updated_at, body, labels, assignee, ...issue }) => ({
    isPull: pull_request !== undefined,
    issue: {
      ...issue,
      body: body ?? null,
      labels: labels.map(({ name, color }) => ({ name, color: color ?? null })),
      assignee: assignee ? { login: assignee.login, avatarUrl: assignee.avatar_url ?? null } : null,
      url: html_url,
      createdAt: created_at,
      updatedAt: updated_at,
    } satisfies GithubIssue,
  }));

const USER = z.object({
  login: short(100),
  name: short(300).nullish(),
  avatar_url: short(2_000).nullish(),
  public_repos: z.int().default(0),
  followers: z.int().default(0),
  following: z.int().default(0),
});

const REPOSITORY = z
  .object({
    full_name: short(300),
    description: short(1_000).nullish(),
    language: short(100).nullish(),
    stargazers_count: z.int().default(0),
    forks_count: z.int().default(0),
    open_issues_count: z.int().default(0),
    pushed_at: short(40).nullish(),
    fork: z.boolean().default(false),
    private: z.boolean().default(false),
    html_url: short(2_000),
  })
  .transform(
    (one): GithubRepository => ({
      name: one.full_name,
      description: one.description ?? null,
      language: one.language ?? null,
      stars: one.stargazers_count,
      forks: one.forks_count,
      openIssues: one.open_issues_count,
      pushedAt: one.pushed_at ?? null,
      isFork: one.fork,
      isPrivate: one.private,
      url: one.html_url,
    }),
  );

const REF = z.object({ object: z.object({ sha: z.string().regex(/^[0-9a-f]{40,64}$/) }) });
const PULL = z.object({ number: z.int().positive(), html_url: short(2_000) });

interface Asked {
  readonly method?: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  readonly body?: object;
  readonly signal?: AbortSignal | undefined;
  /** Statuses besides 2xx that are not failures. */
  readonly also?: readonly number[];
}
interface GithubResponse {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: unknown;
}

/** The port's names of faults below HTTP. */
const FAULTS = { late: 'late', offline: 'offline', large: 'refused', address: 'offline' } as const;

/** @param now Unix ms */
export function createGithub(options: Settings, now: () => number = Date.now): Github {
  const { githubToken: token, githubTimeoutMs: timeoutMs } = options;
  const base = options.githubApiUrl.replace(/\/+$/, '');
  let limitedUntil = 0;

  async function ask(path: string, asked: Asked = {}): Promise<GithubResponse> {
    if (token === undefined) {
      throw new GithubError(
        'unset',
        'GitHub is not connected: set GITHUB_TOKEN to a token that may read and write issues.',
      );
    }
    if (now() < limitedUntil) throw limited(Math.ceil((limitedUntil - now()) / 1_000));
    const { method = 'GET', body, signal, also = [] } = asked;
    let response: GithubResponse;
    try {
      const { status, headers, text } = await request(`${base}${path}`, {
        who: 'GitHub',
        via: 'proxy',
        method,
        headers: {
          accept: 'application/vnd.github+json',
          'x-github-api-version': '2022-11-28',
          'user-agent': `signalbox/${VERSION}`,
          authorization: `Bearer ${token}`,
          ...(body && { 'content-type': 'application/json' }),
        },
        body: body && JSON.stringify(body),
        signal,
        timeoutMs,
        maxBytes: MAX_ANSWER,
        gate: options.gate,
      });
      response = { status, headers, body: parsed(text) };
    } catch (error) {
      if (!(error instanceof OutgoingError)) throw error;
      throw new GithubError(FAULTS[error.fault], error.message, { cause: error });
    }
    const { status } = response;
    if ((status >= 200 && status < 300) || also.includes(status)) return response;
    throw failureOf(response);
  }

  function failureOf({ status, headers, body }: GithubResponse): GithubError {
    const wait = waitOf(status, headers, now());
    if (wait !== undefined) {
      limitedUntil = now() + wait * 1_000;
      return limited(wait);
    }
    const said = (body as { readonly message?: unknown } | null | undefined)?.message;
    const quoted =
      typeof said === 'string' && said !== ''
        ? `: ${frontOf(storableText(said), QUOTED).replaceAll(token ?? '\0', '…')}`
        : '';
    if (status === 401) return new GithubError('refused', 'GitHub does not accept the token; check GITHUB_TOKEN.');
    if (status === 403) return new GithubError('refused', `The token lacks permission for this at GitHub${quoted}.`);
    if (status === 404 || status === 410)
      return new GithubError('missing', `GitHub has no such record, or the token may not see it${quoted}.`);
    if (status >= 300 && status < 400)
      return new GithubError('missing', 'The repository has moved at GitHub; use its new name.');
    return new GithubError('refused', `GitHub responded with status ${status}${quoted}.`);
  }

  async function read<T>(schema: z.ZodType<T>, path: string, asked?: Asked): Promise<T> {
    const result = schema.safeParse((await ask(path, asked)).body);
    if (!result.success) throw new GithubError('refused', 'GitHub returned an unexpected response.');
    return result.data;
  }

  const of = (repo: string, rest: string): string =>
    `/repos/${repo.split('/').map(encodeURIComponent).join('/')}${rest}`;

  return {
    configured: token !== undefined,
    defaultRepo: options.githubDefaultRepo,
    async issues(repo, query, signal) {
      const { headers, body } = await ask(of(repo, `/issues?${paramsOf(query)}`), { signal });
      const result = z.array(ISSUE).safeParse(body);
      if (!result.success) throw new GithubError('refused', 'GitHub returned something other than a list of issues.');
      return {
        issues: result.data.flatMap(({ isPull, issue }) => (isPull ? [] : [issue])),
        last: result.data.at(-1)?.issue.updatedAt,
        more: /<[^>]*>;\s*rel="next"/.test(String(headers.link ?? '')),
      };
    },
    updateIssue: async (repo, issue, changes, signal) =>
      (await read(ISSUE, of(repo, `/issues/${issue}`), { method: 'PATCH', body: changes, signal })).issue,
    async comment(repo, issue, body) {
      await ask(of(repo, `/issues/${issue}/comments`), { method: 'POST', body: { body } });
    },
    async addLabels(repo, issue, names, signal) {
      await ask(of(repo, `/issues/${issue}/labels`), { method: 'POST', body: { labels: names }, signal });
    },
    async hasIssue(repo, issue, signal) {
      // 301: the issue has moved to another repository.
      const { status } = await ask(of(repo, `/issues/${issue}`), { also: [301, 404, 410], signal });
      return status < 300;
    },
    async removeLabel(repo, issue, name, signal) {
      const path = of(repo, `/issues/${issue}/labels/${encodeURIComponent(name)}`);
      await ask(path, { method: 'DELETE', also: [404], signal });
    },
    async createLabel(repo, label) {
      // 422: a label with this name already exists.
      await ask(of(repo, '/labels'), { method: 'POST', body: label, also: [422] });
    },
    async createBranch(repo, name, from) {
      const head = await read(REF, of(repo, `/git/ref/heads/${from.split('/').map(encodeURIComponent).join('/')}`));
      const body = { ref: `refs/heads/${name}`, sha: head.object.sha };
      const response = await ask(of(repo, '/git/refs'), { method: 'POST', body, also: [422] });
      const said = (response.body as { readonly message?: unknown } | null | undefined)?.message;
      if (response.status === 422 && !/already exists/i.test(String(said))) throw failureOf(response);
    },
    async openPull(repo, { branch, base: onto, title, body }) {
      const [owner = ''] = repo.split('/');
      const query = new URLSearchParams({ head: `${owner}:${branch}`, base: onto, state: 'open' });
      const [open] = await read(z.array(PULL), of(repo, `/pulls?${query}`));
      const pull =
        open ??
        (await read(PULL, of(repo, '/pulls'), { method: 'POST', body: { head: branch, base: onto, title, body } }));
      return { number: pull.number, url: pull.html_url };
    },
    async user() {
      const { login, name, avatar_url, public_repos, followers, following } = await read(USER, '/user');
      return {
        login,
        name: name ?? null,
        avatarUrl: avatar_url ?? null,
        publicRepos: public_repos,
        followers,
        following,
      };
    },
    async repositories() {
      const found: GithubRepository[] = [];
      for (let page = 1; page <= REPOSITORY_PAGES; page++) {
        const some = await read(z.array(REPOSITORY), `/user/repos?sort=pushed&per_page=${PAGE}&page=${page}`);
        found.push(...some);
        if (some.length < PAGE) break;
      }
      return found;
    },
    branchUrl: (repo, branch) => `${webUrlOf(base)}/${repo}/tree/${branch}`,
  };
}

/** The pages for people that belong to an API: github.com for api.github.com, the host itself for `/api/v3`. */
function webUrlOf(base: string): string {
  const { protocol, host } = new URL(base);
  return `${protocol}//${host.replace(/^api\./, '')}`;
}

function paramsOf({ state, labels, since, perPage, page = 1 }: IssuesQuery): URLSearchParams {
  return new URLSearchParams({
    state,
    per_page: String(perPage),
    page: String(page),
    ...(labels !== undefined && labels !== '' && { labels }),
    ...(since !== undefined && { since }),
    // In the order of changes, so that an interrupted read knows its position.
    sort: 'updated',
    direction: since === undefined ? 'desc' : 'asc',
  });
}

const limited = (seconds: number): GithubError =>
  new GithubError('limited', `GitHub got too many requests; try again in ${seconds} s.`, {
    retryAfter: seconds,
  });

/** The wait that GitHub asks for, seconds; undefined if it asks for none. */
function waitOf(status: number, headers: IncomingHttpHeaders, now: number): number | undefined {
  if (status !== 403 && status !== 429) return undefined;
  const bounded = (seconds: number) => Math.min(Math.max(Math.ceil(seconds), 1), LIMITED_AT_MOST);
  const after = headers['retry-after'];
  if (after !== undefined && /^\d{1,6}$/.test(after)) return bounded(Number(after));
  const reset = headers['x-ratelimit-reset'];
  if (headers['x-ratelimit-remaining'] === '0' && typeof reset === 'string' && /^\d{1,12}$/.test(reset))
    return bounded(Number(reset) - now / 1_000);
  return status === 429 ? LIMITED_FOR : undefined;
}
