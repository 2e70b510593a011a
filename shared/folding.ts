/** Texts without regard to case, the same on every store: what is searched and what is searched for are folded alike. */

const ASCII = /^[\0-\x7f]*$/;

/** In lower case, letter by letter, so that every character stays in its place; one that would get longer stays. */
export function folded(text: string): string {
  if (ASCII.test(text)) return text.toLowerCase();
  let lower = '';
  for (const character of text) {
    const one = character.toLowerCase();
    lower += one.length === character.length ? one : character;
  }
  return lower;
}

/** A pattern of SQL's LIKE for texts that contain this one; `%`, `_` and `\` stand for themselves. */
export const containing = (text: string): string => `%${text.replace(/[\\%_]/g, '\\$&')}%`;
