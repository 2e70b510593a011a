/** Syncs with repositories of GitHub: the latest of each source, sums by project, and the agreed states. */
import type { DomainEvent, EventOf } from '../../shared/events/define.ts';
import { taskIssueGone, taskLinked, taskSynced } from '../../shared/events/github/links.ts';
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
  { key: ['workspace_id', 'source', 'slot'], indexes: ['workspace_id, id'] },
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

type Linked = EventOf<typeof taskLinked> | EventOf<typeof taskSynced>;

/** The task at its last agreement with its issue. */
const agreed = ({ data, meta }: Linked): Change[] => {
  const key = { workspace_id: meta.workspace, task_id: data.task_id };
  const { repo, issue_number, face } = data;
  const { title, description_hash, status, priority } = face;
  return [
    change(githubLinksTable, key, () => ({ ...key, repo, issue_number, title, description_hash, status, priority })),
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
      const { sync_id: id, source, repo, project_id, status, error, issues: issue_count } = data;
      const { workspace: workspace_id } = meta;
      const synced_at = seconds(meta.at);
      const [changes_pulled, changes_pushed] = [data.imported + data.updated, data.pushed];
      const key = { workspace_id, source, slot: data.earlier % KEPT_SYNCS };
      const row = { id, repo, project_id, status, error, issue_count, changes_pulled, changes_pushed, synced_at };
      const changes = [change(githubSyncsTable, key, () => ({ ...key, ...row }))];
      if (project_id === null) return changes;
      const project = { workspace_id, project_id };
      return [
        ...changes,
        change(githubProjectsTable, project, (before) => ({
          ...project,
          last_synced_at: synced_at,
          total_pulled: (before?.total_pulled ?? 0) + changes_pulled,
          total_pushed: (before?.total_pushed ?? 0) + changes_pushed,
          sync_count: (before?.sync_count ?? 0) + 1,
        })),
      ];
    }),
  ],
});
