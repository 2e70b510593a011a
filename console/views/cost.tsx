/** Cost: by day, then what changed since the day before, by agent, model, session and task. */
import { setParams, urlOf, urlWith, useAddress } from '../client/address.ts';
import type { TokenStats } from '../client/api-types.ts';
import { timeOfMoment, useAsOf } from '../client/moment.ts';
import { useRead } from '../client/reads.ts';
import { useRights } from '../client/session.ts';
import { FormButton, write } from '../parts/act.tsx';
import { Empty, Failure, Page, Panel, Seconds, Shown, Table, Tabs } from '../parts/basic.tsx';
import { Bars } from '../parts/chart.tsx';
import { change, count, money, short, utc } from '../parts/format.ts';
import { type Change, changesOf, dayBefore, dayOf, type Sums, startOf, useDays } from './spend.ts';

interface AgentCosts {
  readonly agents: Readonly<
    Record<
      string,
      {
        readonly stats: TokenStats;
        readonly models: Readonly<Record<string, TokenStats>>;
        readonly timeline: readonly { readonly date: string; readonly cost: number }[];
      }
    >
  >;
}
interface TaskCosts {
  readonly tasks: readonly {
    readonly taskId: number;
    readonly title: string;
    readonly stats: TokenStats;
    readonly project: { readonly name: string | null };
  }[];
  readonly agents: Readonly<Record<string, { readonly taskIds: readonly number[] }>>;
}
interface SessionCosts {
  readonly sessions: Sums;
  readonly models: Sums;
}
const has = (data: unknown, ...names: readonly string[]) =>
  typeof data === 'object' && data !== null && names.every((name) => name in data);
const isAgentCosts = (data: unknown): data is AgentCosts =>
  has(data, 'agents') && !has(data, 'tasks') && !has(data, 'sessions');
const isTaskCosts = (data: unknown): data is TaskCosts => has(data, 'tasks', 'agents');
const isSessionCosts = (data: unknown): data is SessionCosts => has(data, 'sessions', 'models');

const DAY = 86_400_000;
const DAYS = 30;

/** The chosen day: by default the last one that is over. */
function useDay(): { readonly day: string; readonly today: string } {
  const shown = timeOfMoment(useAsOf()) ?? Date.now();
  const today = dayOf(shown);
  return { day: useAddress().query.get('day') ?? dayBefore(today), today };
}

const dayName = (day: string, today: string): string =>
  day === today
    ? 'today'
    : day === dayBefore(today)
      ? 'yesterday'
      : new Date(startOf(day)).toLocaleDateString('en-GB', {
          weekday: 'short',
          day: 'numeric',
          month: 'short',
          timeZone: 'UTC',
        });

/** @param agent only its costs */
function DayChart({ agent }: { readonly agent?: string }) {
  const { day, today } = useDay();
  const read = useRead(
    'GET /api/tokens',
    { query: { action: 'agent-costs', timeframe: 'month' } },
    { kinds: ['activity.'] },
  );
  return (
    <Panel title={agent ? `Cost of ${agent} by day` : 'Cost by day'} class="wide" read={read}>
      <Shown read={read}>
        {(data) => {
          if (!isAgentCosts(data)) return null;
          const sums = new Map<string, number>();
          for (const [name, { timeline }] of Object.entries(data.agents)) {
            if (agent !== undefined && name !== agent) continue;
            for (const { date, cost } of timeline) sums.set(date, (sums.get(date) ?? 0) + cost);
          }
          const days = Array.from({ length: DAYS }, (_, n) => dayOf(startOf(today) - (DAYS - 1 - n) * DAY));
          return (
            <Bars
              label="US dollars by day (UTC); choose one"
              as={money}
              choose={(key) => setParams({ day: key }, { replace: true })}
              bars={days.map((key) => ({
                key,
                label: dayName(key, today),
                value: sums.get(key) ?? 0,
                isChosen: key === day,
              }))}
            />
          );
        }}
      </Shown>
    </Panel>
  );
}

const sumsOfAgents = (data: AgentCosts | undefined): Sums =>
  Object.fromEntries(Object.entries(data?.agents ?? {}).map(([name, { stats }]) => [name, stats]));

function Changes({
  rows,
  label,
  name,
  href,
  empty,
}: {
  readonly rows: readonly Change[];
  readonly label: string;
  readonly name: string;
  readonly href?: (row: Change) => string;
  readonly empty: string;
}) {
  return (
    <Table
      label={label}
      rows={rows.slice(0, 50)}
      id={(row) => row.name}
      href={href}
      empty={empty}
      columns={[
        { name, of: (row) => row.name, class: 'grow' },
        { name: 'Change', of: (row) => <strong>{change(row.cost - row.before, money)}</strong>, class: 'number' },
        { name: 'Day', of: (row) => money(row.cost), class: 'number' },
        { name: 'Day before', of: (row) => money(row.before), class: 'number' },
        {
          name: 'Requests',
          of: (row) => `${count(row.requests)} (${change(row.requests - row.requestsBefore, count)})`,
          class: 'number',
        },
        { name: 'Tokens', of: (row) => short(row.tokens), class: 'number' },
      ]}
    />
  );
}

