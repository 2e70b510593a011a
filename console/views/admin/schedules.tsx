/** Scheduled tasks of the service, and jobs on cron schedules. */
import { useRead } from '../../client/reads.ts';
import { Act, FormButton, write } from '../../parts/act.tsx';
import { Panel, Shown, State, Table, Time } from '../../parts/basic.tsx';
import { words } from '../../parts/format.ts';

export function Schedules() {
  const tasks = useRead('GET /api/scheduler', {}, { every: 15_000 });
  const cron = useRead('GET /api/cron', { query: { action: 'list' } }, { every: 15_000 });
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
