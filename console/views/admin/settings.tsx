/** Settings of the deployment. */
import { useRead } from '../../client/reads.ts';
import { Act, ChangeButton, write } from '../../parts/act.tsx';
import { Panel, Shown, Table } from '../../parts/basic.tsx';

export function Settings() {
  const read = useRead('GET /api/settings', {});
  return (
    <Panel title="Settings of the deployment" read={read}>
      <Shown read={read}>
        {({ settings }) => (
          <Table
            label="Settings"
            rows={settings}
            id={(one) => one.key}
            columns={[
              {
                name: 'Setting',
                of: (one) => (
                  <>
                    <code>{one.key}</code>
                    <div class="dim">{one.description}</div>
                  </>
                ),
                class: 'grow',
              },
              { name: 'Value', of: (one) => <span class="break">{one.value || '–'}</span>, class: 'short' },
              {
                name: 'From',
                of: (one) => (one.is_default ? <span class="dim">default</span> : (one.updated_by ?? 'an admin')),
              },
              {
                name: 'Actions',
                of: (one) => (
                  <span class="buttons">
                    <ChangeButton
                      title={one.key}
                      fields={[{ name: 'value', label: one.description, value: one.value, emptied: '' }]}
                      send={({ value }) => write('PUT /api/settings', { body: { settings: { [one.key]: value } } })}
                    />
                    {!one.is_default && (
                      <Act
                        act={() =>
                          write('DELETE /api/settings', { body: { key: one.key } }, 'The default applies again.')
                        }
                      >
                        Reset
                      </Act>
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
