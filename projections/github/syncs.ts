/** Syncs with repositories of GitHub: the latest of each source, sums by project, and the agreed states. */
import type { DomainEvent } from '../../shared/events/define.ts';
import { type TaskFace, taskIssueGone, taskLinked, taskSynced } from '../../shared/events/github/links.ts';
import { githubSynced } from '../../shared/events/github/syncs.ts';
import { taskDeleted } from '../../shared/events/tasks/tasks.ts';
import { seconds } from '../../shared/time.ts';
import { type Change, change, defineProjection, defineTable, on, remove } from '../projection.ts';

/** Number of syncs that are kept per source; a later one replaces the oldest. */
export const KEPT_SYNCS = 20;

export const githubSyncsTable = defineTable(
  'github_syncs',
  {
    workspace_id: 'int',
    source: 'text',
    /** 0 to `KEPT_SYNCS` - 1. */
    slot: 'int',
    id: 'bigint',
    repo: 'text',
    project_id: 'bigint?',
    status: 'text',
    error: 'text?',
    issue_count: 'bigint',
    changes_pulled: 'bigint',
    changes_pushed: 'bigint',
    synced_at: 'bigint',
  },
  { key: ['workspace_id', 'source', 'slot'], indexes: ['workspace_id, id DESC'] },
);

export const githubProjectsTable = defineTable(
  'github_projects',
  {
    workspace_id: 'int',
    project_id: 'bigint',
    last_synced_at: 'bigint',
    total_pulled: 'bigint',
    total_pushed: 'bigint',
    sync_count: 'bigint',
  },
  { key: ['workspace_id', 'project_id'] },
);

export const githubLinksTable = defineTable(
  'github_links',
  {
    workspace_id: 'int',
    task_id: 'bigint',
    repo: 'text',
    issue_number: 'bigint',
    title: 'text',
    description_hash: 'text',
    status: 'text',
    priority: 'text',
  },
  { key: ['workspace_id', 'task_id'] },
);

interface Linked {
  readonly task_id: number;
  readonly repo: string;
  readonly issue_number: number;
  readonly face: TaskFace;
}

/** The task at its last agreement with its issue. */
const agreed = ({ data, meta }: DomainEvent<string, Linked>): Change[] => {
  const key = { workspace_id: meta.workspace, task_id: data.task_id };
  const { title, description_hash, status, priority } = data.face;
  return [
    change(githubLinksTable, key, () => ({
      ...key,
      repo: data.repo,
      issue_number: data.issue_number,
      title,
      description_hash,
      status,
      priority,
    })),
  ];
};

const unlinked = ({ data, meta }: DomainEvent<string, { readonly task_id: number }>): Change[] => [
  remove(githubLinksTable, { workspace_id: meta.workspace, task_id: data.task_id }),
];

export const githubProjection = defineProjection({
  name: 'github',
  version: 1,
  tables: [githubSyncsTable, githubProjectsTable, githubLinksTable],
  handlers: [
    on(taskLinked, agreed),
    on(taskSynced, agreed),
    on(taskIssueGone, unlinked),
    on(taskDeleted, unlinked),
    on(githubSynced, ({ data, meta }) => {
      const workspace_id = meta.workspace;
      const {
        sync_id: syncId,
        source,
        earlier,
        repo,
        project_id,
        status,
        error,
        issues,
        imported,
        updated,
        pushed,
      } = data;
      const at = seconds(meta.at);
      const pulled = imported + updated;
      const key = { workspace_id, source, slot: earlier % KEPT_SYNCS };
      const changes = [
        change(githubSyncsTable, key, () => ({
          ...key,
          id: syncId,
          repo,
          project_id,
          status,
          error,
          issue_count: issues,
          changes_pulled: pulled,
          changes_pushed: pushed,
          synced_at: at,
        })),
      ];
      if (project_id === null) return changes;
      const project = { workspace_id, project_id };
      return [
        ...changes,
        change(githubProjectsTable, project, (row) => ({
          ...project,
          last_synced_at: at,
          total_pulled: (row?.total_pulled ?? 0) + pulled,
          total_pushed: (row?.total_pushed ?? 0) + pushed,
          sync_count: (row?.sync_count ?? 0) + 1,
        })),
      ];
    }),
  ],
});
