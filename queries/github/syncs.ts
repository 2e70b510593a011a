/** Syncs with repositories of GitHub, and the projects that use them. */
import { sql } from 'kysely';
import { githubProjection } from '../../projections/github/syncs.ts';
import { projectsProjection } from '../../projections/projects/projects.ts';
import { tasksProjection } from '../../projections/tasks/tasks.ts';
import { workspacesProjection } from '../../projections/workspaces/workspaces.ts';
import { type GithubSyncRecord, repositoryIn } from '../../shared/contract/github/issues.ts';
import { DEFAULT_TENANT } from '../../shared/events/metadata.ts';
import type { RecordPlace } from '../../shared/ports/read-models.ts';
import { inWorkspace, type Reads, tableOf, tables } from '../reads.ts';

const LISTED = 20;

/** The latest syncs of a workspace, newest first. */
export async function listSyncs(reads: Reads, workspace: number): Promise<GithubSyncRecord[]> {
  const rows = await inWorkspace(reads, githubProjection, 'github_syncs', workspace)
    .selectAll()
    .orderBy('id', 'desc')
    .limit(LISTED)
    .execute();
  return rows.map((row) => ({
    id: row.id,
    repo: row.repo,
    last_synced_at: row.synced_at,
    issue_count: row.issue_count,
    sync_direction: row.project_id === null ? 'inbound' : 'both',
    status: row.status as GithubSyncRecord['status'],
    error: row.error,
    created_at: row.synced_at,
    project_id: row.project_id,
    changes_pushed: row.changes_pushed,
    changes_pulled: row.changes_pulled,
    workspace_id: row.workspace_id,
  }));
}

/** Projects in a list. */
const PROJECTS = 200;

interface ProjectSync {
  readonly project_id: number;
  readonly project_name: string;
  readonly github_repo: string | null;
  readonly last_synced_at: number | null;
  readonly total_pushed: number;
  readonly total_pulled: number;
  readonly sync_count: number;
}

/** Projects whose sync is or was on, by name, with the results. */
export async function listProjectSyncs(reads: Reads, workspace: number): Promise<readonly ProjectSync[]> {
  const { rows } = await sql<ProjectSync>`
    SELECT p.id AS project_id, p.name AS project_name, p.github_repo, g.last_synced_at,
      coalesce(g.total_pushed, 0) AS total_pushed, coalesce(g.total_pulled, 0) AS total_pulled,
      coalesce(g.sync_count, 0) AS sync_count
    FROM ${tableOf(reads, projectsProjection, 'projects')} p
    LEFT JOIN ${tableOf(reads, githubProjection, 'github_projects')} g
      ON g.workspace_id = p.workspace_id AND g.project_id = p.id
    WHERE p.workspace_id = ${workspace} AND p.status IN ('active', 'archived')
      AND (g.project_id IS NOT NULL OR (p.github_sync_enabled = 1 AND p.github_repo IS NOT NULL))
    ORDER BY lower(p.name), p.id LIMIT ${sql.lit(PROJECTS)}`.execute(reads.db);
  return rows;
}

const COLUMNS = [
  'tenant_id as tenant',
  'workspace_id as workspace',
  'id',
  'name',
  'github_repo as repo',
  'github_sync_enabled',
  'github_labels_initialized',
] as const;

/** Maximum number of projects that are read per repository. */
const OF_ONE = 50;

/** A project with a repository. */
export interface GithubProject extends RecordPlace {
  readonly name: string;
  /** As people wrote it. */
  readonly repo: string;
  readonly syncEnabled: boolean;
  /** Whether labels show status and priority. */
  readonly labels: boolean;
}

const active = (reads: Reads) =>
  tables(reads, projectsProjection).selectFrom('projects').select(COLUMNS).where('status', '=', 'active');

type Found = Awaited<ReturnType<ReturnType<typeof active>['execute']>>[number];
const projectOf = ({ github_sync_enabled, github_labels_initialized, repo, ...project }: Found): GithubProject => ({
  ...project,
  repo: repo ?? '',
  syncEnabled: github_sync_enabled === 1,
  labels: github_labels_initialized === 1,
});

/** Active projects of a workspace with this repository, the oldest first. */
export async function projectsWithRepo(
  reads: Reads,
  workspace: number,
  repo: string,
): Promise<readonly GithubProject[]> {
  const wanted = repo.toLowerCase();
  const rows = await active(reads)
    .where('workspace_id', '=', workspace)
    .where(sql<boolean>`position(${wanted} in lower(github_repo)) > 0`)
    .orderBy('id')
    .limit(OF_ONE)
    .execute();
  return rows.map(projectOf).filter((project) => repositoryIn(project.repo)?.toLowerCase() === wanted);
}

/** An active project; undefined: there is none, or it has no repository. */
export async function findGithubProject(
  reads: Reads,
  workspace: number,
  id: number,
): Promise<GithubProject | undefined> {
  const row = await active(reads)
    .where('workspace_id', '=', workspace)
    .where('id', '=', id)
    .where('github_repo', 'is not', null)
    .executeTakeFirst();
  return row && projectOf(row);
}

/**
 * Active projects whose sync is on, after a given one; one page. The token is the deployment's, so they are those of the
 * default tenant, without those of strictly isolated workspaces.
 *
 * @param workspace only of this workspace
 */
export async function syncedProjects(
  reads: Reads,
  after: { readonly workspace: number; readonly id: number },
  limit: number,
  workspace?: number,
): Promise<readonly GithubProject[]> {
  const strict = tables(reads, workspacesProjection).selectFrom('workspaces').where('isolation', '=', 'strict');
  let page = active(reads)
    .where('tenant_id', '=', DEFAULT_TENANT)
    .where('workspace_id', 'not in', strict.select('id'))
    .where('github_sync_enabled', '=', 1)
    .where('github_repo', 'is not', null)
    .where(sql<boolean>`(workspace_id, id) > (${after.workspace}, ${after.id})`);
  if (workspace !== undefined) page = page.where('workspace_id', '=', workspace);
  return (await page.orderBy('workspace_id').orderBy('id').limit(limit).execute()).map(projectOf);
}

/** Tasks of a project that differ from the last agreement with their issues, oldest first. */
export async function tasksToPush(
  reads: Reads,
  workspace: number,
  project: number,
  limit: number,
): Promise<readonly number[]> {
  const { rows } = await sql<{ id: number }>`
    SELECT t.id FROM ${tableOf(reads, tasksProjection, 'tasks')} t
    JOIN ${tableOf(reads, githubProjection, 'github_links')} l
      ON l.workspace_id = t.workspace_id AND l.task_id = t.id
    WHERE t.workspace_id = ${workspace} AND t.project_id = ${project}
      AND (t.title, t.status, t.priority, md5(coalesce(t.description, '')))
        <> (l.title, l.status, l.priority, l.description_hash)
    ORDER BY t.updated_at, t.id LIMIT ${sql.lit(limit)}`.execute(reads.db);
  return rows.map(({ id }) => Number(id));
}
