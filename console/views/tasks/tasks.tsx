/** Tasks as a board and as a table. */
import { go, setParams, urlOf, urlWith, useAddress } from '../../client/address.ts';
import type { ListedTask } from '../../client/api-types.ts';
import { useRead } from '../../client/reads.ts';
import { useRights } from '../../client/session.ts';
import { type Field, FormButton, write } from '../../parts/act.tsx';
import {
  AgentLink,
  Choice,
  Filter,
  Page,
  Pager,
  Panel,
  Seconds,
  Shown,
  State,
  Table,
  Tabs,
} from '../../parts/basic.tsx';
import { CsvLink } from '../../parts/csv.tsx';
import { count, words } from '../../parts/format.ts';

export const STATES = [
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
export const PRIORITIES = ['critical', 'high', 'medium', 'low'] as const;
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
        <>
          <CsvLink path="/api/export" query={{ type: 'tasks' }} what="The newest 10,000 tasks, whatever the filters" />
          {isOperator && (
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
          )}
        </>
      }
    >
      <Tabs
        label="Board or table"
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
            options={[['', 'all'], ...STATES]}
            set={set('status')}
          />
        )}
        <Choice
          label="Priority"
          value={filters.priority ?? ''}
          options={[['', 'all'], ...PRIORITIES]}
          set={set('priority')}
        />
        <Choice
          label="Project"
          value={filters.project_id ?? ''}
          options={[['', 'all'], ...projects.map(({ id, name }) => [String(id), name] as const)]}
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
      <State is={task.priority} /> <span class="dim">{task.assigned_to ?? 'unassigned'}</span>
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
      title="Tasks"
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
              empty="No task matches the filters."
              columns={[
                { name: 'Task', of: (task) => task.title, class: 'grow' },
                { name: 'Ticket', of: (task) => task.ticket_ref ?? task.id, class: 'time' },
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
