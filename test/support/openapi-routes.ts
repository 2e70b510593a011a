/** Routes to be described, and rules by which a description of the API is sound. */
import type { z } from 'zod';
import { defineRoute, type Route, type Rules } from '../../api/http/route.ts';
import { describeApi, type OpenApiDocument, type ResponseObject } from '../../api/openapi.ts';
import type { Schema } from '../../api/openapi-schemas.ts';
import { accepts, type Described, follow, operationsOf, resolved } from './openapi.ts';

export const nameOf = (route: Route) => `${route.method.toUpperCase()} ${route.path}`;
export const shown = (all: readonly Route[]) => all.filter((route) => !route.hidden);

const TYPES = ['string', 'number', 'integer', 'boolean', 'object', 'array', 'null'];
const isCount = (value: unknown) => Number.isSafeInteger(value) && Number(value) >= 0;
const isText = (value: unknown) => typeof value === 'string';
const isNumber = (value: unknown) => typeof value === 'number' && Number.isFinite(value);
const isFlag = (value: unknown) => typeof value === 'boolean';
const anything = () => true;
const isPattern = (value: unknown) => {
  try {
    return new RegExp(String(value), 'u') instanceof RegExp;
  } catch (error) {
    return !(error instanceof SyntaxError);
  }
};
const isTypeName = (value: unknown) =>
  (Array.isArray(value) && value.length > 0 && new Set(value).size === value.length ? value : [value]).every((one) =>
    TYPES.includes(one as string),
  );
const isNameList = (value: unknown) =>
  Array.isArray(value) && value.every(isText) && new Set(value).size === value.length;

/** Keywords of JSON Schema 2020-12 that the description uses, and what they may hold. */
const KEYWORDS: Readonly<Record<string, (value: unknown) => boolean>> = {
  $ref: isText,
  type: isTypeName,
  enum: (value) => Array.isArray(value) && value.length > 0,
  const: anything,
  default: anything,
  examples: Array.isArray,
  title: isText,
  description: isText,
  deprecated: isFlag,
  format: isText,
  contentEncoding: isText,
  pattern: isPattern,
  minLength: isCount,
  maxLength: isCount,
  minimum: isNumber,
  maximum: isNumber,
  exclusiveMinimum: isNumber,
  exclusiveMaximum: isNumber,
  multipleOf: (value) => isNumber(value) && Number(value) > 0,
  minItems: isCount,
  maxItems: isCount,
  uniqueItems: isFlag,
  minProperties: isCount,
  maxProperties: isCount,
  required: isNameList,
};
const HOLDS_ONE = ['items', 'additionalProperties', 'propertyNames', 'not'];
const HOLDS_LIST = ['anyOf', 'oneOf', 'allOf', 'prefixItems'];
const HOLDS_NAMED = ['properties', 'patternProperties'];

/** What is wrong with a schema, one line per finding. */
function schemaProblems(schema: unknown, where: string): string[] {
  if (typeof schema === 'boolean') return [];
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) return [`${where} is no schema`];
  const found: string[] = [];
  for (const [keyword, value] of Object.entries(schema)) {
    const here = `${where}/${keyword}`;
    if (HOLDS_ONE.includes(keyword)) found.push(...schemaProblems(value, here));
    else if (HOLDS_LIST.includes(keyword)) {
      if (!Array.isArray(value) || value.length === 0) found.push(`${here} is no list of schemas`);
      else found.push(...value.flatMap((one, index) => schemaProblems(one, `${here}/${index}`)));
    } else if (HOLDS_NAMED.includes(keyword)) {
      found.push(...Object.entries(value as object).flatMap(([name, one]) => schemaProblems(one, `${here}/${name}`)));
    } else if (!Object.hasOwn(KEYWORDS, keyword)) found.push(`${here} is no known keyword`);
    else if (!KEYWORDS[keyword]?.(value)) found.push(`${here} has a wrong value`);
  }
  const { properties, required, minimum, maximum, minLength, maxLength } = schema as Record<string, unknown>;
  for (const name of properties && Array.isArray(required) ? required : []) {
    if (!Object.hasOwn(properties as object, name)) found.push(`${where} requires ${name} but does not describe it`);
  }
  if (Number(minimum) > Number(maximum) || Number(minLength) > Number(maxLength)) found.push(`${where} has no value`);
  return found;
}

