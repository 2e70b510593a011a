/** The script that writes the data of look-alikes, and the data as they are. */
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { skeleton } from '../../shared/confusables.ts';

const FOLDER = new URL('../../../shared/', import.meta.url);
const { dataOf } = (await import(new URL('confusables.build.mjs', FOLDER).href)) as {
  readonly dataOf: (text: string) => string;
};

describe('confusables', () => {
  it('are written from the lines of Unicode', () => {
    const text = [
      '# Version: 17.0.0',
      '0441 ;\t0063 ;\tMA\t# ( с → c ) CYRILLIC SMALL LETTER ES',
      '0021 ;\t01C3 ;\tMA',
      '03F2 ;\t0063 ;\tMA\t#',
      '0061A ;\t0061 02BE ;\tMA',
      '',
    ].join('\n');
    expect(JSON.parse(dataOf(text))).to.deep.equal({ version: '17.0.0', groups: ['1c3 21;61+2be 61a;63 441 3f2;'] });
    expect(() => dataOf('{}')).to.throw('this is not confusables.txt of Unicode');
  });
  it('are in the form that the script writes', () => {
    const written = readFileSync(new URL('confusables.json', FOLDER), 'utf8');
    const { version, groups } = JSON.parse(written) as { version: string; groups: string[] };
    const lines = groups
      .join('')
      .split(';')
      .flatMap((group) => {
        const [look = '', ...sources] = group.split(' ');
        return sources.map((source) => `${source} ; ${look.replaceAll('+', ' ')} ; MA`);
      });
    expect(lines).to.have.length(6565);
    expect(dataOf([`# Version: ${version}`, ...lines].join('\n'))).to.equal(written);
  });
  it('give texts that look the same one skeleton', () => {
    expect(skeleton('раураl')).to.equal(skeleton('paypal'));
    expect(skeleton('admin')).not.to.equal(skeleton('admit'));
  });
});
