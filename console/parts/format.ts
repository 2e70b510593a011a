/** Numbers, money and times as people read them. */
const COUNT = new Intl.NumberFormat('en-GB');
const SHORT = new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 1 });

export const count = (n: number): string => COUNT.format(n);
export const short = (n: number): string => (Math.abs(n) < 10_000 ? COUNT.format(n) : SHORT.format(n));

/** US dollars; small amounts with more decimal places. */
export function money(dollars: number): string {
  const size = Math.abs(dollars);
  const places = size === 0 || size >= 0.1 ? 2 : size >= 0.001 ? 4 : 6;
  const sign = dollars < 0 ? '−' : '';
  return `${sign}$${size.toLocaleString('en-GB', { minimumFractionDigits: 2, maximumFractionDigits: places })}`;
}

/** With its sign. */
export const change = (n: number, as: (n: number) => string): string =>
  n > 0 ? `+${as(n)}` : n === 0 ? '±0' : `−${as(-n)}`;

export const percent = (n: number): string => `${n.toLocaleString('en-GB', { maximumFractionDigits: 1 })} %`;

export function bytes(n: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  let size = n;
  let unit = 0;
  while (size >= 1000 && unit < units.length - 1) {
    size /= 1000;
    unit++;
  }
  return `${size.toLocaleString('en-GB', { maximumFractionDigits: unit === 0 ? 0 : 1 })} ${units[unit]}`;
}

const CLOCK: Intl.DateTimeFormatOptions = { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' };
const DAY: Intl.DateTimeFormatOptions = { day: 'numeric', month: 'short' };

/** In the viewer's zone, without the year in this year. @param ms Unix milliseconds */
export function time(ms: number): string {
  const at = new Date(ms);
  const today = new Date();
  if (at.toDateString() === today.toDateString()) return at.toLocaleTimeString('en-GB', CLOCK);
  const isThisYear = at.getFullYear() === today.getFullYear();
  const day = at.toLocaleDateString('en-GB', isThisYear ? DAY : { ...DAY, year: 'numeric' });
  return `${day} ${at.toLocaleTimeString('en-GB', { ...CLOCK, second: undefined })}`;
}

/** Day and time to the second. */
export const fullTime = (ms: number): string =>
  new Date(ms).toLocaleString('en-GB', { ...DAY, ...CLOCK, year: 'numeric' });

/** RFC 3339 in UTC, to the second. */
export const utc = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z');

/** How long ago, within the last hour; undefined for other times. */
export function ago(ms: number, now = Date.now()): string | undefined {
  const seconds = Math.round((now - ms) / 1000);
  if (seconds < -5 || seconds >= 3600) return undefined;
  return seconds < 5 ? 'now' : seconds < 60 ? `${seconds} s ago` : `${Math.floor(seconds / 60)} min ago`;
}

export function duration(seconds: number): string {
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min`;
  if (seconds < 86_400) return `${(seconds / 3600).toFixed(1)} h`;
  return `${(seconds / 86_400).toFixed(1)} d`;
}

/** `in_progress` as words. */
export const words = (name: string): string => name.replaceAll('_', ' ');

/** `TaskStatusChanged` as words. */
export const typeInWords = (type: string): string =>
  type.replace(/([a-z])([A-Z])/g, (_, a: string, b: string) => `${a} ${b.toLowerCase()}`);

/** JSON for people. */
export const json = (value: unknown): string => JSON.stringify(value, null, 2);
