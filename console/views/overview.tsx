/** The overview for operators: agents, tasks, spend, alerts, and the health of the service. */
import { urlOf } from '../client/address.ts';
import type { Activity } from '../client/api-types.ts';
import { BASE } from '../client/base.ts';
import { useAsOf } from '../client/moment.ts';
import { useRead, useShownTime } from '../client/reads.ts';
import { useRights } from '../client/session.ts';
import { Copy, Empty, Page, Panel, Seconds, Shown, State, Table, type Tone } from '../parts/basic.tsx';
import { Bars, Shares } from '../parts/chart.tsx';
import { count, duration, money, words } from '../parts/format.ts';
import { hourBars } from '../parts/hours.ts';
import { recordUrl } from '../parts/record.tsx';
import { useReadiness } from './readiness.ts';
import { STATES } from './tasks/tasks.tsx';

/** Counts agents and tasks; two panels share it. */
const useWorkload = () => useRead('GET /api/workload', {}, { kinds: ['agent.', 'task.'] });

export function Overview() {
  const moment = useAsOf();
  const workload = useWorkload();
  if (workload.data?.agents.total === 0 && moment === undefined) return <FirstScreen />;
  return (
    <Page title="Overview">
      <div class="grid three">
        <Agents />
        <Tasks />
        <Spend />
        <Alerts />
        {/* The health of a past moment is not kept, and that of now would be taken for it. */}
        {moment === undefined && <Health />}
        <Recent />
      </div>
    </Page>
  );
}

function Agents() {
  const workload = useWorkload();
  return (
    <Panel title="Agents" read={workload} more={<a href={urlOf('/agents')}>All</a>}>
      <Shown read={workload}>
        {({ agents: { total, online, busy, idle, offline } }) => {
          // `online` of the response includes those that are busy or idle.
          const counts = { error: total - online - offline, busy, online: online - busy - idle, idle, offline };
          return (
            <ul class="tiles">
              {Object.entries(counts).map(([status, n]) => (
                <li key={status}>
                  <a href={urlOf('/agents', { status, hidden: 1 })}>
                    <b>{count(n)}</b> <State is={status} />
                  </a>
                </li>
              ))}
            </ul>
          );
        }}
      </Shown>
    </Panel>
  );
}

function Tasks() {
  const workload = useWorkload();
  const tone: Record<string, Tone> = { normal: 'good', throttle: 'warn', shed: 'bad', pause: 'bad' };
  return (
    <Panel title="Tasks" read={workload} more={<a href={urlOf('/tasks')}>Board</a>}>
      <Shown read={workload}>
        {({ tasks, queue, capacity, recommendation }) => (
          <>
            <ul class="tiles">
              {STATES.map((status) => [status, tasks.by_status[status]] as const).map(([status, n]) => (
                <li key={status}>
                  <a href={urlOf('/tasks', { view: 'table', status })}>
                    <b>{count(n)}</b> <State is={status} />
                  </a>
                </li>
              ))}
            </ul>
            <p class="advice">
              <State is="advice" tone={tone[recommendation.action] ?? 'none'} text={recommendation.reason} />
            </p>
            <p class="dim">
              {count(capacity.completions_last_hour)} done in the last hour
              {queue.oldest_pending_age_seconds !== null &&
                `; the oldest has waited ${duration(queue.oldest_pending_age_seconds)}`}
            </p>
          </>
        )}
      </Shown>
    </Panel>
  );
}

function Spend() {
  const options = { kinds: ['activity.', 'agent.'] };
  const trend = useRead('GET /api/tokens', { query: { action: 'trends', timeframe: 'day' } }, options);
  const day = useRead('GET /api/tokens', { query: { action: 'stats', timeframe: 'day' } }, options);
  const end = useShownTime();
  const stats = day.data && 'recordCount' in day.data && 'sessions' in day.data ? day.data : undefined;
  const hours = trend.data && 'trends' in trend.data ? trend.data.trends : [];
  return (
    <Panel title="Spend, last 24 hours" read={day} more={<a href={urlOf('/cost')}>Cost</a>}>
      <Shown read={day}>
        {() =>
          stats && (
            <>
              <p class="big">{money(stats.summary.totalCost)}</p>
              <Bars
                label="US dollars by hour"
                as={money}
                height={64}
                bars={hourBars(
                  hours.map(({ timestamp, cost }) => ({ at: Date.parse(timestamp), value: cost })),
                  end - 24 * 3_600_000,
                  end,
                )}
              />
              <Shares
                as={money}
                rows={Object.entries(stats.agents)
                  .sort(([, a], [, b]) => b.totalCost - a.totalCost)
                  .slice(0, 4)
                  .map(([name, { totalCost }]) => ({ name, value: totalCost, href: urlOf('/cost', { agent: name }) }))}
              />
            </>
          )
        }
      </Shown>
    </Panel>
  );
}

function Alerts() {
  const isPast = useAsOf() !== undefined;
  const rules = useRead('GET /api/alerts', {}, { kinds: ['alert.'] });
  return (
    // In the past, the checks of the service are not beside it.
    <Panel title="Alerts" class={isPast ? 'wide' : ''} read={rules} more={<a href={urlOf('/alerts')}>Rules</a>}>
      <Shown read={rules}>
        {(data) => {
          const fired = data.rules
            .filter(({ last_triggered_at }) => last_triggered_at !== null)
            .sort((a, b) => (b.last_triggered_at ?? 0) - (a.last_triggered_at ?? 0));
          if (fired.length === 0) return <Empty>None of {data.rules.length} rules has triggered.</Empty>;
          return (
            <ul class="lines">
              {fired.slice(0, 6).map((rule) => (
                <li key={rule.id}>
                  <State is="alert" tone="warn" text="triggered" />{' '}
                  <a href={urlOf('/alerts', { rule: rule.id })}>{rule.name}</a> <Seconds at={rule.last_triggered_at} />
                </li>
              ))}
            </ul>
          );
        }}
      </Shown>
    </Panel>
  );
}

