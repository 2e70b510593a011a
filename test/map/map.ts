/** Finds where each source file stands on the map, what the map says that is not so, and prints it. */
import { readdirSync, readFileSync } from 'node:fs';
import { DISTINCT, EXAMPLE, FLOORS, GROUPS, MECHANISMS, ROOMS } from './words.ts';

/** Compiled, this file is in dist/test/map; the sources are where package.json is. */
const TOP = new URL('../../../', import.meta.url);

export const SOURCE_FOLDERS = ['shared', 'commands', 'projections', 'queries', 'api', 'infra', 'test'];

/** Every TypeScript file, relative to the top, sorted. */
export function sources(): string[] {
  return SOURCE_FOLDERS.flatMap((folder) =>
    readdirSync(new URL(`${folder}/`, TOP), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => `${folder}/${name.replaceAll('\\', '/')}`),
  ).sort();
}

/** The text of a source file. */
export const textOf = (file: string): string => readFileSync(new URL(file, TOP), 'utf8');

export interface Place {
  readonly floor: string;
  readonly group: string;
  /** Undefined: the group is this one file. */
  readonly concern: string | undefined;
}

const folderOf = (file: string): string => file.slice(0, file.lastIndexOf('/'));

/** The longest floor that a file is on. */
function floorOf(file: string): string | undefined {
  return Object.keys(FLOORS)
    .filter((floor) => file.startsWith(`${floor}/`))
    .sort((a, b) => b.length - a.length)[0];
}

/** The word of a file's name. Tests of one concern may be several: `agents.races.test.ts` is about `agents`. */
function wordOf(floor: string, name: string): string {
  return FLOORS[floor]?.mirrors ? (name.split('.', 1)[0] as string) : name.replace(/\.ts$/, '');
}

