/**
 * Requests made from the description of the API: for every operation the paths, queries and bodies that its schemas
 * allow, with the ids and names that a test wants to see in them.
 */
import type { OpenApiDocument, Operation, Parameter, ResponseObject } from '../../api/openapi.ts';
import type { Schema } from '../../api/openapi-schemas.ts';

/** The ids and names to put into requests. */
export interface Values {
  readonly numbers: readonly number[];
  readonly names: readonly string[];
  /** Ids of one kind of records, such as `tasks`; of a kind without any, `numbers` are taken. */
  readonly ids?: ReadonlyMap<string, readonly number[]>;
}

/** The kind of the records that a path names first: `tasks` of `/api/tasks/{id}/comments`, `provision_jobs` of `/api/super/provision-jobs/{id}`. */
export const kindOf = (path: string): string | undefined => /\/([\w-]+)\/\{id\}/.exec(path)?.[1]?.replaceAll('-', '_');

export interface Sent {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
}

export interface Described {
  /** `POST /api/agents/{id}/keys` */
  readonly name: string;
  readonly method: string;
  readonly path: string;
  /** Needs no credential. */
  readonly isPublic: boolean;
  readonly isStream: boolean;
  readonly query: readonly Parameter[];
  readonly body: Schema | undefined;
}

/** The operations of a description, with their references followed. */
export function operationsOf(document: OpenApiDocument): Described[] {
  /** What a schema that contains itself holds inside is left open. */
  const follow = (value: unknown, within: readonly string[] = []): unknown => {
    if (Array.isArray(value)) return value.map((one) => follow(one, within));
    if (typeof value !== 'object' || value === null) return value;
    const { $ref } = value as { $ref?: unknown };
    if (typeof $ref !== 'string') {
      return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, follow(one, within)]));
    }
    if (within.includes($ref)) return {};
    const steps = $ref.slice(2).split('/');
    const found = steps.reduce<unknown>(
      (place, step) => (place as Record<string, unknown> | undefined)?.[step],
      document,
    );
    return follow(found, [...within, $ref]);
  };
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([lower, operation]) => {
      const { parameters = [], requestBody, responses, security } = follow(operation) as Operation;
      const method = lower.toUpperCase();
      const content = (responses[200] as ResponseObject | undefined)?.content ?? {};
      return {
        name: `${method} ${path}`,
        method,
        path,
        isPublic: security?.length === 0,
        isStream: 'text/event-stream' in content,
        query: (parameters as readonly Parameter[]).filter((parameter) => parameter.in === 'query'),
        body: requestBody?.content['application/json']?.schema,
      };
    }),
  );
}

/** The path with every value in the place of each of its parameters; of ids, those of its kind. */
function pathsOf({ path }: Described, { numbers, names, ids }: Values): string[] {
  let paths = [path];
  for (const [parameter] of path.matchAll(/\{\w+\}/g)) {
    const own = parameter === '{id}' ? ids?.get(kindOf(path) ?? '') : undefined;
    const values = [...(own ?? numbers), ...names];
    paths = paths.flatMap((one) => values.map((value) => one.replace(parameter, encodeURIComponent(value))));
  }
  return paths;
}

function queryValues({ name, schema }: Parameter, { numbers, names }: Values): (string | number)[] {
  // A request with any other text is refused before it reads.
  if (name === 'as_of') return ['1'];
  if (Array.isArray(schema.enum)) return schema.enum;
  return schema.type === 'integer' || schema.type === 'number' ? [1, ...numbers.slice(0, 1)] : [...names, '1'];
}

/** The empty query, every parameter alone with each value, and every two of them once, but not with a moment of the past. */
function queriesOf({ query }: Described, values: Values): string[] {
  const text = (pairs: readonly (readonly [Parameter, string | number])[]) =>
    pairs
      .map(([parameter, value], index) => `${index ? '&' : '?'}${parameter.name}=${encodeURIComponent(value)}`)
      .join('');
  const choices = query.map((parameter) => queryValues(parameter, values).map((value) => [parameter, value] as const));
  const ofNow = choices.filter((_, index) => query[index]?.name !== 'as_of');
  const inTurn = <T>(values: readonly T[], turn: number) => values[turn % Math.min(values.length, 2)] as T;
  const pairs = ofNow.flatMap((some, index) =>
    ofNow.slice(index + 1).map((others, nth) => [inTurn(some, index + nth), inTurn(others, nth)]),
  );
  return [[], ...choices.flat().map((one) => [one]), ...pairs].map(text);
}

