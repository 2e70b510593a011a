/** Activity and the audit trail: actions and their actors, newest first, with filters. */
import { setParams, urlOf, useAddress } from '../client/address.ts';
import { useRead } from '../client/reads.ts';
import { Choice, Filter, Moment, Page, Pager, Panel, Seconds, Shown, Table } from '../parts/basic.tsx';
import { Shares } from '../parts/chart.tsx';
import { CsvLink } from '../parts/csv.tsx';
import { count, words } from '../parts/format.ts';
import { recordUrl } from '../parts/record.tsx';
import { ActivityTable } from './overview.tsx';

const PAGE = 100;

/** Unix seconds of a time in the address. */
const secondsOf = (time: string | undefined): number | undefined =>
  time === undefined ? undefined : Math.floor(Date.parse(time) / 1000) || undefined;

function useFilters(names: readonly string[]) {
  const { query } = useAddress();
  const values = Object.fromEntries(names.map((name) => [name, query.get(name) ?? undefined]));
  const set = (name: string) => (value: string) => setParams({ [name]: value, offset: undefined }, { replace: true });
  return { values, set, offset: Number(query.get('offset') ?? 0) };
}

export function Activity() {
  const { values, set, offset } = useFilters(['type', 'actor', 'entity_type', 'since']);
  const read = useRead(
    'GET /api/activities',
    { query: { ...values, since: secondsOf(values.since), limit: PAGE, offset } },
    { kinds: ['activity.'] },
  );
  const stats = useRead('GET /api/activities', { query: { stats: '1', hours: 168 } }, { kinds: ['activity.'] });
  const shares = stats.data && 'topActors' in stats.data ? stats.data : undefined;
  return (
    <Page
      title="Activity"
      about="What happened in this workspace. New activities appear as they happen."
      more={
        <CsvLink
          path="/api/export"
          query={{ type: 'activities', since: secondsOf(values.since) }}
          what="The newest 10,000 activities since then, of every type and actor"
        />
      }
    >
      <div class="filters">
        <Choice
          label="Type"
          value={values.type ?? ''}
          options={[
            ['', 'all'],
            ...(shares?.activityByType.map(({ type }) => type) ?? []),
            ...(values.type && !shares?.activityByType.some(({ type }) => type === values.type) ? [values.type] : []),
          ]}
          set={set('type')}
        />
        <Filter label="By" value={values.actor ?? ''} set={set('actor')} />
        <Choice
          label="About"
          value={values.entity_type ?? ''}
          options={[['', 'all'], 'agent', 'task', 'comment', 'project', 'workflow', 'pipeline']}
          set={set('entity_type')}
        />
        <Moment label="Since" value={values.since} set={set('since')} />
      </div>
      <div class="grid side">
        <Panel title="Activities" read={read}>
          <Shown read={read} rows={12}>
            {(data) =>
              'activities' in data && (
                <>
                  <ActivityTable rows={data.activities} />
                  <Pager
                    offset={offset}
                    limit={PAGE}
                    total={data.total}
                    set={(to) => setParams({ offset: to || undefined })}
                  />
                </>
              )
            }
          </Shown>
        </Panel>
        <Panel title="Last 7 days" read={stats}>
          <Shown read={stats}>
            {() =>
              shares && (
                <>
                  <h3>By</h3>
                  <Shares
                    as={count}
                    rows={shares.topActors.slice(0, 8).map(({ actor, activity_count }) => ({
                      name: actor,
                      value: activity_count,
                      href: urlOf('/activity', { actor }),
                    }))}
                  />
                  <h3>Type</h3>
                  <Shares
                    as={count}
                    rows={shares.activityByType.slice(0, 8).map(({ type, count: n }) => ({
                      name: words(type),
                      value: n,
                      href: urlOf('/activity', { type }),
                    }))}
                  />
                </>
              )
            }
          </Shown>
        </Panel>
      </div>
    </Page>
  );
}

/** Names with their values where these are short. */
const summaryOf = (detail: object): string =>
  Object.entries(detail)
    .slice(0, 4)
    .map(([name, value]) => {
      const parts: readonly unknown[] = Array.isArray(value) ? value : [value];
      const text = parts.join(', ');
      return parts.some((part) => typeof part === 'object') || text.length > 40
        ? words(name)
        : `${words(name)}: ${text}`;
    })
    .join('; ');

export function Audit() {
  const { values, set, offset } = useFilters(['action', 'actor', 'since', 'until']);
  const read = useRead(
    'GET /api/audit',
    { query: { ...values, since: secondsOf(values.since), until: secondsOf(values.until), limit: PAGE, offset } },
    { kinds: ['audit.', 'activity.', 'security.'] },
  );
  return (
    <Page
      title="Audit"
      about="Who did or tried what, and from where."
      more={
        <CsvLink
          path="/api/export"
          query={{ type: 'audit', since: secondsOf(values.since), until: secondsOf(values.until) }}
          what="The newest 10,000 entries of that time, of every action and actor"
        />
      }
    >
      <div class="filters">
        <Filter label="Action" value={values.action ?? ''} set={set('action')} />
        <Filter label="By" value={values.actor ?? ''} set={set('actor')} />
        <Moment label="Since" value={values.since} set={set('since')} />
        <Moment label="Until" value={values.until} set={set('until')} />
      </div>
      <Panel title="Trail" read={read}>
        <Shown read={read} rows={12}>
          {({ entries, total }) => (
            <>
              <Table
                label="Audit trail"
                rows={entries}
                id={({ id }) => id}
                href={({ id, created_at }) => recordUrl('audit', id, created_at)}
                empty="No entry matches the filters."
                columns={[
                  { name: 'Action', of: (one) => words(one.action) },
                  { name: 'When', of: (one) => <Seconds at={one.created_at} />, class: 'time' },
                  { name: 'By', of: (one) => one.actor },
                  {
                    name: 'About',
                    of: (one) => (
                      <span class="dim">
                        {one.target_type ? `${words(one.target_type)} ${one.target_id ?? ''}` : '–'}
                      </span>
                    ),
                  },
                  { name: 'From', of: (one) => one.ip_address ?? '–' },
                  {
                    name: 'Detail',
                    of: (one) =>
                      one.detail && (
                        <details>
                          <summary>{summaryOf(one.detail)}</summary>
                          <pre class="json" tabIndex={0}>
                            {JSON.stringify(one.detail, null, 2)}
                          </pre>
                        </details>
                      ),
                    class: 'grow',
                  },
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
