/**
 * The register: a strip over the log along the bottom. A drag, or the arrow keys, choose the moment that every view shows.
 * Two marks give what differs between them.
 */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { setParams, urlOf, useAddress } from '../client/address.ts';
import { timeOfMoment, useAsOf } from '../client/moment.ts';
import { useRead } from '../client/reads.ts';
import { useRights } from '../client/session.ts';
import { count, fullTime, time, utc } from './format.ts';

const HOUR = 3_600_000;
const RANGES = { '24h': 24, '7d': 168, '30d': 720, '1y': 8_760 } as const;
type Range = keyof typeof RANGES;
const BINS = 160;
/** While dragging, views follow at most this often. */
const DRAG_PAUSE_MS = 120;

const rangeOf = (text: string | null): Range => (text !== null && text in RANGES ? (text as Range) : '7d');

/** Density per bin, from hours of the timeline. @param timeline with Unix seconds */
export function densityOf(
  timeline: readonly { readonly timestamp: number; readonly count: number }[],
  start: number,
  end: number,
  bins: number,
): number[] {
  const sums = new Array<number>(bins).fill(0);
  const width = (end - start) / bins;
  for (const { timestamp, count: events } of timeline) {
    // An hour may cover several bins, or lie in one.
    const from = Math.max(timestamp * 1000, start);
    const to = Math.min(timestamp * 1000 + HOUR, end);
    if (to <= from) continue;
    const first = Math.floor((from - start) / width);
    const last = Math.min(bins - 1, Math.floor((to - 1 - start) / width));
    for (let bin = first; bin <= last; bin++) sums[bin] = (sums[bin] ?? 0) + events / (last - first + 1);
  }
  return sums;
}

