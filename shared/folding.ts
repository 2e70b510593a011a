/** Case folding that is the same on every store: texts and search texts are folded alike. */

const ASCII = /^[\0-\x7f]*$/;

/** In lower case, character by character, so that each keeps its place; one that would become longer stays. */
export function folded(text: string): string {
  if (ASCII.test(text)) return text.toLowerCase();
  let lower = '';
  for (const character of text) {
    const one = character.toLowerCase();
    lower += one.length === character.length ? one : character;
  }
  return lower;
}

/** A pattern for SQL's LIKE that matches texts containing this one; `%`, `_` and `\` match themselves. */
export const containing = (text: string): string => `%${text.replace(/[\\%_]/g, '\\$&')}%`;
