/**
 * Checks a recorded history of requests for real-time order (docs/consistency.md). Pure: operations in, violations out.
 *
 * Every value is written once, so it is known which write a read shows. A value was certainly current from the first
 * moment at which an operation that wrote or showed it had completed to the last one at which such an operation began. Two
 * values of one object may not both be certain at a time, and one whose operations all overlap needs a moment at which no
 * other is certain. For registers whose values are written once, a history is linearizable exactly if this holds
 * (Gibbons and Korach, Testing Shared Memories, 1997).
 */

/** What an object is or was set to: several fields that are written together and have to be equal. */
export type Cell = readonly [object: string, ...fields: string[]];

export interface Operation {
  readonly what: string;
  /** Milliseconds; all of one clock. */
  readonly invoked: number;
  /** Infinity: the outcome is unknown, so it may be done at any time, or never. */
  readonly completed: number;
  /** `at` and `eventual` are reads that need not be current. */
  readonly kind: 'write' | 'current' | 'at' | 'eventual';
  /** The write was refused: nothing may have changed. */
  readonly refused?: boolean;
  /** `X-Signalbox-Position` of the response. */
  readonly position?: number | undefined;
  /** `X-Signalbox-Min-Position` of the request. */
  readonly atLeast?: number;
  /** Eventual reads of one source show growing positions: a process since it began, and what is read. */
  readonly source?: string | undefined;
  readonly writes?: Cell;
  /** What may be done only once in a history, such as claiming a task. */
  readonly once?: string;
  readonly shows?: readonly Cell[];
  /** It shows all objects whose name begins like this. */
  readonly lists?: string;
  /** An object that it does not find. */
  readonly absent?: string;
  /** An object that it is refused for, because it exists. */
  readonly exists?: string;
  /** A value that the object does not have. */
  readonly lacks?: Cell;
  /** A counter that it increases by one. */
  readonly adds?: string;
  readonly counts?: readonly (readonly [counter: string, value: number])[];
  /** A poll of the queue by this agent, which takes one task at a time. */
  readonly agent?: string;
  /** What the poll found; undefined: nothing, where the outcome is known. */
  readonly task?: string | undefined;
}

export interface Violation {
  readonly kind: string;
  readonly about: string;
  readonly operations: readonly Operation[];
}

/** The value of an object that has been deleted: its last. */
export const GONE = 'gone';
/** The value of a task that waits in the queue, and of one that an agent has claimed. */
export const WAITING = 'waiting';
export const heldBy = (agent: string): string => `held by ${agent}`;

/** A value of an object, and when it was certainly current. */
interface Known {
  readonly value: string;
  /** When it was written at the earliest. */
  written: number;
  /** Whether it is certain that it was written. */
  certain: boolean;
  firstEnd: number;
  lastBegin: number;
  position: number | undefined;
  first: Operation;
  last: Operation;
}

interface Thing {
  readonly name: string;
  readonly values: Map<string, Known>;
  readonly refused: Map<string, Operation>;
  /** When it certainly existed, at the earliest, and the position of that. */
  exists: number;
  existsAt: number;
  /** When its deletion began, and was certain. */
  goneFrom: number;
  goneBy: number;
  /** Positions of its writes, in order. */
  positions: number[];
  /** When a task was first written after its claim. */
  claim: Operation | undefined;
  leftFrom: number;
}

