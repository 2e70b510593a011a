/** Keys of an agent. A new key is shown once. */
import { useState } from 'preact/hooks';
import { useRead } from '../../client/reads.ts';
import { Act, Dialog, FormButton, write } from '../../parts/act.tsx';
import { Copy, Panel, Seconds, Shown, State, Table } from '../../parts/basic.tsx';

export function AgentKeys({ id }: { readonly id: number }) {
  const read = useRead('GET /api/agents/{id}/keys', { params: { id } });
  const [issued, setIssued] = useState<string>();
  return (
    <Panel
      title="Keys"
      read={read}
      more={
        <FormButton
          text="Issue a key"
          title="Issue a key"
          submit="Issue"
          fields={[
            { name: 'name', label: 'Name', hint: 'Where it will be used' },
            { name: 'scope', label: 'Role', value: 'viewer', options: ['viewer', 'operator', 'admin'] },
            { name: 'expires_in_days', label: 'Days until it expires', type: 'number', min: 1 },
          ]}
          send={async ({ name, scope, expires_in_days }) => {
            const scopes = [scope, 'agent:self'];
            const { api_key } = await write('POST /api/agents/{id}/keys', {
              params: { id },
              body: { name, scopes, expires_in_days },
            });
            setIssued(api_key);
          }}
        />
      }
    >
      {issued && (
        <Dialog title="The new key" close={() => setIssued(undefined)}>
          <p>It is shown only now. Only its hash is kept.</p>
          <pre tabIndex={0}>{issued}</pre>
          <div class="buttons">
            <Copy text={issued} label="Copy" />
          </div>
        </Dialog>
      )}
      <Shown read={read}>
        {({ keys }) => (
          <Table
            label="Keys"
            rows={keys}
            id={(key) => key.id}
            empty="This agent has no keys."
            columns={[
              { name: 'Name', of: (key) => key.name },
              { name: 'Begins with', of: (key) => <code>{key.key_prefix}</code> },
              { name: 'Scopes', of: (key) => key.scopes.join(', ') },
              {
                name: 'State',
                of: (key) => (key.revoked_at === null ? <State is="active" /> : <State is="revoked" tone="none" />),
              },
              { name: 'Used', of: (key) => <Seconds at={key.last_used_at} none="never" />, class: 'time' },
              { name: 'Expires', of: (key) => <Seconds at={key.expires_at} none="never" />, class: 'time' },
              {
                name: 'Action',
                of: (key) =>
                  key.revoked_at === null && (
                    <Act
                      danger
                      confirm="It stops working at once."
                      act={() =>
                        write('DELETE /api/agents/{id}/keys', { params: { id }, body: { key_id: key.id } }, 'Revoked.')
                      }
                    >
                      Revoke
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
