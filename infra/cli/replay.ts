/** `signalbox replay`: the differences if this program's code had been used from the beginning. Writes nothing. */
import type { Command } from 'commander';
import { replayables } from '../../commands/replays.ts';
import { projections } from '../../projections/index.ts';
import { fieldsOf } from '../../queries/history/diff.ts';
import type { Position } from '../../shared/ports/event-log.ts';
import { masked } from '../../shared/secrets.ts';
import type { Core } from '../core.ts';
import { differs, type ProjectionReplay, replayProjections, type TableReplay } from '../read-models/replay/replay.ts';
import { type DecisionReplay, replayDecider } from '../tools/replay-deciders.ts';
import { textOf } from './diff.ts';
import { withProgress } from './progress.ts';
import { columns, withCore } from './with-core.ts';

interface Options {
  readonly projection?: readonly string[];
  readonly decider?: readonly string[];
  readonly from?: string;
  readonly until?: string;
  readonly limit: string;
}

/** Something would differ. */
const DIFFERS = 3;
const ALL = 'all';

const namesOf = (known: readonly { readonly name: string }[]): string => known.map(({ name }) => name).join(', ');

export function addReplay(program: Command): void {
  program
    .command('replay')
    .description(
      'run the projections or deciders of this version over the log and compare the result with what is stored; exit code 3 if something differs',
    )
    .option(
      '--projection <name...>',
      `read models to project again and compare with the live ones, or ${ALL}: ${namesOf(projections)}`,
    )
    .option('--decider <name...>', `kinds of streams to decide again, or ${ALL}: ${namesOf(replayables)}`)
    .option('--from <position>', 'only differences from this position on; by default, as far back as possible')
    .option('--until <position>', 'where the replay ends; by default, where the live read model, or the log, ends')
    .option('--limit <number>', 'maximum number of examples for each table or decider', '5')
    .action(async (options: Options) => {
      const wanted = chosen('projection', projections, options.projection);
      const deciders = chosen('decider', replayables, options.decider);
      if (wanted.length + deciders.length === 0) throw new Error('Specify what to replay: --projection or --decider.');
      const range = {
        from: numberOf('--from', options.from),
        until: numberOf('--until', options.until),
        examples: numberOf('--limit', options.limit) ?? 0,
      };
      const { result } = await withProgress('The replay was interrupted.', (watched) =>
        withCore(
          async (core) => {
            const replays = wanted.length === 0 ? [] : await replayProjections(core, wanted, { ...range, ...watched });
            const decided: DecisionReplay[] = [];
            for (const decider of deciders) decided.push(await replayDecider(core, decider, { ...range, ...watched }));
            return { replays, decided, events: await eventsAt(core, firstsOf(replays)) };
          },
          { asIs: true },
        ),
      );
      if (wanted.length > 0) report(result.replays, result.events);
      if (deciders.length > 0) reportDecisions(result.decided);
      const differing =
        result.replays.some(({ tables }) => tables.some(differs)) ||
        result.decided.some(
          ({ refused, otherwise, notFolded, savedStatesDiffering }) =>
            refused + otherwise + notFolded + savedStatesDiffering > 0,
        );
      if (differing) process.exitCode = DIFFERS;
    });
}

/** @throws Error for an unknown name */
function chosen<T extends { readonly name: string }>(what: string, known: readonly T[], names: readonly string[] = []) {
  const unknown = names.filter((name) => name !== ALL && !known.some((one) => one.name === name));
  if (unknown.length > 0) throw new Error(`Unknown ${what}: ${unknown.join(', ')}. Known ones: ${namesOf(known)}.`);
  return names.includes(ALL) ? known : known.filter((one) => names.includes(one.name));
}

function reportDecisions(decided: readonly DecisionReplay[]): void {
  const rows = decided.map((one) => {
    const { streams, events, same, refused, otherwise, notDecidedAgain, notFolded } = one;
    const numbers = [streams, events, same, refused, otherwise, notDecidedAgain, notFolded];
    return [one.decider, ...numbers.map(String), `${one.savedStatesDiffering} of ${one.savedStates}`];
  });
  const head = ['decider', 'streams', 'events', 'same', 'refused', 'otherwise', 'not decided again', 'not folded'];
  console.log(columns([...head, 'saved states differ'], rows));
  const findings = decided.flatMap((one) =>
    one.findings.map(({ position, stream, event, kind, what }) => [
      String(position),
      stream,
      event,
      kind,
      textOf('what', what),
    ]),
  );
  if (findings.length > 0) console.log(`\n${columns(['position', 'stream', 'event', 'finding', 'what'], findings)}`);
}

