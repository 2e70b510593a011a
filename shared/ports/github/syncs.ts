/** Projects with a repository of GitHub, and their tasks that wait for a push. */
import type { RecordPlace } from '../read-models.ts';

export interface GithubProject extends RecordPlace {
  readonly name: string;
  /** As people wrote it. */
  readonly repo: string;
  readonly syncEnabled: boolean;
  /** Whether labels show status and priority. */
  readonly labels: boolean;
}

export interface GithubProjects {
  /** Active projects of a workspace with this repository, the oldest first. */
  of(workspace: number, repo: string): Promise<readonly GithubProject[]>;
  /** An active project; undefined: there is none, or it has no repository. */
  find(workspace: number, id: number): Promise<GithubProject | undefined>;
  /**
   * Active projects whose sync is on, after a given one; one page. The token is the deployment's, so they are those of
   * the default tenant, without those of strictly isolated workspaces.
   *
   * @param workspace only of this workspace
   */
  enabled(
    after: { readonly workspace: number; readonly id: number },
    limit: number,
    workspace?: number,
  ): Promise<readonly GithubProject[]>;
  /** Tasks of a project that differ from the last agreement with their issues, oldest first. */
  waiting(workspace: number, project: number, limit: number): Promise<readonly number[]>;
}
