/** The port of GitHub: issues, labels, branches and pull requests of repositories that the deployment's token reaches. */

/** An issue as GitHub has it. Texts can be stored. */
export interface GithubIssue {
  readonly number: number;
  readonly title: string;
  readonly body: string | null;
  readonly state: 'open' | 'closed';
  readonly labels: readonly { readonly name: string; readonly color: string | null }[];
  readonly assignee: { readonly login: string; readonly avatarUrl: string | null } | null;
  readonly url: string;
  /** ISO 8601, UTC. */
  readonly createdAt: string;
  readonly updatedAt: string;
}

export interface IssuesQuery {
  readonly state: 'open' | 'closed' | 'all';
  /** Names with commas in between; all of them. */
  readonly labels?: string | undefined;
  /** ISO 8601: only issues that were changed then or later, in the order of their changes. */
  readonly since?: string | undefined;
  /** 1 to 100. */
  readonly perPage: number;
  /** From 1. */
  readonly page?: number;
}

export interface IssuePage {
  /** Without pull requests, which GitHub lists among the issues. */
  readonly issues: readonly GithubIssue[];
  /** Whether there is a further page. */
  readonly more: boolean;
}

export interface GithubUser {
  readonly login: string;
  readonly name: string | null;
  readonly avatarUrl: string | null;
  readonly publicRepos: number;
  readonly followers: number;
  readonly following: number;
}

export interface GithubRepository {
  readonly name: string;
  readonly description: string | null;
  readonly language: string | null;
  readonly stars: number;
  readonly forks: number;
  readonly openIssues: number;
  readonly pushedAt: string | null;
  readonly isFork: boolean;
  readonly isPrivate: boolean;
  readonly url: string;
}

/**
 * Why GitHub did not do what it was asked for. `unset`: there is no token; `late`, `offline`: no answer; `limited`: too
 * many requests; `missing`: there is no such thing, or the token may not see it; `refused`: every other answer.
 */
export type GithubFault = 'unset' | 'late' | 'offline' | 'limited' | 'missing' | 'refused';

/** The message can be shown: it never holds the token. */
export class GithubError extends Error {
  readonly fault: GithubFault;
  /** For `limited`: when to come back, seconds from now. */
  readonly retryAfter: number | undefined;
  constructor(fault: GithubFault, message: string, options: ErrorOptions & { readonly retryAfter?: number } = {}) {
    super(message, options);
    this.name = 'GithubError';
    this.fault = fault;
    this.retryAfter = options.retryAfter;
  }
}

/** Every call takes no longer than the configured time-out. @throws GithubError; what the signal aborts with */
export interface Github {
  /** Whether there is a token. */
  readonly configured: boolean;
  /** `owner/name`; undefined: none is configured. */
  readonly defaultRepo: string | undefined;
  issues(repo: string, query: IssuesQuery, signal?: AbortSignal): Promise<IssuePage>;
  updateIssue(
    repo: string,
    issue: number,
    changes: { readonly title?: string; readonly body?: string; readonly state?: 'open' | 'closed' },
    signal?: AbortSignal,
  ): Promise<GithubIssue>;
  /** Whether the repository has the issue, or the token may see it. */
  hasIssue(repo: string, issue: number, signal?: AbortSignal): Promise<boolean>;
  comment(repo: string, issue: number, body: string): Promise<void>;
  /** Names that the issue has already stay. */
  addLabels(repo: string, issue: number, names: readonly string[], signal?: AbortSignal): Promise<void>;
  /** No error for one that the issue does not have. */
  removeLabel(repo: string, issue: number, name: string, signal?: AbortSignal): Promise<void>;
  /** No error for one that the repository has already. @param label.color six hexadecimal digits */
  createLabel(
    repo: string,
    label: { readonly name: string; readonly color: string; readonly description: string },
  ): Promise<void>;
  /** Makes a branch at the head of another one. No error when there is one of this name. */
  createBranch(repo: string, name: string, base: string): Promise<void>;
  /** Opens a pull request, or gives the open one that there is for the branch. */
  openPull(
    repo: string,
    pull: { readonly branch: string; readonly base: string; readonly title: string; readonly body: string },
  ): Promise<{ readonly number: number; readonly url: string }>;
  user(): Promise<GithubUser>;
  /** Those that were pushed to last; at most 300. */
  repositories(): Promise<readonly GithubRepository[]>;
  /** Where people see a branch. */
  branchUrl(repo: string, branch: string): string;
}