function Health() {
  const { isOperator } = useRights();
  const readiness = useReadiness();
  const status = useRead('GET /api/status', { query: { action: 'health' } }, { every: 15_000 });
  const shown = status.data && 'checks' in status.data ? status.data : undefined;
  return (
    <Panel title="Service" class="double" read={status}>
      <Shown read={status}>
        {() =>
          shown && (
            <ul class="lines">
              <li>
                <State is={shown.status} />{' '}
                <span class="dim">
                  version {shown.version}, up {duration(shown.uptime)}
                </span>
              </li>
              {shown.checks.map(({ name, status: is, message }) => (
                <li key={name}>
                  <State is={is} tone={is === 'error' || is === 'critical' ? 'bad' : undefined} text={name} />{' '}
                  <span class="dim">{message}</span>
                </li>
              ))}
              {readiness && (
                <li>
                  <State is="lag" tone={readiness.behind === 0 ? 'good' : 'warn'} text="Read models" />{' '}
                  <span class="dim">
                    {readiness.behind === 0 ? 'current with the log' : `${count(readiness.behind)} events behind`}
                    {isOperator && `, position ${count(readiness.position)}`}
                  </span>
                </li>
              )}
            </ul>
          )
        }
      </Shown>
    </Panel>
  );
}

function Recent() {
  const recent = useRead('GET /api/activities', { query: { limit: 12 } }, { kinds: ['activity.'] });
  return (
    <Panel title="Latest" class="wide" read={recent} more={<a href={urlOf('/activity')}>Activity</a>}>
      <Shown read={recent}>{(data) => ('activities' in data ? <ActivityTable rows={data.activities} /> : null)}</Shown>
    </Panel>
  );
}

export const ActivityTable = ({ rows }: { readonly rows: readonly Activity[] }) => (
  <Table
    label="Activities"
    rows={rows}
    id={({ id }) => id}
    href={({ id, created_at }) => recordUrl('activity', id, created_at)}
    empty="No activity matches."
    columns={[
      { name: 'What', of: ({ description }) => description, class: 'grow' },
      { name: 'When', of: ({ created_at }) => <Seconds at={created_at} />, class: 'time' },
      { name: 'Type', of: ({ type }) => <span class="dim">{words(type)}</span> },
      { name: 'By', of: (one) => <By of={one} /> },
      { name: 'About', of: (one) => <About of={one} /> },
    ]}
  />
);

/** Of a review, the person; the actor is the name under which they reviewed. */
function By({ of: { actor, data } }: { readonly of: Activity }) {
  const person = nameIn(data?.reviewed_by);
  const isOther = person !== undefined && person !== actor;
  return (
    <>
      {person ?? actor} {isOther && <span class="dim">for {actor}</span>}
    </>
  );
}

const nameIn = (value: unknown): string | undefined =>
  typeof value === 'object' && value !== null && 'name' in value && typeof value.name === 'string'
    ? value.name
    : undefined;

function About({ of: { entity_type, entity_id } }: { readonly of: Activity }) {
  if (entity_type === 'task') return <a href={urlOf(`/tasks/${entity_id}`)}>task {entity_id}</a>;
  if (entity_type === 'agent') return <a href={urlOf(`/agents/${entity_id}`)}>agent {entity_id}</a>;
  return (
    <span class="dim">
      {words(entity_type)} {entity_id > 0 && entity_id}
    </span>
  );
}

/** The first screen of an empty deployment. */
function FirstScreen() {
  const { isOperator, ofDeployment } = useRights();
  const prepare = `export SIGNALBOX=${location.origin}${BASE}\nexport KEY=mc_paste_the_key_here`;
  const lines = [
    [
      'Create an agent',
      `curl -sS -H "x-api-key: $KEY" "$SIGNALBOX/api/agents" -d '{"name":"scout","role":"researcher"}'`,
    ],
    [
      'Give it a task',
      `curl -sS -H "x-api-key: $KEY" "$SIGNALBOX/api/tasks" -d '{"title":"Survey the north slope","assigned_to":"scout"}'`,
    ],
    [
      'Report the tokens that it used',
      `curl -sS -H "x-api-key: $KEY" "$SIGNALBOX/api/tokens" -d '{"model":"claude-sonnet-4-5","sessionId":"scout:cli","inputTokens":1200,"outputTokens":80}'`,
    ],
  ] as const;
  return (
    <Page
      title="Nothing is here yet"
      about="Three commands create the first agent, task and cost. This page changes as they run."
    >
      <section class="first">
        <h2>Before you start</h2>
        <p>
          {ofDeployment ? (
            <>
              The API key was printed on the first start. If it is lost, <a href={urlOf('/admin/key')}>replace it</a>.
            </>
          ) : (
            'Ask an admin for an API key.'
          )}
        </p>
        <pre tabIndex={0}>{prepare}</pre>
        <Copy text={prepare} label="Copy" />
      </section>
      <ol class="first steps">
        {lines.map(([what, command]) => (
          <li key={what}>
            <h2>{what}</h2>
            <pre tabIndex={0}>{command}</pre>
            <Copy text={command} label="Copy" />
          </li>
        ))}
      </ol>
      {isOperator && (
        <p>
          Or create an agent <a href={urlOf('/agents')}>in this console</a>.
        </p>
      )}
    </Page>
  );
}
