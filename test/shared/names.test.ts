import { expect } from 'chai';
import fc from 'fast-check';
import { SYSTEM_ACTORS } from '../../shared/identity.ts';
import {
  agentNameFault,
  cleanDisplayName,
  displayNameFault,
  nameKeys,
  textFault,
  userNameFault,
} from '../../shared/names.ts';
import { runs } from '../support/runs.ts';

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
    for (const name of ['proxy', 'build™', 'bot 🤖']) expect(agentNameFault(name), name).to.equal(undefined);
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

  it('of the service itself are reserved, in any spelling', () => {
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

  it('of the gatekeeper, the scheduler and the service are reserved, and so are look-alikes', () => {
    const lookAlikes = [
      ...['aegis', 'Aegis', 'AEGIS', 'AEGlS', '\u0430egis', 'aeg\u0456s', 'ａｅｇｉｓ', '𝐚𝐞𝐠𝐢𝐬', 'a\u200begis'],
      ...['scheduler', 'Scheduler', 'schedu1er', '\u0455cheduler', 'system', '\u0455\u0443stem'],
      ...['api', 'APl', '\u0430pi'],
      ...['github-sync', 'GitHub Sync'],
    ];
    for (const name of lookAlikes) {
      for (const fault of [userNameFault, agentNameFault, displayNameFault]) {
        expect(fault(name), JSON.stringify(name)).to.be.a('string');
      }
    }
    for (const name of ['aegir', 'schedule', 'systems', 'apl', 'rapid']) {
      for (const fault of [userNameFault, agentNameFault, displayNameFault])
        expect(fault(name), name).to.equal(undefined);
    }
  });

  it('reserve admin for the account of that name, even as a display name', () => {
    for (const name of ['admin', 'Admin']) {
      expect(userNameFault(name)).to.equal(undefined);
      expect(displayNameFault(name, 'admin')).to.equal(undefined);
      for (const fault of [agentNameFault(name), displayNameFault(name, 'ann'), cleanDisplayName(name)])
        expect(fault).to.not.equal(undefined);
    }
    for (const name of ['\u0430dmin', 'adrnin', 'ADMlN', 'Adm\u0456n', '𝐚dmin']) {
      expect(userNameFault(name), name).to.be.a('string');
      expect(agentNameFault(name), name).to.be.a('string');
      expect(displayNameFault(name, 'ann'), name).to.include('the service itself');
    }
  });

  it('must not be . or .. or a number', () => {
    for (const name of ['.', '..', '25', '007', '٣٤', '２５', '½']) {
      for (const fault of [userNameFault, agentNameFault, displayNameFault])
        expect(fault(name), name).to.include('number');
    }
    for (const name of ['...', '25th', 'a.', '.env']) expect(agentNameFault(name), name).to.equal(undefined);
  });

  it('that look alike have the same comparison key', () => {
    const alike = [
      ['scout', 'Scout', 'SCOUT', 'sc0ut', 'ѕсоut', 'ｓcout'],
      ['sloth', 'sIoth'],
      ['modern', 'modem'],
      ['José', 'Jose\u0301', 'JOSÉ'],
      ['Straße', 'STRASSE'],
      ['bot', 'b\u200bot'],
      ['❤ bot', '❤\ufe0f bot'],
      ['ΑΒΓ', 'ABΓ'],
    ];
    for (const [first = '', ...others] of alike) {
      const keys = nameKeys(first);
      for (const other of others)
        expect(
          nameKeys(other).some((key) => keys.includes(key)),
          other,
        ).to.equal(true);
    }
    const different = ['scout', 'scouts', 'al', 'ai', 'my bot', 'my-bot', 'my_bot', 'Ада', '李雷', '李'];
    expect(new Set(different.flatMap(nameKeys)).size).to.equal(different.length);
  });

  it('use one script, or those that Chinese, Japanese and Korean mix', () => {
    const whole = ['аре', 'αβγ', 'Ελένη 2', 'דוד', 'ᎣᏏᏲ', 'ქეთი', 'สมชาย', 'علي', 'मीरा', 'Zoë', '7-1', 'Анна_2'];
    const mixed = ['田中さくら', '田中サクラ', '翻訳bot', '김金', '李ㄅ', 'GPT助手', 'さくら-サーバー'];
    for (const name of [...whole, ...mixed]) {
      expect([name, userNameFault(name), agentNameFault(name)]).to.deep.equal([name, undefined, undefined]);
    }
    const lookAlikes = 'аdmin, аnn, scοut, Αnn, ann Ноа, дavid, α-bot, Ꭺnn, ᎣβᏏ, さくдら, 김さ, ㄅ김'.split(', ');
    for (const name of lookAlikes) {
      expect(userNameFault(name), name).to.include('mix scripts');
      expect(agentNameFault(name), name).to.include('mix scripts');
    }
  });

  it('have one canonical spelling', () => {
    for (const name of ['a  b', ' a', 'a ', 'a\u00a0b', 'a\u3000b']) {
      expect(userNameFault(name), name).to.include('spaces');
      expect(agentNameFault(name), name).to.include('spaces');
    }
    expect(userNameFault('ａdmin')).to.include('plain characters: admin');
    expect(userNameFault('ﬁnn')).to.include('finn');
  });

  it('may contain joiners in display names: Persian, Hindi, emoji', () => {
    for (const name of ['می\u200cخواهم', 'क्\u200dष', '👩\u200d💻', '❤\ufe0f Ann', '👩🏽\u200d🚒']) {
      expect([name, displayNameFault(name)]).to.deep.equal([name, undefined]);
    }
    for (const name of ['می\u200cخواهم', 'क्\u200dष']) expect(userNameFault(name), name).to.include('invisible');
    for (const name of ['Ad\u200dmin', 'Ad\u200cmin', 'А\u200dл', 'می\u200c']) {
      expect(displayNameFault(name), JSON.stringify(name)).to.include('invisible');
    }
  });

  it('from external sources are cleaned up', () => {
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

  it('that are allowed and different also look different, except for letter case', () => {
    const piece = fc.constantFrom(
      ...['a', 'A', 'é', 'e\u0301', '\u200b', '\u202e', ' '],
      ...['\u00a0', 'ａ', 'ﬁ', 'fi', '2', '²'],
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
      { numRuns: runs(300, 2_000) },
    );
  });
});