/** What is wrong with a document, one line per finding. */
export function problemsOf(document: OpenApiDocument): string[] {
  const found: string[] = [];
  const check = (ok: unknown, problem: string) => {
    if (!ok) found.push(problem);
  };
  const schemasBelow = (value: unknown, where: string): void => {
    if (typeof value !== 'object' || value === null) return;
    for (const [key, part] of Object.entries(value)) {
      if (key === 'schema') found.push(...schemaProblems(part, `${where}/schema`));
      else schemasBelow(part, `${where}/${key}`);
    }
  };
  const referencesBelow = (value: unknown, where: string): void => {
    if (typeof value !== 'object' || value === null) return;
    for (const [key, part] of Object.entries(value)) {
      if (key === '$ref' && typeof part === 'string') check(follow(document, part), `${where}: ${part} leads nowhere`);
      else referencesBelow(part, `${where}/${key}`);
    }
  };
  referencesBelow(document, '#');
  schemasBelow(document.paths, '#/paths');
  schemasBelow(document.components.parameters, '#/components/parameters');
  schemasBelow(document.components.responses, '#/components/responses');
  for (const [id, schema] of Object.entries(document.components.schemas)) {
    check(/^[\w.-]+$/.test(id), `the schema name ${id} is not allowed`);
    found.push(...schemaProblems(schema, `#/components/schemas/${id}`));
  }

  const operations = operationsOf(document);
  const ids = operations.map(({ operation }) => operation.operationId);
  for (const id of ids.filter((one, index) => ids.indexOf(one) !== index))
    found.push(`two operations are called ${id}`);
  const tags = document.tags.map((tag) => tag.name);
  check(new Set(tags).size === tags.length, 'a tag is listed twice');
  for (const tag of tags) {
    check(
      operations.some(({ operation }) => operation.tags.includes(tag)),
      `the tag ${tag} is not used`,
    );
  }
  for (const { name, path, operation, parameters } of operations) {
    check(/^[a-z][A-Za-z0-9]+$/.test(operation.operationId), `${name}: operationId ${operation.operationId}`);
    check(operation.summary, `${name} has no summary`);
    check(
      operation.tags.every((tag) => tags.includes(tag)),
      `${name} has a tag that is not listed`,
    );
    const inTemplate = [...path.matchAll(/\{(\w+)\}/g)].map(([, one]) => one);
    const inPath = parameters.filter((parameter) => parameter.in === 'path').map((parameter) => parameter.name);
    check(inTemplate.join() === inPath.join(), `${name}: path parameters ${inPath.join()} do not match the path`);
    const keys = parameters.map((parameter) => `${parameter.in} ${parameter.name}`);
    check(new Set(keys).size === keys.length, `${name} has a parameter twice`);
    for (const parameter of parameters) {
      check(parameter.in !== 'path' || parameter.required, `${name}: the path parameter ${parameter.name} is optional`);
      const { schema } = parameter;
      if ('default' in schema) {
        check(accepts(document, schema, schema.default), `${name}: the default of ${parameter.name} is not allowed`);
      }
    }
    check(!operation.requestBody || !name.startsWith('GET '), `${name} has a body`);
    check(
      Object.keys(operation.responses).some((status) => /^[23]\d\d$/.test(status)),
      `${name} never succeeds`,
    );
    for (const [status, answer] of Object.entries(operation.responses)) {
      check(/^([1-5]\d\d|default)$/.test(status), `${name}: ${status} is no status`);
      check(resolved(document, answer)?.description, `${name}: the answer ${status} has no description`);
    }
  }
  return found;
}

export const ok = { 200: { description: 'Well' } };
const plain = { method: 'get', path: '/api/tasks', summary: 'Tasks', access: 'viewer', limit: 'none' } as const;
/** The rules that agree with the rest of a route. */
const rulesOf = ({ method = 'get', access, agents, noPast, scope, shared }: Partial<Route>): Rules => ({
  agentKeys: agents ? 'own' : 'any',
  strict: scope === 'deployment' || shared !== undefined ? 'refused' : 'allowed',
  past: method === 'get' && access !== 'public' && noPast === undefined ? 'all' : 'none',
  prompts: 'none',
});
export const route = (changes: Partial<Route>): Route =>
  defineRoute({
    ...plain,
    rules: rulesOf(changes),
    responses: ok,
    handle: () => ({ body: {} }),
    ...changes,
  } as Parameters<typeof defineRoute>[0]);
export const operation = (changes: Partial<Route>) => {
  const [one] = operationsOf(describeApi([route(changes)]));
  return one as Described;
};

/** Schema of the body that a route with it is described with, and the document around it. */
export function described(schema: z.ZodType, io: 'input' | 'output') {
  const document = describeApi([
    route(io === 'input' ? { method: 'put', body: schema } : { responses: { 200: { description: 'Well', schema } } }),
  ]);
  const { operation: one } = operationsOf(document)[0] as Described;
  const content = io === 'input' ? one.requestBody?.content : (one.responses[200] as ResponseObject).content;
  return { document, schema: content?.['application/json']?.schema as Schema };
}
