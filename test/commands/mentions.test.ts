/** Mentions: which parts of a text are mentions, and whom they mean. */
import { expect } from 'chai';
import fc from 'fast-check';
import { handlesIn, MAX_MENTIONS, mentionsIn, readingsOf, resolveMentions } from '../../commands/mentions.ts';
import type { MentionTarget } from '../../queries/mentions.ts';
import { refusalOf } from '../support/kit.ts';

const target = (handle: string, type: MentionTarget['type'] = 'agent', recipient = handle): MentionTarget => ({
  handle,
  recipient,
  type,
  display: recipient,
});

const LETTERS = 'ABCxyz019';
const INSIDE = `${LETTERS}._-`;
const textOf = (characters: string, size: { minLength: number; maxLength: number }) =>
  fc.array(fc.constantFrom(...characters), size).map((all) => all.join(''));
const token = fc
  .tuple(textOf(LETTERS, { minLength: 1, maxLength: 1 }), textOf(INSIDE, { minLength: 0, maxLength: 63 }))
  .map((parts) => parts.join(''));
/** Text that can neither hold a mention nor be a part of one. */
const between = textOf(' \n,;:!?()#@"', { minLength: 1, maxLength: 5 }).map((text) => text.replace(/@(?=.)/g, ''));

describe('mentions in a text', () => {
  it('are an @ and a handle, unless a word ends right before it', () => {
    expect(mentionsIn('@ada, see (@b.o-b_2) and\n@Z!')).to.deep.equal(['ada', 'b.o-b_2', 'Z']);
    expect(mentionsIn('@@ada é@bob')).to.deep.equal(['ada', 'bob']);
  });
  it('do not include e-mail addresses, a lone @ or an @ before punctuation', () => {
    expect(mentionsIn('mail user@host, u.@host, u_@host, u-@host')).to.deep.equal([]);
    expect(mentionsIn('@ @. @-x @_x @!')).to.deep.equal([]);
  });
  it('count once regardless of letter case, in the first spelling', () => {
    expect(mentionsIn('@Ada @ada @ADA @bob')).to.deep.equal(['Ada', 'bob']);
  });
  it('have letters and digits of any script', () => {
    expect(mentionsIn('@小明 @Ольга, @élodie; @e\u0301lodie')).to.deep.equal(['小明', 'Ольга', 'élodie']);
    expect(readingsOf('小明请看')).to.deep.equal(['小明请看', '小明请', '小明', '小']);
    expect(handlesIn('@Ольга').handles).to.deep.equal(['ольга', 'Ольга']);
  });
  it('have at most 64 characters', () => {
    expect(mentionsIn(`@${'a'.repeat(70)}`)).to.deep.equal(['a'.repeat(64)]);
  });
  it('are found in any text that is composed of them', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(between, token), { maxLength: 20 }), between, (parts, end) => {
        const text = `${parts.map(([gap, one]) => `${gap.endsWith('@') ? `${gap} ` : gap}@${one}`).join('')}${end}`;
        const first = new Map<string, string>();
        for (const [, one] of parts) if (!first.has(one.toLowerCase())) first.set(one.toLowerCase(), one);
        expect(mentionsIn(text)).to.deep.equal([...first.values()]);
      }),
    );
  });
  it('always have the form of a handle and occur in the text', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), textOf(`${INSIDE}@ é`, { minLength: 0, maxLength: 200 })), (text) => {
        for (const one of mentionsIn(text)) {
          expect(one).to.match(/^[\p{L}\p{N}][\p{L}\p{M}\p{N}._-]{0,63}$/u);
          expect(text.normalize('NFC')).to.include(`@${one}`);
        }
      }),
    );
  });
  it('may end in punctuation: all readings are returned, the longest first', () => {
    expect(readingsOf('bob')).to.deep.equal(['bob']);
    expect(readingsOf('bob.-.')).to.deep.equal(['bob.-.', 'bob.-', 'bob.', 'bob']);
    expect(readingsOf('b_')).to.deep.equal(['b_']);
  });
});

describe('mentions of a user or agent', () => {
  it('return tokens as typed, recipients and agents, without duplicates', () => {
    const targets = [
      target('ada', 'user', 'Ada'),
      target('my-bot', 'agent', 'My Bot'),
      target('my bot', 'agent', 'My Bot'),
    ];
    expect(resolveMentions(['ADA', 'my-bot'], targets)).to.deep.equal({
      tokens: ['ADA', 'my-bot'],
      recipients: ['Ada', 'My Bot'],
      agents: ['My Bot'],
    });
  });
  it('use the longest reading that is a known handle', () => {
    const both = [target('bob'), target('bob.')];
    expect(resolveMentions(['bob.'], both).recipients).to.deep.equal(['bob.']);
    expect(resolveMentions(['bob.', 'bob'], [target('bob')])).to.deep.equal({
      tokens: ['bob'],
      recipients: ['bob'],
      agents: ['bob'],
    });
  });
  it('are rejected together if one is unknown', () => {
    const { status, message, extras } = refusalOf(() => resolveMentions(['bob', 'Nobody', 'none.'], [target('bob')]));
    expect(status).to.equal(400);
    expect(message).to.match(/^Unknown mentions: @Nobody, @none\./);
    expect(extras.body).to.deep.equal({ missing_mentions: ['Nobody', 'none.'] });
  });
  it('are looked up in lower case with every reading; a text without mentions needs no look-up', () => {
    expect(handlesIn('Hello @Bob.')).to.deep.equal({ tokens: ['Bob.'], handles: ['bob.', 'bob'] });
    expect(handlesIn('nobody@home')).to.deep.equal({ tokens: [], handles: [] });
  });
  it('are rejected before the look-up if there are too many', () => {
    const text = (count: number) => Array.from({ length: count }, (_, n) => `@a${n}`).join(' ');
    expect(handlesIn(text(MAX_MENTIONS)).tokens).to.have.length(MAX_MENTIONS);
    expect(refusalOf(() => handlesIn(text(MAX_MENTIONS + 1))).status).to.equal(400);
  });
});
