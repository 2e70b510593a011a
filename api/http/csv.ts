/** CSV (RFC 4180) with texts that a spreadsheet cannot run as formulas. Every export goes through here. */
// Not csv-stringify: its guard (`escape_formulas`) misses a formula after a blank; without it there is only quoting.

/** Spreadsheets run a text that begins like this as a formula. */
const FORMULA = /^\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|^[\t\r\n]/;

const guarded = (text: string): string => (FORMULA.test(text) ? `'${text}` : text);

/** A text as a quoted field. */
export const csvText = (text: string): string => `"${guarded(text).replaceAll('"', '""')}"`;

/** One line without its line end. Texts are quoted where necessary. */
export const csvLine = (cells: readonly (string | number | null | undefined)[]): string =>
  cells
    .map((cell) => (typeof cell !== 'string' ? (cell ?? '') : /[",\r\n]/.test(cell) ? csvText(cell) : guarded(cell)))
    .join(',');
