/** Messages for refused input, as they follow the name of the field. */
import { expect } from 'chai';
import { z } from 'zod';
import { idBody } from '../../shared/contract/common.ts';

const messageOf = (schema: z.ZodType, value: unknown) => schema.safeParse(value).error?.issues[0]?.message;

describe('messages for invalid input', () => {
  it('report a missing field as missing, even if it may have several types', () => {
    expect(messageOf(idBody, {})).to.equal('is required');
    expect(messageOf(z.object({ a: z.union([z.boolean(), z.literal(0)]) }), {})).to.equal('is required');
  });

  it('list all types for a field that has none of them', () => {
    expect(messageOf(z.object({ a: z.union([z.boolean(), z.literal(0)]) }), { a: 'x' })).to.equal(
      'must be true, false or 0',
    );
    expect(messageOf(z.union([z.literal([0, 1]), z.boolean()]), 5)).to.equal('must be one of 0, 1, true or false');
    for (const id of ['-1', 'x', 0, -1, 1.5, null, {}])
      expect(messageOf(idBody, { id }), String(id)).to.equal('must be a positive whole number');
    expect(idBody.parse({ id: '007' }), 'leading zeros').to.deep.equal({ id: 7 });
  });

  it('say what is wrong with a name in a map', () => {
    const named = z.record(z.string().min(1).max(2), z.string());
    expect(messageOf(named, { '': 'x' })).to.equal('the name must not be empty');
    expect(messageOf(named, { abc: 'x' })).to.equal('the name must have at most 2 characters');
  });

  it('use singular and plural for sizes', () => {
    expect(messageOf(z.array(z.string()).min(1), [])).to.equal('must have at least 1 entry');
    expect(messageOf(z.array(z.string()).min(2), [])).to.equal('must have at least 2 entries');
    expect(messageOf(z.string().max(1), 'ab')).to.equal('must have at most 1 character');
    expect(messageOf(z.number().max(1), 2)).to.equal('must be at most 1');
    expect(messageOf(z.strictObject({}), { a: 1 })).to.equal('must not have the field a');
    expect(messageOf(z.strictObject({}), { a: 1, b: 2 })).to.equal('must not have the fields a, b');
  });
});
