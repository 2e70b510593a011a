/** The step that validates events. */
import { expect } from 'chai';
import { AppError } from '../../../shared/errors.ts';
import { validData, validDraft, validMetadata } from '../../../shared/event-store/validate.ts';
import { EVENT_BOUNDS } from '../../../shared/storable.ts';
import { joined } from '../../support/joined.ts';

const draft = (data: object) => validDraft(joined, { id: 3, email: null, ...data });

function refusal(data: object): AppError {
  try {
    draft(data);
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
  throw new Error('nothing was refused');
}

describe('validated events', () => {
  it('match their schemas', () => {
    expect(() => draft({ id: 'three' })).to.throw(/must be a number/);
    expect(() => validData(joined, { id: 3 })).to.throw(/email/);
    expect(() => validMetadata({ version: 1 })).to.throw(/number/);
  });

  it('are copies without undefined values, as a reader of the log gets them', () => {
    const config = { deep: [1] };
    const valid = draft({ city: undefined, config });
    expect(valid).to.deep.equal({ id: 3, email: null, config });
    expect(valid.config).not.to.equal(config);
  });

  it('have only texts that every store can hold, and may contain what looks like an escape', () => {
    for (const city of ['nul \u0000', 'half \ud800', 'half \udfff']) {
      const { status, message } = refusal({ city });
      expect([status, message]).to.deep.equal([400, 'city must not contain the character U+0000 or a lone surrogate.']);
    }
    for (const city of ['\\u0000', '\\\\ud800', 'whole 😀', '\\']) expect(draft({ city }).city).to.equal(city);
  });

  it('have a limited depth, whose excess is named by its path', () => {
    const nested = (levels: number) => JSON.parse(`${'['.repeat(levels)}${']'.repeat(levels)}`);
    const { depth } = EVENT_BOUNDS;
    expect(draft({ config: nested(depth - 1) }).config).to.have.length(1);
    for (const levels of [depth, 5_000, 300_000]) {
      const { status, message } = refusal({ config: nested(levels) });
      expect(status).to.equal(400);
      expect(message).to.match(/^config\.0\.0\..* must not be nested more than 72 levels deep\.$/);
    }
  });

  it('have a limited size, with numbers written out', () => {
    const { status, message } = refusal({ config: Array(7_000).fill(1e300) });
    expect(status).to.equal(413);
    expect(message).to.match(/^The change must have at most 2000000 characters .* numbers written out\.$/);
  });
});