export function violationsOf(history: readonly Operation[]): Violation[] {
  const found: Violation[] = [];
  const report = (kind: string, about: string, ...operations: Operation[]) => found.push({ kind, about, operations });
  const byBegin = [...history].sort((one, other) => one.invoked - other.invoked);
  const things = collect(byBegin, report);
  for (const operation of byBegin) if (operation.kind !== 'write' || operation.completed < Infinity) look(operation);
  const lacking = new Map<string, Operation[]>();
  for (const operation of byBegin) {
    const [object] = operation.lacks ?? [];
    if (object === undefined || operation.kind !== 'current') continue;
    lacking.set(object, [...(lacking.get(object) ?? []), operation]);
  }
  for (const thing of things.values()) compareZones(thing, lacking.get(thing.name) ?? [], report);
  checkCounters(byBegin, report);
  checkPolls(byBegin, things, report);
  checkPositions(byBegin, report);
  return found;

  /** Takes note of what an operation shows. */
  function look(operation: Operation): void {
    const { shows = [], lists, absent, kind } = operation;
    for (const cell of shows) showCell(operation, cell);
    if (absent !== undefined) missing(operation, things.get(absent));
    if (lists !== undefined) {
      const shown = new Set(shows.map(([object]) => object));
      for (const thing of things.values()) {
        if (thing.name.startsWith(lists) && !shown.has(thing.name)) missing(operation, thing);
      }
    }
    if (operation.position === undefined || kind === 'write') return;
    const known = shows.map(([object, value = '']) => things.get(object)?.values.get(value)?.position ?? 0);
    const bound = Math.max(operation.position, ...(kind === 'eventual' ? [] : known));
    for (const [index, [object]] of shows.entries()) {
      const at = known[index] as number;
      const latest = things.get(object)?.positions.findLast((position) => position <= bound) ?? 0;
      if (at > 0 && at < latest) {
        const how = bound > operation.position ? 'and something newer, so it is' : 'by its header, so it is';
        report(
          'shows less than its position',
          `${object}, at ${at}: the response is of ${bound} ${how} not of ${latest}`,
          operation,
        );
      }
    }
  }

  function showCell(operation: Operation, [object, value = '', ...others]: Cell): void {
    const thing = things.get(object);
    if (others.some((other) => other !== value)) {
      report('half a write', `${object} is shown with ${[value, ...others].join(', ')}`, operation);
      return;
    }
    const known = thing?.values.get(value) ?? claimOfUnknown(operation, thing, value);
    const refusal = thing?.refused.get(value);
    if (!known && refusal) report('a refused change was made', `${object} is shown with ${value}`, refusal, operation);
    else if (!known) report('from nowhere', `${object} is shown with ${value}, which nobody wrote`, operation);
    else if (operation.completed < known.written)
      report('from nowhere', `${object} is shown with ${value} before it was written`, operation, known.first);
    else if (isCurrent(operation)) extend(known, operation);
  }

  /** Polls whose responses were lost may have claimed a task. */
  function claimOfUnknown(operation: Operation, thing: Thing | undefined, value: string): Known | undefined {
    const lost = byBegin.find(
      ({ agent, completed }) => agent !== undefined && completed === Infinity && heldBy(agent) === value,
    );
    if (!thing || !lost || lost.invoked > operation.completed) return undefined;
    const known = { ...newlyKnown(value, lost), certain: false };
    thing.values.set(value, known);
    return known;
  }

  function missing(operation: Operation, thing: Thing | undefined): void {
    if (!thing) return;
    const { position = 0, invoked, completed } = operation;
    const isDue = isCurrent(operation) ? thing.exists < invoked : thing.existsAt <= position;
    if (!isDue) return;
    if (completed < thing.goneFrom) {
      report('missing', `${thing.name} is not shown, although nobody has deleted it`, operation);
    } else if (isCurrent(operation) && thing.goneBy > invoked) {
      const gone = thing.values.get(GONE);
      if (gone) extend(gone, operation);
    }
  }
}

type Report = (kind: string, about: string, ...operations: Operation[]) => void;

const isCurrent = ({ kind }: Operation): boolean => kind === 'current' || kind === 'write';

const newlyKnown = (value: string, operation: Operation): Known => ({
  value,
  written: operation.invoked,
  certain: operation.completed < Infinity,
  firstEnd: operation.completed,
  lastBegin: operation.invoked,
  position: undefined,
  first: operation,
  last: operation,
});

function extend(known: Known, operation: Operation): void {
  known.certain = true;
  if (operation.completed < known.firstEnd) {
    known.firstEnd = operation.completed;
    known.first = operation;
  }
  if (operation.invoked > known.lastBegin) {
    known.lastBegin = operation.invoked;
    known.last = operation;
  }
}

