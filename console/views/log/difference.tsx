/** What differs between the two marks: records, their fields, and the events that changed them. */
import { setParams, urlOf, urlWith, useAddress } from '../../client/address.ts';
import type { RecordChange } from '../../client/api-types.ts';
import { useRead } from '../../client/reads.ts';
import { useRights } from '../../client/session.ts';
import { Choice, Empty, Panel, Shown, State } from '../../parts/basic.tsx';
import { openUrl } from '../../parts/drawer.tsx';
import { count, fullTime, json, time, words } from '../../parts/format.ts';
import { isTime } from '../../parts/record.tsx';

const PAGE = 100;

const RESOURCES = [
  'agents',
  'agent_texts',
  'tasks',
  'comments',
  'projects',
  'workflows',
  'pipelines',
  'alerts',
  'webhooks',
  'users',
] as const;

export function Difference() {
  const { query } = useAddress();
  const [from, to] = [query.get('from'), query.get('to')];
  const resource = query.get('resource') ?? undefined;
  const [first, second] = from && to && Date.parse(from) > Date.parse(to) ? [to, from] : [from, to];
  const read = useRead(
    'GET /api/history/diff',
    first && second
      ? { query: { from: first, to: second, resource, cursor: query.get('cursor') ?? undefined, limit: PAGE } }
      : undefined,
  );
  if (!first || !second)
    return (
      <Empty>
        <p>
          <strong>Two marks give a difference.</strong>
        </p>
        <p>On the register below, choose a moment and press Mark 1; choose another one and press Mark 2.</p>
      </Empty>
    );
  return (
    <>
      <div class="filters">
        <Choice
          label="Records"
          value={resource ?? ''}
          options={[['', 'all'], ...RESOURCES]}
          set={(value) => setParams({ resource: value, cursor: undefined }, { replace: true })}
        />
        <a href={urlWith({ at: first })}>See the first moment</a>
        <a href={urlWith({ at: second })}>See the second</a>
        <a href={urlWith({ from: undefined, to: undefined })}>Remove the marks</a>
      </div>
      <Panel title={`From ${fullTime(Date.parse(first))} to ${fullTime(Date.parse(second))}`} read={read}>
        <Shown read={read} rows={8}>
          {({ changes, from: a, to: b, next_cursor }) => (
            <>
              <p class="dim">
                Positions {count(a)} to {count(b)}
              </p>
              {changes.length === 0 ? (
                <Empty>Nothing differs.</Empty>
              ) : (
                changes.map((one) => <ChangeOf key={`${one.resource} ${one.id}`} change={one} />)
              )}
              {next_cursor && (
                <nav class="pager" aria-label="Pages">
                  <button type="button" onClick={() => setParams({ cursor: next_cursor })}>
                    Next
                  </button>
                </nav>
              )}
            </>
          )}
        </Shown>
      </Panel>
    </>
  );
}

const recordUrl = ({ resource, id }: RecordChange): string | undefined =>
  resource === 'agents' || resource === 'agent_texts'
    ? urlOf(`/agents/${id}`)
    : resource === 'tasks'
      ? urlOf(`/tasks/${id}`)
      : undefined;

const valueText = (field: string, value: unknown): string =>
  value === null || value === undefined
    ? '–'
    : isTime(field, value)
      ? time(value * 1000)
      : typeof value === 'string'
        ? value
        : json(value);

function ChangeOf({ change }: { readonly change: RecordChange }) {
  const { ofDeployment } = useRights();
  const url = recordUrl(change);
  const name = `${words(change.resource).replace(/s$/, '')} ${change.id}`;
  return (
    <details class="change" open={change.change === 'changed'}>
      <summary>
        <State is={change.change} tone={{ added: 'good', removed: 'bad', changed: 'busy' }[change.change] as 'good'} />{' '}
        {name}
      </summary>
      {/* Not in the summary, which is a button. */}
      <p class="why">
        {url && <a href={url}>Open</a>}
        {ofDeployment &&
          change.events.slice(-3).map((id, at) => (
            <a key={id} href={openUrl(`event:${id}`)}>
              event {at + 1}
            </a>
          ))}
      </p>
      <table>
        <tbody>
          {Object.entries(change.fields as Readonly<Record<string, { before?: unknown; after?: unknown }>>).map(
            ([field, { before, after }]) => (
              <tr key={field}>
                <th scope="row">{words(field)}</th>
                <td>
                  <del>{valueText(field, before)}</del>
                </td>
                <td>
                  <ins>{valueText(field, after)}</ins>
                </td>
              </tr>
            ),
          )}
        </tbody>
      </table>
    </details>
  );
}
