/**
 * The current projects. The row of a deleted project stays, because a task may have been placed in it at the last
 * moment and must be found there (`status` is `deleting`, then `deleted`).
 */
import { projectSchema } from '../../shared/contract/projects/projects.ts';
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
import { columnsFor } from '../columns.ts';
import { type Change, defineProjection, defineTable, insert, on, type RowOf, set } from '../projection.ts';
import { assignmentHandlers, projectAgentsTable } from './assignments.ts';

export const projectsTable = defineTable(
  'projects',
  {
    workspace_id: 'int',
    id: 'bigint',
    tenant_id: 'int',
    ...columnsFor(projectSchema.omit({ id: true, workspace_id: true, ticket_counter: true })),
    github_sync_enabled: 'int',
    github_labels_initialized: 'int',
  },
  {
    key: ['workspace_id', 'id'],
    // Tasks show the names of their projects.
    concerns: () => 'all',
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

const project = (event: ProjectEvent, columns: Partial<Project>): Change =>
  set(projectsTable, keyOf(event), event.meta, columns);

const flag = (value: boolean): number => (value ? 1 : 0);

export const projectsProjection = defineProjection({
  name: 'projects',
  version: 1,
  tables: [projectsTable, projectAgentsTable],
  handlers: [
    on(projectCreated, (event) => {
      const { project_id: _, ...fields } = event.data;
      const at = seconds(event.meta.at);
      return [
        insert(projectsTable, {
          ...keyOf(event),
          tenant_id: event.meta.tenant,
          ...fields,
          status: 'active',
          github_sync_enabled: 0,
          github_labels_initialized: 0,
          github_default_branch: 'main',
          created_at: at,
          updated_at: at,
        }),
      ];
    }),
    on(projectUpdated, (event) => {
      const { github_sync_enabled: syncs, github_labels_initialized: hasLabels, ...changes } = event.data.changes;
      return [
        project(event, {
          ...changes,
          ...(syncs !== undefined && { github_sync_enabled: flag(syncs) }),
          ...(hasLabels !== undefined && { github_labels_initialized: flag(hasLabels) }),
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