/** @throws Error unless it is a whole number */
function numberOf(option: string, value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  if (!/^\d{1,15}$/.test(value)) throw new Error(`${option} must be a whole number, not ${value}`);
  return Number(value);
}

const firstsOf = (replays: readonly ProjectionReplay[]): Position[] => [
  ...new Set(replays.flatMap(({ tables }) => tables.flatMap(({ differences }) => differences?.first ?? []))),
];

/** Types and ids of the events at these positions, as far as they can be found quickly. */
async function eventsAt(
  { database, eventLog }: Core,
  positions: readonly Position[],
): Promise<ReadonlyMap<Position, string>> {
  const { rows } = await database.pool.query('SELECT position, id, type FROM log.entries WHERE position = ANY($1)', [
    positions,
  ]);
  const found = new Map<Position, string>(rows.map(({ position, id, type }) => [position, `${type} ${id}`]));
  // The service maintains the index, which may lag behind.
  for (const position of eventLog.stride === 1 ? positions.filter((one) => !found.has(one)) : []) {
    for await (const [event] of eventLog.readAll({ from: position - 1, limit: 1 }))
      if (event?.position === position) found.set(position, `${event.type} ${event.id}`);
  }
  return found;
}

function report(replays: readonly ProjectionReplay[], events: ReadonlyMap<Position, string>): void {
  const rows = replays.flatMap(({ projection, from, until, tables }) =>
    tables.map((table) => [projection, table.table, ...cellsOf(table), `${from} to ${until}`]),
  );
  console.log(
    columns(
      ['read model', 'table', 'rows', 'only live', 'only replayed', 'different', 'earlier', 'first', 'positions'],
      rows,
    ),
  );
  for (const replay of replays) {
    for (const table of replay.tables.filter(differs)) {
      console.log(`\n${[`${replay.live}.${table.table}`, ...remarksOf(replay, table, events)].join('\n  ')}`);
      const examples = examplesOf(table);
      if (examples.length > 0)
        console.log(columns(['record', 'from', 'field', 'live', 'replayed'], examples).replace(/^/gm, '  '));
    }
  }
}

function cellsOf({ differences }: TableReplay): string[] {
  if (!differences) return ['', '', '', '', '', ''];
  const { rows, onlyLive, onlyReplayed, different, past, first } = differences;
  return [rows, onlyLive, onlyReplayed, different, past, first ?? ''].map(String);
}

const REASONS: Readonly<Record<TableReplay['reason'] & string, string>> = {
  'only live': 'this program does not have the table',
  'only in the replay': 'the live read model does not have the table',
  'another key': 'the live table has another primary key, so its rows were not compared',
};

function remarksOf(
  { from }: ProjectionReplay,
  { columns: { onlyLive, onlyReplayed }, differences, reason }: TableReplay,
  events: ReadonlyMap<Position, string>,
): string[] {
  const first = differences?.first ?? undefined;
  const event = first === undefined ? undefined : events.get(first);
  const since = first === from && from > 0 ? 'or before' : event;
  return [
    ...(reason ? [REASONS[reason]] : []),
    ...(onlyLive.length > 0 ? [`columns that only the live table has: ${onlyLive.join(', ')}`] : []),
    ...(onlyReplayed.length > 0 ? [`columns that only this program has: ${onlyReplayed.join(', ')}`] : []),
    ...(first === undefined ? [] : [`differs from position ${first}${since === undefined ? '' : ` (${since})`}`]),
  ];
}

/** One line per field; the first line names the record. */
function examplesOf({ table, differences }: TableReplay): string[][] {
  return (differences?.examples ?? []).flatMap(({ key, first, live, replayed }) => {
    const record = Object.entries(masked(key) as typeof key)
      .map(([name, value]) => `${name} ${textOf(name, value)}`)
      .join(', ');
    const fields = Object.entries(fieldsOf(table, live, replayed)).map(([name, { before, after }]) => [
      name,
      textOf(name, before),
      textOf(name, after),
    ]);
    const state = live === undefined ? 'not there' : replayed === undefined ? 'there' : '';
    const other = live === undefined ? 'there' : replayed === undefined ? 'not there' : '';
    const lines = state === '' ? (fields.length > 0 ? fields : [['hidden', '', '']]) : [['', state, other]];
    return lines.map((line, n) => [...(n === 0 ? [record, String(first)] : ['', '']), ...line]);
  });
}
