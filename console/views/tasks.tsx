/** Tasks: a board, a table, and one task with its history. */
import { useState } from 'preact/hooks';
import { go, setParams, urlOf, urlWith, useAddress } from '../client/address.ts';
import type { Comment, HistoryEntry, ListedTask } from '../client/api-types.ts';
import { useAsOf } from '../client/moment.ts';
import { useRead } from '../client/reads.ts';
import { useRights } from '../client/session.ts';
import { Act, type Field, Form, FormButton, write } from '../parts/act.tsx';
import {
  AgentLink,
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
import { openUrl } from '../parts/drawer.tsx';
import { count, json, words } from '../parts/format.ts';

const STATES = [
  'backlog',
  'inbox',
  'assigned',
  'awaiting_owner',
  'in_progress',
  'review',
  'quality_review',
  'done',
  'failed',
] as const;
const BOARD = ['inbox', 'assigned', 'in_progress', 'review', 'quality_review', 'done'] as const;
const PRIORITIES = ['critical', 'high', 'medium', 'low'] as const;
const PAGE = 100;

const FIELDS: readonly Field[] = [
  { name: 'title', label: 'Title', required: true },
  { name: 'description', label: 'Description', type: 'area' },
  { name: 'priority', label: 'Priority', value: 'medium', options: PRIORITIES },
  { name: 'assigned_to', label: 'Agent' },
];

function useProjects() {
  const projects = useRead('GET /api/projects', {}, { kinds: ['project.'] });
  return projects.data?.projects ?? [];
}

export function Tasks() {
  const { query } = useAddress();
  const { isOperator } = useRights();
  const projects = useProjects();
  const view = query.get('view') === 'table' ? 'table' : 'board';
  const filters = {
    assigned_to: query.get('assigned_to') ?? undefined,
    priority: query.get('priority') ?? undefined,
    project_id: query.get('project_id') ?? undefined,
  };
  const set = (name: string) => (value: string) => setParams({ [name]: value, offset: undefined }, { replace: true });
  return (
    <Page
      title="Tasks"
      more={
        isOperator && (
          <FormButton
            main
            text="New task"
            title="New task"
            submit="Create"
            fields={[
              ...FIELDS,
              {
                name: 'project_id',
                label: 'Project',
                type: 'number',
                options: [['', 'general'], ...projects.map(({ id, name }) => [String(id), name] as const)],
              },
            ]}
            send={async (body) => {
              const { task } = await write('POST /api/tasks', { body }, 'The task is created.');
              go(urlOf(`/tasks/${task.id}`));
            }}
          />
        )
      }
    >
      <Tabs
        label="Form"
        now={view}
        tabs={[
          ['board', 'Board', urlWith({ view: undefined })],
          ['table', 'Table', urlWith({ view: 'table' })],
        ]}
      />
      <div class="filters">
        {view === 'table' && (
          <Choice
            label="Status"
            value={query.get('status') ?? ''}
            options={[['', 'every'], ...STATES]}
            set={set('status')}
          />
        )}
        <Choice
          label="Priority"
          value={filters.priority ?? ''}
          options={[['', 'every'], ...PRIORITIES]}
          set={set('priority')}
        />
        <Choice
          label="Project"
          value={filters.project_id ?? ''}
          options={[['', 'every'], ...projects.map(({ id, name }) => [String(id), name] as const)]}
          set={set('project_id')}
        />
        <Filter label="Agent" value={filters.assigned_to ?? ''} set={set('assigned_to')} />
      </div>
      {view === 'board' ? (
        <Board filters={filters} />
      ) : (
        <TaskTable filters={{ ...filters, status: query.get('status') ?? undefined }} />
      )}
    </Page>
  );
}

type Filters = Readonly<Record<string, string | undefined>>;

const Board = ({ filters }: { readonly filters: Filters }) => (
  <div class="board" role="region" tabIndex={0} aria-label="Board">
    {BOARD.map((status) => (
      <Lane key={status} status={status} filters={filters} />
    ))}
  </div>
);

function Lane({ status, filters }: { readonly status: string; readonly filters: Filters }) {
  const read = useRead(
    'GET /api/tasks',
    { query: { ...filters, status, limit: 25, sort: 'updated_at', order: 'desc' } },
    { kinds: ['task.'] },
  );
  return (
    <section class="lane" aria-label={words(status)}>
      <h2>
        <State is={status} /> <span class="dim">{read.data && count(read.data.total)}</span>
      </h2>
      <Shown read={read}>
        {({ tasks, total }) => (
          <>
            {tasks.map((task) => (
              <Card key={task.id} task={task} />
            ))}
            {total > tasks.length && <a href={urlWith({ view: 'table', status })}>All {count(total)}</a>}
            {total === 0 && <p class="dim">none</p>}
          </>
        )}
      </Shown>
    </section>
  );
}

const Card = ({ task }: { readonly task: ListedTask }) => (
  <a class="card" href={urlOf(`/tasks/${task.id}`)}>
    <span class="dim">{task.ticket_ref ?? task.id}</span>
    <span>{task.title}</span>
    <span class="below">
      <State is={task.priority} /> <span class="dim">{task.assigned_to ?? 'nobody'}</span>
    </span>
  </a>
);

function TaskTable({ filters }: { readonly filters: Filters }) {
  const { query } = useAddress();
  const offset = Number(query.get('offset') ?? 0);
  const sort = query.get('sort') ?? 'created_at';
  const read = useRead(
    'GET /api/tasks',
    { query: { ...filters, limit: PAGE, offset, sort, order: 'desc' } },
    { kinds: ['task.'] },
  );
  return (
    <Panel
      title="List"
      read={read}
      more={
        <Choice
          label="By"
          value={sort}
          options={[['created_at', 'newest'], ['updated_at', 'last changed'], 'priority', ['due_date', 'due']]}
          set={(to) => setParams({ sort: to }, { replace: true })}
        />
      }
    >
      <Shown read={read} rows={10}>
        {({ tasks, total }) => (
          <>
            <Table
              label="Tasks"
              rows={tasks}
              id={(task) => task.id}
              href={(task) => urlOf(`/tasks/${task.id}`)}
              empty="No task is like that."
              columns={[
                { name: 'Task', of: (task) => task.title, class: 'grow' },
                { name: 'Ticket', of: (task) => task.ticket_ref ?? task.id },
                { name: 'Status', of: (task) => <State is={task.status} /> },
                { name: 'Priority', of: (task) => <State is={task.priority} /> },
                { name: 'Agent', of: (task) => <AgentLink name={task.assigned_to} /> },
                { name: 'Comments', of: (task) => count(task.comment_count), class: 'number' },
                { name: 'Changed', of: (task) => <Seconds at={task.updated_at} />, class: 'time' },
              ]}
            />
            <Pager offset={offset} limit={PAGE} total={total} set={(to) => setParams({ offset: to || undefined })} />
          </>
        )}
      </Shown>
    </Panel>
  );
}

export function TaskView({ id }: { readonly id: string }) {
  const { isOperator } = useRights();
  const read = useRead(
    'GET /api/tasks/{id}',
    { params: { id }, query: { include: 'history', history_limit: 100 } },
    { kinds: ['task.'] },
  );
  const comments = useRead('GET /api/tasks/{id}/comments', { params: { id } }, { kinds: ['task.', 'activity.'] });
  const reviews = useRead('GET /api/quality-review', { query: { taskId: id } }, { kinds: ['task.', 'activity.'] });
  const task = read.data?.task;
  return (
    <Page
      title={task?.title ?? `Task ${id}`}
      about={
        task && (
          <>
            {task.ticket_ref} <State is={task.status} /> <State is={task.priority} />
          </>
        )
      }
      more={
        task &&
        isOperator && (
          <>
            <FormButton
              text="Change"
              title="Change the task"
              submit="Save"
              fields={[
                { name: 'title', label: 'Title', value: task.title, required: true },
                { name: 'description', label: 'Description', type: 'area', value: task.description },
                {
                  name: 'status',
                  label: 'Status',
                  value: task.status,
                  options: STATES,
                  required: true,
                  hint: 'Done only after an approving review.',
                },
                { name: 'priority', label: 'Priority', value: task.priority, options: PRIORITIES, required: true },
                { name: 'assigned_to', label: 'Agent', value: task.assigned_to },
              ]}
              send={(body) => write('PUT /api/tasks/{id}', { params: { id }, body }, 'Saved.')}
            />
            <FormButton
              text="Review"
              title="Review the task"
              submit="Record"
              fields={[
                {
                  name: 'status',
                  label: 'Verdict',
                  value: 'approved',
                  options: ['approved', 'rejected'],
                  required: true,
                },
                { name: 'notes', label: 'Notes', type: 'area', required: true },
              ]}
              send={(body) =>
                write('POST /api/quality-review', { body: { ...body, taskId: Number(id) } }, 'The review is recorded.')
              }
            />
            <Act
              danger
              confirm="The task is removed from the lists. Its history stays in the log."
              act={async () => {
                await write('DELETE /api/tasks/{id}', { params: { id } }, 'The task is deleted.');
                go(urlOf('/tasks'));
              }}
            >
              Delete
            </Act>
          </>
        )
      }
    >
      <div class="grid">
        <Panel title="Record" read={read}>
          <Shown read={read}>
            {({ task: one }) => (
              <>
                {one.description && <p class="text">{one.description}</p>}
                <dl class="facts">
                  <Fact name="Agent">
                    <AgentLink name={one.assigned_to} />
                  </Fact>
                  <Fact name="Project">{one.project_name ?? '–'}</Fact>
                  <Fact name="Created">
                    <Seconds at={one.created_at} /> by {one.created_by}
                  </Fact>
                  <Fact name="Changed">
                    <Seconds at={one.updated_at} />
                  </Fact>
                  <Fact name="Due">
                    <Seconds at={one.due_date} none="not set" />
                  </Fact>
                  <Fact name="Done">
                    <Seconds at={one.completed_at} none="not yet" />
                  </Fact>
                  {one.tags.length > 0 && <Fact name="Tags">{one.tags.join(', ')}</Fact>}
                  {one.error_message && <Fact name="Error">{one.error_message}</Fact>}
                  {one.outcome && <Fact name="Outcome">{one.outcome}</Fact>}
                </dl>
              </>
            )}
          </Shown>
        </Panel>
        <Panel title="Reviews" read={reviews}>
          <Shown read={reviews}>
            {(data) =>
              'reviews' in data && data.reviews.length > 0 ? (
                <ul class="lines">
                  {data.reviews.map((one) => (
                    <li key={one.id}>
                      <State is={one.status} /> by {one.reviewer} <Seconds at={one.created_at} />
                      <p class="text">{one.notes}</p>
                    </li>
                  ))}
                </ul>
              ) : (
                <Empty>Nobody has reviewed it.</Empty>
              )
            }
          </Shown>
        </Panel>
        <Panel title="History" class="wide" read={read}>
          <Shown read={read}>{({ history = [] }) => <History of={history} />}</Shown>
        </Panel>
        <Panel title="Comments" class="wide" read={comments}>
          <Shown read={comments}>
            {(data) =>
              data.comments.length > 0 ? <Threads of={data.comments} /> : <Empty>Nobody has commented.</Empty>
            }
          </Shown>
          {isOperator && <NewComment id={id} />}
        </Panel>
      </div>
    </Page>
  );
}

/** Each event of a task: who, why, and what it changed. */
function History({ of }: { readonly of: readonly HistoryEntry[] }) {
  const { ofDeployment } = useRights();
  if (of.length === 0) return <Empty>Nothing has happened to it.</Empty>;
  return (
    <ol class="history">
      {of.map((one) => (
        <li key={`${one.position} ${one.revision}`}>
          <span class="time">
            <Seconds at={one.at} />
          </span>
          <div>
            {ofDeployment ? <a href={openUrl(`position:${one.position}`)}>{one.description}</a> : one.description}{' '}
            <span class="dim">by {one.actor}</span>
            {one.reason && <p class="text">{one.reason}</p>}
            {Object.keys(one.changes).length > 0 && (
              <details>
                <summary>{Object.keys(one.changes).map(words).join(', ')}</summary>
                <pre class="json" tabIndex={0}>
                  {json(one.changes)}
                </pre>
              </details>
            )}
          </div>
        </li>
      ))}
    </ol>
  );
}

const Threads = ({ of }: { readonly of: readonly Comment[] }) => (
  <ul class="threads">
    {of.map((one) => (
      <li key={one.id}>
        <strong>{one.author}</strong> <Seconds at={one.created_at} />
        <p class="text">{one.content}</p>
        {one.replies.length > 0 && <Threads of={one.replies} />}
      </li>
    ))}
  </ul>
);

function NewComment({ id }: { readonly id: string }) {
  const isPast = useAsOf() !== undefined;
  const [sent, setSent] = useState(0);
  if (isPast) return null;
  return (
    <Form
      key={sent}
      submit="Comment"
      fields={[
        { name: 'content', label: 'Comment', type: 'area', required: true, hint: '@name notifies a user or an agent.' },
      ]}
      send={async (body) => {
        await write('POST /api/tasks/{id}/comments', { params: { id }, body });
        setSent(sent + 1);
      }}
    />
  );
}
