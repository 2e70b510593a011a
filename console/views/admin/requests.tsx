/** People who signed in with Google for the first time and wait for approval. */
import { useRead } from '../../client/reads.ts';
import { Act, FormButton, write } from '../../parts/act.tsx';
import { Panel, Seconds, Shown, State, Table } from '../../parts/basic.tsx';
import { ROLES } from './users.tsx';

export function Requests() {
  const read = useRead('GET /api/auth/access-requests', { query: { limit: 100 } });
  return (
    <Panel title="People who asked for access" read={read}>
      <Shown read={read}>
        {({ requests }) => (
          <Table
            label="Access requests"
            rows={requests}
            id={(one) => one.id}
            empty="No requests. People who sign in with Google for the first time appear here."
            columns={[
              { name: 'Name', of: (one) => <strong>{one.display_name ?? one.username}</strong> },
              { name: 'E-mail', of: (one) => one.email },
              { name: 'State', of: (one) => <State is={one.status} /> },
              { name: 'Asked', of: (one) => <Seconds at={one.last_attempt_at} />, class: 'time' },
              { name: 'Reviewed by', of: (one) => one.reviewed_by ?? '–' },
              {
                name: 'Actions',
                of: (one) =>
                  one.status === 'pending' && (
                    <span class="buttons">
                      <FormButton
                        text="Approve"
                        title={`Approve ${one.email}`}
                        submit="Approve"
                        fields={[{ name: 'role', label: 'Role', value: 'viewer', options: ROLES, required: true }]}
                        send={(body) =>
                          write(
                            'POST /api/auth/access-requests',
                            { body: { ...body, id: one.id, action: 'approve' } },
                            'Approved.',
                          )
                        }
                      />
                      <Act
                        danger
                        act={() =>
                          write(
                            'POST /api/auth/access-requests',
                            { body: { id: one.id, action: 'reject' } },
                            'Rejected.',
                          )
                        }
                      >
                        Reject
                      </Act>
                    </span>
                  ),
              },
            ]}
          />
        )}
      </Shown>
    </Panel>
  );
}