/** Where a file stands; what is wrong when it stands nowhere; undefined for what belongs to no group. */
export function placeOf(file: string): Place | string | undefined {
  const folder = folderOf(file);
  const name = file.slice(folder.length + 1);
  // Tests of a mechanism stand in a folder of its name.
  if (folder in MECHANISMS || folder.replace(/^test\//, '') in MECHANISMS) return undefined;
  if (file.startsWith(`${EXAMPLE.folder}/`)) {
    const floor = folder.slice(EXAMPLE.folder.length + 1);
    const known = floor in FLOORS && name === `${EXAMPLE.group}.ts`;
    return known ? undefined : `${file}: the example has one file ${EXAMPLE.group}.ts on each floor`;
  }
  if (ROOMS[folder]) {
    return ROOMS[folder].includes(name.replace(/\.ts$/, ''))
      ? undefined
      : `${file}: is not among the files of its room`;
  }
  const floor = floorOf(file);
  if (floor === undefined) return `${file}: its folder is no floor and holds no mechanism`;
  const [first = '', second, ...deeper] = file.slice(floor.length + 1).split('/');
  if (deeper.length > 0) return `${file}: stands too deep; a floor has groups, a group has files`;
  if (second === undefined) {
    const word = wordOf(floor, first);
    if (FLOORS[floor]?.shared.includes(word)) return undefined;
    return word in GROUPS ? { floor, group: word, concern: undefined } : `${file}: there is no group "${word}"`;
  }
  const concerns = GROUPS[first];
  if (!concerns) return `${file}: there is no group "${first}"`;
  const word = wordOf(floor, second);
  // It runs the tests of the files beside it on one service.
  if (FLOORS[floor]?.wholeColumn && word === first && !(word in concerns)) return undefined;
  return word in concerns ? { floor, group: first, concern: word } : `${file}: "${word}" is no concern of ${first}`;
}

/** One form for the singular and the plural of a word. */
const singular = (word: string): string => word.replace(/ies$/, 'y').replace(/(?<=[^s])s$/, '');

/** Whether two names are forms of one word: register and registration, agent and agents, key and key-scopes. */
export function sameWord(one: string, other: string): boolean {
  const [a = '', b = ''] = [singular(one), singular(other)].sort((x, y) => x.length - y.length);
  if (a === b || b.startsWith(`${a}-`)) return true;
  if (one.includes('-') || other.includes('-')) return false;
  let common = 0;
  while (common < a.length && a[common] === b[common]) common++;
  return common >= 6;
}

const pairs = <T>(all: readonly T[]): [T, T][] =>
  all.flatMap((one, at) => all.slice(at + 1).map((other): [T, T] => [one, other]));

/** What is not as the map says, one sentence each. */
export function deviations(files: readonly string[]): string[] {
  const found: string[] = [];
  const places: Place[] = [];
  for (const file of files) {
    const place = placeOf(file);
    if (typeof place === 'string') found.push(place);
    else if (place) places.push(place);
  }
  const stands = (floor: string | undefined, group: string, concern?: string) =>
    places.some(
      (p) =>
        (floor === undefined ? !FLOORS[p.floor]?.mirrors : p.floor === floor) &&
        p.group === group &&
        p.concern === concern,
    );
  const standing = new Set(places.map(({ floor, group }) => `${floor} ${group}`));
  for (const key of standing) {
    const [floor = '', group = ''] = key.split(' ');
    const folder = places.some((p) => p.floor === floor && p.group === group && p.concern !== undefined);
    if (folder && stands(floor, group)) found.push(`${floor}/${group}: is a file and a folder`);
  }
  for (const [group, concerns] of Object.entries(GROUPS)) {
    if (!places.some((p) => p.group === group)) found.push(`${group}: stands on no floor`);
    for (const concern of Object.keys(concerns)) {
      if (!stands(undefined, group, concern)) found.push(`${group}/${concern}: stands on no floor`);
    }
    for (const [one, other] of pairs(Object.keys(concerns))) {
      if (DISTINCT.includes(one) && DISTINCT.includes(other)) continue;
      if (sameWord(one, other)) found.push(`${group}: "${one}" and "${other}" are one word`);
    }
    const abouts = Object.values(concerns);
    for (const about of abouts.filter((text, at) => abouts.indexOf(text) !== at)) {
      found.push(`${group}: two concerns are "${about}"`);
    }
  }
  for (const [one, other] of pairs(Object.keys(GROUPS))) {
    if (sameWord(one, other)) found.push(`the groups "${one}" and "${other}" are one word`);
  }
  for (const { floor, group, concern } of places) {
    const { mirrors: mirrored, wholeColumn } = FLOORS[floor] ?? {};
    if (mirrored && !wholeColumn && !stands(mirrored, group, concern) && !stands(mirrored, group)) {
      found.push(`${floor}/${group}/${concern}: tests what does not stand in ${mirrored}`);
    }
  }
  return [...found, ...sidesOfOneFolder(files), ...missing(files)];
}

/** A singular beside its plural in one folder. */
function sidesOfOneFolder(files: readonly string[]): string[] {
  const folders = new Set(files.map(folderOf));
  return [...folders].flatMap((folder) => {
    const inside = files.filter((file) => folderOf(file) === folder);
    const words = new Set(inside.map((file) => file.slice(folder.length + 1).split('.', 1)[0] as string));
    return pairs([...words])
      .filter(([one, other]) => singular(one) === singular(other))
      .map(([one, other]) => `${folder}: ${one} stands beside ${other}`);
  });
}

/** Folders and files that the map names and that are not there. */
function missing(files: readonly string[]): string[] {
  const has = (start: string) => files.some((file) => file.startsWith(start));
  const named = [
    ...Object.entries(ROOMS),
    ...Object.entries(FLOORS).map(([floor, { shared }]): [string, readonly string[]] => [floor, shared]),
  ];
  return [
    ...Object.keys(MECHANISMS).filter((folder) => !has(`${folder}/`)),
    ...named.flatMap(([folder, names]) => names.map((name) => `${folder}/${name}`).filter((path) => !has(`${path}.`))),
  ].map((path) => `${path}: is on the map and not there`);
}

const WIDTH = 100;

/** The map as text: groups and concerns by floors, then what belongs to no group. */
export function printed(files: readonly string[]): string {
  const floors = Object.entries(FLOORS);
  const columns = floors.filter(([, { mirrors }]) => !mirrors);
  const places = files.map(placeOf).filter((place): place is Place => typeof place === 'object');
  const row = (name: string, cells: readonly string[], about = '') =>
    [name.padEnd(20), ...cells.map((cell, at) => cell.padEnd((columns[at]?.[1].column.length ?? 0) + 1)), about]
      .join('')
      .trimEnd();
  const cells = (group: string, concern: string | undefined) =>
    columns.map(([floor]) => {
      const stands = (on: string) =>
        places.some((place) => place.floor === on && place.group === group && place.concern === concern);
      const tests = floors.filter(([, { mirrors }]) => mirrors === floor).map(([mirror]) => mirror);
      return stands(floor) ? (tests.some(stands) ? '◉' : '●') : '·';
    });
  const body = Object.entries(GROUPS).flatMap(([group, concerns]) => [
    Object.keys(concerns).length > 0 ? group : row(group, cells(group, undefined)),
    ...Object.entries(concerns).map(([concern, about]) => row(`  ${concern}`, cells(group, concern), about)),
  ]);
  const list = (entries: readonly (readonly [string, string])[]) => {
    const width = Math.max(...entries.map(([name]) => name.length)) + 2;
    return entries.flatMap(([name, text]) =>
      wrapped(text, WIDTH - width).map((line, n) => `${(n ? '' : name).padEnd(width)}${line}`),
    );
  };
  const named = [
    ...floors.map(([floor, { shared }]): [string, readonly string[]] => [floor, shared]),
    ...Object.entries(ROOMS),
  ];
  return [
    row(
      '',
      columns.map(([, { column }]) => column),
    ),
    ...body,
    '',
    '● has a file there   ◉ and a test of that name (of routes: a test of the contract)',
    '',
    'Of no group, because all use it',
    ...list(named.filter(([, names]) => names.length > 0).map(([floor, names]) => [floor, names.join(', ')] as const)),
    '',
    'Mechanisms',
    ...list(Object.entries(MECHANISMS)),
    '',
  ].join('\n');
}

function wrapped(text: string, width: number): string[] {
  const lines: string[] = [''];
  for (const word of text.split(' ')) {
    const line = lines.at(-1) as string;
    if (line && line.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = line ? `${line} ${word}` : word;
  }
  return lines;
}

/** Columns that differ from row to row, alone or with those before them, and ordinals of what is grouped by. */
const LAST_IN_ORDER =
  /^(?:\w+\.)?(?:id|\w+_id|position|place|run|date|name|username|agent|agent_name|to_agent|actor|recipient|model|task|type|session|project_slug|participant|\d)$/;

/** Orders that are handed in, and end like the others where they are made. */
const HANDED_IN = [`\${order}`, 'orderText(columns, fromEnd !== backwards)'];

/** Of queries: orders of rows that are cut off or counted, in which rows may be equal, so that it is open which are shown. */
export function openOrders(texts: readonly string[]): string[] {
  const text = texts.join('\n');
  const named = new Map(
    [...text.matchAll(/const ([A-Z_]+) = sql(?:\.raw\('|`)(?:ORDER BY )?([^'`]*)['`]/g)].map(([, name, order]) => [
      `\${${name}}`,
      order,
    ]),
  );
  const lastOf = (order: string): string => {
    const last =
      order
        .split(', ')
        .at(-1)
        ?.replace(/ (?:DESC|ASC)$/, '') ?? '';
    return (
      named
        .get(last)
        ?.split(', ')
        .at(-1)
        ?.replace(/ (?:DESC|ASC)$/, '') ?? last
    );
  };
  const inSql = [
    ...text.matchAll(/ORDER BY ((?:(?!ORDER BY)[^`])*?) LIMIT\b/g),
    ...text.matchAll(/OVER \((?:PARTITION BY [\w.]+ )?ORDER BY ([^()]*)\)/g),
    ...text.matchAll(/(\$\{[A-Z_]+\}) LIMIT\b/g),
  ].map(([, order = '']) => order.replace(/\s+/g, ' ').trim());
  const built = [...text.matchAll(/\.orderBy\(((?:(?!\.orderBy\()[^;])*?)\)\s*\.(?:offset|limit)\(/g)];
  return [
    ...inSql.filter((order) => !LAST_IN_ORDER.test(lastOf(order))),
    ...built.map(([, order = '']) => order).filter((order) => !LAST_IN_ORDER.test(order.split("'")[1] ?? '')),
  ].filter((order) => !HANDED_IN.includes(order));
}
