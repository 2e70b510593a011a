/** Users who may sign in. */
import { useRead } from '../../client/reads.ts';
import { useRights } from '../../client/session.ts';
import { Act, ChangeButton, type Field, FormButton, write } from '../../parts/act.tsx';
import { Panel, Seconds, Shown, State, Table } from '../../parts/basic.tsx';
import { recordUrl } from '../../parts/record.tsx';

export const ROLES = ['viewer', 'operator', 'admin'] as const;

const SIGNS_IN_BY = { local: 'password', google: 'Google', oidc: 'identity provider', proxy: 'trusted proxy' } as const;

export function Users() {
  const { me } = useRights();
  const read = useRead('GET /api/auth/users', {}, { kinds: ['audit.', 'activity.'] });
  const fields: readonly Field[] = [
    { name: 'username', label: 'Name', required: true },
    { name: 'display_name', label: 'Display name' },
    { name: 'email', label: 'E-mail', type: 'email' },
    { name: 'role', label: 'Role', value: 'viewer', options: ROLES, required: true },
    { name: 'password', label: 'Password', type: 'password', required: true },
  ];
  return (
    <Panel
      title="Users of this workspace"
      read={read}
      more={
        <FormButton
          main
          text="New user"
          title="New user"
          submit="Create"
          fields={fields}
          send={(body) => write('POST /api/auth/users', { body }, 'The user is created.')}
        />
      }
    >
      <Shown read={read}>
        {({ users }) => (
          <Table
            label="Users"
            rows={users}
            id={(one) => one.id}
            href={(one) => recordUrl('user', one.id)}
            columns={[
              { name: 'Name', of: (one) => <strong>{one.username}</strong> },
              { name: 'Shown as', of: (one) => one.display_name },
              { name: 'Role', of: (one) => one.role },
              { name: 'Signs in by', of: (one) => SIGNS_IN_BY[one.provider] },
              {
                name: 'State',
                of: (one) => (one.is_approved ? <State is="active" /> : <State is="disabled" tone="none" />),
              },
              { name: 'Signed in', of: (one) => <Seconds at={one.last_login_at} none="never" />, class: 'time' },
              {
                name: 'Actions',
                of: (one) => (
                  <span class="buttons">
                    <ChangeButton
                      title={`Change ${one.username}`}
                      fields={[
                        { name: 'display_name', label: 'Display name', value: one.display_name, required: true },
                        { name: 'email', label: 'E-mail', type: 'email', value: one.email, emptied: null },
                        { name: 'role', label: 'Role', value: one.role, options: ROLES, required: true },
                        { name: 'password', label: 'New password', type: 'password' },
                      ]}
                      send={(body) => write('PUT /api/auth/users', { body: { ...body, id: one.id } })}
                    />
                    {one.id !== me.id && (
                      <>
                        <Act
                          act={() =>
                            write('PUT /api/auth/users', { body: { id: one.id, is_approved: one.is_approved === 0 } })
                          }
                        >
                          {one.is_approved ? 'Disable' : 'Enable'}
                        </Act>
                        <Act
                          danger
                          confirm={`${one.username} can no longer sign in. Personal fields stay readable in the log.`}
                          act={() => write('DELETE /api/auth/users', { body: { id: one.id } }, 'The user is deleted.')}
                        >
                          Delete
                        </Act>
                        <Act
                          danger
                          confirm={`${one.username} is deleted, and the key to the personal fields with them. This cannot be undone.`}
                          act={() =>
                            write(
                              'DELETE /api/people/{username}',
                              { params: { username: one.username }, query: { id: one.id } },
                              'The person is erased.',
                            )
                          }
                        >
                          Erase
                        </Act>
                      </>
                    )}
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
