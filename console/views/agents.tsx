/** Agents: the list, and what one agent did, cost and stumbled over. */
import { go, setParams, urlOf, urlWith, useAddress } from '../client/address.ts';
import type { Derivation } from '../client/api-types.ts';
import { useRead } from '../client/reads.ts';
import { useRights } from '../client/session.ts';
import { Act, FormButton, write } from '../parts/act.tsx';
import {
  Choice,
  Empty,
  Fact,
  Filter,
  Page,
  Pager,
  Panel,
  Seconds,
  Shown,
  State,
  Table,
  Tabs,
} from '../parts/basic.tsx';
import { type Bar, Bars, Shares } from '../parts/chart.tsx';
import { Json, openUrl } from '../parts/drawer.tsx';
import { change, count, money, percent, short, words } from '../parts/format.ts';
import { AgentCost } from './cost.tsx';
import { AgentKeys } from './keys.tsx';

const STATES = ['online', 'busy', 'idle', 'offline', 'error'] as const;
const PAGE = 50;

export function Agents() {
  const { query } = useAddress();
  const { isOperator } = useRights();
  const offset = Number(query.get('offset') ?? 0);
  const asked = { status: query.get('status') ?? undefined, role: query.get('role') ?? undefined, limit: PAGE, offset };
  const read = useRead('GET /api/agents', { query: asked }, { kinds: ['agent.'] });
  return (
    <Page
      title="Agents"
      more={
        isOperator && (
          <FormButton
            main
            text="New agent"
            title="New agent"
            submit="Create"
            fields={[
              { name: 'name', label: 'Name', required: true },
              { name: 'role', label: 'Role', required: true, hint: 'Such as coder, reviewer or researcher' },
              { name: 'soul_content', label: 'Persona', type: 'area' },
            ]}
            send={async (body) => {
              const { agent } = await write('POST /api/agents', { body }, 'The agent is created.');
              go(urlOf(`/agents/${agent.id}`));
            }}
          />
        )
      }
    >
      <div class="filters">
        <Choice
          label="Status"
          value={asked.status ?? ''}
          options={[['', 'every'], ...STATES]}
          set={(status) => setParams({ status, offset: undefined }, { replace: true })}
        />
        <Filter
          label="Role"
          value={asked.role ?? ''}
          set={(role) => setParams({ role, offset: undefined }, { replace: true })}
        />
      </div>
      <Panel title="List" read={read}>
        <Shown read={read} rows={8}>
          {({ agents, total }) => (
            <>
              <Table
                label="Agents"
                rows={agents}
                id={({ id }) => id}
                href={({ id }) => urlOf(`/agents/${id}`)}
                empty="No agent is like that."
                columns={[
                  { name: 'Name', of: ({ name }) => <strong>{name}</strong> },
                  { name: 'Status', of: ({ status }) => <State is={status} /> },
                  { name: 'Role', of: ({ role }) => role },
                  {
                    name: 'Doing',
                    of: ({ last_activity }) => last_activity ?? <span class="dim">–</span>,
                    class: 'grow',
                  },
                  { name: 'In work', of: ({ taskStats }) => count(taskStats.in_progress), class: 'number' },
                  { name: 'Done', of: ({ taskStats }) => count(taskStats.done), class: 'number' },
                  { name: 'Last seen', of: ({ last_seen }) => <Seconds at={last_seen} none="never" />, class: 'time' },
                ]}
              />
              <Pager offset={offset} limit={PAGE} total={total} set={(to) => setParams({ offset: to || undefined })} />
            </>
          )}
        </Shown>
      </Panel>
    </Page>
  );
}

const TABS = ['diagnostics', 'cost', 'attribution', 'texts', 'keys'] as const;
const HOURS = [
  ['24', '24 hours'],
  ['72', '3 days'],
  ['168', '7 days'],
  ['720', '30 days'],
] as const;