const VIEWS = ['agent', 'model', 'project', 'prices'] as const;

export function Cost() {
  const { query } = useAddress();
  const { day, today } = useDay();
  const agent = query.get('agent') ?? undefined;
  const view = VIEWS.find((one) => one === query.get('by')) ?? 'agent';
  if (agent !== undefined)
    return (
      <Page title={`Cost of ${agent}`} more={<a href={urlWith({ agent: undefined })}>All agents</a>}>
        <AgentCost name={agent} />
      </Page>
    );
  return (
    <Page title="Cost">
      <Tabs
        label="By"
        now={view}
        tabs={VIEWS.map((one) => [
          one,
          one === 'prices' ? one : `by ${one}`,
          urlWith({ by: one === 'agent' ? undefined : one }),
        ])}
      />
      <div class="grid">
        {view !== 'prices' && <DayChart />}
        {view === 'agent' && <ByAgent day={day} name={dayName(day, today)} />}
        {view === 'model' && <ByModel day={day} name={dayName(day, today)} />}
        {view === 'project' && <ByProject day={day} name={dayName(day, today)} />}
        {view === 'prices' && <Prices />}
      </div>
    </Page>
  );
}

interface DayProps {
  readonly day: string;
  readonly name: string;
}

function ByAgent({ day, name }: DayProps) {
  const { at, read, ready } = useDays('agent-costs', day, isAgentCosts);
  const [third, second, first] = at;
  const rows = changesOf(sumsOfAgents(first), sumsOfAgents(second), sumsOfAgents(third));
  return (
    <Panel title={`What changed: ${name} against the day before`} class="wide" read={read}>
      {ready ? (
        <>
          <Total rows={rows} />
          <Changes
            rows={rows}
            label="Agents"
            name="Agent (choose one to see why)"
            href={(row) => urlWith({ agent: row.name })}
            empty="Nothing was spent on either day."
          />
        </>
      ) : (
        <Waiting read={read} />
      )}
    </Panel>
  );
}

const Waiting = ({ read }: { readonly read: Parameters<typeof Shown>[0]['read'] }) =>
  read.error ? (
    <Failure error={read.error} retry={read.refresh} />
  ) : (
    <Shown read={{ ...read, data: undefined }}>{() => null}</Shown>
  );

function Total({ rows }: { readonly rows: readonly Change[] }) {
  const cost = rows.reduce((sum, row) => sum + row.cost, 0);
  const before = rows.reduce((sum, row) => sum + row.before, 0);
  return (
    <p>
      <span class="big">{money(cost)}</span> {change(cost - before, money)} against {money(before)}
    </p>
  );
}

function ByModel({ day, name }: DayProps) {
  const { at, read, ready } = useDays('stats', day, isSessionCosts);
  const rows = changesOf(at[2]?.models ?? {}, at[1]?.models ?? {}, at[0]?.models ?? {});
  return (
    <Panel title={`Models: ${name} against the day before`} class="wide" read={read}>
      {ready ? (
        <Changes rows={rows} label="Models" name="Model" empty="Nothing was spent on either day." />
      ) : (
        <Waiting read={read} />
      )}
    </Panel>
  );
}

/** Sums of tasks by what they belong to. */
function sumsOfTasks(
  data: TaskCosts | undefined,
  nameOf: (task: TaskCosts['tasks'][number]) => string | undefined,
): Sums {
  const sums: Record<string, { totalCost: number; totalTokens: number; requestCount: number }> = {};
  for (const task of data?.tasks ?? []) {
    const name = nameOf(task);
    if (name === undefined) continue;
    sums[name] ??= { totalCost: 0, totalTokens: 0, requestCount: 0 };
    const sum = sums[name];
    sum.totalCost += task.stats.totalCost;
    sum.totalTokens += task.stats.totalTokens;
    sum.requestCount += task.stats.requestCount;
  }
  return sums;
}

function ByProject({ day, name }: DayProps) {
  const { at, read, ready } = useDays('task-costs', day, isTaskCosts);
  const [third, second, first] = at.map((one) => sumsOfTasks(one, ({ project }) => project.name ?? 'no project'));
  const rows = changesOf(first ?? {}, second ?? {}, third ?? {});
  return (
    <Panel title={`Projects: ${name} against the day before`} class="wide" read={read}>
      {ready ? (
        <Changes rows={rows} label="Projects" name="Project" empty="Nothing was spent on tasks on either day." />
      ) : (
        <Waiting read={read} />
      )}
    </Panel>
  );
}

