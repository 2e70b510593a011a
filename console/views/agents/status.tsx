/** The status of an agent over time, as diagnostics give it. */
import type { ResponseOf } from '../../client/client.ts';
import { useRead } from '../../client/reads.ts';
import { Empty, Panel, Shown, State, toneOf } from '../../parts/basic.tsx';
import { duration, time } from '../../parts/format.ts';

type Diagnostics = ResponseOf<'GET /api/agents/{id}/diagnostics'>;
type StatusTimes = NonNullable<Diagnostics['status']>;

/** @param hours length of the window */
export function StatusOverTime({ id, hours }: { readonly id: number; readonly hours: string }) {
  const read = useRead(
    'GET /api/agents/{id}/diagnostics',
    { params: { id }, query: { hours, section: 'status' } },
    { kinds: ['agent.', 'activity.agent_status_change'] },
  );
  return (
    <Panel title="Status over time" class="wide" read={read}>
      <Shown read={read}>
        {({ status, timeframe }) => status && <Times of={status} since={timeframe.since} until={timeframe.until} />}
      </Shown>
    </Panel>
  );
}

/** @param since beginning of the window, Unix seconds; `until`: its end */
function Times({ of, since, until }: { readonly of: StatusTimes; readonly since: number; readonly until: number }) {
  const { spans, seconds_by_status } = of;
  const [first] = spans;
  if (!first) return <Empty>The agent began a moment ago.</Empty>;
  // Of very many changes, only the newest are listed.
  const unlisted = first.since > of.since;
  // The axis is the whole window, also where the agent did not exist yet.
  const gap = first.since - since;
  return (
    <>
      <ol class="spans" aria-label={`Status from ${time(since * 1000)} to ${time(until * 1000)}`}>
        {gap > 0 && (
          <li
            class="before"
            title={unlisted ? 'too many changes to show' : 'the agent did not exist yet'}
            style={{ flexGrow: (gap / (until - since)) * 1_000 }}
          >
            <span class="sr">{unlisted ? 'too many changes to show' : 'the agent did not exist yet'}</span>
          </li>
        )}
        {spans.map((one) => {
          const share = (one.until - one.since) / (until - since);
          const text = `${one.status} from ${time(one.since * 1000)} to ${time(one.until * 1000)}`;
          return (
            <li key={one.position} class={toneOf(one.status)} style={{ flexGrow: share * 1_000 }} title={text}>
              {share > 0.09 ? one.status : <span class="sr">{text}</span>}
            </li>
          );
        })}
      </ol>
      <div class="ends" aria-hidden="true">
        <span>{time(since * 1000)}</span>
        <span>{time(until * 1000)}</span>
      </div>
      <p class="legend">
        {Object.entries(seconds_by_status)
          .sort(([, a], [, b]) => b - a)
          .map(([status, seconds]) => (
            <span key={status}>
              <State is={status} tone={toneOf(status)} /> {duration(seconds)}
            </span>
          ))}
        <span class="dim">
          {of.since > since && `since the agent began, ${time(of.since * 1000)}`}
          {unlisted && `the strip shows the newest ${spans.length} changes, the sums all of them`}
        </span>
      </p>
    </>
  );
}
