/** Administration: people, workspaces, tenants, schedules, backups, settings, gateways, the global key. */
import { useState } from 'preact/hooks';
import { urlOf } from '../client/address.ts';
import { useRead } from '../client/reads.ts';
import { useRights } from '../client/session.ts';
import { Act, Dialog, type Field, FormButton, type Values, write } from '../parts/act.tsx';
import { Copy, Empty, Page, Panel, Seconds, Shown, State, Table, Tabs, Time } from '../parts/basic.tsx';
import { bytes, count, words } from '../parts/format.ts';

const VIEWS = [
  ['users', 'Users', 'admin'],
  ['requests', 'Access requests', 'deployment'],
  ['workspaces', 'Workspaces', 'viewer'],
  ['tenants', 'Tenants', 'deployment'],
  ['schedules', 'Schedules', 'deployment'],
  ['backups', 'Backups', 'deployment'],
  ['settings', 'Settings', 'deployment'],
  ['gateways', 'Gateways', 'admin-deployment'],
  ['key', 'API key', 'deployment'],
] as const;

export function Admin({ view }: { readonly view: string | undefined }) {
  const { isAdmin, ofDeployment } = useRights();
  const tabs = VIEWS.filter(([, , who]) => who === 'viewer' || (who === 'admin' ? isAdmin : ofDeployment));
  const [now] = tabs.find(([id]) => id === view) ?? tabs[0] ?? ['workspaces'];
  return (
    <Page title="Admin">
      <Tabs
        label="Of administration"
        now={now}
        tabs={tabs.map(([id, name], at) => [id, name, urlOf(at === 0 ? '/admin' : `/admin/${id}`)])}
      />
      {now === 'users' && <Users />}
      {now === 'requests' && <Requests />}
      {now === 'workspaces' && <Workspaces />}
      {now === 'tenants' && <Tenants />}
      {now === 'schedules' && <Schedules />}
      {now === 'backups' && <Backups />}
      {now === 'settings' && <Settings />}
      {now === 'gateways' && <Gateways />}
      {now === 'key' && <GlobalKey />}
    </Page>
  );
}

const ROLES = ['viewer', 'operator', 'admin'] as const;

