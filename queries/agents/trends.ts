/** The comparison of two periods of an agent. */
import type { Period, TrendAlert } from '../../shared/contract/agents/diagnostics.ts';

const rounded = (value: number): number => Math.round(value * 100) / 100;

/** The increase of a number in per cent, two decimals; 100 for an increase from 0. */
export function percentChange(before: number, now: number): number {
  if (before === 0) return now > 0 ? 100 : 0;
  return rounded((100 * (now - before)) / before);
}

/** A part of a whole in per cent, two decimals; 0 if the whole is 0. */
export const percentOf = (part: number, whole: number): number => (whole === 0 ? 0 : rounded((100 * part) / whole));

export const perDay = (count: number, hours: number): number => rounded(count / Math.max(hours / 24, 1));

const counted = (count: number, one: string, many: string): string => `${count} ${count === 1 ? one : many}`;

/** An increase of errors by more than this fraction is a spike. */
const SPIKE = 0.5;
/** This many errors after a period without errors are a new pattern. */
const NEW_ERRORS = 3;
/** Fewer completed tasks than this fraction of a period with more than two of them are a drop. */
const THROUGHPUT_DROP = 0.5;
const THROUGHPUT_BASE = 2;
/** Less activity than this fraction of a period with more than five activities is a stall. */
const ACTIVITY_DROP = 0.25;
const ACTIVITY_BASE = 5;

type Counts = Pick<Period, 'activities' | 'errors' | 'tasks_completed'>;

/** At most one alert each about errors, throughput and activity, in this order. */
export function trendAlerts(before: Counts, now: Counts): TrendAlert[] {
  const alerts: TrendAlert[] = [];
  const rise = (field: keyof Counts) => Math.round(Math.abs(percentChange(before[field], now[field])));
  const fromTo = (field: keyof Counts) => `${before[field]} → ${now[field]}`;

  if (before.errors > 0 && now.errors > 0 && (now.errors - before.errors) / before.errors > SPIKE) {
    const message = `Errors increased by ${rise('errors')}% over the previous period (${fromTo('errors')}).`;
    alerts.push({ level: 'warning', message });
  } else if (before.errors === 0 && now.errors > NEW_ERRORS) {
    const message = `New error pattern: ${now.errors} errors in this period, none in the previous one.`;
    alerts.push({ level: 'warning', message });
  }

  const done = now.tasks_completed;
  if (before.tasks_completed > 0 && done === 0) {
    const earlier = counted(before.tasks_completed, 'task', 'tasks');
    const message = `No tasks completed in this period, ${earlier} in the previous one: possible stall.`;
    alerts.push({ level: 'info', message });
  } else if (before.tasks_completed > THROUGHPUT_BASE && done < THROUGHPUT_DROP * before.tasks_completed) {
    const drop = `dropped by ${rise('tasks_completed')}% from the previous period (${fromTo('tasks_completed')})`;
    alerts.push({ level: 'info', message: `Task throughput ${drop}.` });
  }

  if (before.activities > ACTIVITY_BASE && now.activities < ACTIVITY_DROP * before.activities) {
    const drop = `dropped by ${rise('activities')}% from the previous period (${fromTo('activities')})`;
    alerts.push({ level: 'warning', message: `Activity ${drop}: possible stall.` });
  }
  return alerts;
}
