import { expect } from 'chai';
import { workspacesProjection } from '../../../projections/workspaces/workspaces.ts';
import {
  workspaceCreated,
  workspaceDeleted,
  workspaceRemovalBegun,
  workspaceUpdated,
} from '../../../shared/events/workspaces/workspaces.ts';
import { type Draft, eventsOf, rowsAfter } from '../../support/kit.ts';

const about = { tenant_id: 4, workspace_id: 9, name: 'Lab', slug: 'lab' };
const created = workspaceCreated.draft({ ...about, brand: null, isolation: 'shared', main: true });
const updated = (changes: object) => workspaceUpdated.draft({ ...about, changes });
const rows = (...drafts: readonly Draft[]) => rowsAfter(workspacesProjection, eventsOf(drafts)).workspaces;

describe('projection workspaces', () => {
  it('shows a new workspace', () => {
    expect(rows(created)).to.deep.equal([
      {
        id: 9,
        tenant_id: 4,
        slug: 'lab',
        name: 'Lab',
        brand: null,
        isolation: 'shared',
        main: true,
        life: 'active',
        moves_to: null,
        created_at: 1_700_000_001,
        updated_at: 1_700_000_001,
        position: 1,
      },
    ]);
  });

  it('sets the fields of an update, and keeps the others', () => {
    const [row] = rows(created, updated({ brand: 'Acme', isolation: 'strict' }), updated({ name: 'Works' }));
    expect(row).to.include({
      name: 'Works',
      slug: 'lab',
      brand: 'Acme',
      isolation: 'strict',
      updated_at: 1_700_000_003,
    });
    expect(rows(created, updated({ brand: 'Acme' }), updated({ brand: null }))[0]).to.include({ brand: null });
  });

  it('keeps the row of a deleted workspace', () => {
    const begun = workspaceRemovalBegun.draft({ ...about, moves_to: 1, agents: 2 });
    expect(rows(created, begun)[0]).to.include({ life: 'removing', moves_to: 1 });
    const deleted = workspaceDeleted.draft({ ...about, moves_to: 1, agents: 2 });
    expect(rows(created, begun, deleted)[0]).to.include({ life: 'removed', moves_to: 1 });
  });

  it('ignores an update of an unknown workspace', () => {
    expect(rows(updated({ name: 'Works' }))).to.deep.equal([]);
  });
});
