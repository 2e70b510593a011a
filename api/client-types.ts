/** Writes the types of the client and of the console, `client/api-types.ts`, from the description of the API. */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describeApi } from './openapi.ts';
import { routes } from './routes/index.ts';

/** Compiled, this file is in dist/api. */
const FILE = new URL('../../client/api-types.ts', import.meta.url);

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Schema | boolean;
}
interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly schema: Schema;
}
type Content = Readonly<Record<string, { readonly schema: Schema }>>;
interface Operation {
  readonly parameters?: readonly (Parameter | { readonly $ref: string })[];
  readonly requestBody?: { readonly required?: boolean; readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly content?: Content }>>;
}

/** The part of the document to which a reference points, where one stands in its place. */
function resolved<T extends object>(document: unknown, value: T | { readonly $ref: string }): T {
  if (!('$ref' in value)) return value;
  const place = value.$ref.split('/').slice(1);
  return place.reduce((part: unknown, key) => (part as Record<string, unknown>)[key], document) as T;
}

const nameOf = (ref: string): string => ref.split('/').at(-1) as string;

function ofType(type: string, { items, properties, required = [], additionalProperties }: Schema): string {
  if (type === 'integer') return 'number';
  if (type === 'array') return items ? `readonly (${typeOf(items)})[]` : 'readonly unknown[]';
  if (type !== 'object') return type;
  const rest = typeof additionalProperties === 'object' ? typeOf(additionalProperties) : 'unknown';
  if (!properties) return `Readonly<Record<string, ${rest}>>`;
  const fields = Object.entries(properties).map(
    ([name, one]) => `readonly ${JSON.stringify(name)}${required.includes(name) ? '' : '?'}: ${typeOf(one)};`,
  );
  return `{ ${fields.join(' ')} }`;
}

function typeOf(schema: Schema): string {
  const { $ref, enum: values, anyOf, oneOf, allOf, type } = schema;
  if ($ref) return nameOf($ref);
  if ('const' in schema) return JSON.stringify(schema.const);
  if (values) return values.map((value) => JSON.stringify(value)).join(' | ');
  const either = anyOf ?? oneOf;
  if (either) return either.map(typeOf).join(' | ');
  if (allOf) return allOf.map((one) => `(${typeOf(one)})`).join(' & ');
  if (type === undefined) return 'unknown';
  return (typeof type === 'string' ? [type] : type).map((one) => ofType(one, schema)).join(' | ');
}

function typeOfOperation(document: unknown, { parameters = [], requestBody, responses }: Operation): string {
  const all = parameters.map((one) => resolved<Parameter>(document, one));
  const fields = (place: string) =>
    all
      .filter((one) => one.in === place)
      .map(
        ({ name, required, schema }) => `readonly ${JSON.stringify(name)}${required ? '' : '?'}: ${typeOf(schema)};`,
      );
  const bodies = Object.entries(responses)
    .filter(([status]) => status.startsWith('2'))
    .flatMap(([, one]) => Object.entries(resolved(document, one).content ?? {}))
    .map(([type, { schema }]) => (type === 'application/json' ? typeOf(schema) : 'string'));
  const query = fields('query').join(' ');
  const body = requestBody && Object.values(requestBody.content)[0];
  const parts = [
    `readonly query: ${query ? `{ ${query} }` : 'Readonly<Record<string, never>>'};`,
    `readonly body: ${body ? typeOf(body.schema) : 'undefined'}${body && !requestBody?.required ? ' | undefined' : ''};`,
    `readonly response: ${[...new Set(bodies)].join(' | ') || 'undefined'};`,
  ];
  return `{ ${parts.join(' ')} }`;
}

/** The text of the file, not formatted. */
export function apiTypes(): string {
  const document = describeApi(routes) as unknown as {
    readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
    readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  };
  const schemas = Object.entries(document.components.schemas);
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, one]) => [`${method.toUpperCase()} ${path}`, one] as const),
  );
  const hasPast = ([, { parameters = [] }]: readonly [string, Operation]) =>
    parameters.some((one) => resolved<Parameter>(document, one).name === 'as_of');
  const withPast = operations.filter(hasPast).map(([name]) => name.replace('GET ', ''));
  const calls = operations.map(
    ([name, one]) => `  readonly ${JSON.stringify(name)}: ${typeOfOperation(document, one)};`,
  );
  return [
    '/** From the description of the API (/api/docs), written by `npm run client:types`. */',
    '/** Every call, by method and path. */',
    `export interface Api {\n${calls.join('\n')}\n}`,
    '/** Paths whose GET takes `as_of`. */',
    `export const WITH_PAST: ReadonlySet<string> = new Set(${JSON.stringify(withPast)});`,
    ...schemas.map(([name, schema]) => `export type ${name} = ${typeOf(schema)};`),
    '',
  ].join('\n\n');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(FILE, apiTypes());

/** The file as it is. */
export const writtenApiTypes = (): string => readFileSync(FILE, 'utf8');