/** All objects, with the values that were written. */
function collect(history: readonly Operation[], report: Report): Map<string, Thing> {
  const things = new Map<string, Thing>();
  const thing = (name: string): Thing => {
    let one = things.get(name);
    if (!one) {
      one = {
        ...{ name, values: new Map(), refused: new Map(), positions: [], claim: undefined },
        ...{ exists: Infinity, existsAt: Infinity, goneFrom: Infinity, goneBy: Infinity, leftFrom: Infinity },
      };
      things.set(name, one);
    }
    return one;
  };
  const done = new Map<string, Operation>();
  for (const operation of history) {
    const { once, writes, refused, completed, position, kind } = operation;
    const isKnown = completed < Infinity && !refused;
    if (once !== undefined && isKnown) {
      const before = done.get(once);
      if (before) report('done twice', once, before, operation);
      else done.set(once, operation);
    }
    if (kind === 'write' && writes) {
      const [name, value = ''] = writes;
      const one = thing(name);
      if (refused) one.refused.set(value, operation);
      else note(one, value, operation);
    }
    if (operation.exists !== undefined) {
      const one = thing(operation.exists);
      one.exists = Math.min(one.exists, completed);
    }
    if (!isCurrent(operation)) continue;
    for (const [name, value] of operation.shows ?? []) {
      const one = things.get(name);
      if (one && value !== GONE) one.exists = Math.min(one.exists, completed);
    }
    if (operation.agent !== undefined && operation.once !== undefined && isKnown && writes) {
      const one = thing(writes[0]);
      one.claim ??= operation;
    }
    if (position !== undefined && isKnown && writes) {
      const one = thing(writes[0]);
      one.positions.push(position);
      if (writes[1] !== GONE) one.existsAt = Math.min(one.existsAt, position);
    }
  }
  for (const one of things.values()) one.positions.sort((a, b) => a - b);
  return things;

  function note(one: Thing, value: string, operation: Operation): void {
    const { completed, invoked, position } = operation;
    const known = one.values.get(value);
    if (known) {
      known.written = Math.min(known.written, invoked);
      if (completed < Infinity) extend(known, operation);
    } else {
      one.values.set(value, newlyKnown(value, operation));
    }
    const noted = one.values.get(value) as Known;
    if (position !== undefined) noted.position = position;
    if (value === GONE) {
      one.goneFrom = Math.min(one.goneFrom, invoked);
      one.goneBy = Math.min(one.goneBy, completed);
    } else {
      one.exists = Math.min(one.exists, completed);
    }
    if (one.claim && operation !== one.claim) one.leftFrom = Math.min(one.leftFrom, invoked);
  }
}

/** Compares the times at which each value of an object was current. */
function compareZones({ name, values }: Thing, lacking: readonly Operation[], report: Report): void {
  const zones = [...values.values()].filter(({ certain }) => certain);
  for (const zone of zones) if (zone.value === GONE) zone.lastBegin = Infinity;
  const lasting = zones
    .filter(({ firstEnd, lastBegin }) => firstEnd < lastBegin)
    .sort((one, other) => one.firstEnd - other.firstEnd);
  let longest: Known | undefined;
  for (const zone of lasting) {
    if (longest && zone.firstEnd < longest.lastBegin)
      report(
        'out of order',
        `${name} is shown with ${longest.value} and with ${zone.value} alternately`,
        longest.first,
        zone.first,
        longest.last,
        zone.last,
      );
    if (!longest || zone.lastBegin > longest.lastBegin) longest = zone;
  }
  for (const { value, firstEnd, lastBegin, first } of zones) {
    if (firstEnd < lastBegin) continue;
    const around = lasting.find((zone) => zone.firstEnd < lastBegin && firstEnd < zone.lastBegin);
    if (around)
      report(
        'out of order',
        `${name} was ${value} while it was shown with ${around.value}`,
        around.first,
        first,
        around.last,
      );
  }
  if (lasting.length === 0) return;
  for (const operation of lacking) {
    const zone = lasting.find(({ value }) => value === operation.lacks?.[1]);
    if (zone && zone.firstEnd < operation.invoked && operation.completed < zone.lastBegin)
      report('missing', `${name} is not shown with ${zone.value}`, zone.first, operation, zone.last);
  }
}

/** A value for each moment, of which later ones are at least as large. */
class Highest {
  readonly #entries: { readonly at: number; readonly value: number; readonly operation: Operation }[] = [];

