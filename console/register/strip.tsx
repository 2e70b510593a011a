/** The strip: density, alerts, marks, and a hand that can be dragged or moved with the arrow keys. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { openUrl } from '../parts/drawer.tsx';
import { fullTime, time } from '../parts/format.ts';
import type { AlertMark, Strip } from './density.ts';
import { ticksOf } from './ticks.ts';

interface StripProps {
  readonly strip: Strip;
  readonly title: string;
  readonly alerts: readonly AlertMark[];
  /** Unix milliseconds. */
  readonly marks: readonly (readonly [name: string, at: number | undefined])[];
  readonly shown: number;
  /** The moment in words. */
  readonly said: string;
  readonly show: (at: number, isDragging: boolean) => void;
}

function Density({ bins }: { readonly bins: readonly number[] }) {
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
        // Square root, so that quiet hours are visible next to busy ones.
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
  return <canvas ref={canvas} />;
}

/** Pixels that a tick and its label need, and "now" at the end. */
const TICK = 62;
const NOW = 30;

/** The width of an element, kept current. */
function useWidth(box: { readonly current: HTMLElement | null }): number {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const watch = new ResizeObserver(() => setWidth(box.current?.clientWidth ?? 0));
    if (box.current) watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  return width;
}

export function StripView({ strip, title, alerts, marks, shown, said, show }: StripProps) {
  const { start, end, bins } = strip;
  const box = useRef<HTMLDivElement>(null);
  const timeAt = (x: number) => {
    const { left = 0, width = 1 } = box.current?.getBoundingClientRect() ?? {};
    return start + Math.min(1, Math.max(0, (x - left) / width)) * (end - start);
  };
  const width = useWidth(box);
  const ticks = useMemo(() => ticksOf(start, end, Math.max(2, Math.floor(width / TICK))), [start, end, width]);
  const [under, setUnder] = useState<number>();
  const drag = (event: PointerEvent) => show(timeAt(event.clientX), true);
  const onKeyDown = (event: KeyboardEvent) => {
    const step = ((end - start) / bins.length) * (event.shiftKey ? 10 : 1);
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
    show(Math.max(start, Math.min(end, to)), false);
  };
  const place = (at: number | undefined) =>
    at === undefined || at < start || at > end ? undefined : `${((at - start) / (end - start)) * 100}%`;
  return (
    <div class="track">
      <div class="alerts" aria-hidden="true">
        {alerts.map(({ id, name, at, open }) => {
          const left = place(at);
          return (
            left && (
              <a key={id} href={openUrl(open)} tabIndex={-1} style={{ left }} title={`Alert: ${name}, ${time(at)}`}>
                <span class="sr">{name}</span>
              </a>
            )
          );
        })}
      </div>
      <div
        ref={box}
        class="strip"
        role="slider"
        tabIndex={0}
        aria-label="Moment that is shown"
        aria-valuemin={Math.round(start / 1000)}
        aria-valuemax={Math.round(end / 1000)}
        aria-valuenow={Math.round(Math.min(Math.max(shown, start), end) / 1000)}
        aria-valuetext={said}
        title={under === undefined ? title : undefined}
        onKeyDown={onKeyDown}
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          drag(event);
        }}
        onPointerLeave={() => setUnder(undefined)}
        onPointerMove={(event) => {
          setUnder(timeAt(event.clientX));
          if (event.currentTarget.hasPointerCapture(event.pointerId)) drag(event);
        }}
        onPointerUp={(event) => {
          if (!event.currentTarget.hasPointerCapture(event.pointerId)) return;
          event.currentTarget.releasePointerCapture(event.pointerId);
          show(timeAt(event.clientX), false);
        }}
        onPointerCancel={() => show(shown, false)}
      >
        <Density bins={bins} />
        {marks.map(([name, at]) => {
          const left = place(at);
          return left && <span key={name} class="mark" style={{ left }} title={`${name}: ${time(at ?? 0)}`} />;
        })}
        {place(shown) && <span class="hand" style={{ left: place(shown) }} />}
        {under !== undefined && (
          <span class={`under ${under > (start + end) / 2 ? 'left' : ''}`} style={{ left: place(under) }}>
            {fullTime(under)}
          </span>
        )}
        <span class="ticks" aria-hidden="true">
          {ticks
            .filter(({ at }) => ((end - at) / (end - start)) * width > TICK / 2 + NOW + 10)
            .map(({ at, label }) => (
              <span key={at} style={{ left: place(at) }}>
                {label}
              </span>
            ))}
          <span class="now">now</span>
        </span>
      </div>
    </div>
  );
}
