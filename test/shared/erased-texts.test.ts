/** Personal texts in stored replies of other services. */
import { expect } from 'chai';
import fc from 'fast-check';
import { ERASED, erasedIn, erasing } from '../../shared/erased-texts.ts';
import { runs } from '../support/runs.ts';

const NAME = 'Zoë O\'Hara "Z"';
const MAIL = 'zoe.ohara@example.org';
const erase = erasing([NAME, MAIL]);

describe('erased texts', () => {
  const forms: Readonly<Record<string, string>> = {
    plain: NAME,
    'in another case': NAME.toUpperCase(),
    decomposed: NAME.normalize('NFD'),
    'in JSON': JSON.stringify(NAME).slice(1, -1),
    'in JSON within JSON': JSON.stringify(JSON.stringify(NAME).slice(1, -1)).slice(1, -1),
    'in JSON of ASCII': 'Zo\\u00eb O\\u0027Hara \\"Z\\"',
    'in JSON of ASCII, upper case': 'ZO\\u00CB O\\u0027HARA \\u0022Z\\u0022',
    'in a URL': encodeURIComponent(NAME),
    'in a form': String(new URLSearchParams({ name: NAME })).slice('name='.length),
    'in a URL, lower case': encodeURIComponent(NAME).toLowerCase(),
    'in a URL within a URL': encodeURIComponent(encodeURIComponent(NAME)),
    'in HTML': 'Zo&#235; O&apos;Hara &quot;Z&quot;',
    'in HTML, hexadecimal': 'Zo&#xEB; O&#x27;Hara &#x22;Z&#x22;',
    'an address': MAIL,
    'an address in a URL': encodeURIComponent(MAIL),
    'an address in another case': 'Zoe.OHara@Example.ORG',
  };
  for (const [how, form] of Object.entries(forms))
    it(`are masked ${how}`, () => {
      expect(erase(`{"got":"${form}"} end`)).to.equal(`{"got":"${ERASED}"} end`);
    });

  it('are masked in base64', () => {
    const encoded = Buffer.from(JSON.stringify({ to: MAIL })).toString('base64');
    expect(erase(`data: ${encoded}`)).to.equal(`data: ${ERASED}`);
    expect(erase('data: QUJDREVGR0hJSktM')).to.equal('data: QUJDREVGR0hJSktM');
  });

  it('are masked where the reply was cut off within them', () => {
    expect(erase('hello Zoë O...')).to.equal(`hello ${ERASED}...`);
    expect(erase(`${encodeURIComponent('Zoë O').slice(0, 8)}...`)).to.equal(`${ERASED}...`);
    expect(erase('hello Zo...')).to.equal('hello Zo...');
    expect(erase('Zoë O, and others')).to.equal('Zoë O, and others');
  });

  it('of a few characters are found as whole words, of other scripts anywhere', () => {
    expect(erasing(['ed'])('{"ed":"edited by Ed"}')).to.equal(`{"${ERASED}":"edited by ${ERASED}"}`);
    expect(erasing(['小明'])('你好小明!')).to.equal(`你好${ERASED}!`);
  });

  it('replace a reply that cannot be searched as a whole, and leave one without them as it is', () => {
    expect(erase('\u001f\uFFFD\b compressed')).to.equal(ERASED);
    const other = 'nothing of this\r\n\tpe\u0301rson';
    expect(erase(other)).to.equal(other);
    expect(erasing(['', ' '])('as it is')).to.equal('as it is');
  });

  it('are masked in the values of JSON, whose keys and numbers stay', () => {
    const value = { err: { message: `to ${MAIL}`, code: 7 }, list: [NAME, null, true] };
    expect(erasedIn(value, erase)).to.deep.equal({
      err: { message: `to ${ERASED}`, code: 7 },
      list: [ERASED, null, true],
    });
  });

  it('leave nothing of any text in the encodings that replies use', () => {
    const texts = fc
      .string({ minLength: 1, maxLength: 20, unit: 'grapheme' })
      .filter((text) => /[\p{L}\p{N}]/u.test(text));
    fc.assert(
      fc.property(texts, (text) => {
        for (const form of [text, JSON.stringify(text).slice(1, -1), encodeURIComponent(text)]) {
          const left = erasing([text])(`<${form}>`);
          expect(left, form).to.be.oneOf([`<${ERASED}>`, ERASED]);
        }
      }),
      { numRuns: runs(100, 300) },
    );
  });
});
