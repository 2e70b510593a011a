/** Workspaces of the tenant. */
import { useRead } from '../../client/reads.ts';
import { useRights } from '../../client/session.ts';
import { Act, FormButton, write } from '../../parts/act.tsx';
import { Panel, Seconds, Shown, Table } from '../../parts/basic.tsx';
import { recordUrl } from '../../parts/record.tsx';

export function Workspaces() {
  const { isAdmin } = useRights();
  const read = useRead('GET /api/workspaces', {});
  return (
    <Panel
      title="Workspaces of this tenant"
      read={read}
      more={
        isAdmin && (
          <FormButton
            main
            text="New workspace"
            title="New workspace"
            submit="Create"
            fields={[
              { name: 'name', label: 'Name', required: true },
              {
                name: 'isolation',
                label: 'Isolation',
                value: 'shared',
                options: ['shared', 'strict'],
                hint: 'Strict: callers get nothing that workspaces share.',
              },
            ]}
            send={(body) => write('POST /api/workspaces', { body }, 'The workspace is created.')}
          />
        )
      }
    >
      <Shown read={read}>
        {({ workspaces, active_workspace_id }) => (
          <Table
            label="Workspaces"
            rows={workspaces}
            id={(one) => one.id}
            href={(one) => recordUrl('workspace', one.id)}
            columns={[
              {
                name: 'Name',
                of: (one) => (
                  <>
                    <strong>{one.name}</strong> {one.id === active_workspace_id && <span class="badge">yours</span>}
                  </>
                ),
              },
              { name: 'Slug', of: (one) => one.slug },
              { name: 'Isolation', of: (one) => one.isolation },
              { name: 'Created', of: (one) => <Seconds at={one.created_at} />, class: 'time' },
              isAdmin && {
                name: 'Actions',
                of: (one) =>
                  one.id !== active_workspace_id && (
                    <Act
                      danger
                      confirm={`Users, agents and projects of ${one.name} move to the main workspace.`}
                      act={() => write('DELETE /api/workspaces/{id}', { params: { id: one.id } }, 'Deleted.')}
                    >
                      Delete
                    </Act>
                  ),
              },
            ]}
          />
        )}
      </Shown>
    </Panel>
  );
}
