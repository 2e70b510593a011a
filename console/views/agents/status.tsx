/** The status of an agent over time, from the activities that record its changes. */
import type { Activity } from '../../client/api-types.ts';
import { timeOfMoment, useAsOf } from '../../client/moment.ts';
import { type Read, useRead } from '../../client/reads.ts';
import { Panel, Shown, State, type Tone, toneOf } from '../../parts/basic.tsx';
import { duration, time } from '../../parts/format.ts';

const MOST = 200;
const HOUR = 3_600_000;

interface Span {
  readonly status: string;
  /** Unix milliseconds. */
  readonly from: number;
  readonly to: number;
}

interface Shift {
  readonly at: number;
  readonly before: string | undefined;
  readonly after: string;
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

function shiftsOf(activities: readonly Activity[], id: number): Shift[] {
  return activities
    .filter((one) => one.entity_type === 'agent' && one.entity_id === id)
    .flatMap(({ created_at, data }) => {
      const after = textOf(data?.newStatus) ?? textOf(data?.status);
      return after === undefined ? [] : [{ at: created_at * 1000, before: textOf(data?.oldStatus), after }];
    })
    .sort((a, b) => a.at - b.at);
}

/** The statuses from `start` to `end`. @param now the status at the end */
export function spansOf(shifts: readonly Shift[], start: number, end: number, now: string): Span[] {
  const spans: Span[] = [];
  let from = start;
  let status = shifts[0]?.before ?? shifts[0]?.after ?? now;
  for (const { at, after } of shifts) {
    if (at > from && after !== status) {
      spans.push({ status, from, to: at });
      from = at;
    }
    status = after;
  }
  spans.push({ status: shifts.length > 0 ? status : now, from, to: end });
  return spans;
}

/** @param hours length of the window */
export function StatusOverTime({
  id,
  name,
  status,
  hours,
}: {
  readonly id: number;
  readonly name: string;
  readonly status: string;
  readonly hours: number;
}) {
  const end = timeOfMoment(useAsOf()) ?? Date.now();
  const start = end - hours * HOUR;
  // Rounded to the minute: the URL of a read must not change every second.
  const since = Math.floor(start / 60_000) * 60;
  const asked = (actor: string) => ({ query: { type: 'agent_status_change', actor, since, limit: MOST } });
  const options = { kinds: ['agent.'] };
  const own = useRead('GET /api/activities', asked(name), options);
  // The check for silent agents records its changes under its own name.
  const swept = useRead('GET /api/activities', asked('heartbeat'), options);
  const listOf = (read: Read<unknown>): readonly Activity[] =>
    (read.data as { activities?: readonly Activity[] } | undefined)?.activities ?? [];
  const isCut = [own, swept].some((read) => listOf(read).length === MOST);
  return (
    <Panel title="Status over time" class="wide" read={own}>
      <Shown read={own}>
        {() => {
          const shifts = shiftsOf([...listOf(own), ...listOf(swept)], id);
          const spans = spansOf(shifts, start, end, status);
          const sums = new Map<string, number>();
          for (const one of spans) sums.set(one.status, (sums.get(one.status) ?? 0) + one.to - one.from);
          return (
            <>
              <ol class="spans" aria-label={`Status from ${time(start)} to ${time(end)}`}>
                {spans.map((one) => {
                  const share = (one.to - one.from) / (end - start);
                  const text = `${one.status} from ${time(one.from)} to ${time(one.to)}`;
                  return (
                    <li key={one.from} class={toneOf(one.status)} style={{ flexGrow: share * 1_000 }} title={text}>
                      {share > 0.09 ? one.status : <span class="sr">{text}</span>}
                    </li>
                  );
                })}
              </ol>
              <div class="ends" aria-hidden="true">
                <span>{time(start)}</span>
                <span>{time(end)}</span>
              </div>
              <p class="legend">
                {[...sums]
                  .sort(([, a], [, b]) => b - a)
                  .map(([one, ms]) => (
                    <span key={one}>
                      <State is={one} tone={toneOf(one) as Tone} /> {duration(ms / 1000)}
                    </span>
                  ))}
                <span class="dim">
                  {shifts.length} {shifts.length === 1 ? 'change' : 'changes'}
                  {isCut && `; only the newest ${MOST} are shown`}
                </span>
              </p>
            </>
          );
        }}
      </Shown>
    </Panel>
  );
}