export function AgentView({ id }: { readonly id: string }) {
  const { query } = useAddress();
  const { isOperator, isAdmin, me } = useRights();
  const read = useRead('GET /api/agents/{id}', { params: { id } }, { kinds: ['agent.'] });
  const agent = read.data?.agent;
  const tabs = TABS.filter(
    (one) => isAdmin || (one !== 'keys' && (one !== 'attribution' || agent?.name === me.username)),
  );
  const tab = tabs.find((one) => one === query.get('tab')) ?? 'diagnostics';
  return (
    <Page
      title={agent?.name ?? `Agent ${id}`}
      about={
        agent && (
          <>
            <State is={agent.status} /> {agent.role}
            {agent.last_activity && ` · ${agent.last_activity}`}
          </>
        )
      }
      more={
        agent && (
          <>
            {isOperator && (
              <>
                <Act
                  act={() =>
                    write(
                      'POST /api/agents/{id}/wake',
                      { params: { id: agent.id }, body: {} },
                      `${agent.name} is asked to look at its tasks.`,
                    )
                  }
                >
                  Notify
                </Act>
                <FormButton
                  text="Message"
                  title={`Message to ${agent.name}`}
                  submit="Send"
                  fields={[{ name: 'content', label: 'Message', type: 'area', required: true }]}
                  send={(values) =>
                    write(
                      'POST /api/agents/message',
                      { body: { ...values, from: me.username, to: agent.name } },
                      'Sent.',
                    )
                  }
                />
                <FormButton
                  text="Change"
                  title={`Change ${agent.name}`}
                  submit="Save"
                  fields={[
                    { name: 'role', label: 'Role', value: agent.role, required: true },
                    { name: 'status', label: 'Status', value: agent.status, options: STATES, required: true },
                  ]}
                  send={(body) => write('PUT /api/agents/{id}', { params: { id: agent.id }, body }, 'Saved.')}
                />
              </>
            )}
            {isAdmin && (
              <Act
                danger
                confirm={`${agent.name} is removed from the lists, and its keys stop working. What it did stays in the log.`}
                act={async () => {
                  await write('DELETE /api/agents/{id}', { params: { id: agent.id } }, `${agent.name} is deleted.`);
                  go(urlOf('/agents'));
                }}
              >
                Delete
              </Act>
            )}
          </>
        )
      }
    >
      <Shown read={read}>
        {({ agent: one }) => (
          <>
            <Tabs
              label="Parts"
              now={tab}
              tabs={tabs.map((name) => [
                name,
                name === 'texts' ? 'persona and memory' : name,
                urlWith({ tab: name === 'diagnostics' ? undefined : name }),
              ])}
            />
            {tab === 'diagnostics' && <Diagnostics id={one.id} name={one.name} />}
            {tab === 'cost' && <AgentCost name={one.name} id={one.id} />}
            {tab === 'attribution' && <Attribution id={one.id} />}
            {tab === 'texts' && <Texts id={one.id} config={one.config} />}
            {tab === 'keys' && <AgentKeys id={one.id} />}
          </>
        )}
      </Shown>
    </Page>
  );
}

function useHours() {
  const { query } = useAddress();
  const hours = query.get('hours') ?? '24';
  return {
    hours,
    choice: (
      <Choice
        label="Window"
        value={hours}
        options={HOURS}
        set={(to) => setParams({ hours: to === '24' ? undefined : to }, { replace: true })}
      />
    ),
  };
}