type Ref = { readonly number: number; readonly name: string };

/** A value that the schema accepts, as far as the schema shows. */
function example(schema: Schema, ref: Ref): unknown {
  if ('const' in schema) return schema.const;
  if (Array.isArray(schema.enum)) return schema.enum[0];
  const [alternative] = (schema.anyOf ?? schema.oneOf ?? []) as Schema[];
  if (alternative) return example(alternative, ref);
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  const {
    minimum = -Infinity,
    maximum = Infinity,
    minLength = 0,
    maxLength = Infinity,
  } = schema as {
    [rule: string]: number | undefined;
  };
  if (type === 'integer' || type === 'number') return Math.min(Math.max(ref.number, minimum), maximum);
  if (type === 'string') {
    const text = schema.format === 'email' ? `${ref.name}@example.org` : ref.name;
    return text.padEnd(minLength, '-').slice(0, maxLength);
  }
  if (type === 'boolean') return true;
  if (type === 'array') return schema.items ? [example(schema.items as Schema, ref)] : [];
  if (type === 'object') {
    const properties = Object.entries((schema.properties ?? {}) as Record<string, Schema>);
    if (properties.length === 0) return { note: ref.name };
    return Object.fromEntries(properties.map(([name, one]) => [name, example(one, ref)]));
  }
  return ref.name;
}

/** With everything, with what is required, with one optional thing more, and with every value of a choice. */
function bodiesOf(schema: Schema, ref: Ref): unknown[] {
  const alternatives = (schema.anyOf ?? schema.oneOf) as Schema[] | undefined;
  if (alternatives) return alternatives.flatMap((one) => bodiesOf(one, ref));
  const full = example(schema, ref);
  const properties = (schema.properties ?? {}) as Record<string, Schema>;
  if (typeof full !== 'object' || full === null || Object.keys(properties).length === 0) return [full];
  const required = (schema.required ?? []) as readonly string[];
  const only = (names: readonly string[]) =>
    Object.fromEntries(Object.entries(full).filter(([name]) => names.includes(name)));
  const bodies: Record<string, unknown>[] = [only(required), full as Record<string, unknown>];
  for (const name of Object.keys(properties)) {
    if (!required.includes(name)) bodies.push(only([...required, name]));
  }
  for (const [name, { enum: choice }] of Object.entries(properties)) {
    if (!Array.isArray(choice)) continue;
    bodies.push(...choice.flatMap((value) => bodies.slice(0, 2).map((body) => ({ ...body, [name]: value }))));
  }
  return bodies;
}

const distinct = (bodies: readonly unknown[]): unknown[] => [
  ...new Map(bodies.map((body) => [JSON.stringify(body), body])).values(),
];

/** Fields of a body that name a record, besides the one in the path, those of inner objects too where they are numbers. */
const idFieldsOf = (schema: Schema | undefined): string[] =>
  [
    ...Object.keys((schema?.properties ?? {}) as object),
    ...numbersBelow(schema, []).map(({ steps }) => String(steps.findLast((step) => typeof step === 'string'))),
  ].filter((name) => /^(id|.*_id)$/.test(name));