/** Why the cost of one agent changed. */
export function AgentCost({ name }: { readonly name: string; readonly id?: number }) {
  const { ofDeployment } = useRights();
  const { day, today } = useDay();
  const agents = useDays('agent-costs', day, isAgentCosts);
  const sessions = useDays('stats', day, isSessionCosts);
  const tasks = useDays('task-costs', day, isTaskCosts);
  const models = agents.at.map((one) => one?.agents[name]?.models ?? {});
  const own = agents.at.map((one) => ({
    [name]: one?.agents[name]?.stats ?? { totalCost: 0, totalTokens: 0, requestCount: 0 },
  }));
  const ofName = (sums: Sums = {}): Sums =>
    Object.fromEntries(Object.entries(sums).filter(([session]) => session.split(':')[0] === name));
  const ids = new Set(tasks.at[0]?.agents[name]?.taskIds ?? []);
  const byTask = tasks.at.map((one) =>
    sumsOfTasks(one, ({ taskId, title }) => (ids.has(taskId) ? `${taskId} ${title}` : undefined)),
  );
  const shown = dayName(day, today);
  const byModel = changesOf(models[2] ?? {}, models[1] ?? {}, models[0] ?? {});
  const total = changesOf(own[2] ?? {}, own[1] ?? {}, own[0] ?? {});
  const taskRows = changesOf(byTask[2] ?? {}, byTask[1] ?? {}, byTask[0] ?? {});
  const [main] = byModel;
  const [mainTask] = taskRows;
  const start = startOf(day);
  return (
    <div class="grid">
      <DayChart agent={name} />
      <Panel
        title={`Why: ${shown} against the day before`}
        class="wide why"
        read={agents.read}
        more={
          ofDeployment && (
            <a href={urlOf('/log', { type: 'TokensReported', since: utc(start), until: utc(start + DAY) })}>
              The reports in the log
            </a>
          )
        }
      >
        {agents.ready ? (
          <>
            <Total rows={total} />
            {main && Math.abs(main.cost - main.before) > 0 && (
              <p class="because">
                Mostly <strong>{main.name}</strong>: {change(main.cost - main.before, money)}, {count(main.requests)}{' '}
                requests after {count(main.requestsBefore)} the day before
                {mainTask && mainTask.cost - mainTask.before !== 0 && (
                  <>
                    ; by task,{' '}
                    <a href={urlOf(`/tasks/${mainTask.name.split(' ')[0]}`)}>{mainTask.name.replace(/^\d+ /, '')}</a>:{' '}
                    {change(mainTask.cost - mainTask.before, money)}
                  </>
                )}
                .
              </p>
            )}
            <h3>Models</h3>
            <Changes rows={byModel} label="Models" name="Model" empty="Nothing was spent on either day." />
          </>
        ) : (
          <Waiting read={agents.read} />
        )}
      </Panel>
      <Panel title="Tasks" class="wide" read={tasks.read}>
        {tasks.ready ? (
          <Changes
            rows={taskRows}
            label="Tasks"
            name="Task"
            href={(row) => urlOf(`/tasks/${row.name.split(' ')[0]}`)}
            empty="Nothing was reported for a task."
          />
        ) : (
          <Waiting read={tasks.read} />
        )}
      </Panel>
      <Panel title="Sessions" class="wide" read={sessions.read}>
        {sessions.ready ? (
          <Changes
            rows={changesOf(
              ofName(sessions.at[2]?.sessions),
              ofName(sessions.at[1]?.sessions),
              ofName(sessions.at[0]?.sessions),
            )}
            label="Sessions"
            name="Session"
            empty="No session was active."
          />
        ) : (
          <Waiting read={sessions.read} />
        )}
      </Panel>
    </div>
  );
}

function Prices() {
  const { isOperator } = useRights();
  const read = useRead('GET /api/tokens/prices', {});
  return (
    <Panel
      title="Prices, US dollars for a million tokens"
      class="wide"
      read={read}
      more={
        isOperator && (
          <FormButton
            text="Set a price"
            title="Set a price"
            submit="Set"
            fields={[
              { name: 'model', label: 'Model', required: true },
              { name: 'input', label: 'Input', type: 'number', required: true, min: 0 },
              { name: 'output', label: 'Output', type: 'number', required: true, min: 0 },
            ]}
            send={(body) => write('PUT /api/tokens/prices', { body }, 'The price applies to reports from now on.')}
          />
        )
      }
    >
      <Shown read={read}>
        {({ prices, subscribed_providers }) => (
          <>
            {subscribed_providers.length > 0 && (
              <p>Free of charge by subscription: {subscribed_providers.join(', ')}</p>
            )}
            <Table
              label="Prices"
              rows={prices}
              id={(one) => one.model}
              empty={<Empty>No prices.</Empty>}
              columns={[
                { name: 'Model', of: (one) => one.model },
                { name: 'Input', of: (one) => money(one.input), class: 'number' },
                { name: 'Output', of: (one) => money(one.output), class: 'number' },
                { name: 'From', of: (one) => one.source },
                { name: 'Changed', of: (one) => <Seconds at={one.updated_at} />, class: 'time' },
              ]}
            />
          </>
        )}
      </Shown>
    </Panel>
  );
}
