/** Tenants of the deployment and the jobs that provision them. */
import { useRead } from '../../client/reads.ts';
import { Act, FormButton, write } from '../../parts/act.tsx';
import { Panel, Seconds, Shown, State, Table } from '../../parts/basic.tsx';
import { recordUrl } from '../../parts/record.tsx';

export function Tenants() {
  const tenants = useRead('GET /api/super/tenants', {});
  const jobs = useRead('GET /api/super/provision-jobs', { query: { limit: 50 } });
  return (
    <>
      <Panel
        title="Tenants"
        read={tenants}
        more={
          <FormButton
            main
            text="New tenant"
            title="New tenant"
            submit="Create"
            fields={[
              { name: 'slug', label: 'Slug', required: true },
              { name: 'display_name', label: 'Name' },
              { name: 'gateway_port', label: 'Port of its gateway', type: 'number', required: true, min: 1024 },
            ]}
            send={(body) =>
              write(
                'POST /api/super/tenants',
                { body: { ...body, dry_run: true } },
                'The tenant is created. Another admin has to approve its job.',
              )
            }
          />
        }
      >
        <Shown read={tenants}>
          {(data) => (
            <Table
              label="Tenants"
              rows={data.tenants}
              id={(one) => one.id}
              href={(one) => recordUrl('tenant', one.id)}
              empty="There are no other tenants."
              columns={[
                { name: 'Name', of: (one) => <strong>{one.display_name}</strong> },
                { name: 'Slug', of: (one) => one.slug },
                { name: 'State', of: (one) => <State is={one.status} /> },
                {
                  name: 'Latest job',
                  of: (one) => (one.latest_job_status ? <State is={one.latest_job_status} /> : '–'),
                },
                { name: 'Created', of: (one) => <Seconds at={one.created_at} />, class: 'time' },
              ]}
            />
          )}
        </Shown>
      </Panel>
      <Panel title="Provisioning jobs" read={jobs}>
        <Shown read={jobs}>
          {(data) => (
            <Table
              label="Provisioning jobs"
              rows={data.jobs}
              id={(one) => one.id}
              empty="No jobs. A new tenant is provisioned by one, which another admin approves."
              columns={[
                { name: 'Job', of: (one) => `${one.job_type} of ${one.tenant_display_name}` },
                { name: 'State', of: (one) => <State is={one.status} /> },
                { name: 'Dry run', of: (one) => (one.dry_run ? 'yes' : 'no') },
                { name: 'Asked by', of: (one) => one.requested_by },
                { name: 'Created', of: (one) => <Seconds at={one.created_at} />, class: 'time' },
                {
                  name: 'Actions',
                  of: (one) => (
                    <span class="buttons">
                      {one.status === 'queued' &&
                        (['approve', 'reject', 'cancel'] as const).map((action) => (
                          <Act
                            key={action}
                            act={() =>
                              write('POST /api/super/provision-jobs/{id}', { params: { id: one.id }, body: { action } })
                            }
                          >
                            {action}
                          </Act>
                        ))}
                      {one.status === 'approved' && (
                        <Act
                          act={() =>
                            write(
                              'POST /api/super/provision-jobs/{id}/run',
                              { params: { id: one.id }, body: {} },
                              'The job has run.',
                            )
                          }
                        >
                          Run
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
    </>
  );
}
