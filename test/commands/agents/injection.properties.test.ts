/** Screening of any text at all: answers are the same each time, and the time grows no faster than the text. */
import { expect } from 'chai';
import fc from 'fast-check';
import { findSecrets } from '../../../commands/agents/exposure.ts';
import { SCREENED_LENGTH, screenText } from '../../../commands/agents/injection.ts';
import { runs } from '../../support/runs.ts';
import { ATTACK, RULE_CASES, SECRET_CASES } from '../../support/screening-cases.ts';

const rulesOf = (text: string): string[] => screenText(text).map(({ rule }) => rule);

/** Any string, and strings made of the pieces the rules are made of, which reach far deeper into them. */
const PIECES = [...RULE_CASES, ...SECRET_CASES].flatMap(({ hits }) => hits.flatMap((text) => text.split(/(\W)/)));
const anyText = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.string({ unit: fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit)) }),
  fc.array(fc.constantFrom(...PIECES, '%', '\u200b', '\n', '../')).map((pieces) => pieces.join('')),
);

describe('screening: properties', () => {
  it('never throws, and reports each rule at most once, in table order', () => {
    const order = RULE_CASES.map(({ rule }) => rule);
    fc.assert(
      fc.property(anyText, (text) => {
        const found = rulesOf(text);
        expect(found).to.deep.equal(order.filter((rule) => found.includes(rule)));
      }),
      { numRuns: runs(100, 1_000) },
    );
  });

  it('keeps no state: the same text gives the same result twice', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        expect(screenText(text)).to.deep.equal(screenText(text));
        expect(findSecrets(text)).to.deep.equal(findSecrets(text));
      }),
    );
  });

  it('detects an attack at any place in harmless text', () => {
    const words = fc.array(fc.constantFrom('deploy', 'tests', 'green', '\n', 'review', '100%')).map((w) => w.join(' '));
    fc.assert(
      fc.property(words, words, (before, after) => {
        expect(rulesOf(`${before} ${ATTACK} ${after}`)).to.deep.equal(['prompt-override']);
      }),
    );
  });

  it('never returns any part of a credential', () => {
    const samples = SECRET_CASES.flatMap(({ hits }) => hits);
    const known = SECRET_CASES.map(({ type }) => type);
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...samples), { maxLength: 6 }), (parts) => {
        const { count, types, ...rest } = findSecrets(parts.join(' '));
        expect(rest).to.deep.equal({});
        expect(types).to.deep.equal(known.filter((type) => types.includes(type)));
        expect(count).to.be.at.least(types.length).and.at.most(parts.length);
      }),
    );
  });
});

// --- Linear time ----------------------------------------------------------------------------------------------------

/**
 * Begins of matches that never complete, repeated: where a pattern backtracks or starts over, eight times the text
 * takes 64 times as long or worse. `head` stands once before the repetition.
 */
const ADVERSARIAL: { head?: string; unit: string }[] = [
  ...' \n\ra_-./\\%+*\'"()[<{$;|',
  '\\\n',
  ...['$(', '$(a(', '../', '..'],
  ...[
    'ignore ',
    'ignore all of the ',
    'ignore your your system ',
    'act as if you were ',
    'turn off all of ',
    'you are ',
  ],
  ...['[SYSTEM', '[SYSTEM ', '[SYSTEM]', '[ ', 'curl ', 'curl |', 'curl\n'],
  ...[
    'curl | sudo ',
    'curl 127.0',
    'curl 127.1.1.1 ',
    'nc ',
    'nc-',
    'nc a b c d e ',
    'nc -a-',
    'nc -aaaaaaaa ',
    'bash -i ',
  ],
  ...['bash -i >', 'python ', 'python socket ', 'python socket connect '],
  ...[
    "' or ",
    "' or a",
    "' or (",
    "' or a= ",
    'union all ',
    '; drop ',
    "' ; ",
    'send all of ',
    'send ssh ',
    'upload data ',
  ],
  ...[
    '%41',
    '%25',
    '%2525',
    '%e2',
    'A'.repeat(24),
    `${'QUFB'.repeat(6)} `,
    '\u200b',
    'a\u200b',
    '\ufdfa',
    '\u0301',
    '\u3316',
  ],
  ...['\u{e0041}', '\ud800', '\u0456', '\uac01', 'vtaber ', 'vtaber nyy cerivbhf '],
  ...[
    'password',
    'password=',
    'password: ',
    'password = a ',
    'api_key=a(',
    'secret=xxxx',
    'bearer ',
    'bearer a',
    'bearer-',
  ],
  ...[
    'sk-',
    'sk-a ',
    'sk-ant-',
    'ghp_',
    'github_pat_',
    'glpat-',
    'xoxb-',
    'eyJ',
    'eyJaaaaaaaa-',
    'eyJaaaaaaaa.',
    'AKIA',
    'AIza',
  ],
  ...[
    'redis://',
    'redis://a:',
    'redis://a:b',
    'redis:',
    '-----BEGIN ',
    '-----BEGIN A B C ',
    'mca_a',
    'mc_',
    'sk_live_',
  ],
].map((unit) => ({ unit }));
for (const head of [
  'ignore',
  '[SYSTEM',
  'nc -',
  'nc ',
  "'",
  "' or ",
  'curl |',
  '$(',
  'eyJ',
  'sk-',
  'bearer ',
  'redis://a:',
]) {
  for (const unit of [' ', 'a', '-', '.', ' a']) ADVERSARIAL.push({ head, unit });
}

/** Processor time of a run, in microseconds: other work on the machine, which only makes this wait, does not count. */
function processorTime(run: () => unknown): number {
  const before = process.cpuUsage();
  run();
  const { user, system } = process.cpuUsage(before);
  return user + system;
}

/** The fastest of some runs: other work on the machine and garbage collection make single ones slower. */
const fastest = (runs: number, run: () => unknown): number =>
  Math.min(...Array.from({ length: runs }, () => processorTime(run)));

/** Whether all of the text takes less than 30 times as long as an eighth of it: 8 times is linear, 64 times its square. */
function isLinear(scan: (text: string) => unknown, text: string): boolean {
  const eighth = text.slice(0, text.length / 8);
  const ratio = () => fastest(3, () => scan(text)) / fastest(4, () => scan(eighth));
  // A second look at a bad ratio: collected garbage and compiled code pass, a quadratic pattern stays.
  return [ratio, ratio, ratio].some((measure) => measure() < 30);
}

describe('screening: linear running time', () => {
  const scans = { screenText: (text: string) => screenText(text), findSecrets: (text: string) => findSecrets(text) };

  for (const [name, scan] of Object.entries(scans)) {
    it(`${name}: 8 times the hostile text takes less than 30 times as long`, () => {
      for (const { head = '', unit } of ADVERSARIAL) {
        const text = (head + unit.repeat(Math.ceil(SCREENED_LENGTH / unit.length))).slice(0, SCREENED_LENGTH);
        expect(isLinear(scan, text), JSON.stringify(head + unit)).to.equal(true);
      }
    }).timeout(120_000);
  }

  it('the measurement detects a pattern that restarts at every character', () => {
    expect(isLinear((text) => /a+b/.test(text), 'a'.repeat(8_000))).to.equal(false);
  });
});
