/**
 * Sums by UTC buckets (see `time-buckets`). A bucket is open until an event of a later one arrives. Most changes are of
 * open buckets, so these keep no versions: as of an earlier position, the rows that were summed up in the buckets that
 * were open then are counted instead. Late events change closed buckets, and such changes keep versions.
 *
 * Exact, because no event up to a position is newer than the open hour as of that position: it is the hour of the newest
 * event, not of a clock.
 */
import { startOf, type Unit } from '../shared/time-buckets.ts';
import { type Change, type Columns, defineTable, observed, type RowOf, type Table } from './projection.ts';

/** `hour`: of the newest summed event, its start, Unix ms. Buckets that end later are open. */
type OpenHours = Columns & { readonly hour: 'bigint' };

/** The open hour of each workspace. */
export const defineOpenHours = () =>
  defineTable('open_hours', { workspace_id: 'int', hour: 'bigint' }, { key: ['workspace_id'] });

/** One open hour for all workspaces, which views of the past (`counted`) read as a constant. */
export const defineOpenHour = () => defineTable('open_hour', { id: 'bigint', hour: 'bigint' }, { key: ['id'] });
export const ALL = { id: 0 };

/** For an event that adds nothing: the open hour stays. */
export const NO_MOMENT = Number.NEGATIVE_INFINITY;

/**
 * The change of an open hour, and whether a bucket is open after it.
 *
 * @param key of its row: a workspace, or `ALL`
 * @param newest of the events that are summed, Unix ms
 */
export function opening<C extends OpenHours>(
  table: Table<C>,
  key: Omit<RowOf<C>, 'hour'>,
  newest: number,
): { readonly opened: Change; readonly isOpen: (unit: Unit, start: number) => boolean } {
  const hour = startOf('hour', newest);
  const { change: opened, turn } = observed<OpenHours>(table as unknown as Table<OpenHours>, key, (row) =>
    newest === NO_MOMENT || (row && row.hour >= hour) ? row : { hour, ...key },
  );
  return {
    opened,
    isOpen(unit, start) {
      const { now } = turn();
      return now !== undefined && start >= startOf(unit, now.hour);
    },
  };
}
