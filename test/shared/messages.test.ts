/** Messages for refused input, as they follow the name of the field. */
import { expect } from 'chai';
import { z } from 'zod';
import { idBody } from '../../shared/contract/common.ts';

const messageOf = (schema: z.ZodType, value: unknown) => schema.safeParse(value).error?.issues[0]?.message;

describe('messages for refused input', () => {
  it('a field that may have several types and is missing is said to be missing', () => {
    expect(messageOf(idBody, {})).to.equal('is required');
    expect(messageOf(z.object({ a: z.union([z.boolean(), z.literal(0)]) }), {})).to.equal('is required');
  });

  it('one that has none of them is told all', () => {
    expect(messageOf(z.object({ a: z.union([z.boolean(), z.literal(0)]) }), { a: 'x' })).to.equal(
      'must be true or false or 0',
    );
    expect(messageOf(idBody, { id: '-1' })).to.equal('must be a positive whole number');
  });
});
