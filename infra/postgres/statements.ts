/** The two statements that append a group of appends, and their parameters. */
import type { Position } from '../../shared/ports/event-log.ts';
import type { PreparedEvent } from '../event-log/prepared.ts';
import type { GroupMember } from './group.ts';
import type { Start } from './head-cache.ts';
import type { PackedMetadata } from './metadata.ts';

export const EVENT_COLUMNS = 'position, id, stream, revision, type, data, meta, number, at, cause, origin';

/*
 * Encoding of lists. The driver quotes and escapes each element of an array, and the database parses that again,
 * character by character. These values do not need it: JSON contains no line feed (a text has `\n` instead), and
 * numbers, booleans and UUIDs contain nothing to quote.
 */
const jsonLines = (parameter: string): string => `string_to_array(${parameter}, E'\\n')::json[]`;
const asLines = (documents: readonly string[]): string => documents.join('\n');
const asArray = (plain: readonly (number | boolean | string | null)[]): string => `{${plain.map(String).join(',')}}`;

/** An append with the texts of its events. */
export interface Prepared extends GroupMember {
  readonly texts: readonly PreparedEvent[];
  /** Of the same events. */
  readonly metas: readonly PackedMetadata[];
}

/*
 * The columns of metadata, as lists. An origin is inserted only by the writer that holds the lock of `log.head`: two
 * writers that insert the same ones in different orders would otherwise wait for each other.
 */
const META_TYPES = (first: number) =>
  `${jsonLines(`$${first}`)}, $${first + 1}::bigint[], $${first + 2}::bigint[], $${first + 3}::uuid[], $${first + 4}::uuid[]`;
const META_COLUMNS = 'meta, number, at, cause, origin';
const insertOrigins = (first: number): string => `
  origins AS (
    INSERT INTO log.origins (id, meta)
    SELECT * FROM unnest($${first}::uuid[], ${jsonLines(`$${first + 1}`)}) WHERE EXISTS (SELECT FROM head)
    ON CONFLICT (id) DO NOTHING
  )`;

/** The values of these columns, then those of `insertOrigins`. */
function metaValues(members: readonly Pick<Prepared, 'texts' | 'metas'>[]): unknown[] {
  const all = members.flatMap(({ metas }) => metas);
  const texts = members.flatMap((member) => member.texts);
  const origins = new Map<string, string>();
  for (const { origin, shared } of all) if (origin !== null && shared !== undefined) origins.set(origin, shared);
  return [
    asLines(all.map(({ meta }, index) => meta ?? (texts[index] as PreparedEvent).meta)),
    asArray(all.map(({ number }) => number)),
    asArray(all.map(({ at }) => at)),
    asArray(all.map(({ cause }) => cause)),
    asArray(all.map(({ origin }) => origin)),
    asArray([...origins.keys()]),
    asLines([...origins.values()]),
  ];
}

/** For streams with unknown revisions: writes the group, or returns the streams whose expectation is not met. */
export const GROUP_APPEND = `
  WITH expectation AS (SELECT * FROM unnest($1::text[], $2::int[]) AS e(stream, revision)),
  bad AS (
    SELECT e.stream FROM expectation e
    WHERE e.revision <> coalesce((SELECT max(x.revision) FROM log.events x WHERE x.stream = e.stream), -1)
  ),
  head AS (
    UPDATE log.head SET position = position + $3::int WHERE NOT EXISTS (SELECT FROM bad) RETURNING position - $3::int AS base
  ),
  input AS (
    SELECT * FROM unnest($4::uuid[], $5::text[], $6::int[], $7::boolean[], $8::text[], ${jsonLines('$9')},
        ${META_TYPES(10)})
      WITH ORDINALITY AS i(id, stream, revision, relative, type, data, ${META_COLUMNS}, ord)
  ),
  written AS (
    INSERT INTO log.events (position, id, stream, revision, type, data, ${META_COLUMNS})
    SELECT head.base + i.ord, i.id, i.stream,
      CASE WHEN i.relative
        THEN coalesce((SELECT max(x.revision) FROM log.events x WHERE x.stream = i.stream), -1) + 1 + i.revision
        ELSE i.revision END,
      i.type, i.data, i.meta, i.number, i.at, i.cause, i.origin
    FROM head, input i
    RETURNING position, revision
  ),
  ${insertOrigins(15)}
  SELECT (SELECT base FROM head) AS base,
    (SELECT array_agg(stream) FROM bad) AS bad,
    (SELECT array_agg(revision ORDER BY position) FROM written) AS revisions`;

