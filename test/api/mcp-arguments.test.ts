/** Schemas of MCP tools as hosts compile them, and arguments as hosts send them. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'chai';
import { readArguments } from '../../api/mcp/arguments.ts';
import { resultOf, withShortTexts } from '../../api/mcp/results.ts';
import { callOf, type Tool, toolsOf } from '../../api/mcp/tools.ts';
import { routes } from '../../api/routes/index.ts';

const tools = [...toolsOf(routes).values()];
const toolNamed = (name: string): Tool => tools.find((one) => one.name === name) ?? expect.fail(`no tool ${name}`);

type Json = Readonly<Record<string, unknown>>;

/** Each schema within a schema, with its path. */
function* schemasIn(schema: Json, path: string): Generator<readonly [string, Json]> {
  yield [path, schema];
  for (const [keyword, value] of Object.entries(schema)) {
    if (typeof value !== 'object' || value === null) continue;
    if (keyword === 'properties')
      for (const [name, one] of Object.entries(value)) yield* schemasIn(one as Json, `${path}.${name}`);
    else if (keyword === 'items' || keyword === 'additionalProperties') yield* schemasIn(value as Json, `${path}[]`);
    else if (['anyOf', 'oneOf', 'allOf'].includes(keyword))
      for (const [at, one] of Object.entries(value)) yield* schemasIn(one as Json, `${path}|${at}`);
  }
}

/** A value for a required argument. */
function sampleOf(schema: Json): unknown {
  const { type, enum: values, minimum } = schema;
  if (Array.isArray(values)) return values[0];
  if (type === 'integer' || type === 'number') return Math.max(Number(minimum ?? 1), 1);
  if (type === 'array') return [sampleOf(schema.items as Json)];
  return '12';
}

describe('schemas of MCP tools', () => {
  for (const { name, description, inputSchema } of tools) {
    it(`${name}: compiled in strict mode, typed throughout, with patterns that every host compiles`, () => {
      const ajv = new Ajv2020({ strict: true, allErrors: true, allowUnionTypes: true, validateFormats: false });
      expect(() => ajv.compile(inputSchema)).not.to.throw();
      expect(description.length).to.be.below(1_024);
      for (const [path, schema] of schemasIn(inputSchema, name)) {
        expect(Object.keys(schema), path).to.satisfy((keys: string[]) =>
          keys.some((key) => ['type', 'enum', 'const', 'anyOf', 'oneOf', 'allOf'].includes(key)),
        );
        if ('pattern' in schema) expect(schema.pattern, path).not.to.match(/\\[pP]\{|\(\?<?[=!]/);
        expect(String(schema.description ?? '').length, path).to.be.below(1_024);
      }
    });

    it(`${name}: null for each optional argument is as if it were omitted`, () => {
      const properties = Object.entries(inputSchema.properties as Record<string, Json>);
      const required = inputSchema.required as readonly string[];
      const needed = Object.fromEntries(
        properties.filter(([one]) => required.includes(one)).map(([one, schema]) => [one, sampleOf(schema)]),
      );
      const nulls = Object.fromEntries(
        properties.filter(([one]) => !required.includes(one)).map(([one]) => [one, null]),
      );
      expect(callOf(toolNamed(name), { ...nulls, ...needed })).to.deep.equal(callOf(toolNamed(name), needed));
    });
  }
});

describe('arguments of MCP tools', () => {
  const schema = {
    type: 'object',
    required: ['must'],
    properties: {
      must: { type: ['string', 'null'] },
      count: { type: 'integer' },
      share: { anyOf: [{ type: 'number' }, { type: 'null' }] },
      on: { type: 'boolean' },
      either: { type: ['string', 'integer'] },
      text: { type: 'string' },
      deep: { type: 'object', properties: { n: { type: 'integer' }, gone: { type: 'string' } } },
      list: { type: 'array', items: { type: 'object', properties: { n: { type: 'integer' } } } },
    },
  };
  const read = (given: Json) => readArguments(schema, given);

  it('omit null at every depth, unless the argument is required', () => {
    expect(
      read({ must: null, count: null, deep: { n: 1, gone: null, other: null }, list: [{ n: null }] }),
    ).to.deep.equal({ must: null, deep: { n: 1, other: null }, list: [{}] });
  });

  it('are numbers and booleans where text can mean nothing else', () => {
    expect(read({ count: '12', share: ' 0.5 ', on: 'true', deep: { n: '7' }, list: [{ n: '-3' }] })).to.deep.equal({
      ...{ count: 12, share: 0.5, on: true, deep: { n: 7 }, list: [{ n: -3 }] },
    });
    const kept = { count: '12px', on: 'yes', either: '12', text: '12', share: '0x10' };
    expect(read(kept)).to.deep.equal(kept);
    expect(read({ count: '9007199254740993' })).to.deep.equal({ count: '9007199254740993' });
  });

  it('limit a list to 20 rows by default', () => {
    expect(callOf(toolNamed('list_tasks'), {}).query).to.deep.equal({ limit: '20' });
    expect(callOf(toolNamed('list_tasks'), { limit: '100' }).query).to.deep.equal({ limit: '100' });
  });
});

describe('results of MCP tools', () => {
  it('have no long texts in lists', () => {
    const { tasks } = withShortTexts({ tasks: [{ id: 1, description: 'ä'.repeat(600) }] }) as {
      readonly tasks: readonly { readonly description: string }[];
    };
    expect(tasks[0]?.description).to.equal(`${'ä'.repeat(500)}… [100 more characters; full_texts shows them]`);
    expect(withShortTexts({ n: 1, text: 'short', none: null })).to.deep.equal({ n: 1, text: 'short', none: null });
  });

  it('beyond 10,000 characters are sent once', () => {
    const result = (length: number) =>
      resultOf({ status: 200, headers: {}, text: JSON.stringify({ text: 'x'.repeat(length) }) });
    expect(result(100)).to.have.property('structuredContent');
    expect(result(20_000)).not.to.have.property('structuredContent');
    expect(result(20_000).content[0]?.text).to.have.length.above(20_000);
  });
});
