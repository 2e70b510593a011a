/**
 * What may be stored: the limits on depth, size and characters of every JSON value. The contract's schemas use them, so
 * that the error names the field, and the event store checks every event, so that the log never contains a value that a
 * read model could not store or a reader could not traverse.
 */

export interface Bounds {
  /** Nesting levels of objects and lists; a flat object has one. */
  readonly depth: number;
  /** Characters as JSON, with numbers written out: 1e300 counts as 301, because that is how PostgreSQL stores it. */
  readonly characters: number;
  /** Texts are not checked: passwords may contain any character, because they are hashed. */
  readonly anyText?: true;
}

/** A value from a client, such as an agent's config. */
export const VALUE_BOUNDS: Bounds = { depth: 64, characters: 200_000 };

/** The whole body of a request: values and the objects around them. Its size in bytes is limited on receipt. */
export const BODY_BOUNDS: Bounds = { depth: 100, characters: Number.POSITIVE_INFINITY, anyText: true };

/** The data of an event. Appends are also limited in bytes (`MAX_APPEND_BYTES`). */
export const EVENT_BOUNDS: Bounds = { depth: VALUE_BOUNDS.depth + 8, characters: 2_000_000 };

/**
 * PostgreSQL can store neither the character U+0000 nor lone surrogates. JSON can contain both, so the log would accept
 * them, and every read model would get stuck at the event.
 */
const UNSTORABLE = /[\0\p{Surrogate}]/u;

export const UNSTORABLE_TEXT = 'must not contain the character U+0000 or a lone surrogate';

/** Whether a JSON value is an object. */
export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const isStorableText = (text: string): boolean => !UNSTORABLE.test(text);

export interface StorageProblem {
  readonly kind: 'depth' | 'size' | 'characters';
  /** Path to the problem, shortened if it is long; empty: the whole value. */
  readonly path: readonly string[];
  /** The problem, as the end of a sentence about that place. */
  readonly reason: string;
}

/** An object or a list that is being traversed. */
interface Open {
  readonly keys: readonly string[] | undefined;
  readonly values: readonly unknown[];
  at: number;
}

const open = (value: object): Open => ({
  keys: Array.isArray(value) ? undefined : Object.keys(value),
  values: Array.isArray(value) ? value : Object.values(value),
  at: 0,
});

/**
 * The first reason why a JSON value cannot be stored; undefined when it can. Does not recurse, so it can handle any
 * depth, and stops at the first problem.
 */
export function storageProblem(value: unknown, bounds: Bounds): StorageProblem | undefined {
  // Serialising every text only to measure it took most of the time; nearly all values are far below the limit.
  const rough = firstProblem(value, bounds, roughly);
  return rough?.kind === 'size' ? firstProblem(value, bounds, exactly) : rough;
}

/** Length of texts and numbers as JSON, characters. */
interface Measures {
  text(text: string): number;
  number(number: number): number;
}

function firstProblem(
  value: unknown,
  { depth, characters, anyText }: Bounds,
  measures: Measures,
): StorageProblem | undefined {
  const above: Open[] = [];
  let left = characters;
  let current = value;
  /** Counts a text; false when it cannot be stored. */
  const take = (text: string): boolean => {
    if (anyText) return true;
    left -= measures.text(text);
    return isStorableText(text);
  };
  const unstorable = (): StorageProblem => ({ kind: 'characters', path: pathOf(above), reason: UNSTORABLE_TEXT });
  for (;;) {
    if (typeof current === 'string') {
      if (!take(current)) return unstorable();
    } else if (typeof current === 'object' && current !== null) {
      if (above.length >= depth) {
        return { kind: 'depth', path: pathOf(above), reason: `must not be nested more than ${depth} levels deep` };
      }
      const inner = open(current);
      // Brackets, and a comma after each entry but the last.
      left -= 2 + Math.max(inner.values.length - 1, 0);
      for (const key of inner.keys ?? []) {
        if (!take(key)) return unstorable();
        left -= 1;
      }
      above.push(inner);
    } else if (current !== undefined)
      left -= typeof current === 'number' ? measures.number(current) : String(current).length;
    if (left < 0) {
      const reason = `must have at most ${characters} characters as JSON, with numbers written out`;
      return { kind: 'size', path: [], reason };
    }
    let last = above.at(-1);
    while (last && last.at >= last.values.length) {
      above.pop();
      last = above.at(-1);
    }
    if (!last) return undefined;
    current = last.values[last.at++];
  }
}

/** Length of a number written without an exponent, characters. */
function digitsOf(number: number): number {
  const text = String(number);
  const [digits = '', exponent] = text.split('e');
  return exponent === undefined ? text.length : digits.length + Math.abs(Number(exponent));
}

/** With quotes and escapes. */
const exactly: Measures = { text: (text) => JSON.stringify(text).length, number: digitsOf };

/** An upper bound: a character becomes at most six, and a number has a sign, 309 digits, or `0.` and 340 digits. */
const roughly: Measures = { text: (text) => 6 * text.length + 2, number: () => 345 };

/** How much of a path is shown: its first keys, and the beginning of each. */
const SHOWN_KEYS = 6;
const SHOWN_CHARACTERS = 60;

function pathOf(above: readonly Open[]): string[] {
  const shown = above
    .slice(0, SHOWN_KEYS)
    .map(({ keys, at }) => (keys ? (keys[at - 1] ?? '') : String(at - 1)))
    .map((key) => (key.length > SHOWN_CHARACTERS ? `${frontOf(key, SHOWN_CHARACTERS)}…` : key));
  return above.length > SHOWN_KEYS ? [...shown, '…'] : shown;
}

/** A text with characters that cannot be stored replaced. */
export const storableText = (text: string): string => text.replace(/[\0\p{Surrogate}]/gu, '\uFFFD');

/** The beginning of a text, without splitting a surrogate pair. */
export const frontOf = (text: string, characters: number): string =>
  text.slice(0, characters).replace(/\p{Surrogate}$/u, '');
