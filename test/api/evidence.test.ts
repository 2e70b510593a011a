/** Every number of a response with evidence is in the table of `evidence-numbers.ts`, as derived or as a fact. */
import { expect } from 'chai';
import { z } from 'zod';
import { routes } from '../../api/routes/index.ts';
import { EVIDENT_ANSWERS, numberPaths } from '../support/evidence-numbers.ts';

/** The objects that a response may be. */
const objectsIn = (schema: z.ZodType): z.ZodObject[] =>
  schema instanceof z.ZodUnion
    ? (schema.options as z.ZodType[]).flatMap(objectsIn)
    : schema instanceof z.ZodObject
      ? [schema]
      : [];

describe('evidence', () => {
  it('is in the table for every response that has a field for it', () => {
    const answers = routes.flatMap(({ method, path, responses }) =>
      Object.values(responses)
        .flatMap(({ schema }) => (schema ? objectsIn(schema) : []))
        .filter(({ shape }) => 'evidence' in shape)
        .map((schema) => ({ call: `${method} ${path}`, schema })),
    );
    const known = new Set(EVIDENT_ANSWERS.map(({ schema }) => schema));
    expect(answers.filter(({ schema }) => !known.has(schema)).map(({ call }) => call)).to.deep.equal([]);
    const shown = new Set<z.ZodType>(answers.map(({ schema }) => schema));
    expect(EVIDENT_ANSWERS.filter(({ schema }) => !shown.has(schema)).length, 'answers that no call gives').to.equal(0);
  });

  for (const [n, { schema, numbers, facts }] of EVIDENT_ANSWERS.entries())
    it(`names each number of answer ${n}: ${Object.keys((schema as z.ZodObject).shape).join(', ')}`, () => {
      const listed = [...Object.keys(numbers), ...facts];
      expect(listed.toSorted()).to.deep.equal([...numberPaths(schema)].toSorted());
    });
});
