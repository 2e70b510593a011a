/** The rows of `log.entries` that match a filter, and binary search in columns that never decrease. */
import type { EntryFilter, LogEntry } from '../../shared/ports/history/events.ts';
import { indexedId } from '../proof/tree.ts';

export const COLUMNS = 'number, position, id, stream, revision, type, at, actor, actor_name, causation';

export interface Row extends Omit<LogEntry, 'actor'> {
  readonly actor: string;
  readonly actor_name: string;
}

export function entryOf({ actor, actor_name: name, ...row }: Row): LogEntry {
  const [type = '', id] = actor.split(':');
  return { ...row, actor: { type, id: Number(id), name } };
}

/**
 * The index of a column has its hash and the block of the number: the entries of a value in a block then share an index
 * entry, which takes half the space. Sorting within a block is cheap.
 */
const BLOCK = 'number >> 10';

const ACTOR_KEY = /^[a-z]+:-?\d+$/;

export interface Bounds {
  /** The first number, and the one after the last; undefined: of the log. */
  readonly from?: number;
  readonly to?: number;
}

/** The part of a statement after `FROM log.entries`, and its parameters. */
export function listing(filter: EntryFilter, { from, to }: Bounds, limit: number): [text: string, values: unknown[]] {
  const values: unknown[] = [];
  const param = (value: unknown) => `$${values.push(value)}`;
  const { stream, type, actor, correlation, causation, since, until } = filter;
  const conditions: string[] = ['true'];
  const is = (column: string, text: string | undefined) => {
    if (text === undefined) return;
    const value = `${param(text)}::text`;
    // As a function, the comparison is not taken for a second condition that few of the rows with this hash meet: the
    // planner would then read all of them, and sort.
    conditions.push(`hashtext(${column}) = hashtext(${value}) AND texteq(${column}, ${value})`);
  };
  is('stream', stream);
  is('type', type);
  is(actor !== undefined && ACTOR_KEY.test(actor) ? 'actor' : 'actor_name', actor);
  if (correlation !== undefined) conditions.push(`correlation = ${param(indexedId(correlation))}::uuid`);
  if (causation !== undefined) {
    const cause = `${param(indexedId(causation))}::uuid`;
    conditions.push(
      `(causation = ${cause} AND causation <> correlation OR correlation = ${cause} AND causation = ${cause})`,
    );
  }
  if (since !== undefined) conditions.push(`at >= ${param(since)}::bigint`);
  if (until !== undefined) conditions.push(`at <= ${param(until)}::bigint`);
  // Without statistics, the planner would rather read the whole log by its primary key, so it is not offered that order.
  const isIndexed = [stream, type, actor, correlation, causation].some((one) => one !== undefined);
  const order = isIndexed ? `${BLOCK}, number` : 'number';
  const bound = (number: number) => {
    const value = `${param(number)}::bigint`;
    return isIndexed ? `(${BLOCK.replace('number', value)}, ${value})` : value;
  };
  if (from !== undefined) conditions.push(`(${order}) >= ${bound(from)}`);
  if (to !== undefined) conditions.push(`(${order}) < ${bound(to)}`);
  return [`WHERE ${conditions.join(' AND ')} ORDER BY ${order} LIMIT ${param(limit)}`, values];
}

/**
 * The number of the first event with a larger value; the number of events if there is none. Binary search: the value of
 * a column never decreases from one event to the next.
 */
export const firstBeyond = (column: 'position' | 'latest', value = '$1::bigint'): string => `
  WITH RECURSIVE search AS (
    SELECT 0::bigint AS low, (SELECT coalesce(max(number) + 1, 0) FROM log.entries) AS high
    UNION ALL
    SELECT CASE WHEN e.${column} > ${value} THEN low ELSE e.number + 1 END,
      CASE WHEN e.${column} > ${value} THEN e.number ELSE high END
    FROM search CROSS JOIN LATERAL (
      SELECT number, ${column} FROM log.entries WHERE number = (low + high) / 2 AND low < high) e
  )
  SELECT low AS number FROM search WHERE low = high`;

/**
 * The number of events up to the last one, in the order of the log, that was recorded at or before a time. Events with a
 * time before that of an earlier event, as after a clock was set back, have an index of their own.
 */
export const countUpTo = (time = '$1::bigint'): string => `
  SELECT greatest((${firstBeyond('latest', time)}),
    (SELECT max(number) + 1 FROM log.entries WHERE at < latest AND at <= ${time})) AS number`;