/** For streams whose revisions are known as of a certain head: writes only if the head has not moved. */
export const APPEND_AT_HEAD = `
  WITH head AS (UPDATE log.head SET position = $2::bigint WHERE position = $1::bigint RETURNING position),
  written AS (
    INSERT INTO log.events (${EVENT_COLUMNS})
    SELECT * FROM unnest($3::bigint[], $4::uuid[], $5::text[], $6::int[], $7::text[], ${jsonLines('$8')}, ${META_TYPES(9)})
    WHERE EXISTS (SELECT FROM head)
  ),
  ${insertOrigins(14)}
  SELECT (SELECT position FROM head) AS head`;

/** The last revision of a stream, -1 without events, and whether it has any of these ids. */
export const STREAM_STATE = `
  SELECT coalesce((SELECT max(revision) FROM log.events WHERE stream = $1), -1) AS actual,
    EXISTS (SELECT FROM log.events WHERE id = ANY($2::uuid[]) AND stream = $1) AS known`;

/** Parameters of APPEND_AT_HEAD, and the revisions that the events get. */
export function valuesAtHead(
  members: readonly Prepared[],
  { head, revisions: starts }: Start,
): { values: unknown[]; revisions: number[] } {
  const ends = new Map(starts);
  const positions: Position[] = [];
  const ids: string[] = [];
  const streams: string[] = [];
  const revisions: number[] = [];
  const types: string[] = [];
  const data: string[] = [];
  for (const { stream, events, texts } of members) {
    let revision = ends.get(stream) ?? -1;
    for (const [index, event] of events.entries()) {
      const text = texts[index] as PreparedEvent;
      positions.push(head + positions.length + 1);
      ids.push(event.id);
      streams.push(stream);
      revisions.push(++revision);
      types.push(event.type);
      data.push(text.data);
    }
    ends.set(stream, revision);
  }
  const values = [
    head,
    head + ids.length,
    asArray(positions),
    asArray(ids),
    streams,
    asArray(revisions),
    types,
    asLines(data),
    ...metaValues(members),
  ];
  return { values, revisions };
}

/** Parameters of GROUP_APPEND. */
export function valuesAnywhere(members: readonly Prepared[]): unknown[] {
  const expectations = new Map<string, number>();
  const lastOf = new Map<string, { readonly relative: boolean; readonly revision: number }>();
  const ids: string[] = [];
  const streams: string[] = [];
  const revisions: number[] = [];
  const relatives: boolean[] = [];
  const types: string[] = [];
  const data: string[] = [];
  for (const { stream, events, expected, texts } of members) {
    const known = lastOf.get(stream);
    const relative = known ? known.relative : expected === 'any';
    let revision = known ? known.revision : expected === 'any' || expected === 'none' ? -1 : expected;
    if (!known && !relative) expectations.set(stream, revision);
    for (const [index, event] of events.entries()) {
      const text = texts[index] as PreparedEvent;
      ids.push(event.id);
      streams.push(stream);
      revisions.push(++revision);
      relatives.push(relative);
      types.push(event.type);
      data.push(text.data);
    }
    lastOf.set(stream, { relative, revision });
  }
  const count = ids.length;
  return [
    [...expectations.keys()],
    [...expectations.values()],
    count,
    asArray(ids),
    streams,
    asArray(revisions),
    asArray(relatives),
    types,
    asLines(data),
    ...metaValues(members),
  ];
}