export function Register() {
  const { query } = useAddress();
  const { isAdmin } = useRights();
  const moment = useAsOf();
  const range = rangeOf(query.get('range'));
  const hours = RANGES[range];
  const stats = useRead('GET /api/activities', { query: { stats: '1', hours } }, { at: null, kinds: ['activity.'] });
  const alerts = useRead('GET /api/alerts', {}, { at: null, kinds: ['alert.'] });
  // Where the chosen position or time lies in the log.
  const there = useRead('GET /api/agents', moment === undefined ? undefined : { query: { limit: 1 } });
  const timeline = stats.data && 'timeline' in stats.data ? stats.data.timeline : [];
  const end = useMemo(() => Date.now(), [stats.data, range]);
  const start = end - hours * HOUR;
  const bins = useMemo(() => densityOf(timeline, start, end, BINS), [timeline, start, end]);
  const chosen = timeOfMoment(moment);
  const [dragged, setDragged] = useState<number>();
  const strip = useRef<HTMLDivElement>(null);
  const last = useRef(0);
  const shown = dragged ?? chosen ?? end;

  const show = (at: number, replace: boolean) => {
    const isNow = at >= end - (end - start) / 400;
    setParams({ at: isNow ? undefined : utc(at) }, { replace });
  };
  const timeAt = (x: number) => {
    const box = strip.current?.getBoundingClientRect();
    if (!box) return end;
    return start + Math.min(1, Math.max(0, (x - box.left) / box.width)) * (end - start);
  };
  const drag = (event: PointerEvent) => {
    const at = timeAt(event.clientX);
    setDragged(at);
    if (performance.now() - last.current < DRAG_PAUSE_MS) return;
    last.current = performance.now();
    show(at, true);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = ((end - start) / BINS) * (event.shiftKey ? 10 : 1);
    const to = {
      ArrowLeft: shown - step,
      ArrowRight: shown + step,
      Home: start,
      End: end,
      PageUp: shown + step * 10,
      PageDown: shown - step * 10,
    }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    show(Math.max(start, Math.min(end, to)), true);
  };

  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const draw = () => {
      const one = canvas.current;
      const context = one?.getContext('2d');
      if (!one || !context) return;
      const ratio = devicePixelRatio || 1;
      one.width = Math.round(one.clientWidth * ratio);
      one.height = Math.round(one.clientHeight * ratio);
      const most = Math.max(...bins, 1);
      const width = one.width / bins.length;
      context.fillStyle = getComputedStyle(one).color;
      bins.forEach((n, at) => {
        // A root shows quiet hours beside loud ones.
        const size = n === 0 ? 0 : Math.max(2 * ratio, Math.sqrt(n / most) * (one.height - 2));
        context.fillRect(at * width, one.height - size, Math.max(1, width - 1), size);
      });
    };
    draw();
    const watch = new ResizeObserver(draw);
    if (canvas.current) watch.observe(canvas.current);
    const dark = matchMedia('(prefers-color-scheme: dark)');
    dark.addEventListener('change', draw);
    return () => {
      watch.disconnect();
      dark.removeEventListener('change', draw);
    };
  }, [bins]);

  const place = (at: number | undefined) =>
    at === undefined || at < start || at > end ? undefined : `${((at - start) / (end - start)) * 100}%`;
  const markOf = (name: string) => timeOfMoment(query.get(name) ?? undefined);
  const marks = { from: markOf('from'), to: markOf('to') };
  const here = () => utc(Math.min(shown, Date.now()));
  const rules = alerts.data?.rules.filter(({ last_triggered_at }) => last_triggered_at !== null) ?? [];
  const said = moment === undefined ? 'Now' : `As of ${chosen === undefined ? `position ${moment}` : fullTime(chosen)}`;

  return (
    <section class="register" aria-label="Register">
      <div class="said">
        <strong>{said}</strong>
        {there.position !== undefined && moment !== undefined && (
          <span class="dim">position {count(there.position)}</span>
        )}
        {there.error && moment !== undefined && <span class="bad">{there.error.message}</span>}
      </div>
      <div
        ref={strip}
        class="strip"
        role="slider"
        tabIndex={0}
        aria-label="Moment that is shown"
        aria-valuemin={Math.round(start / 1000)}
        aria-valuemax={Math.round(end / 1000)}
        aria-valuenow={Math.round(Math.min(Math.max(shown, start), end) / 1000)}
        aria-valuetext={said}
        onKeyDown={onKeyDown}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          drag(event);
        }}
        onPointerMove={(event) => {
          if (event.currentTarget.hasPointerCapture(event.pointerId)) drag(event);
        }}
        onPointerUp={(event) => {
          event.currentTarget.releasePointerCapture(event.pointerId);
          if (dragged === undefined) return;
          setDragged(undefined);
          show(timeAt(event.clientX), true);
        }}
        onPointerCancel={() => setDragged(undefined)}
      >
        <canvas ref={canvas} />
        {rules.map(({ id, name, last_triggered_at }) => {
          const at = place((last_triggered_at ?? 0) * 1000);
          return (
            at && (
              <span
                key={id}
                class="alert-mark"
                style={{ left: at }}
                title={`Alert: ${name}, ${time((last_triggered_at ?? 0) * 1000)}`}
              />
            )
          );
        })}
        {(['from', 'to'] as const).map((name) => {
          const at = place(marks[name]);
          return (
            at && (
              <span
                key={name}
                class={`mark ${name}`}
                style={{ left: at }}
                title={`${name}: ${time(marks[name] as number)}`}
              />
            )
          );
        })}
        {place(shown) && <span class="hand" style={{ left: place(shown) }} />}
        <span class="ends" aria-hidden="true">
          <span>{time(start)}</span>
          <span>now</span>
        </span>
      </div>
      <div class="tools">
        <select
          aria-label="Length of the register"
          value={range}
          onChange={(event) =>
            setParams(
              { range: event.currentTarget.value === '7d' ? undefined : event.currentTarget.value },
              { replace: true },
            )
          }
        >
          {Object.keys(RANGES).map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </select>
        {isAdmin && (
          <>
            <button
              type="button"
              title="Mark the moment that is shown as the first of two"
              aria-pressed={marks.from !== undefined}
              onClick={() =>
                setParams(
                  { from: marks.from === undefined || dragged !== undefined ? here() : undefined },
                  { replace: true },
                )
              }
            >
              Mark 1
            </button>
            <button
              type="button"
              title="Mark the moment that is shown as the second of two"
              aria-pressed={marks.to !== undefined}
              onClick={() => setParams({ to: marks.to === undefined ? here() : undefined }, { replace: true })}
            >
              Mark 2
            </button>
            {query.get('from') && query.get('to') && <a href={urlOf('/log/diff')}>Difference</a>}
          </>
        )}
        {moment !== undefined && (
          <button type="button" class="main" onClick={() => setParams({ at: undefined })}>
            Now
          </button>
        )}
      </div>
    </section>
  );
}
