/** The port of GitHub: issues, labels, branches and pull requests of repositories open to the deployment's token. */

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
  /** Names separated by commas; an issue must have all of them. */
  readonly labels?: string | undefined;
  /** ISO 8601: only issues that changed at this time or later, in the order of their changes. */
  readonly since?: string | undefined;
  /** 1 to 100. */
  readonly perPage: number;
  /** From 1. */
  readonly page?: number;
}

export interface IssuePage {
  /** Without pull requests, which GitHub lists among the issues. */
  readonly issues: readonly GithubIssue[];
  /** When the last issue or pull request of the page changed, ISO 8601; undefined: the page is empty. */
  readonly last: string | undefined;
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
 * Why GitHub did not execute a call. `unset`: there is no token; `late`, `offline`: no response; `limited`: too many
 * requests; `missing`: it does not exist, or the token may not see it; `refused`: every other response.
 */
export type GithubFault = 'unset' | 'late' | 'offline' | 'limited' | 'missing' | 'refused';

/** The message may be shown: it never contains the token. */
export class GithubError extends Error {
  readonly fault: GithubFault;
  /** For `limited`: when to retry, seconds from now. */
  readonly retryAfter: number | undefined;
  constructor(fault: GithubFault, message: string, options: ErrorOptions & { readonly retryAfter?: number } = {}) {
    super(message, options);
    this.name = 'GithubError';
    this.fault = fault;
    this.retryAfter = options.retryAfter;
  }
}

/** No call takes longer than the configured time-out. @throws GithubError; the reason of the signal */
export interface Github {
  /** Whether there is a token. */
  readonly configured: boolean;
  /** `owner/name`; undefined if none is configured. */
  readonly defaultRepo: string | undefined;
  issues(repo: string, query: IssuesQuery, signal?: AbortSignal): Promise<IssuePage>;
  updateIssue(
    repo: string,
    issue: number,
    changes: { readonly title?: string; readonly body?: string; readonly state?: 'open' | 'closed' },
    signal?: AbortSignal,
  ): Promise<GithubIssue>;
  /** Whether the repository has the issue, and the token may see it. */
  hasIssue(repo: string, issue: number, signal?: AbortSignal): Promise<boolean>;
  comment(repo: string, issue: number, body: string): Promise<void>;
  /** Existing names of the issue are kept. */
  addLabels(repo: string, issue: number, names: readonly string[], signal?: AbortSignal): Promise<void>;
  /** No error if the issue does not have the label. */
  removeLabel(repo: string, issue: number, name: string, signal?: AbortSignal): Promise<void>;
  /** No error if the repository already has the label. @param label.color six hexadecimal digits */
  createLabel(
    repo: string,
    label: { readonly name: string; readonly color: string; readonly description: string },
  ): Promise<void>;
  /** Creates a branch at the head of another one. No error if a branch with this name exists. */
  createBranch(repo: string, name: string, base: string): Promise<void>;
  /** Opens a pull request, or returns the open one of the branch. */
  openPull(
    repo: string,
    pull: { readonly branch: string; readonly base: string; readonly title: string; readonly body: string },
  ): Promise<{ readonly number: number; readonly url: string }>;
  user(): Promise<GithubUser>;
  /** The repositories with the latest pushes; at most 300. */
  repositories(): Promise<readonly GithubRepository[]>;
  /** The page of a branch. */
  branchUrl(repo: string, branch: string): string;
}
