/**
 * Workspaces of all tenants. The row of a deleted one stays, because a user may have been moved there at the last
 * moment and must be found (`life` is `removing`, then `removed`).
 */
import { workspaceSchema } from '../../shared/contract/workspaces/workspaces.ts';
import {
  workspaceCreated,
  workspaceDeleted,
  workspaceRemovalBegun,
  workspaceUpdated,
} from '../../shared/events/workspaces/workspaces.ts';
import { seconds } from '../../shared/time.ts';
import { columnsFor } from '../columns.ts';
import { defineProjection, defineTable, insert, on, set } from '../projection.ts';

export const workspacesTable = defineTable(
  'workspaces',
  {
    // bigint, because requests may contain any id; ids in other tables come from here.
    id: 'bigint',
    tenant_id: 'int',
    slug: 'text',
    name: 'text',
    brand: 'text?',
    ...columnsFor(workspaceSchema.pick({ isolation: true })),
    /** Whether it is the main one of its tenant. */
    main: 'boolean',
    life: 'text',
    /** Where its users, agents and projects move when it is deleted. */
    moves_to: 'int?',
    created_at: 'bigint',
    updated_at: 'bigint',
  },
  { key: ['id'], indexes: ['tenant_id, main DESC, lower(name), id', "(id) WHERE life <> 'active'"] },
);

export const workspacesProjection = defineProjection({
  name: 'workspaces',
  version: 1,
  tables: [workspacesTable],
  handlers: [
    on(workspaceCreated, ({ data: { workspace_id: id, ...fields }, meta }) => [
      insert(workspacesTable, {
        id,
        ...fields,
        life: 'active',
        moves_to: null,
        created_at: seconds(meta.at),
        updated_at: seconds(meta.at),
      }),
    ]),
    on(workspaceUpdated, ({ data: { workspace_id: id, changes }, meta }) => [
      set(workspacesTable, { id }, meta, changes),
    ]),
    on(workspaceRemovalBegun, ({ data, meta }) => [
      set(workspacesTable, { id: data.workspace_id }, meta, { life: 'removing', moves_to: data.moves_to }),
    ]),
    on(workspaceDeleted, ({ data, meta }) => [
      set(workspacesTable, { id: data.workspace_id }, meta, { life: 'removed' }),
    ]),
  ],
});
