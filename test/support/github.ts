/** A local server that plays GitHub's REST API: repositories with issues, labels, comments, branches and pull requests. */
import type { IncomingMessage } from 'node:http';
import { listen } from './listen.ts';

export const GITHUB_TOKEN = 'ghp_very-private-token';

export interface FakeIssue {
  readonly number: number;
  title: string;
  body: string | null;
  state: 'open' | 'closed';
  labels: string[];
  updatedAt: number;
  readonly isPull: boolean;
}

interface Repository {
  readonly issues: FakeIssue[];
  readonly labels: Set<string>;
  readonly comments: { readonly issue: number; readonly body: string }[];
  readonly branches: Map<string, string>;
  readonly pulls: {
    readonly number: number;
    readonly head: string;
    readonly base: string;
    readonly title: string;
    readonly body: string;
  }[];
}

export interface FakeGithub {
  readonly url: string;
  /** What it does from now on. */
  mode: 'well' | 'read-only' | 'broken' | 'silent' | 'redirects' | 'limited' | 'spent' | 'garbage';
  /** Called when it has made its answer to a request. */
  answered: (line: string) => void;
  /** Requests it has had. */
  readonly seen: { readonly line: string; readonly authorization: string | undefined }[];
  /** A repository; made when it is first asked for. */
  repo(name: string): Repository;
  /** Puts an issue into a repository, or changes one; it is newer than all before. */
  issue(repo: string, fields: Partial<FakeIssue> & { readonly number?: number }): FakeIssue;
  close(): Promise<void>;
}

const SHA = 'a'.repeat(40);
/** Each change is a second later than the one before. It begins far ahead, so that changes here are newer than those of tasks. */
const FIRST = Date.parse('2090-01-01T00:00:00Z');
const iso = (at: number): string => new Date(at).toISOString().replace('.000Z', 'Z');

async function bodyOf(req: IncomingMessage) {
  let text = '';
  for await (const chunk of req) text += chunk;
  return text === '' ? {} : JSON.parse(text);
}

