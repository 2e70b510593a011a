/** CSV (RFC 4180) whose texts a spreadsheet takes for texts. Every export goes through here. */
// Not csv-stringify: its guard (`escape_formulas`) lets a formula behind a blank through, and without it only quoting is left.

/** Spreadsheets run a text that begins like this as a formula. */
const FORMULA = /^\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|^[\t\r\n]/;

const guarded = (text: string): string => (FORMULA.test(text) ? `'${text}` : text);

/** A text as a field, quoted. */
export const csvText = (text: string): string => `"${guarded(text).replaceAll('"', '""')}"`;

/** One line without its end. Texts are quoted where they have to be. */
export const csvLine = (cells: readonly (string | number | null | undefined)[]): string =>
  cells
    .map((cell) => (typeof cell !== 'string' ? (cell ?? '') : /[",\r\n]/.test(cell) ? csvText(cell) : guarded(cell)))
    .join(',');