function Diagnostics({ id, name }: { readonly id: number; readonly name: string }) {
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
      <div class="filters">{may && choice}</div>
      <div class="grid">
        {may && (
          <Panel title="Numbers" read={read}>
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
                        name="of activities are errors"
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
              {({ activity, errors }) => (
                <>
                  {activity && (
                    <Bars
                      label="Activities by hour"
                      as={count}
                      height={80}
                      bars={everyHour(activity.timeline, Number(hours))}
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
          title="Its tasks"
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
                empty="It has no tasks."
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

const HOUR_S = 3600;

/** A bar for each hour of the window, also where nothing happened. */
function everyHour(timeline: readonly { readonly timestamp: number; readonly count: number }[], hours: number): Bar[] {
  const counts = new Map(timeline.map(({ timestamp, count: n }) => [timestamp, n]));
  const last = timeline.at(-1)?.timestamp ?? 0;
  const width = Math.max(1, Math.ceil(hours / 72));
  const bars: Bar[] = [];
  for (let at = last - (hours - 1) * HOUR_S; at <= last; at += width * HOUR_S) {
    let value = 0;
    for (let hour = 0; hour < width; hour++) value += counts.get(at + hour * HOUR_S) ?? 0;
    const label = new Date(at * 1000).toLocaleString('en-GB', { weekday: 'short', hour: '2-digit', minute: '2-digit' });
    bars.push({ key: String(at), label, value });
  }
  return bars;
}

type EvidenceOf = Readonly<Record<string, unknown>> | undefined;

/** A number with the events behind it. */
function Figure({
  name,
  value,
  of,
  evidence,
}: {
  readonly name: string;
  readonly value: string;
  readonly of: string;
  readonly evidence: EvidenceOf;
}) {
  return (
    <li>
      <b>{value}</b> {name} <Evidence of={of} evidence={evidence} />
    </li>
  );
}

/** Where a number comes from: its rule, and links to the events. */
export function Evidence({ of, evidence }: { readonly of: string; readonly evidence: EvidenceOf }) {
  const { ofDeployment } = useRights();
  const found = evidence?.[of] as Derivation | undefined;
  if (!found) return null;
  return (
    <details class="evidence">
      <summary>Evidence</summary>
      <p>
        {count(found.total)} by the rule <a href="/docs">{found.rule}</a>
        {found.numbers && `, from ${found.numbers.join(' and ')}`}
        {found.from !== undefined && `: events from position ${count(found.from)} to ${count(found.to ?? 0)}`}
      </p>
      {found.positions && (
        <p class="positions">
          {found.positions.map((position) =>
            ofDeployment ? (
              <a key={position} href={openUrl(`position:${position}`)}>
                {position}
              </a>
            ) : (
              <span key={position}>{position}</span>
            ),
          )}
        </p>
      )}
    </details>
  );
}

function Attribution({ id }: { readonly id: number }) {
  const { isAdmin } = useRights();
  const { hours, choice } = useHours();
  const read = useRead('GET /api/agents/{id}/attribution', {
    params: { id },
    query: { hours, evidence: '1', ...(isAdmin && { privileged: '1' }) },
  });
  return (
    <>
      <div class="filters">{choice}</div>
      <Shown read={read}>
        {({ audit, mutations, cost, evidence }) => (
          <div class="grid">
            <Panel title="What it did" read={read}>
              <ul class="tiles">
                {audit && (
                  <Figure
                    name="activities"
                    value={count(audit.total_activities)}
                    of="audit.total_activities"
                    evidence={evidence}
                  />
                )}
                {mutations && (
                  <Figure
                    name="changes of tasks"
                    value={count(mutations.summary.task_mutations_count)}
                    of="mutations.summary.task_mutations_count"
                    evidence={evidence}
                  />
                )}
                {mutations && (
                  <Figure
                    name="comments"
                    value={count(mutations.summary.comments_count)}
                    of="mutations.summary.comments_count"
                    evidence={evidence}
                  />
                )}
              </ul>
              {audit && (
                <Shares
                  as={count}
                  rows={Object.entries(audit.by_type).map(([name, n]) => ({ name: words(name), value: Number(n) }))}
                />
              )}
            </Panel>
            {cost && (
              <Panel title="What it cost">
                <p class="big">{money(cost.total.cost)}</p>
                <ul class="lines">
                  {cost.by_model.map((one) => (
                    <li key={one.model}>
                      {one.model}: {money(one.cost)}, {short(one.input_tokens + one.output_tokens)} tokens in{' '}
                      {count(one.request_count)} requests{' '}
                      <Evidence of={`cost.by_model.${one.model}`} evidence={evidence} />
                    </li>
                  ))}
                </ul>
              </Panel>
            )}
            {audit && (
              <Panel title="The newest" class="wide">
                <Table
                  label="Attributed activities"
                  rows={audit.activities}
                  id={(one) => one.id}
                  empty="Nothing in this window is attributed to it."
                  columns={[
                    { name: 'When', of: (one) => <Seconds at={one.created_at} />, class: 'time' },
                    { name: 'What', of: (one) => one.description },
                    { name: 'Known by', of: (one) => one.attributed_by },
                    {
                      name: 'Event',
                      of: (one) => <a href={openUrl(`position:${one.position}`)}>{count(one.position)}</a>,
                      class: 'number',
                    },
                  ]}
                />
              </Panel>
            )}
          </div>
        )}
      </Shown>
    </>
  );
}

function Texts({ id, config }: { readonly id: number; readonly config: unknown }) {
  const { isOperator } = useRights();
  const soul = useRead('GET /api/agents/{id}/soul', { params: { id } }, { kinds: ['agent.'] });
  const memory = useRead('GET /api/agents/{id}/memory', { params: { id } }, { kinds: ['agent.'] });
  return (
    <div class="grid">
      <Panel
        title="Persona"
        read={soul}
        more={
          isOperator &&
          soul.data && (
            <FormButton
              text="Change"
              title="Persona"
              submit="Save"
              fields={[{ name: 'soul_content', label: 'Persona', type: 'area', value: soul.data.soul_content }]}
              send={({ soul_content = '' }) =>
                write('PUT /api/agents/{id}/soul', { params: { id }, body: { soul_content } }, 'Saved.')
              }
            />
          )
        }
      >
        <Shown read={soul}>
          {({ soul_content }) =>
            soul_content ? <pre class="text">{soul_content}</pre> : <Empty>It has no persona.</Empty>
          }
        </Shown>
      </Panel>
      <Panel
        title="Working memory"
        read={memory}
        more={
          isOperator && (
            <Act
              danger
              confirm="The working memory becomes empty. What was in it stays in the past."
              act={() => write('DELETE /api/agents/{id}/memory', { params: { id } }, 'The memory is empty.')}
            >
              Empty
            </Act>
          )
        }
      >
        <Shown read={memory}>
          {({ working_memory }) =>
            working_memory ? <pre class="text">{working_memory}</pre> : <Empty>It remembers nothing.</Empty>
          }
        </Shown>
      </Panel>
      <Panel title="Configuration" class="wide">
        <Json value={config} />
      </Panel>
      <dl class="facts">
        <Fact name="Id">{id}</Fact>
      </dl>
    </div>
  );
}
