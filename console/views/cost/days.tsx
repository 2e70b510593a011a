/** The chosen day, and a chart for choosing one. */
import { setParams, useAddress } from '../../client/address.ts';
import { useRead, useShownTime } from '../../client/reads.ts';
import { Panel, Shown } from '../../parts/basic.tsx';
import { Bars } from '../../parts/chart.tsx';
import { money } from '../../parts/format.ts';
import { isAgentCosts } from './shapes.ts';
import { dayBefore, dayOf, startOf } from './spend.ts';

const DAY = 86_400_000;
const DAYS = 30;

const useMonth = () =>
  useRead('GET /api/tokens', { query: { action: 'agent-costs', timeframe: 'month' } }, { kinds: ['activity.'] });

/** The chosen day; default: the last complete day, or today while there is no earlier one with reports. */
export function useDay(): { readonly day: string; readonly today: string } {
  const shown = useShownTime();
  const chosen = useAddress().query.get('day');
  const { data } = useMonth();
  const today = dayOf(shown);
  const dates = isAgentCosts(data)
    ? Object.values(data.agents).flatMap(({ timeline }) => timeline.map(({ date }) => date))
    : [];
  const isFirst = dates.length > 0 && dates.every((date) => date >= today);
  return { day: chosen ?? (isFirst ? today : dayBefore(today)), today };
}

export const dayName = (day: string, today: string): string =>
  day === today
    ? 'today'
    : day === dayBefore(today)
      ? 'yesterday'
      : new Date(startOf(day)).toLocaleDateString('en-GB', {
          weekday: 'short',
          day: 'numeric',
          month: 'short',
          timeZone: 'UTC',
        });

/** @param agent only its costs */
export function DayChart({ agent }: { readonly agent?: string }) {
  const { day, today } = useDay();
  const read = useMonth();
  return (
    <Panel title={agent ? `Cost of ${agent} by day` : 'Cost by day'} class="wide" read={read}>
      <Shown read={read}>
        {(data) => {
          if (!isAgentCosts(data)) return null;
          const sums = new Map<string, number>();
          for (const [name, { timeline }] of Object.entries(data.agents)) {
            if (agent !== undefined && name !== agent) continue;
            for (const { date, cost } of timeline) sums.set(date, (sums.get(date) ?? 0) + cost);
          }
          const days = Array.from({ length: DAYS }, (_, n) => dayOf(startOf(today) - (DAYS - 1 - n) * DAY));
          return (
            <Bars
              label="US dollars by day (UTC); choose one"
              as={money}
              choose={(key) => setParams({ day: key, before: undefined }, { replace: true })}
              bars={days.map((key) => ({
                key,
                label: dayName(key, today),
                value: sums.get(key) ?? 0,
                isChosen: key === day,
              }))}
            />
          );
        }}
      </Shown>
    </Panel>
  );
}
