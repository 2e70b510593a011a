/** What an agent did and what it cost, according to ids in events. */
import { useRead } from '../../client/reads.ts';
import { useRights } from '../../client/session.ts';
import { Panel, Seconds, Shown, Table } from '../../parts/basic.tsx';
import { Shares } from '../../parts/chart.tsx';
import { openUrl } from '../../parts/drawer.tsx';
import { count, money, short, words } from '../../parts/format.ts';
import { Evidence, Figure } from './evidence.tsx';
import { useHours } from './window.tsx';

export function Attribution({ id }: { readonly id: number }) {
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
              <Panel title="Newest activities" class="wide">
                <Table
                  label="Attributed activities"
                  rows={audit.activities}
                  id={(one) => one.id}
                  empty="Nothing in this window is attributed to it."
                  columns={[
                    { name: 'When', of: (one) => <Seconds at={one.created_at} />, class: 'time' },
                    { name: 'What', of: (one) => one.description },
                    { name: 'Attributed by', of: (one) => one.attributed_by },
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