function Users() {
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
            columns={[
              { name: 'Name', of: (one) => <strong>{one.username}</strong> },
              { name: 'Shown as', of: (one) => one.display_name },
              { name: 'Role', of: (one) => one.role },
              { name: 'Signs in by', of: (one) => (one.provider === 'local' ? 'password' : 'Google') },
              {
                name: 'State',
                of: (one) => (one.is_approved ? <State is="active" /> : <State is="disabled" tone="none" />),
              },
              { name: 'Signed in', of: (one) => <Seconds at={one.last_login_at} none="never" />, class: 'time' },
              {
                name: 'Actions',
                of: (one) => (
                  <span class="buttons">
                    <FormButton
                      text="Change"
                      title={`Change ${one.username}`}
                      submit="Save"
                      fields={[
                        { name: 'display_name', label: 'Display name', value: one.display_name, required: true },
                        { name: 'email', label: 'E-mail', type: 'email', value: one.email },
                        { name: 'role', label: 'Role', value: one.role, options: ROLES, required: true },
                        { name: 'password', label: 'New password', type: 'password' },
                      ]}
                      send={(body) => write('PUT /api/auth/users', { body: { ...body, id: one.id } }, 'Saved.')}
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
                          confirm={`${one.username} is deleted, and the key to the personal fields with them. Nobody can undo this.`}
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

function Requests() {
  const read = useRead('GET /api/auth/access-requests', { query: { limit: 100 } });
  return (
    <Panel title="People who ask to be let in" read={read}>
      <Shown read={read}>
        {({ requests }) => (
          <Table
            label="Access requests"
            rows={requests}
            id={(one) => one.id}
            empty="Nobody has asked. People who sign in with Google for the first time appear here."
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
                        title={`Let ${one.email} in`}
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

function Workspaces() {
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

function Tenants() {
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
              empty="There are no other tenants."
              columns={[
                { name: 'Name', of: (one) => <strong>{one.display_name}</strong> },
                { name: 'Slug', of: (one) => one.slug },
                { name: 'State', of: (one) => <State is={one.status} /> },
                { name: 'Latest job', of: (one) => one.latest_job_status && <State is={one.latest_job_status} /> },
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
              empty="No jobs."
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

function Schedules() {
  const tasks = useRead('GET /api/scheduler', {});
  const cron = useRead('GET /api/cron', { query: { action: 'list' } });
  return (
    <>
      <Panel title="Scheduled tasks of the service" read={tasks}>
        <Shown read={tasks}>
          {(data) => (
            <Table
              label="Scheduled tasks"
              rows={data.tasks}
              id={(one) => one.id}
              columns={[
                { name: 'Task', of: (one) => <strong>{one.name}</strong> },
                {
                  name: 'State',
                  of: (one) =>
                    one.running ? (
                      <State is="running" />
                    ) : one.enabled ? (
                      <State is="on" tone="good" />
                    ) : (
                      <State is="off" tone="none" />
                    ),
                },
                { name: 'Last', of: (one) => <Time at={one.lastRun} none="never" />, class: 'time' },
                { name: 'Next', of: (one) => <Time at={one.enabled ? one.nextRun : null} />, class: 'time' },
                {
                  name: 'Result',
                  of: (one) =>
                    one.lastResult && (
                      <State is="result" tone={one.lastResult.ok ? 'good' : 'bad'} text={one.lastResult.message} />
                    ),
                  class: 'grow',
                },
                {
                  name: 'Action',
                  of: (one) => (
                    <Act
                      act={() => write('POST /api/scheduler', { body: { task_id: one.id } }, `${one.name} has run.`)}
                    >
                      Run now
                    </Act>
                  ),
                },
              ]}
            />
          )}
        </Shown>
      </Panel>
      <Panel
        title="Jobs by cron schedules"
        read={cron}
        more={
          <FormButton
            text="New job"
            title="New job"
            submit="Add"
            fields={[
              { name: 'name', label: 'Name', required: true },
              { name: 'schedule', label: 'Schedule', required: true, hint: 'Such as 0 3 * * *' },
              {
                name: 'command',
                label: 'Scheduled task',
                required: true,
                options: tasks.data?.tasks.map(({ id, name }) => [id, name] as const) ?? [],
              },
            ]}
            send={(body) => write('POST /api/cron', { body: { ...body, action: 'add' } }, 'The job is added.')}
          />
        }
      >
        <Shown read={cron}>
          {(data) =>
            'jobs' in data && (
              <Table
                label="Cron jobs"
                rows={data.jobs}
                id={(one) => one.id}
                empty="There are no jobs yet."
                columns={[
                  { name: 'Name', of: (one) => <strong>{one.name}</strong> },
                  { name: 'Schedule', of: (one) => <code>{one.schedule}</code> },
                  { name: 'Runs', of: (one) => words(one.command) },
                  {
                    name: 'State',
                    of: (one) => (one.enabled ? <State is="on" tone="good" /> : <State is="off" tone="none" />),
                  },
                  { name: 'Last', of: (one) => (one.lastStatus ? <State is={one.lastStatus} /> : '–') },
                  { name: 'Next', of: (one) => <Time at={one.nextRun} />, class: 'time' },
                  {
                    name: 'Actions',
                    of: (one) => (
                      <span class="buttons">
                        <Act
                          act={() =>
                            write('POST /api/cron', { body: { action: 'trigger', name: one.name } }, 'The job has run.')
                          }
                        >
                          Run now
                        </Act>
                        <Act act={() => write('POST /api/cron', { body: { action: 'toggle', name: one.name } })}>
                          {one.enabled ? 'Switch off' : 'Switch on'}
                        </Act>
                        <Act
                          danger
                          confirm={`The job "${one.name}" is removed.`}
                          act={() =>
                            write('POST /api/cron', { body: { action: 'remove', name: one.name } }, 'Removed.')
                          }
                        >
                          Remove
                        </Act>
                      </span>
                    ),
                  },
                ]}
              />
            )
          }
        </Shown>
      </Panel>
    </>
  );
}

function Backups() {
  const read = useRead('GET /api/backup', {});
  return (
    <Panel
      title="Backups of this process"
      read={read}
      more={<Act act={() => write('POST /api/backup', {}, 'The backup is written.')}>Back up now</Act>}
    >
      <p class="dim">A backup has the whole log, its credentials and keys. Keep it like a secret.</p>
      <Shown read={read}>
        {({ backups }) => (
          <Table
            label="Backups"
            rows={backups}
            id={(one) => one.name}
            empty="There are no backups yet."
            columns={[
              { name: 'File', of: (one) => <code>{one.name}</code>, class: 'grow' },
              { name: 'Size', of: (one) => bytes(one.size), class: 'number' },
              { name: 'Written', of: (one) => <Seconds at={one.created_at} />, class: 'time' },
              {
                name: 'Action',
                of: (one) => (
                  <Act
                    danger
                    confirm={`The file ${one.name} is deleted.`}
                    act={() => write('DELETE /api/backup', { body: { name: one.name } }, 'Deleted.')}
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

function Settings() {
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
              { name: 'Value', of: (one) => <span class="break">{one.value || '–'}</span> },
              {
                name: 'From',
                of: (one) => (one.is_default ? <span class="dim">default</span> : (one.updated_by ?? 'an admin')),
              },
              {
                name: 'Actions',
                of: (one) => (
                  <span class="buttons">
                    <FormButton
                      text="Change"
                      title={one.key}
                      submit="Save"
                      fields={[{ name: 'value', label: one.description, value: one.value }]}
                      send={({ value }: Values) =>
                        write('PUT /api/settings', { body: { settings: { [one.key]: value ?? '' } } }, 'Saved.')
                      }
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

function Gateways() {
  const read = useRead('GET /api/gateways', {});
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
            empty="There are no gateways."
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

function GlobalKey() {
  const read = useRead('GET /api/tokens/rotate', {});
  const [key, setKey] = useState<string>();
  return (
    <Panel title="The API key of the deployment" read={read}>
      {key && (
        <Dialog title="The new key" close={() => setKey(undefined)}>
          <p>It is shown only now. Only its hash is kept.</p>
          <pre tabIndex={0}>{key}</pre>
          <div class="buttons">
            <Copy text={key} label="Copy" />
          </div>
        </Dialog>
      )}
      <Shown read={read}>
        {(data) =>
          data.configured ? (
            <p>
              <code>{data.masked_key}</code>, from {data.source === 'database' ? 'a rotation' : data.source}
              {data.last_rotated_at !== null && (
                <>
                  , <Seconds at={data.last_rotated_at} /> by {data.last_rotated_by}
                </>
              )}
            </p>
          ) : (
            <Empty>There is no key.</Empty>
          )
        }
      </Shown>
      <Act
        danger
        confirm="The present key stops working at once, for every client that uses it."
        act={async () => {
          const { key: made } = await write('POST /api/tokens/rotate', {});
          setKey(made);
        }}
      >
        Replace the key
      </Act>
    </Panel>
  );
}
