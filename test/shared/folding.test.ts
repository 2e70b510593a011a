/** Texts that differ only in letter case or in their Unicode form are found by each other. */
import { expect } from 'chai';
import fc from 'fast-check';
import { folded, foldedPattern } from '../../shared/folding.ts';

describe('folding', () => {
  it('ignores letter case and the form of accents, and keeps everything else', () => {
    for (const [one, other] of [
      ['ÉCOLE', 'école'],
      ['e\u0301cole', 'École'],
      ['İzmir', 'i\u0307zmir'],
      ['I\u0307zmir', 'İZMIR'],
      ['ОЛЬГА', 'ольга'],
      ['ΣΊΣΥΦΟΣ', 'σίσυφοσ'],
    ] as const)
      expect(folded(one), one).to.equal(folded(other));
    expect(folded('Straße 小明 👍')).to.equal('straße 小明 👍');
    expect(folded('Izmir')).not.to.equal(folded('İzmir'));
  });

  it('gives patterns that match the same texts, for characters of patterns as well', () => {
    const letters = fc.constantFrom(
      ...'aAiIİéÉe\u0301\u0307σςΣßẞkK.*+?^$()[]{}|\\-_%/ 小',
      '👍',
      'i\u0307',
      '**',
      '(?i)',
    );
    const text = fc.array(letters, { maxLength: 6 }).map((parts) => parts.join(''));
    fc.assert(
      fc.property(text, text, (whole, part) => {
        const found = new RegExp(foldedPattern(part), 'u').test(whole.normalize('NFC'));
        expect(found, JSON.stringify([whole, part])).to.equal(folded(whole).includes(folded(part)));
      }),
      { numRuns: 2_000, examples: [['i\u0307', '\u0307']] },
    );
  });
});
