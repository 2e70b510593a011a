/**
 * Projects as they are now. The row of a deleted project stays, because a task may have been placed in it at the last
 * moment and has to be found there (`status` is `deleting`, then `deleted`).
 */
import type { DomainEvent } from '../../shared/events/define.ts';
import {
  projectArchived,
  projectCreated,
  projectDeleted,
  projectDeletionBegun,
  projectRestored,
  projectUpdated,
} from '../../shared/events/projects/projects.ts';
import { seconds } from '../../shared/time.ts';
import { type Change, defineProjection, defineTable, insert, on, type RowOf, update } from '../projection.ts';
import { assignmentHandlers, projectAgentsTable } from './assignments.ts';

export const projectsTable = defineTable(
  'projects',
  {
    workspace_id: 'int',
    id: 'bigint',
    tenant_id: 'int',
    name: 'text',
    slug: 'text',
    description: 'text?',
    ticket_prefix: 'text',
    status: 'text',
    github_repo: 'text?',
    deadline: 'bigint?',
    color: 'text?',
    github_sync_enabled: 'int',
    github_labels_initialized: 'int',
    github_default_branch: 'text?',
    created_at: 'bigint',
    updated_at: 'bigint',
  },
  {
    key: ['workspace_id', 'id'],
    indexes: [
      'workspace_id, lower(name), id',
      'workspace_id, slug',
      "(workspace_id, id) WHERE status IN ('deleting', 'deleted')",
    ],
  },
);

type Project = RowOf<(typeof projectsTable)['columns']>;
type ProjectEvent = DomainEvent<string, { readonly project_id: number }>;

const keyOf = ({ meta, data }: ProjectEvent) => ({ workspace_id: meta.workspace, id: data.project_id });

function project(event: ProjectEvent, change: Partial<Project> = {}): Change {
  const updated_at = seconds(event.meta.at);
  return update(projectsTable, keyOf(event), (row) => ({ ...row, ...change, updated_at }));
}

const flag = (value: boolean): number => (value ? 1 : 0);

export const projectsProjection = defineProjection({
  name: 'projects',
  version: 2,
  tables: [projectsTable, projectAgentsTable],
  handlers: [
    on(projectCreated, (event) => {
      const { data, meta } = event;
      const at = seconds(meta.at);
      return [
        insert(projectsTable, {
          ...keyOf(event),
          tenant_id: meta.tenant,
          name: data.name,
          slug: data.slug,
          description: data.description,
          ticket_prefix: data.ticket_prefix,
          status: 'active',
          github_repo: data.github_repo,
          deadline: data.deadline,
          color: data.color,
          github_sync_enabled: 0,
          github_labels_initialized: 0,
          github_default_branch: 'main',
          created_at: at,
          updated_at: at,
        }),
      ];
    }),
    on(projectUpdated, (event) => {
      const { changes } = event.data;
      return [
        project(event, {
          ...(changes.name !== undefined && { name: changes.name }),
          ...(changes.description !== undefined && { description: changes.description }),
          ...(changes.ticket_prefix !== undefined && { ticket_prefix: changes.ticket_prefix }),
          ...(changes.github_repo !== undefined && { github_repo: changes.github_repo }),
          ...(changes.deadline !== undefined && { deadline: changes.deadline }),
          ...(changes.color !== undefined && { color: changes.color }),
          ...(changes.github_sync_enabled !== undefined && { github_sync_enabled: flag(changes.github_sync_enabled) }),
          ...(changes.github_labels_initialized !== undefined && {
            github_labels_initialized: flag(changes.github_labels_initialized),
          }),
          ...(changes.github_default_branch !== undefined && { github_default_branch: changes.github_default_branch }),
        }),
      ];
    }),
    on(projectArchived, (event) => [project(event, { status: 'archived' })]),
    on(projectRestored, (event) => [project(event, { status: 'active' })]),
    on(projectDeletionBegun, (event) => [project(event, { status: 'deleting' })]),
    on(projectDeleted, (event) => [project(event, { status: 'deleted' })]),
    ...assignmentHandlers,
  ],
});
