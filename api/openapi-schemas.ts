/**
 * Converts zod schemas to JSON Schemas (draft 2020-12) for the description of the API: named parts become components,
 * in two versions where requests and responses differ. `openapi.ts` assembles them.
 */
import { z } from 'zod';
import { isObject } from '../shared/storable.ts';

/** A JSON Schema (draft 2020-12). */
export type Schema = { [keyword: string]: unknown };

/** The direction: what a request may contain, or what a response contains. */
export type Io = 'input' | 'output';
/** Named schemas found so far. */
export type Found = Readonly<Record<Io, Map<string, Schema>>>;

/** Marks what JSON Schema cannot express, until it is known whether an `override` replaces it. */
const UNREPRESENTABLE = 'x-unrepresentable';
const KEPT_BY_OVERRIDE = ['title', 'description', 'deprecated', 'examples'];

/** Converts a schema and adds its named parts to `found`. @throws Error when it cannot be described accurately */
export function toSchema(schema: z.ZodType, io: Io, where: string, found: Found): Schema {
  const { json, defs } = convert(schema, io, where);
  keep(defs, io, where, found);
  return json;
}

/** The properties of an object schema, which may itself be named. */
export function toProperties(
  schema: z.ZodType,
  where: string,
  found: Found,
): { readonly properties: Readonly<Record<string, Schema>>; readonly required: readonly unknown[] } {
  const { json, defs } = convert(schema, 'input', where);
  const id = typeof json.$ref === 'string' ? idIn(json.$ref) : undefined;
  const { properties, required } = (id === undefined ? json : defs[id]) ?? {};
  if (typeof properties !== 'object' || properties === null) throw new Error(`${where} must be one object schema`);
  if (id !== undefined) delete defs[id];
  keep(defs, 'input', where, found);
  return { properties: properties as Record<string, Schema>, required: Array.isArray(required) ? required : [] };
}

/** Converts a zod schema, with its named parts kept separate. References include their direction. */
function convert(schema: z.ZodType, io: Io, where: string): { json: Schema; defs: Record<string, Schema> } {
  const { $schema, $defs, ...own } = z.toJSONSchema(schema, {
    io,
    unrepresentable: ({ message }) => ({ [UNREPRESENTABLE]: message }),
    override: ({ zodSchema, jsonSchema }) => adjust(zodSchema, jsonSchema as Schema, io),
  }) as Schema;
  const whole = JSON.stringify({ own, $defs }, (key, value: unknown) => {
    if (key === UNREPRESENTABLE) {
      throw new Error(`${where}: ${String(value)}; give that schema .meta({ override: <JSON Schema keywords> })`);
    }
    if (key !== '$ref' || typeof value !== 'string') return splitTypes(joinNull(value));
    const id = /^#\/\$defs\/((?!__schema)[\w.-]+)$/.exec(value)?.[1];
    if (!id) throw new Error(`${where}: a schema that contains itself needs a name: .meta({ id })`);
    return `#/components/schemas/${io}:${id}`;
  });
  const parts = JSON.parse(whole) as { own: Schema; $defs?: Record<string, Schema> };
  return { json: parts.own, defs: parts.$defs ?? {} };
}

/** A record with fixed keys has them as properties; `required` would otherwise name what is not defined. */
function nameKeys(json: Schema, io: Io): void {
  const { propertyNames, additionalProperties: value, required } = json;
  if (!isObject(propertyNames) || !Array.isArray(propertyNames.enum) || !isObject(value) || !required) return;
  json.properties = Object.fromEntries(propertyNames.enum.map((key) => [String(key), value]));
  delete json.propertyNames;
  delete json.additionalProperties;
  if (io === 'input') json.additionalProperties = false;
}

/** Whether every member of a union requires the property that tells them apart. */
function areApart(schema: z.core.$ZodType, members: readonly unknown[]): boolean {
  const { discriminator } = schema._zod.def as { readonly discriminator?: string };
  return members.every(
    (member) => isObject(member) && Array.isArray(member.required) && member.required.includes(discriminator),
  );
}

/** Second spellings are left out: clients generated from this would have two fields of one name. */
const documented = (properties: Schema): Schema =>
  Object.fromEntries(Object.entries(properties).filter(([, one]) => !(isObject(one) && one.undocumented === true)));

