/** The token reports of an agent on a day: what the sums are derived from. */
import { setParams, urlOf, useAddress } from '../../client/address.ts';
import type { TokenRecord } from '../../client/api-types.ts';
import { useRead } from '../../client/reads.ts';
import { Panel, Shown, Table, Time } from '../../parts/basic.tsx';
import { count, money } from '../../parts/format.ts';
import { Estimated } from './prices.tsx';
import { dayOf } from './spend.ts';

/** Maximum number of reports that the service lists at a time, newest first. */
const PAGE = 100;

interface Listed {
  readonly usage: readonly TokenRecord[];
  readonly total: number;
}
const isListed = (data: unknown): data is Listed => typeof data === 'object' && data !== null && 'usage' in data;

/** @param start of the day, Unix milliseconds; `end` of the displayed part */
export function Reports({
  agent,
  start,
  end,
}: {
  readonly agent: string;
  readonly start: number;
  readonly end: number;
}) {
  const before = useAddress().query.get('before');
  const until = before === null ? end : Number(before);
  const read = useRead(
    'GET /api/tokens',
    { query: { action: 'list', timeframe: dayOf(start), before: until } },
    { kinds: ['activity.'] },
  );
  const page = (to: number | undefined) => setParams({ before: to }, { replace: true });
  return (
    <Panel title="Reports" class="wide" read={read}>
      <Shown read={read} rows={6}>
        {(data) => {
          if (!isListed(data)) return null;
          const ofDay = data.usage.filter(({ timestamp }) => timestamp >= start && timestamp < end);
          const oldest = data.usage.at(-1);
          const goesOn = data.usage.length === PAGE && oldest !== undefined && oldest.timestamp > start;
          const own = ofDay.filter(({ agentName }) => agentName === agent);
          return (
            <>
              <Table
                label="Reports"
                rows={own}
                id={({ id }) => id}
                empty={`None of ${agent} among these ${count(ofDay.length)} reports of the workspace.`}
                columns={[
                  { name: 'When', of: ({ timestamp }) => <Time at={timestamp} />, class: 'time' },
                  {
                    name: 'Model',
                    of: ({ model, price }) => (
                      <>
                        {model}
                        {price === 'default' && <Estimated model={model} />}
                      </>
                    ),
                  },
                  { name: 'Session', of: ({ sessionId }) => sessionId, class: 'grow' },
                  {
                    name: 'Task',
                    of: ({ taskId }) => (taskId === null ? '–' : <a href={urlOf(`/tasks/${taskId}`)}>{taskId}</a>),
                  },
                  { name: 'Input', of: ({ inputTokens }) => count(inputTokens), class: 'number' },
                  { name: 'Cached', of: (one) => count(one.cacheReadTokens + one.cacheWriteTokens), class: 'number' },
                  { name: 'Output', of: ({ outputTokens }) => count(outputTokens), class: 'number' },
                  { name: 'Cost', of: ({ cost }) => money(cost), class: 'number' },
                ]}
              />
              <nav class="pager" aria-label="Pages of reports">
                <button type="button" disabled={before === null} onClick={() => page(undefined)}>
                  Newest
                </button>
                <button type="button" disabled={!goesOn} onClick={() => page(oldest?.timestamp)}>
                  Earlier
                </button>
              </nav>
            </>
          );
        }}
      </Shown>
    </Panel>
  );
}
