import { expect } from 'chai';
import { compile, z } from 'zod';
import { catalogue } from '../../shared/events/catalogue.ts';
import { metadataSchema } from '../../shared/events/metadata.ts';
import { parserOf } from '../../shared/parsing.ts';
import { goldenEvents } from '../support/golden.ts';

/** A parser that is compiled when it is first used. */
const compiled = <T>(schema: z.ZodType<T>): ((value: unknown) => T) => parserOf(schema, 1);

/** What parsing gives, or the findings. */
function outcome(parse: (value: unknown) => unknown, value: unknown): unknown {
  try {
    return { value: parse(value) };
  } catch (error) {
    if (error instanceof z.ZodError) return { issues: error.issues };
    throw error;
  }
}

/** A value with one thing wrong, or one thing more, at each of its places in turn. */
function* spoilt(value: unknown): Generator<unknown> {
  yield null;
  yield -1.5;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return;
  yield { ...value, another: 1 };
  for (const [key, inner] of Object.entries(value)) {
    const { [key]: _, ...rest } = value as Record<string, unknown>;
    yield rest;
    for (const bad of spoilt(inner)) yield { ...value, [key]: bad };
  }
}

function expectSame<T>(schema: z.ZodType<T>, valid: unknown): void {
  const parse = compiled(schema);
  for (const value of [valid, ...spoilt(valid)]) {
    const wanted = outcome((one) => schema.parse(one), value);
    const given = outcome(parse, value);
    expect(given).to.deep.equal(wanted);
    // The order of keys, too: it is that of the log and of what callers see.
    expect(JSON.stringify(given)).to.equal(JSON.stringify(wanted));
  }
}

describe('frequently used schemas', () => {
  it('give the same values and errors once compiled, for every event', function () {
    this.timeout(60_000);
    let checked = 0;
    for (const { type, version, golden } of goldenEvents()) {
      const definition = catalogue.get(type);
      if (definition?.version !== version) continue;
      expectSame(definition.schema, golden.data);
      checked++;
    }
    expect(checked).to.be.at.least(100);
  });

  it('can be compiled for metadata, and give the same values and errors then', () => {
    expect(() => compile(metadataSchema, { strict: true })).not.to.throw();
    const actor = { type: 'user', id: 3, name: 'ada' };
    const about = { version: 1, number: 42, at: 1_750_000_000_123, tenant: 1, workspace: 1, actor, agent: 7 };
    const from = { ip: '192.0.2.7', userAgent: 'golden/1' };
    expectSame(metadataSchema, { ...about, ...from, requestId: 'r', correlationId: 'r', causationId: null });
  });

  it('do not return the input object', () => {
    const schema = z.object({ list: z.array(z.string()), more: z.record(z.string(), z.unknown()) });
    const value = { list: ['one'], more: { two: 2 } };
    const parsed = compiled(schema)(value);
    expect(parsed).to.deep.equal(value);
    expect(parsed).not.to.equal(value);
    expect(parsed.list).not.to.equal(value.list);
  });
});