/** Ids for a body: those of the kinds that its fields name (`task_id`, or `id` under `/api/users`); all where one is not known. */
function idsFor({ path, body }: Described, { numbers, ids }: Values): readonly number[] {
  const kinds = idFieldsOf(body).map((name) => (name === 'id' ? path.replace(/.*\//, '') : `${name.slice(0, -3)}s`));
  const known = kinds.map((kind) => ids?.get(kind));
  const named = known.every((one) => one !== undefined) ? [...new Set(known.flat())] : [];
  return named.length > 0 ? named : numbers;
}

/** How values of a path meet those of the query or the body, where not all of them with all. */
export interface Sparse {
  /** The path of a record that the caller may read and change. */
  readonly own: string | undefined;
}

/** Each path with each query; if `sparse`, paths of others with none and with one of them, the own one with each. */
function targetsOf(operation: Described, values: Values, sparse: Sparse | undefined): string[] {
  const paths = pathsOf(operation, values);
  const queries = queriesOf(operation, values);
  const [bare = '', ...others] = queries;
  const some = (index: number) => [bare, ...others.slice(index % others.length).slice(0, 1)];
  const targets = paths.flatMap((path, index) =>
    (sparse && paths.length > 1 ? some(index) : queries).map((query) => path + query),
  );
  return sparse?.own === undefined ? targets : [...targets, ...queries.map((query) => sparse.own + query)];
}

/** Requests that only read. */
export function* readsOf(operation: Described, values: Values, sparse?: Sparse): Generator<Sent> {
  for (const path of targetsOf(operation, values, sparse)) yield { method: operation.method, path };
}

/**
 * Requests that may write: each path with every body that differs in shape, and with each id and each name. Where a
 * body has ids of its own, each of them with each path. `extra` gives bodies that cannot be derived from the schema.
 * If `sparse`, each id of a body is sent to the own path and to one of the others.
 */
export function* writesOf(
  operation: Described,
  values: Values,
  extra: (ref: Ref) => readonly unknown[] = () => [],
  sparse?: Sparse,
): Generator<Sent> {
  const { method, body } = operation;
  const { names } = values;
  const numbers = idsFor(operation, values);
  const hasIds = idFieldsOf(body).length > 0;
  const size = hasIds ? Math.max(numbers.length, names.length) : names.length;
  const refs = Array.from({ length: size }, (_, index) => ({
    number: numbers[index % numbers.length] ?? 1,
    name: names[index % names.length] ?? 'nobody',
  }));
  if (!body) {
    // The query says what is to be done.
    for (const path of targetsOf(operation, values, sparse)) yield { method, path };
    return;
  }
  const paths = pathsOf(operation, values);
  const own = sparse?.own;
  const crossed = hasIds && !sparse;
  const pairs = paths.map((path, index) => ({
    path,
    some: crossed || paths.length === 1 ? refs : [refs[index % size] as Ref],
  }));
  if (hasIds && own !== undefined) pairs.push({ path: own, some: refs });
  for (const [index, { path, some }] of pairs.entries()) {
    for (const [nth, ref] of some.entries()) {
      const shapes = distinct(bodiesOf(body, ref));
      // Every shape with the first and with the own path; then what is required, and everything.
      const every = nth === 0 && (index === 0 || path === own);
      for (const one of every ? shapes : shapes.slice(0, 2)) yield { method, path, body: one };
      for (const one of extra(ref)) yield { method, path, body: one };
    }
  }
}

// --- Numbers ---------------------------------------------------------------------------------------------------------

/** A number that a request may have, by the steps to it; in an array, the first. */
export interface NumberField {
  readonly place: 'path' | 'query' | 'body';
  readonly steps: readonly (string | number)[];
  readonly schema: Schema;
}

function numbersBelow(schema: unknown, steps: readonly (string | number)[]): Omit<NumberField, 'place'>[] {
  if (typeof schema !== 'object' || schema === null) return [];
  const { type, properties, items, additionalProperties, anyOf, oneOf, allOf } = schema as Schema;
  const isNumber = [type].flat().some((one) => one === 'integer' || one === 'number');
  const isFixed = 'const' in schema || 'enum' in schema;
  return [
    ...(isNumber && !isFixed ? [{ steps, schema: schema as Schema }] : []),
    ...Object.entries((properties ?? {}) as object).flatMap(([name, one]) => numbersBelow(one, [...steps, name])),
    ...[anyOf, oneOf, allOf].flatMap((forms) =>
      ((forms ?? []) as unknown[]).flatMap((one) => numbersBelow(one, steps)),
    ),
    ...numbersBelow(items, [...steps, 0]),
    ...numbersBelow(additionalProperties, [...steps, 'any']),
  ];
}

/** Every number that the description of an operation has, and every parameter of its path, where clients send numbers. */
export function numbersOf({ path, query, body }: Described): NumberField[] {
  const parameters = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as string);
  return [
    ...parameters.map((name) => ({ place: 'path' as const, steps: [name], schema: { type: 'integer' } })),
    ...query.flatMap(({ name, schema }) =>
      numbersBelow(schema, [name]).map((one) => ({ place: 'query' as const, ...one })),
    ),
    ...numbersBelow(body, []).map((one) => ({ place: 'body' as const, ...one })),
  ];
}

/** A body with this value in one place. What the steps go through is made where it is missing. */
export function withNumber(body: unknown, [step, ...more]: readonly (string | number)[], value: unknown): unknown {
  if (step === undefined) return value;
  const inner = (body as Record<string | number, unknown> | undefined)?.[step];
  const changed = withNumber(inner, more, value);
  if (typeof step === 'number') return [changed, ...(Array.isArray(body) ? body.slice(1) : [])];
  return { ...(typeof body === 'object' && !Array.isArray(body) ? body : undefined), [step]: changed };
}
