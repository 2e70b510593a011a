/** The list of agents. */
import { go, setParams, urlOf, useAddress } from '../../client/address.ts';
import { useRead } from '../../client/reads.ts';
import { useRights } from '../../client/session.ts';
import { FormButton, write } from '../../parts/act.tsx';
import { Choice, Filter, Page, Pager, Panel, Seconds, Shown, State, Table } from '../../parts/basic.tsx';
import { CsvLink } from '../../parts/csv.tsx';
import { count } from '../../parts/format.ts';

export const STATES = ['online', 'busy', 'idle', 'offline', 'error'] as const;
const PAGE = 50;

export function Agents() {
  const { query } = useAddress();
  const { isOperator } = useRights();
  const offset = Number(query.get('offset') ?? 0);
  const hidden = query.get('hidden') ?? '';
  const asked = {
    status: query.get('status') ?? undefined,
    role: query.get('role') ?? undefined,
    show_hidden: hidden || undefined,
    limit: PAGE,
    offset,
  };
  // Heartbeats that change nothing send no frame, and move `last_seen`.
  const read = useRead('GET /api/agents', { query: asked }, { kinds: ['agent.'], every: 15_000 });
  return (
    <Page
      title="Agents"
      more={
        <>
          <CsvLink
            path="/api/export"
            query={{ type: 'agents' }}
            what="The newest 10,000 agents, whatever the filters"
          />
          {isOperator && (
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
          )}
        </>
      }
    >
      <div class="filters">
        <Choice
          label="Status"
          value={asked.status ?? ''}
          options={[['', 'all'], ...STATES]}
          set={(status) => setParams({ status, offset: undefined }, { replace: true })}
        />
        <Filter
          label="Role"
          value={asked.role ?? ''}
          set={(role) => setParams({ role, offset: undefined }, { replace: true })}
        />
        <Choice
          label="Hidden agents"
          value={hidden}
          options={[
            ['', 'left out'],
            ['1', 'listed'],
          ]}
          set={(value) => setParams({ hidden: value, offset: undefined }, { replace: true })}
        />
      </div>
      <Panel title="Agents" read={read}>
        <Shown read={read} rows={8}>
          {({ agents, total }) => (
            <>
              <Table
                label="Agents"
                rows={agents}
                id={({ id }) => id}
                href={({ id }) => urlOf(`/agents/${id}`)}
                empty="No agent matches the filters."
                columns={[
                  {
                    name: 'Name',
                    of: (one) => (
                      <>
                        <strong>{one.name}</strong> {one.hidden ? <span class="badge">hidden</span> : null}
                      </>
                    ),
                  },
                  { name: 'Status', of: ({ status }) => <State is={status} /> },
                  { name: 'Role', of: ({ role }) => role },
                  {
                    name: 'Last activity',
                    of: ({ last_activity }) => last_activity ?? <span class="dim">–</span>,
                    class: 'grow',
                  },
                  { name: 'In progress', of: ({ taskStats }) => count(taskStats.in_progress), class: 'number' },
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