export async function startFakeGithub(): Promise<FakeGithub> {
  const repos = new Map<string, Repository>();
  let changes = 0;
  let resetAt = 0;
  const later = () => FIRST + ++changes * 1_000;

  const issueJson = (repo: string, one: FakeIssue) => ({
    number: one.number,
    title: one.title,
    body: one.body,
    state: one.state,
    labels: one.labels.map((name) => ({ name, color: 'ededed' })),
    assignee: { login: 'octo', avatar_url: 'https://example.org/octo.png' },
    html_url: `https://example.org/${repo}/issues/${one.number}`,
    created_at: iso(FIRST),
    updated_at: iso(one.updatedAt),
    ...(one.isPull && { pull_request: { url: 'x' } }),
  });

  // biome-ignore lint/suspicious/noExplicitAny: bodies are looked into freely.
  function answer(method: string, url: URL, body: any): { status: number; body?: unknown; link?: string } {
    const path = url.pathname;
    if (path === '/user')
      return { status: 200, body: { login: 'octo', name: null, public_repos: 2, followers: 3, following: 4 } };
    if (path === '/user/repos') {
      const more = { stargazers_count: 2, forks_count: 1, open_issues_count: 5, pushed_at: iso(FIRST) };
      const named = (name: string, language: string | null, hidden: boolean) => ({
        ...more,
        ...{ full_name: name, language, private: hidden, fork: false, html_url: `https://example.org/${name}` },
      });
      return { status: 200, body: [named('octo/a', 'TypeScript', false), named('octo/b', 'TypeScript', true)] };
    }
    const [, owner, name, rest = ''] = /^\/repos\/([^/]+)\/([^/]+)\/(.*)$/.exec(path) ?? [];
    const repo = [...repos].find(([one]) => one.toLowerCase() === `${owner}/${name}`.toLowerCase());
    if (!repo) return { status: 404, body: { message: 'Not Found' } };
    const [full, { issues, labels, comments, branches, pulls }] = repo;
    const asked = (key: string) => url.searchParams.get(key);
    if (rest === 'issues') {
      const wanted = (asked('labels') ?? '').split(',').filter((one) => one !== '');
      const since = Date.parse(asked('since') ?? iso(0));
      const found = issues
        .filter(({ state }) => asked('state') === 'all' || state === asked('state'))
        .filter((one) => wanted.every((label) => one.labels.includes(label)))
        .filter(({ updatedAt }) => updatedAt >= since)
        .sort((a, b) => (asked('direction') === 'asc' ? a.updatedAt - b.updatedAt : b.updatedAt - a.updatedAt));
      const [per, page] = [Number(asked('per_page')), Number(asked('page'))];
      const link = found.length > per * page ? `<${url.origin}/next>; rel="next"` : undefined;
      const shown = found.slice(per * (page - 1), per * page).map((one) => issueJson(full, one));
      return { status: 200, body: shown, ...(link && { link }) };
    }
    const [, number, what] = /^issues\/(\d+)(\/.*)?$/.exec(rest) ?? [];
    const one = issues.find((issue) => issue.number === Number(number));
    if (number !== undefined && !one) return { status: 404, body: { message: 'Not Found' } };
    if (one && what === undefined) {
      if (body.title?.length > 256)
        return { status: 422, body: { message: 'Validation Failed', errors: [{ field: 'title', code: 'custom' }] } };
      if (method !== 'GET') Object.assign(one, body, { updatedAt: later() });
      return { status: 200, body: issueJson(full, one) };
    }
    if (one && what === '/comments') {
      comments.push({ issue: one.number, body: body.body });
      return { status: 201, body: { id: comments.length } };
    }
    if (one && what === '/labels') {
      one.labels = [...new Set([...one.labels, ...body.labels])];
      one.updatedAt = later();
      return { status: 200, body: [] };
    }
    if (one && what?.startsWith('/labels/') && method === 'DELETE') {
      const label = decodeURIComponent(what.slice('/labels/'.length));
      if (!one.labels.includes(label)) return { status: 404, body: { message: 'Label does not exist' } };
      one.labels = one.labels.filter((other) => other !== label);
      return { status: 200, body: [] };
    }
    if (rest === 'labels') {
      if (labels.has(body.name)) return { status: 422, body: { message: 'Validation Failed' } };
      labels.add(body.name);
      return { status: 201, body: {} };
    }
    if (rest.startsWith('git/ref/heads/')) {
      const sha = branches.get(rest.slice('git/ref/heads/'.length));
      return sha ? { status: 200, body: { object: { sha } } } : { status: 404, body: { message: 'Not Found' } };
    }
    if (rest === 'git/refs') {
      const branch = String(body.ref).replace('refs/heads/', '');
      if (branches.has(branch)) return { status: 422, body: { message: 'Reference already exists' } };
      branches.set(branch, body.sha);
      return { status: 201, body: {} };
    }
    if (rest === 'pulls') {
      const json = (pull: Repository['pulls'][number]) => ({
        number: pull.number,
        html_url: `https://example.org/${full}/pull/${pull.number}`,
      });
      if (method === 'GET')
        return { status: 200, body: pulls.filter(({ head }) => `${owner}:${head}` === asked('head')).map(json) };
      const pull = { number: 500 + pulls.length, ...body };
      pulls.push(pull);
      return { status: 201, body: json(pull) };
    }
    return { status: 404, body: { message: `the fake knows no ${method} ${path}` } };
  }

  const server = await listen((req, res) => {
    bodyOf(req).then(
      (body) => {
        github.seen.push({ line: `${req.method} ${req.url}`, authorization: req.headers.authorization });
        const { mode } = github;
        if (mode === 'silent') return;
        const url = new URL(req.url ?? '/', 'http://github.test');
        res.setHeader('content-type', 'application/json');
        if (mode === 'redirects') res.writeHead(301, { location: 'http://127.0.0.1:1/' }).end('{}');
        else if (mode === 'broken') res.writeHead(500).end('{"message":"oops"}');
        else if (mode === 'garbage') res.writeHead(200).end('<html>');
        else if (mode === 'limited') res.writeHead(429, { 'retry-after': '7' }).end('{"message":"slow down"}');
        else if (mode === 'spent') {
          resetAt = Math.ceil(Date.now() / 1_000) + 90;
          res.writeHead(403, { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(resetAt) }).end('{}');
        } else if (mode === 'read-only' && req.method !== 'GET') {
          // As for a token without the right to write.
          res.writeHead(404).end('{"message":"Not Found"}');
        } else if (req.headers.authorization !== `Bearer ${GITHUB_TOKEN}`) {
          res.writeHead(401).end('{"message":"Bad credentials"}');
        } else {
          const { status, body: said, link } = answer(req.method ?? '', url, body);
          github.answered(`${req.method} ${req.url}`);
          res.writeHead(status, { ...(link && { link }) }).end(JSON.stringify(said ?? null));
        }
      },
      () => res.destroy(),
    );
  });
  const github: FakeGithub = {
    url: server.url,
    mode: 'well',
    answered: () => undefined,
    seen: [],
    repo(name) {
      const known = repos.get(name);
      if (known) return known;
      const made: Repository = {
        issues: [],
        labels: new Set(),
        comments: [],
        branches: new Map([['main', SHA]]),
        pulls: [],
      };
      repos.set(name, made);
      return made;
    },
    issue(name, fields) {
      const { issues } = github.repo(name);
      const known = issues.find(({ number }) => number === fields.number);
      if (known) return Object.assign(known, fields, { updatedAt: later() });
      const made: FakeIssue = {
        number: issues.length + 1,
        title: `Issue ${issues.length + 1}`,
        body: null,
        state: 'open',
        labels: [],
        isPull: false,
        ...fields,
        updatedAt: later(),
      };
      issues.push(made);
      return made;
    },
    close: server.close,
  };
  return github;
}