/** Called for each part of a schema after zod has converted it. */
function adjust(schema: z.core.$ZodType, json: Schema, io: Io): void {
  const override = z.globalRegistry.get(schema)?.override;
  if (typeof override === 'object' && override !== null) {
    for (const keyword of Object.keys(json)) if (!KEPT_BY_OVERRIDE.includes(keyword)) delete json[keyword];
    Object.assign(json, override);
  }
  delete json.override;
  nameKeys(json, io);
  // Where the property that tells members apart may be omitted, a value can match several of them.
  if (Array.isArray(json.oneOf) && !areApart(schema, json.oneOf)) {
    json.anyOf = json.oneOf;
    delete json.oneOf;
  }
  if (isObject(json.properties)) json.properties = documented(json.properties);
  // All JSON keys are strings, so this constraint adds nothing.
  if (JSON.stringify(json.propertyNames) === '{"type":"string"}') delete json.propertyNames;
  if (io === 'output') {
    // Responses may gain fields, which must not break clients that validate against this description.
    const def: { type: string; catchall?: unknown } = schema._zod.def;
    if (def.type === 'object' && !def.catchall) delete json.additionalProperties;
    // Every integer in a response is within these bounds, so the description omits them.
    if (json.minimum === Number.MIN_SAFE_INTEGER) delete json.minimum;
    if (json.maximum === Number.MAX_SAFE_INTEGER) delete json.maximum;
  }
}

/**
 * Turns `anyOf: [{ type: 'string', maxLength: 9 }, { type: 'null' }]` into a single schema, which is easier to read.
 */
function joinNull(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const { anyOf, ...outer } = value as Schema;
  if (!Array.isArray(anyOf) || anyOf.length !== 2 || JSON.stringify(anyOf[1]) !== '{"type":"null"}') return value;
  const inner = anyOf[0] as Schema;
  // Keywords for a specific type ignore null; these do not.
  const holdForAll = ['$ref', 'const', 'anyOf', 'oneOf', 'allOf', 'not'];
  if (typeof inner.type !== 'string' || holdForAll.some((keyword) => keyword in inner)) return value;
  const values = Array.isArray(inner.enum) ? { enum: [...inner.enum, null] } : {};
  return { ...inner, ...values, ...outer, type: [inner.type, 'null'] };
}

/** A list of types means "or null" to generators of clients, and nothing else. */
function splitTypes(value: unknown): unknown {
  if (!isObject(value)) return value;
  const { type, ...rest } = value;
  if (!Array.isArray(type) || type.filter((one) => one !== 'null').length < 2) return value;
  return { ...rest, anyOf: type.map((one) => ({ type: one })) };
}

/** Remembers named schemas. @throws Error when two different ones have the same name */
function keep(defs: Readonly<Record<string, Schema>>, io: Io, where: string, found: Found): void {
  for (const [id, schema] of Object.entries(defs)) {
    const earlier = found[io].get(id);
    if (earlier && JSON.stringify(earlier) !== JSON.stringify(schema)) {
      throw new Error(`${where}: another schema already has the name ${id}; give one of them another .meta({ id })`);
    }
    found[io].set(id, schema);
  }
}

export const REFERENCE = /^#\/components\/schemas\/(input|output):(.+)$/;
const idIn = (ref: string) => REFERENCE.exec(ref)?.[2];

/**
 * Names the schemas: one name if both directions are the same, otherwise `<name>Input` for requests (a default makes a
 * field optional in a request but always present in a response).
 */
export function settleSchemas(found: Found): {
  schemas: Record<string, Schema>;
  nameIn: (io: Io, id: string) => string;
} {
  const apart = new Set<string>();
  const nameIn = (io: Io, id: string) => (io === 'input' && apart.has(id) ? `${id}Input` : id);
  const textOf = (schema: Schema) => JSON.stringify(relink(schema, nameIn));
  // Splitting one schema changes references in others, which may then have to be split as well.
  for (let before = -1; before !== apart.size; ) {
    before = apart.size;
    for (const [id, schema] of found.input) {
      const other = found.output.get(id);
      if (other && textOf(schema) !== textOf(other)) apart.add(id);
    }
  }
  const schemas = new Map(found.output);
  for (const [id, schema] of found.input) {
    const name = nameIn('input', id);
    if (name !== id && (found.input.has(name) || found.output.has(name))) {
      throw new Error(`the name ${name} is needed for ${id} in requests; rename the other schema`);
    }
    schemas.set(name, schema);
  }
  return { schemas: Object.fromEntries([...schemas].sort(([a], [b]) => (a < b ? -1 : 1))), nameIn };
}

/** A copy whose references have their final names. */
export function relink(value: unknown, nameIn: (io: Io, id: string) => string): unknown {
  return JSON.parse(
    JSON.stringify(value, (key, part: unknown) => {
      const [, io, id] = (key === '$ref' && REFERENCE.exec(String(part))) || [];
      return io && id ? `#/components/schemas/${nameIn(io as Io, id)}` : part;
    }),
  );
}
