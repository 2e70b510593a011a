/** Fields of CSV: quoted where they have to be, and never a formula. */
import { expect } from 'chai';
import { csvLine, csvText, marked } from '../../api/http/csv.ts';

async function* textParts() {
  yield 'a,b';
}
async function textOf(parts: AsyncIterable<string>): Promise<string> {
  let whole = '';
  for await (const part of parts) whole += part;
  return whole;
}

describe('CSV output', () => {
  it('escapes formulas so that no spreadsheet runs them, and keeps their text visible', () => {
    for (const text of [
      '=1+1',
      '+1',
      '-1',
      '@x',
      ' =1',
      '\u00a0=1',
      '\ufeff=1',
      '\uff1d1',
      '\uff0b1',
      '\uff0d1',
      '\uff20x',
    ])
      expect([csvText(text), csvLine([text])], JSON.stringify(text)).to.deep.equal([`"'${text}"`, `'${text}`]);
    for (const text of ['\tx', '\rx', '\nx']) expect(csvText(text), JSON.stringify(text)).to.equal(`"'${text}"`);
    for (const separator of [';', '\t', '\n', '\r\n', '; '])
      expect(csvText(`x${separator}=1+1`), JSON.stringify(separator)).to.match(/^"x(;|\t|\r?\n)' ?=1\+1"$/);
    expect(csvLine(['a;b;@c;-d'])).to.equal("a;b;'@c;'-d");
    for (const text of ['plain', 'a;b', 'a\tb', 'a=1', '1-1', '', 'é'])
      expect([csvText(text), csvLine([text])], text).to.deep.equal([`"${text}"`, text]);
  });

  it('begins with a byte order mark on request', async () => {
    const all = async (bom: boolean) => textOf(marked(textParts(), bom));
    expect([await all(true), await all(false)]).to.deep.equal(['\ufeffa,b', 'a,b']);
  });

  it('quotes delimiters and line breaks, and leaves numbers alone', () => {
    expect(csvLine(['a,b', 'c"d', 'e\nf', 'g\rh', -2, 0.5, null, undefined])).to.equal(
      '"a,b","c""d","e\nf","g\rh",-2,0.5,,',
    );
    expect(csvLine(['=1,2'])).to.equal('"\'=1,2"');
  });
});
