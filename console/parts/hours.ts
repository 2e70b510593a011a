/** Bars by hour over a whole window, hours without events included. */
import type { Bar } from './chart.tsx';

const HOUR = 3_600_000;
/** Maximum number of bars; longer windows have bars of several hours. */
const MAX_BARS = 72;

/**
 * @param values at the beginning of hours, Unix milliseconds
 * @param start of the window, Unix milliseconds; `end`: its end
 */
export function hourBars(
  values: readonly { readonly at: number; readonly value: number }[],
  start: number,
  end: number,
): Bar[] {
  const sums = new Map<number, number>();
  for (const { at, value } of values) {
    const hour = Math.floor(at / HOUR);
    sums.set(hour, (sums.get(hour) ?? 0) + value);
  }
  const [first, last] = [Math.floor(start / HOUR), Math.max(Math.floor(start / HOUR), Math.ceil(end / HOUR) - 1)];
  const width = Math.ceil((last - first + 1) / MAX_BARS);
  const bars: Bar[] = [];
  for (let hour = first; hour <= last; hour += width) {
    let value = 0;
    for (let n = 0; n < width; n++) value += sums.get(hour + n) ?? 0;
    const at = hour * HOUR;
    bars.push({ key: String(hour), label: text(at, { ...DAY, ...CLOCK }), tick: tickText(at, end - start), value });
  }
  return bars;
}

const CLOCK: Intl.DateTimeFormatOptions = { hour: '2-digit', minute: '2-digit' };
const DAY: Intl.DateTimeFormatOptions = { day: 'numeric', month: 'short' };

const text = (ms: number, options: Intl.DateTimeFormatOptions): string => new Date(ms).toLocaleString('en-GB', options);

const tickText = (ms: number, length: number): string =>
  length <= 24 * HOUR
    ? text(ms, CLOCK)
    : length <= 72 * HOUR
      ? text(ms, { weekday: 'short', ...CLOCK })
      : text(ms, DAY);
