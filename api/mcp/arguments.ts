/**
 * Arguments of tools: schemas that every host can read, and values as hosts send them. Models and hosts fill in omitted
 * arguments with null, and send numbers and booleans as text; hosts in Python and Go compile no pattern with `\p{}` or
 * lookaround. The route checks the values anyway, with its own schema.
 */
import { isObject } from '../../shared/storable.ts';
import type { Schema } from '../openapi-schemas.ts';

/** Unicode classes and lookaround: https://json-schema.org/understanding-json-schema/reference/regular_expressions */
const UNPORTABLE = /\\[pP]\{|\(\?<?[=!]/;

/** A schema without the patterns that some hosts cannot compile. */
export function portable(schema: Schema): Schema {
  const inner = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(inner);
    return isObject(value) ? portable(value) : value;
  };
  return Object.fromEntries(
    Object.entries(schema).flatMap(([keyword, value]) => {
      if (keyword === 'pattern' && typeof value === 'string' && UNPORTABLE.test(value)) return [];
      // An empty schema has no type, which some hosts refuse.
      if (keyword === 'additionalProperties' && isObject(value) && Object.keys(value).length === 0)
        return [[keyword, true]];
      if (keyword !== 'properties' || !isObject(value)) return [[keyword, inner(value)]];
      const properties = Object.entries(value).map(([name, one]) => [name, inner(one)]);
      return [[keyword, Object.fromEntries(properties)]];
    }),
  );
}

const alternativesOf = (schema: Schema): readonly Schema[] => {
  const parts = [schema.anyOf, schema.oneOf].flat().filter(isObject);
  return parts.length > 0 ? parts.flatMap(alternativesOf) : [schema];
};

/** The JSON types that a schema accepts; undefined: any. */
function typesOf(schema: Schema): ReadonlySet<string> | undefined {
  const types = new Set<string>();
  for (const { type, enum: values, const: value } of alternativesOf(schema)) {
    const named = [type].flat().filter((one) => typeof one === 'string');
    const listed = Array.isArray(values) ? values : value === undefined ? [] : [value];
    if (named.length === 0 && listed.length === 0) return undefined;
    for (const one of named.length > 0 ? named : listed.map((each) => typeof each)) types.add(one);
  }
  return types;
}

/** A number as JSON writes it. */
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** The number or the boolean that a text can only mean; otherwise the text. */
function readText(schema: Schema, text: string): unknown {
  const types = typesOf(schema);
  if (!types || types.has('string')) return text;
  const trimmed = text.trim();
  if (types.has('boolean') && (trimmed === 'true' || trimmed === 'false')) return trimmed === 'true';
  if ((types.has('integer') || types.has('number')) && NUMBER.test(trimmed)) {
    const number = Number(trimmed);
    // The route's message about a number that is too large quotes what was sent.
    if (Number.isFinite(number) && (Math.abs(number) <= Number.MAX_SAFE_INTEGER || !types.has('integer')))
      return number;
  }
  return text;
}

function readValue(schema: Schema, value: unknown): unknown {
  if (typeof value === 'string') return readText(schema, value);
  const alternatives = alternativesOf(schema);
  if (Array.isArray(value)) {
    const items = alternatives.map((one) => one.items).find(isObject);
    return items ? value.map((one) => readValue(items, one)) : value;
  }
  const shape = alternatives.find((one) => isObject(one.properties));
  return isObject(value) && shape ? readArguments(shape, value) : value;
}

/**
 * Values as the schema means them: null for what may be omitted is omitted, at every depth, and text is read as a
 * number or a boolean where the schema accepts no text. What the schema does not name stays as it is.
 */
export function readArguments(schema: Schema, given: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { properties, required } = schema as { readonly properties: Schema; readonly required?: readonly string[] };
  const read = new Map<string, unknown>();
  for (const [name, value] of Object.entries(given)) {
    const own = Object.hasOwn(properties, name) ? properties[name] : undefined;
    if (!isObject(own)) read.set(name, value);
    else if (value !== null || required?.includes(name)) read.set(name, readValue(own, value));
  }
  return Object.fromEntries(read);
}
