/**
 * What may be stored: depth, size and characters of every JSON value, in one place. The contract's schemas ask here, so
 * that a caller is told which field to change, and the event store asks here for every event, so that none reaches the
 * log that a read model could not write or a reader could not walk through.
 */

export interface Bounds {
  /** Levels of objects and lists inside each other; a flat object has one. */
  readonly depth: number;
  /** Characters as JSON, with numbers written out: 1e300 counts as 301, which is what PostgreSQL makes of it. */
  readonly characters: number;
  /** Texts are not looked at: passwords may have any character, they are hashed. */
  readonly anyText?: true;
}

/** A value of a client, such as an agent's config. */
export const VALUE_BOUNDS: Bounds = { depth: 64, characters: 200_000 };

/** The whole body of a request: values, and what is around them. Its size is bounded in bytes, where it is received. */
export const BODY_BOUNDS: Bounds = { depth: 100, characters: Number.POSITIVE_INFINITY, anyText: true };

/** The data of an event. An append has a bound in bytes besides (`MAX_APPEND_BYTES`). */
export const EVENT_BOUNDS: Bounds = { depth: VALUE_BOUNDS.depth + 8, characters: 2_000_000 };

/**
 * PostgreSQL cannot hold the character U+0000 nor half of a surrogate pair. JSON can say both, the log would keep them,
 * and every read model would stop at the event.
 */
const UNSTORABLE = /[\0\p{Surrogate}]/u;

export const UNSTORABLE_TEXT = 'must not contain the character U+0000 or half of a surrogate pair';

export const isStorableText = (text: string): boolean => !UNSTORABLE.test(text);

export interface StorageProblem {
  readonly kind: 'depth' | 'size' | 'characters';
  /** Where it is, cut off where it gets long; empty: the value as a whole. */
  readonly path: readonly string[];
  /** What is wrong, as the rest of a sentence about the place. */
  readonly reason: string;
}

/** An object or a list that is being walked through. */
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
 * The first thing that keeps a JSON value from being stored; undefined when nothing does. Walks without recursion, so
 * no depth is too much for it, and stops at the first finding.
 */
export function storageProblem(value: unknown, { depth, characters, anyText }: Bounds): StorageProblem | undefined {
  const above: Open[] = [];
  let left = characters;
  let current = value;
  /** Counts a text; false when it cannot be stored. */
  const take = (text: string): boolean => {
    if (anyText) return true;
    left -= lengthOf(text);
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
    } else if (current !== undefined) left -= typeof current === 'number' ? digitsOf(current) : String(current).length;
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

/** Quotes and escapes included. */
const lengthOf = (text: string): number => JSON.stringify(text).length;

/** Characters of a number without an exponent. */
function digitsOf(number: number): number {
  const text = String(number);
  const [digits = '', exponent] = text.split('e');
  return exponent === undefined ? text.length : digits.length + Math.abs(Number(exponent));
}

/** Shown of a path: the front of it, and of each key. */
const SHOWN_KEYS = 6;
const SHOWN_CHARACTERS = 60;

function pathOf(above: readonly Open[]): string[] {
  const shown = above
    .slice(0, SHOWN_KEYS)
    .map(({ keys, at }) => (keys ? (keys[at - 1] ?? '') : String(at - 1)))
    .map((key) => (key.length > SHOWN_CHARACTERS ? `${frontOf(key, SHOWN_CHARACTERS)}…` : key));
  return above.length > SHOWN_KEYS ? [...shown, '…'] : shown;
}

/** The front of a text that may be long, without half of a surrogate pair at its end. */
export const frontOf = (text: string, characters: number): string =>
  text.slice(0, characters).replace(/\p{Surrogate}$/u, '');
