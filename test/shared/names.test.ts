import { expect } from 'chai';
import fc from 'fast-check';
import { SYSTEM_ACTORS } from '../../shared/identity.ts';
import { agentNameFault, cleanDisplayName, displayNameFault, textFault, userNameFault } from '../../shared/names.ts';

const HIDDEN = [
  ['zero width space', '\u200b'],
  ['zero width joiner', '\u200d'],
  ['right-to-left mark', '\u200f'],
  ['right-to-left override', '\u202e'],
  ['isolate', '\u2066'],
  ['soft hyphen', '\u00ad'],
  ['byte order mark', '\ufeff'],
  ['variation selector', '\ufe0f'],
  ['tag', '\u{e0041}'],
  ['Hangul filler', '\u3164'],
  ['blank Braille pattern', '\u2800'],
  ['private use', '\ue000'],
  ['line feed', '\n'],
  ['escape', '\u001b'],
  ['NUL', '\0'],
  ['line separator', '\u2028'],
  ['half of a surrogate pair', '\ud800'],
] as const;
const GOOD = ['ann', 'Ann Lee', 'ann.lee@example.com', 'José', '李雷', 'Ноа', 'จำ', 'o’neil', 'scout-7_b', 'ka:1', 'α'];

describe('names', () => {
  it('of people and agents from all over the world are allowed', () => {
    for (const name of GOOD) {
      expect([name, userNameFault(name)]).to.deep.equal([name, undefined]);
      expect([name, agentNameFault(name)]).to.deep.equal([name, undefined]);
      expect([name, displayNameFault(name)]).to.deep.equal([name, undefined]);
    }
    for (const name of ['scheduler', 'proxy', 'build™', 'bot 🤖'])
      expect(agentNameFault(name), name).to.equal(undefined);
  });

  for (const [what, character] of HIDDEN) {
    it(`must not contain ${what} anywhere`, () => {
      for (const name of [`${character}ann`, `an${character}n`, `ann${character}`]) {
        for (const fault of [userNameFault, agentNameFault, displayNameFault, textFault]) {
          expect(fault(name), JSON.stringify(name)).to.include('invisible');
        }
        expect(cleanDisplayName(name)).to.match(/^an ?n$/);
      }
    });
  }

  it('of the service itself are reserved, however they are written', () => {
    const spellings = (name: string) => [
      name,
      name.toUpperCase(),
      name.replace(' ', '-'),
      name.replace(' ', '_'),
      name.replace(/[a-z]/g, (letter) => String.fromCodePoint(letter.charCodeAt(0) + 0xfee0)),
    ];
    for (const name of [...SYSTEM_ACTORS, 'api', 'API Access', 'anonymous', 'system']) {
      for (const spelling of spellings(name)) expect(userNameFault(spelling), spelling).to.be.a('string');
    }
    for (const name of ['api', 'API Access', 'anonymous', 'System', 'agent:ka', 'AGENT: ka', 'ａｇｅｎｔ：ka']) {
      for (const fault of [userNameFault, agentNameFault, displayNameFault]) {
        expect(fault(name), name).to.include('the service itself');
      }
    }
    for (const name of ['apis', 'agents', 'agent', 'my api', 'agent-7']) {
      expect(userNameFault(name), name).to.equal(undefined);
    }
  });

  it('are written in one script, or in those that Chinese, Japanese and Korean mix', () => {
    const whole = ['аре', 'αβγ', 'Ελένη 2', 'דוד', 'ᎣᏏᏲ', 'ქეთი', 'สมชาย', 'علي', 'मीरा', 'Zoë', '7-1', 'Анна_2'];
    const mixed = ['田中さくら', '田中サクラ', '翻訳bot', '김金', '李ㄅ', 'GPT助手', 'さくら-サーバー'];
    for (const name of [...whole, ...mixed]) {
      expect([name, userNameFault(name), agentNameFault(name)]).to.deep.equal([name, undefined, undefined]);
    }
    const lookAlikes = [
      'аdmin',
      'аnn',
      'scοut',
      'Αnn',
      'ann Ноа',
      'дavid',
      'α-bot',
      'Ꭺnn',
      'ᎣβᏏ',
      'さくдら',
      '김さ',
      'ㄅ김',
    ];
    for (const name of lookAlikes) {
      expect(userNameFault(name), name).to.include('mix scripts');
      expect(agentNameFault(name), name).to.include('mix scripts');
    }
  });

  it('have one spelling', () => {
    for (const name of ['a  b', ' a', 'a ', 'a\u00a0b', 'a\u3000b']) {
      expect(userNameFault(name), name).to.include('spaces');
      expect(agentNameFault(name), name).to.include('spaces');
    }
    expect(agentNameFault('Jose\u0301')).to.include('NFC');
    expect(userNameFault('ａdmin')).to.include('plain characters: admin');
    expect(userNameFault('ﬁnn')).to.include('finn');
  });

  it('shown beside others may need joiners: Persian, Hindi, emoji', () => {
    for (const name of ['می\u200cخواهم', 'क्\u200dष', '👩\u200d💻', '❤\ufe0f Ann', '👩🏽\u200d🚒']) {
      expect([name, displayNameFault(name)]).to.deep.equal([name, undefined]);
      expect(userNameFault(name), name).to.include('invisible');
    }
    for (const name of ['Ad\u200dmin', 'Ad\u200cmin', 'А\u200dл', 'می\u200c']) {
      expect(displayNameFault(name), JSON.stringify(name)).to.include('invisible');
    }
  });

  it('from elsewhere are cleaned up', () => {
    expect(cleanDisplayName('  Ann\u202e \u200b Lee\n')).to.equal('Ann Lee');
    expect(cleanDisplayName('Jose\u0301')).to.equal('José');
    for (const name of ['', ' \u200b ', 'api', 'agent:ka']) expect(cleanDisplayName(name), name).to.equal(null);
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 40 }), (name) => {
        const clean = cleanDisplayName(name);
        expect(clean === null || displayNameFault(clean) === undefined).to.equal(true);
      }),
    );
  });

  it('that are allowed and different also look different, except for their case', () => {
    const piece = fc.constantFrom(
      'a',
      'A',
      'é',
      'e\u0301',
      '\u200b',
      '\u202e',
      ' ',
      '\u00a0',
      'ａ',
      'ﬁ',
      'fi',
      '2',
      '²',
    );
    fc.assert(
      fc.property(
        fc.array(piece, { minLength: 1, maxLength: 4 }),
        fc.array(piece, { minLength: 1, maxLength: 4 }),
        (a, b) => {
          const [one, two] = [a, b].map((parts) => parts.join('').normalize('NFC')) as [string, string];
          if (userNameFault(one) !== undefined || userNameFault(two) !== undefined || one === two) return;
          const seen = (name: string) => name.normalize('NFKC').replace(/\p{Default_Ignorable_Code_Point}/gu, '');
          expect(seen(one)).not.to.equal(seen(two));
        },
      ),
      { numRuns: 2_000 },
    );
  });
});
