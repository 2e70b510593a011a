/** What generators of clients trip over in the description of the API. */
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { expect } from 'chai';
import { describeApi } from '../../api/openapi.ts';
import { routes } from '../../api/routes/index.ts';

type Json = Readonly<Record<string, unknown>>;
const camel = (name: string): string => name.replaceAll(/[-_](\w)/g, (_, letter: string) => letter.toUpperCase());
const twice = (names: readonly string[]): readonly string[] => {
  const cased = names.map(camel);
  return names.filter((_, at) => cased.indexOf(cased[at] as string) !== at);
};

/** Each object inside of a value, with its path. */
function* objectsIn(value: unknown, path: string): Generator<readonly [string, Json]> {
  if (typeof value !== 'object' || value === null) return;
  if (!Array.isArray(value)) yield [path, value as Json];
  for (const [key, inner] of Object.entries(value)) yield* objectsIn(inner, `${path}/${key}`);
}

describe('generators of clients', () => {
  const api = describeApi(routes);

  it('find no two parameters or properties of one name in camel case', () => {
    const found: string[] = [];
    for (const [path, value] of objectsIn(api.paths, '')) {
      const { parameters, properties } = value as { readonly parameters?: readonly Json[]; readonly properties?: Json };
      const names = Array.isArray(parameters)
        ? parameters.map(({ name }) => String(name))
        : Object.keys(properties ?? {});
      found.push(...twice(names.filter((name) => name !== 'undefined')).map((name) => `${path}: ${name}`));
    }
    expect(found).to.deep.equal([]);
    expect(JSON.stringify(api)).not.to.include('undocumented');
  });

  it('find every required property defined', () => {
    const missing: string[] = [];
    for (const [path, { type, required, properties }] of objectsIn(api, '')) {
      if (type !== 'object' || !Array.isArray(required)) continue;
      const known = Object.keys((properties ?? {}) as Json);
      missing.push(...required.filter((name) => !known.includes(name)).map((name) => `${path}: ${name}`));
    }
    expect(missing).to.deep.equal([]);
  });

  it('find lists of types only for what may be null, and `oneOf` only where one property tells the members apart', () => {
    const found: string[] = [];
    for (const [path, { type, oneOf }] of objectsIn(api, '')) {
      if (Array.isArray(type) && (type.length !== 2 || type[1] !== 'null')) found.push(`${path}: ${type}`);
      if (!Array.isArray(oneOf)) continue;
      const valuesOf = ({ required = [], properties = {} }: Json): readonly string[] =>
        (required as readonly string[]).flatMap((name) => {
          const { const: value, enum: several } = (properties as Readonly<Record<string, Json>>)[name] ?? {};
          return [value ?? several ?? []].flat().map((one) => `${name}=${one}`);
        });
      const known = oneOf.map(valuesOf);
      const all = known.flat();
      if (known.some(({ length }) => length === 0) || new Set(all).size < all.length) found.push(`${path}: ${all}`);
    }
    expect(found).to.deep.equal([]);
  });

  it('are warned of nothing by the strict rules of a linter for OpenAPI', async () => {
    const config = await createConfig({ extends: ['recommended-strict'] });
    const problems = await lintFromString({ source: JSON.stringify(api), absoluteRef: 'openapi.json', config });
    const told = problems.map(({ ruleId, message, location }) => `${ruleId} ${location[0]?.pointer}: ${message}`);
    expect(told).to.deep.equal([]);
  });
});