  /** @param entries when each value is known to have been reached */
  constructor(entries: readonly { readonly at: number; readonly value: number; readonly operation: Operation }[]) {
    for (const entry of [...entries].sort((one, other) => one.at - other.at)) {
      if (entry.value > (this.#entries.at(-1)?.value ?? -1)) this.#entries.push(entry);
    }
  }

  before(moment: number) {
    let [low, high] = [0, this.#entries.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#entries[middle] as { at: number }).at < moment) low = middle + 1;
      else high = middle;
    }
    return this.#entries[low - 1];
  }
}

function checkCounters(history: readonly Operation[], report: Report): void {
  const adds = new Map<string, Operation[]>();
  const reads = new Map<string, { readonly operation: Operation; readonly value: number }[]>();
  const into = <T>(map: Map<string, T[]>, key: string, one: T) => {
    const all = map.get(key);
    if (all) all.push(one);
    else map.set(key, [one]);
  };
  for (const operation of history) {
    if (operation.adds !== undefined && !operation.refused) into(adds, operation.adds, operation);
    if (operation.kind !== 'current') continue;
    for (const [counter, value] of operation.counts ?? []) into(reads, counter, { operation, value });
  }
  for (const [counter, all] of reads) {
    const added = adds.get(counter) ?? [];
    const ends = added.map(({ completed }) => completed).sort((a, b) => a - b);
    const done = new Highest(ends.map((at, index) => ({ at, value: index + 1, operation: added[0] as Operation })));
    const begun = new Highest(
      added.map((operation, index) => ({ at: operation.invoked, value: index + 1, operation })),
    );
    const shown = new Highest(all.map(({ operation, value }) => ({ at: operation.completed, value, operation })));
    for (const { operation, value } of all) {
      const least = done.before(operation.invoked)?.value ?? 0;
      const most = begun.before(operation.completed)?.value ?? 0;
      const earlier = shown.before(operation.invoked);
      if (value < least)
        report('missing', `${counter} is ${value}, although ${least} additions were answered`, operation);
      if (value > most)
        report('from nowhere', `${counter} is ${value}, although only ${most} additions had begun`, operation);
      if (earlier && earlier.value > value)
        report('out of order', `${counter} is ${value} after it was ${earlier.value}`, earlier.operation, operation);
    }
  }
}

/** A poll must not miss a task that waits, nor that its agent has one already. */
function checkPolls(history: readonly Operation[], things: ReadonlyMap<string, Thing>, report: Report): void {
  const claimed = [...things.values()].flatMap((thing) => (thing.claim ? [{ thing, claim: thing.claim }] : []));
  for (const operation of history) {
    const { agent, task, invoked, completed, refused } = operation;
    if (agent === undefined || completed === Infinity || refused) continue;
    for (const { thing, claim } of claimed) {
      const waitsFrom = thing.values.get(WAITING)?.firstEnd ?? Infinity;
      if (task === undefined && waitsFrom < invoked && completed < claim.invoked)
        report('missing', `${agent} is not given ${thing.name}, which waits`, operation, claim);
      if (claim.agent === agent && task !== thing.name && claim.completed < invoked && completed < thing.leftFrom)
        report('too much work', `${agent} has ${thing.name} and gets ${task ?? 'nothing'}`, claim, operation);
    }
  }
}

function checkPositions(history: readonly Operation[], report: Report): void {
  const named = history.filter(({ position, completed }) => position !== undefined && completed < Infinity);
  const entries = (some: readonly Operation[]) =>
    some.map((operation) => ({ at: operation.completed, value: operation.position as number, operation }));
  const reached = new Highest(entries(named));
  for (const operation of named) {
    const { position = 0, atLeast = 0 } = operation;
    if (position < atLeast) report('position', `${position} was shown, not ${atLeast}`, operation);
    const earlier = isCurrent(operation) ? reached.before(operation.invoked) : undefined;
    if (earlier && earlier.value > position)
      report('position', `${position} after ${earlier.value}`, earlier.operation, operation);
  }
  const eventual = named.filter(({ kind, source }) => kind === 'eventual' && source !== undefined);
  for (const source of new Set(eventual.map((operation) => operation.source))) {
    const some = eventual.filter((operation) => operation.source === source);
    const shown = new Highest(entries(some));
    for (const operation of some) {
      const earlier = shown.before(operation.invoked);
      if (earlier && earlier.value > (operation.position ?? 0))
        report('position', `${operation.position} after ${earlier.value}, of ${source}`, earlier.operation, operation);
    }
  }
}

/** One line for each of its operations. */
export const described = ({ kind, about, operations }: Violation): string =>
  [
    `${kind}: ${about}`,
    ...operations.map(({ what, invoked, completed, position, kind: how }) => {
      const end = completed === Infinity ? 'unknown' : completed.toFixed(1);
      return `  ${invoked.toFixed(1)}–${end} ms ${what} (${how}${position === undefined ? '' : `, position ${position}`})`;
    }),
  ].join('\n');

/** All writes of the objects that violations are about, and the refusals that say something of them. */
export function writesBehind(violations: readonly Violation[], history: readonly Operation[]): string[] {
  const about = new Set(violations.flatMap(({ about: text }) => /^(agent|task) \w+/.exec(text)?.[0] ?? []).slice(0, 3));
  return history
    .filter(({ writes, exists, absent }) => [writes?.[0], exists, absent].some((one) => about.has(one ?? '')))
    .slice(0, 60)
    .map((operation) =>
      described({ kind: 'behind it', about: operation.exists ?? operation.absent ?? '', operations: [operation] }),
    );
}
