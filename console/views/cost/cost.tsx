/** Cost: by day, then what changed since the day before, by agent, model and project. */
import { urlWith, useAddress } from '../../client/address.ts';
import { Page, Panel, Tabs } from '../../parts/basic.tsx';
import { CsvLink } from '../../parts/csv.tsx';
import { AgentCost } from './agent.tsx';
import { Changes, Total, Waiting } from './changes.tsx';
import { DayChart, dayName, useDay } from './days.tsx';
import { Prices } from './prices.tsx';
import { isAgentCosts, isSessionCosts, isTaskCosts, sumsOfAgents, sumsOfTasks } from './shapes.ts';
import { changesOf, useDays } from './spend.ts';

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
    <Page
      title="Cost"
      more={<CsvLink path="/api/tokens" query={{ action: 'export', timeframe: 'all' }} what="All reports of tokens" />}
    >
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
  const { since, read, ready } = useDays('agent-costs', day, isAgentCosts);
  const [before, own, next] = since.map(sumsOfAgents);
  const rows = changesOf(before, own, next);
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

function ByModel({ day, name }: DayProps) {
  const { since, read, ready } = useDays('stats', day, isSessionCosts);
  const rows = changesOf(since[0]?.models, since[1]?.models, since[2]?.models);
  return (
    <Panel title={`Models: ${name} against the day before`} class="wide" read={read}>
      {ready ? (
        <Changes rows={rows} label="Models" name="Model" areModels empty="Nothing was spent on either day." />
      ) : (
        <Waiting read={read} />
      )}
    </Panel>
  );
}

function ByProject({ day, name }: DayProps) {
  const { since, read, ready } = useDays('task-costs', day, isTaskCosts);
  const [before, own, next] = since.map((one) => sumsOfTasks(one, ({ project }) => project.name ?? 'no project'));
  const rows = changesOf(before, own, next);
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
