/** CSV (RFC 4180) with texts that a spreadsheet cannot run as formulas. Every export goes through here. */
// Not csv-stringify: its guard (`escape_formulas`) misses a formula after a blank; without it there is only quoting.

/**
 * Where spreadsheets begin a cell that they run as a formula: at the start of a text, and after a semicolon, a tab or a
 * line break in it, because a spreadsheet with another separator (Excel in German: the semicolon) splits a quoted text
 * there.
 */
const FORMULA = /(?<=^|[;\t\n]|\r(?!\n))(?=[^\S\t\r\n]*[=+\-@\uff1d\uff0b\uff0d\uff20])|^(?=[\t\r\n])/g;

const guarded = (text: string): string => text.replaceAll(FORMULA, "'");

/** Lets Excel read a file as UTF-8. */
const BYTE_ORDER_MARK = '\ufeff';

/** The text of a file, after a byte order mark if that is wanted. */
export async function* marked(text: AsyncIterable<string>, bom: boolean): AsyncGenerator<string> {
  // With the first piece, which is read before the response begins.
  let mark = bom ? BYTE_ORDER_MARK : '';
  for await (const piece of text) {
    yield mark + piece;
    mark = '';
  }
  if (mark !== '') yield mark;
}

/** A text as a quoted field. */
export const csvText = (text: string): string => `"${guarded(text).replaceAll('"', '""')}"`;

/** One line without its line end. Texts are quoted where necessary. */
export const csvLine = (cells: readonly (string | number | null | undefined)[]): string =>
  cells
    .map((cell) => (typeof cell !== 'string' ? (cell ?? '') : /[",\r\n]/.test(cell) ? csvText(cell) : guarded(cell)))
    .join(',');
