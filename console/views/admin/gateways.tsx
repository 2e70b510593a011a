/** Gateways: list, probe, add. */
import { useRead } from '../../client/reads.ts';
import { Act, FormButton, write } from '../../parts/act.tsx';
import { Panel, Seconds, Shown, State, Table } from '../../parts/basic.tsx';
import { count } from '../../parts/format.ts';
import { recordUrl } from '../../parts/record.tsx';

export function Gateways() {
  const read = useRead('GET /api/gateways', {}, { every: 15_000 });
  return (
    <Panel
      title="Gateways"
      read={read}
      more={
        <>
          <Act act={() => write('POST /api/gateways/health', { body: {} }, 'The gateways were probed.')}>Probe all</Act>
          <FormButton
            main
            text="New gateway"
            title="New gateway"
            submit="Add"
            fields={[
              { name: 'name', label: 'Name', required: true },
              { name: 'url', label: 'URL', required: true },
              { name: 'token', label: 'Token', type: 'password' },
            ]}
            send={(body) => write('POST /api/gateways', { body }, 'The gateway is added.')}
          />
        </>
      }
    >
      <Shown read={read}>
        {({ gateways }) => (
          <Table
            label="Gateways"
            rows={gateways}
            id={(one) => one.id}
            href={(one) => recordUrl('gateway', one.id)}
            empty="There are no gateways. Messages reach the live sessions of agents through one."
            columns={[
              {
                name: 'Name',
                of: (one) => (
                  <>
                    <strong>{one.name}</strong> {one.is_primary === 1 && <span class="badge">primary</span>}
                  </>
                ),
              },
              { name: 'URL', of: (one) => <span class="break">{one.url}</span>, class: 'grow' },
              { name: 'State', of: (one) => <State is={one.status} /> },
              { name: 'Latency', of: (one) => (one.latency === null ? '–' : `${one.latency} ms`), class: 'number' },
              { name: 'Agents', of: (one) => count(one.agents_count), class: 'number' },
              { name: 'Probed', of: (one) => <Seconds at={one.last_health_check} none="never" />, class: 'time' },
              {
                name: 'Action',
                of: (one) =>
                  one.is_primary === 0 && (
                    <Act
                      danger
                      confirm={`The gateway ${one.name} is removed.`}
                      act={() => write('DELETE /api/gateways', { body: { id: one.id } }, 'Removed.')}
                    >
                      Remove
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
