/** Why the cost of one agent changed: by model, task and session, down to the reports. */
import { urlOf } from '../../client/address.ts';
import { useRights } from '../../client/session.ts';
import { Panel } from '../../parts/basic.tsx';
import { change, count, money, utc } from '../../parts/format.ts';
import { Changes, Total, Waiting } from './changes.tsx';
import { DayChart, dayName, useDay } from './days.tsx';
import { Reports } from './reports.tsx';
import { isAgentCosts, isSessionCosts, isTaskCosts, sumsOfTasks } from './shapes.ts';
import { changesOf, NONE, type Sums, startOf, useDays } from './spend.ts';

const DAY = 86_400_000;

/** Why the cost of one agent changed. */
export function AgentCost({ name }: { readonly name: string; readonly id?: number }) {
  const { ofDeployment } = useRights();
  const { day, today } = useDay();
  const agents = useDays('agent-costs', day, isAgentCosts);
  const sessions = useDays('stats', day, isSessionCosts);
  const tasks = useDays('task-costs', day, isTaskCosts);
  const models = agents.since.map((one) => one?.agents[name]?.models ?? {});
  const own = agents.since.map((one) => ({
    [name]: one?.agents[name]?.stats ?? NONE,
  }));
  const ofName = (sums: Sums = {}): Sums =>
    Object.fromEntries(Object.entries(sums).filter(([session]) => session.split(':')[0] === name));
  const ids = new Set(tasks.since[0]?.agents[name]?.taskIds ?? []);
  const byTask = tasks.since.map((one) =>
    sumsOfTasks(one, ({ taskId, title }) => (ids.has(taskId) ? `${taskId} ${title}` : undefined)),
  );
  const shown = dayName(day, today);
  const byModel = changesOf(models[0], models[1], models[2]);
  const total = changesOf(own[0], own[1], own[2]);
  const taskRows = changesOf(byTask[0], byTask[1], byTask[2]);
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
            <Changes rows={byModel} label="Models" name="Model" areModels empty="Nothing was spent on either day." />
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
            empty="No report named a task."
          />
        ) : (
          <Waiting read={tasks.read} />
        )}
      </Panel>
      <Panel title="Sessions" class="wide" read={sessions.read}>
        {sessions.ready ? (
          <Changes
            rows={changesOf(
              ofName(sessions.since[0]?.sessions),
              ofName(sessions.since[1]?.sessions),
              ofName(sessions.since[2]?.sessions),
            )}
            label="Sessions"
            name="Session"
            empty="No session reported tokens."
          />
        ) : (
          <Waiting read={sessions.read} />
        )}
      </Panel>
      <Reports key={day} agent={name} start={start} end={start + DAY} />
    </div>
  );
}
