/** Diagnostics of an agent: numbers with evidence and trends, activity by hour, tasks. */
import { urlOf } from '../../client/address.ts';
import { useRead } from '../../client/reads.ts';
import { useRights } from '../../client/session.ts';
import { Panel, Seconds, Shown, State, Table } from '../../parts/basic.tsx';
import { Bars, Shares } from '../../parts/chart.tsx';
import { change, count, percent, words } from '../../parts/format.ts';
import { hourBars } from '../../parts/hours.ts';
import { Figure } from './evidence.tsx';
import { StatusOverTime } from './status.tsx';
import { useHours } from './window.tsx';

export function Diagnostics({ id, name }: { readonly id: number; readonly name: string }) {
  const { isAdmin, me } = useRights();
  const { hours, choice } = useHours();
  const may = isAdmin || me.username === name;
  const read = useRead(
    'GET /api/agents/{id}/diagnostics',
    may ? { params: { id }, query: { hours, evidence: '1', ...(isAdmin && { privileged: '1' }) } } : undefined,
    { kinds: ['activity.', 'agent.'] },
  );
  const tasks = useRead(
    'GET /api/tasks',
    { query: { assigned_to: name, limit: 20, sort: 'updated_at', order: 'desc' } },
    { kinds: ['task.'] },
  );
  return (
    <>
      <div class="filters">{choice}</div>
      <div class="grid">
        <StatusOverTime id={id} hours={hours} />
        {may && (
          <Panel title="Diagnostics" read={read}>
            <Shown read={read}>
              {({ summary, trends, evidence }) => (
                <>
                  {summary && (
                    <ul class="tiles">
                      <Figure
                        name="tasks completed"
                        value={count(summary.tasks_completed)}
                        of="summary.tasks_completed"
                        evidence={evidence}
                      />
                      <Figure
                        name="activities"
                        value={count(summary.activity_count)}
                        of="summary.activity_count"
                        evidence={evidence}
                      />
                      <Figure
                        name="errors"
                        value={count(summary.error_count)}
                        of="summary.error_count"
                        evidence={evidence}
                      />
                      <Figure
                        name="error rate"
                        value={percent(summary.error_rate_percent)}
                        of="summary.error_rate_percent"
                        evidence={evidence}
                      />
                    </ul>
                  )}
                  {trends && (
                    <>
                      <p class="dim">
                        Compared with the {hours} hours before: activities{' '}
                        {change(trends.change.activities_pct, percent)}, errors{' '}
                        {change(trends.change.errors_pct, percent)}, completed{' '}
                        {change(trends.change.tasks_completed_pct, percent)}
                      </p>
                      <ul class="lines">
                        {trends.alerts.map(({ level, message }) => (
                          <li key={message}>
                            <State is={level} /> {message}
                          </li>
                        ))}
                      </ul>
                    </>
                  )}
                </>
              )}
            </Shown>
          </Panel>
        )}
        {may && (
          <Panel title="Activity">
            <Shown read={read}>
              {({ activity, errors, timeframe: { since, until } }) => (
                <>
                  {activity && (
                    <Bars
                      label="Activities by hour"
                      as={count}
                      height={80}
                      bars={hourBars(
                        activity.timeline.map(({ timestamp, count: value }) => ({ at: timestamp * 1000, value })),
                        since * 1000,
                        until * 1000,
                      )}
                    />
                  )}
                  {activity && (
                    <Shares
                      as={count}
                      rows={activity.by_type.map(({ type, count: n }) => ({ name: words(type), value: n }))}
                    />
                  )}
                  {errors && errors.recent.length > 0 && (
                    <>
                      <h3>Errors</h3>
                      <ul class="lines">
                        {errors.recent.map((one) => (
                          <li key={one.id}>
                            <Seconds at={one.created_at} /> {one.description}
                          </li>
                        ))}
                      </ul>
                    </>
                  )}
                </>
              )}
            </Shown>
          </Panel>
        )}
        <Panel
          title="Tasks"
          class="wide"
          read={tasks}
          more={<a href={urlOf('/tasks', { view: 'table', assigned_to: name })}>All</a>}
        >
          <Shown read={tasks}>
            {(data) => (
              <Table
                label="Tasks of the agent"
                rows={data.tasks}
                id={(one) => one.id}
                href={(one) => urlOf(`/tasks/${one.id}`)}
                empty="No task is assigned to this agent."
                columns={[
                  { name: 'Task', of: (one) => one.title },
                  { name: 'Status', of: (one) => <State is={one.status} /> },
                  { name: 'Priority', of: (one) => <State is={one.priority} /> },
                  { name: 'Changed', of: (one) => <Seconds at={one.updated_at} />, class: 'time' },
                ]}
              />
            )}
          </Shown>
        </Panel>
      </div>
    </>
  );
}
