/** Case folding that is the same on every store: texts and search texts are folded alike. */

const ASCII = /^[\0-\x7f]*$/;

/** The only letter whose lower case has more characters: a letter and a sign. */
const DOT = '\u0307';
const DOTTED = { capital: '\u0130', small: `i${DOT}` };

const loweredCharacter = (character: string): string => {
  const one = character.toLowerCase();
  return one.length === character.length ? one : character;
};

/** In composed form (NFC) and lower case, so that texts which differ only in that are the same. */
export function folded(text: string): string {
  if (ASCII.test(text)) return text.toLowerCase();
  return Array.from(text.normalize('NFC'), loweredCharacter).join('').replaceAll(DOTTED.small, DOTTED.capital);
}

/** A pattern for SQL's LIKE that matches texts containing this one; `%`, `_` and `\` match themselves. */
export const containing = (text: string): string => `%${text.replace(/[\\%_]/g, '\\$&')}%`;

/** The capital letters of each lower-case one. */
let capitals: ReadonlyMap<string, string> | undefined;

function capitalsOf(character: string): string {
  if (!capitals) {
    const found = new Map<string, string>();
    for (let code = 0x41; code <= 0x1_ff_ff; code++) {
      if (code >= 0xd800 && code < 0xe000) continue;
      const capital = String.fromCodePoint(code);
      const lower = loweredCharacter(capital);
      if (lower !== capital) found.set(lower, `${found.get(lower) ?? ''}${capital}`);
    }
    capitals = found;
  }
  return capitals.get(character) ?? '';
}

/**
 * A regular expression of PostgreSQL that matches texts in composed form whose folded form contains that of this text. It
 * names all spellings of a letter, because servers lower letters by their locale.
 */
export const foldedPattern = (text: string): string =>
  Array.from(folded(text), (character) => {
    if (character === DOTTED.capital) return `(?:${DOTTED.capital}|${DOTTED.small})`;
    if (character === 'i') return `[iI](?!${DOT})`;
    if (character === DOT) return `(?<![iI])${DOT}`;
    const others = capitalsOf(character);
    if (others !== '') return `[${character}${others}]`;
    return /[\\.[\]{}()*+?^$|]/.test(character) ? `\\${character}` : character;
  }).join('');
