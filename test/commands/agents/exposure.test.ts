/** Screening of credentials in texts: what each pattern hits and just misses. */
import { expect } from 'chai';
import { findSecrets, SEARCHED_LENGTH } from '../../../commands/agents/exposure.ts';
import { HEX48, jwt, LETTERS, SECRET_CASES } from '../../support/screening-cases.ts';

describe('screening: credentials', () => {
  for (const { type, hits, misses } of SECRET_CASES) {
    describe(type, () => {
      for (const text of hits) {
        it(`finds ${text.slice(0, 12)}…`, () => {
          expect(findSecrets(`see ${text} for it`)).to.deep.equal({ count: 1, types: [type] });
        });
      }
      for (const text of misses) {
        it(`leaves ${text.slice(0, 24)} alone`, () => expect(findSecrets(text).types).not.to.include(type));
      }
    });
  }

  it('counts every credential and names each type once', () => {
    const [one, two] = ['AKIA'.concat('ABCDEFGHIJ234567'), 'AKIA'.concat('ABCDEFGHIJ234568')];
    expect(findSecrets(`${one} ${two} ${jwt}`)).to.deep.equal({ count: 3, types: ['aws_access_key', 'jwt'] });
  });

  it('counts a credential that fits several patterns once, as the most specific', () => {
    expect(findSecrets(`password=${'ghp'.concat('_', LETTERS)} next-word`)).to.deep.equal({
      count: 1,
      types: ['github_token'],
    });
    expect(findSecrets(`Authorization: Bearer ${jwt}`)).to.deep.equal({ count: 1, types: ['jwt'] });
  });

  it('treats a text as an assignment if it is one environment line or one header', () => {
    for (const text of [
      'PASSWORD='.concat('short'),
      'export API_KEY='.concat('x'),
      'X-Api-Key: '.concat('abc'),
      'PIN=1234',
    ])
      expect(findSecrets(text).types, text).to.deep.equal(['credential_line']);
    for (const text of [
      'PASSWORD=$OTHER',
      'LOG_LEVEL=debug',
      'SPINNING=1234',
      'the PIN=1234 of',
      'SORT_KEY=a1',
      'MAX_TOKENS=5',
    ])
      expect(findSecrets(text).types, text).to.deep.equal([]);
  });

  it('finds nothing in text without credentials', () => {
    expect(findSecrets('rotate the staging key, then set the password; changed? no')).to.deep.equal({
      count: 0,
      types: [],
    });
    expect(findSecrets('')).to.deep.equal({ count: 0, types: [] });
  });

  it('scans only the first 200,000 characters', () => {
    const key = ` ${'mca'.concat('_', HEX48)}`;
    expect(findSecrets(' '.repeat(SEARCHED_LENGTH - key.length) + key).count).to.equal(1);
    expect(findSecrets(' '.repeat(SEARCHED_LENGTH) + key).count).to.equal(0);
  });
});
