/**
 * Sums by UTC buckets (see `time-buckets`). A bucket is open until an event of a later one arrives. Most changes are of
 * open buckets, so these keep no versions: as of an earlier position, the rows that were summed up in the buckets that
 * were open then are counted instead. Late events change closed buckets, and such changes keep versions.
 *
 * Exact, because no event up to a position is newer than the open hour as of that position: it is the hour of the newest
 * event, not of a clock.
 */
import { startOf, type Unit } from '../shared/time-buckets.ts';
import { type Change, defineTable, observed } from './projection.ts';

/** In place of a workspace: the open hour is that of all of them. Views of the past (`counted`) read only this row. */
export const ALL_WORKSPACES = 0;

/** The hour of the newest summed event, of each workspace or of all: buckets that end later are open. */
export const defineOpenHours = () =>
  defineTable(
    'open_hours',
    {
      workspace_id: 'int',
      /** Its start, Unix ms. */
      hour: 'bigint',
    },
    { key: ['workspace_id'] },
  );

/** For an event that adds nothing: the open hour stays. */
export const NO_MOMENT = Number.NEGATIVE_INFINITY;

/**
 * The change of an open hour, and whether a bucket is open after it.
 *
 * @param workspace_id or `ALL_WORKSPACES`
 * @param newest of the events that are summed, Unix ms
 */
export function opening(
  table: ReturnType<typeof defineOpenHours>,
  workspace_id: number,
  newest: number,
): { readonly opened: Change; readonly isOpen: (unit: Unit, start: number) => boolean } {
  const hour = startOf('hour', newest);
  const { change: opened, turn } = observed(table, { workspace_id }, (row) =>
    newest === NO_MOMENT || (row && row.hour >= hour) ? row : { workspace_id, hour },
  );
  return {
    opened,
    isOpen(unit, start) {
      const { now } = turn();
      return now !== undefined && start >= startOf(unit, now.hour);
    },
  };
}
