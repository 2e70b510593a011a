/** Bars over time, drawn as SVG: each bar can be reached by keyboard, shows its value, and may be a link. */
import { useState } from 'preact/hooks';

export interface Bar {
  readonly key: string;
  readonly label: string;
  /** Shown on the axis where there is room; default: `label`. */
  readonly tick?: string;
  readonly value: number;
  /** Marks the bar that the reader is looking at. */
  readonly isChosen?: boolean;
}

interface BarsProps {
  readonly label: string;
  readonly bars: readonly Bar[];
  readonly as: (value: number) => string;
  readonly choose?: (key: string) => void;
  readonly height?: number;
}

const WIDTH = 720;

export function Bars({ label, bars, as, choose, height = 140 }: BarsProps) {
  const [at, setAt] = useState<number>();
  const most = Math.max(...bars.map(({ value }) => value), 0);
  const step = WIDTH / Math.max(bars.length, 1);
  const every = Math.ceil(bars.length / 7);
  const shown = at === undefined ? undefined : bars[at];
  return (
    <figure class="chart">
      <figcaption>
        <span>{label}</span>
        <span class="value">
          {shown ? `${shown.label}: ${as(shown.value)}` : most > 0 ? `highest ${as(most)}` : 'nothing yet'}
        </span>
      </figcaption>
      <div
        class="plot"
        style={{ height: `${height}px` }}
        role="group"
        aria-label={label}
        onMouseLeave={() => setAt(undefined)}
      >
        {bars.map(({ key, label: name, value, isChosen }, n) => {
          const size = most > 0 ? Math.max((value / most) * 100, value > 0 ? 1.5 : 0) : 0;
          const common = {
            class: `bar ${isChosen ? 'chosen' : ''}`,
            'aria-label': `${name}: ${as(value)}`,
            onMouseEnter: () => setAt(n),
            onFocus: () => setAt(n),
          };
          const inside = <span style={{ height: `${size}%` }} />;
          return choose ? (
            <button type="button" key={key} {...common} aria-pressed={isChosen === true} onClick={() => choose(key)}>
              {inside}
            </button>
          ) : (
            <div key={key} {...common} role="img">
              {inside}
            </div>
          );
        })}
      </div>
      <div class="axis" aria-hidden="true">
        {bars.map(({ key, label: name, tick = name }, n) =>
          // The last one needs room, too.
          n % every === 0 && bars.length - n > every / 2 ? (
            <span key={key} style={{ left: `${((n * step) / WIDTH) * 100}%` }}>
              {tick}
            </span>
          ) : null,
        )}
      </div>
    </figure>
  );
}

/** Shares of a whole as one bar per name, the largest first. */
export function Shares({
  rows,
  as,
}: {
  readonly rows: readonly { readonly name: string; readonly value: number; readonly href?: string }[];
  readonly as: (n: number) => string;
}) {
  const most = Math.max(...rows.map(({ value }) => value), 0);
  return (
    <ul class="shares">
      {rows.map(({ name, value, href }) => (
        <li key={name}>
          {href ? <a href={href}>{name}</a> : <span>{name}</span>}
          <span class="value">{as(value)}</span>
          <span class="track">
            <span style={{ width: `${most > 0 ? (value / most) * 100 : 0}%` }} />
          </span>
        </li>
      ))}
    </ul>
  );
}
