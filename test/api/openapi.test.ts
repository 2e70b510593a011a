/**
 * The description of the API: it is a sound OpenAPI document, it and the routes agree both ways, and its schemas take
 * and refuse what the schemas that check requests take and refuse.
 */
import { expect } from 'chai';
import { z } from 'zod';
import { LIMITS } from '../../api/http/limits.ts';
import { defineRoute, type Route, TAGS } from '../../api/http/route.ts';
import {
  describeApi,
  type OpenApiDocument,
  type Operation,
  type Parameter,
  type ResponseObject,
} from '../../api/openapi.ts';
import type { Schema } from '../../api/openapi-schemas.ts';
import { docsRoutes } from '../../api/routes/docs.ts';
import { routes } from '../../api/routes/index.ts';
import { errorSchema, idParams, idValue, limitParam, offsetParam, secondsParam } from '../../shared/contract/common.ts';
import { accepts, follow, resolved } from '../support/openapi.ts';

// --- Reading a description ---------------------------------------------------------------------------------------------

interface Described {
  readonly name: string;
  readonly path: string;
  readonly operation: Operation;
  readonly parameters: readonly Parameter[];
}

const operationsOf = (document: OpenApiDocument): Described[] =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      name: `${method.toUpperCase()} ${path}`,
      path,
      operation,
      parameters: (operation.parameters ?? []).map((parameter) => resolved(document, parameter)),
    })),
  );

const nameOf = (route: Route) => `${route.method.toUpperCase()} ${route.path}`;
const shown = (all: readonly Route[]) => all.filter((route) => !route.hidden);

// --- Is it sound? --------------------------------------------------------------------------------------------------------

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
function problemsOf(document: OpenApiDocument): string[] {
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

// --- Examples --------------------------------------------------------------------------------------------------------

const ok = { 200: { description: 'Well' } };
const plain = { method: 'get', path: '/api/things', tag: 'Agents', summary: 'Things', access: 'viewer' } as const;
const route = (changes: Partial<Route>): Route =>
  defineRoute({ ...plain, responses: ok, handle: () => ({ body: {} }), ...changes } as Route);
const operation = (changes: Partial<Route>) => {
  const [one] = operationsOf(describeApi([route(changes)]));
  return one as Described;
};

/** Schema of the body that a route with it is described with, and the document around it. */
function described(schema: z.ZodType, io: 'input' | 'output') {
  const document = describeApi([
    route(io === 'input' ? { method: 'put', body: schema } : { responses: { 200: { description: 'Well', schema } } }),
  ]);
  const { operation: one } = operationsOf(document)[0] as Described;
  const content = io === 'input' ? one.requestBody?.content : (one.responses[200] as ResponseObject).content;
  return { document, schema: content?.['application/json']?.schema as Schema };
}

describe('API description', () => {
  describe('of all routes', () => {
    let document: OpenApiDocument;
    let operations: Described[];
    before(() => {
      document = describeApi(routes);
      operations = operationsOf(document);
    });

    it('is a sound OpenAPI 3.1 document', () => {
      expect(document.openapi).to.equal('3.1.0');
      expect(problemsOf(document)).to.deep.equal([]);
    });

    it('has the names that the contract fixes', () => {
      expect(document.info).to.include({ title: 'Signalbox', version: '1.3.0' });
      expect(document.servers.map((server) => server.url)).to.deep.equal(['/']);
      expect(document.security).to.deep.equal([{ sessionCookie: [] }, { apiKey: [] }]);
      const { sessionCookie, apiKey } = document.components.securitySchemes;
      expect(sessionCookie).to.include({ type: 'apiKey', in: 'cookie', name: '__Host-mc-session' });
      expect(apiKey).to.include({ type: 'apiKey', in: 'header', name: 'x-api-key' });
      const tags = document.tags.map((tag) => tag.name);
      expect(tags).to.deep.equal(TAGS.filter((tag) => tags.includes(tag)));
    });

    it('describes every route, and nothing else', () => {
      const described = operations.map((one) => one.name);
      expect(described).to.have.members(shown(routes).map(nameOf));
      expect(new Set(described).size).to.equal(described.length);
    });

    it('hides only what is outside the API', () => {
      for (const { path, hidden } of routes) {
        expect(/^\/api\//.test(path), path).to.equal(!hidden);
      }
    });

    it('says for each route who may call it, how often, and what it accepts', () => {
      for (const one of shown(routes)) {
        const { operation, parameters } = operations.find(({ name }) => name === nameOf(one)) as Described;
        const isPublic = one.access === 'public';
        expect(operation.security, nameOf(one)).to.deep.equal(isPublic ? [] : undefined);
        const role = isPublic ? 'none' : one.access === 'any' ? 'viewer' : one.access;
        expect(operation['x-minimum-role'], nameOf(one)).to.equal(role);
        if (one.access !== 'public' && one.access !== 'any') expect(operation.description).to.include(one.access);
        expect(operation['x-scope'], nameOf(one)).to.equal(one.scope ?? 'workspace');
        expect(operation.description.includes('default tenant'), nameOf(one)).to.equal(one.scope === 'deployment');
        expect('401' in operation.responses || isPublic, `${nameOf(one)} without 401`).to.equal(true);
        // Wrong API keys are counted on every call that needs a credential, whether it has a limit of its own or not.
        expect('429' in operation.responses, `429 of ${nameOf(one)}`).to.equal(!isPublic || one.limit !== undefined);
        if (one.limit) expect(operation.description).to.include(`${LIMITS[one.limit].limit} requests per minute`);
        expect(Boolean(operation.requestBody), nameOf(one)).to.equal(Boolean(one.body));
        const keyed = parameters.some((parameter) => parameter.name === 'Idempotency-Key');
        expect(keyed, nameOf(one)).to.equal(one.method === 'post');
      }
    });

    it('answers every error with the Error schema, unless the route has its own', () => {
      const error = { $ref: '#/components/schemas/Error' };
      for (const one of shown(routes)) {
        const { operation } = operations.find(({ name }) => name === nameOf(one)) as Described;
        for (const [status, answer] of Object.entries(operation.responses)) {
          const own = one.responses[Number(status)];
          if (Number(status) < 400 || own?.type || (own?.schema && own.schema !== errorSchema)) continue;
          const { content } = resolved(document, answer);
          expect(content?.['application/json']?.schema, `${nameOf(one)} ${status}`).to.deep.equal(error);
        }
      }
    });

    it('accepts every body that the route accepts', () => {
      // Refinements may make the route refuse more than a schema can say; the other way round only ids as text, which
      // are taken but not advertised.
      const samples: unknown[] = [
        {},
        [],
        'text',
        7,
        null,
        true,
        { id: 1 },
        { name: 'a' },
        { id: 1, action: 'approve' },
      ];
      for (const one of shown(routes)) {
        const { operation } = operations.find(({ name }) => name === nameOf(one)) as Described;
        const schema = operation.requestBody?.content['application/json']?.schema;
        for (const sample of one.body ? samples : []) {
          const taken = one.body?.safeParse(sample).success;
          if (taken)
            expect(accepts(document, schema, sample), `${nameOf(one)} ${JSON.stringify(sample)}`).to.equal(true);
        }
      }
    });

    it('is the same each time', () => {
      expect(describeApi(routes)).to.deep.equal(document);
    });
  });

  describe('of one route', () => {
    it('names operations after method and path', () => {
      const idOf = (method: Route['method'], path: string) => operation({ method, path }).operation.operationId;
      expect(idOf('get', '/api/agents')).to.equal('getAgents');
      expect(idOf('put', '/api/agents/{id}/soul')).to.equal('putAgentsByIdSoul');
      expect(idOf('post', '/api/quality-review')).to.equal('postQualityReview');
      expect(idOf('get', '/health/live')).to.equal('getHealthLive');
    });

    it('turns the properties of params and query into parameters', () => {
      const { parameters } = operation({
        path: '/api/things/{id}/{part}',
        params: idParams.extend({ part: z.string() }),
        query: z.object({
          kind: z.enum(['a', 'b']).describe('what kind'),
          limit: limitParam(50),
          since: secondsParam.describe('from then'),
        }),
      });
      expect(parameters).to.deep.equal([
        { name: 'id', in: 'path', required: true, schema: { type: 'integer', minimum: 1 } },
        { name: 'part', in: 'path', required: true, schema: { type: 'string' } },
        {
          name: 'kind',
          in: 'query',
          required: true,
          description: 'what kind',
          schema: { type: 'string', enum: ['a', 'b'] },
        },
        {
          name: 'limit',
          in: 'query',
          required: false,
          schema: { type: 'integer', minimum: 1, maximum: 200, default: 50 },
        },
        { name: 'since', in: 'query', required: false, description: 'from then', schema: parameters[4]?.schema },
      ]);
      expect(parameters[4]?.schema).to.include({ type: 'integer' });
    });

    it('says which headers a call reads', () => {
      const headersOf = (changes: Partial<Route>) =>
        operation(changes)
          .parameters.filter((parameter) => parameter.in === 'header')
          .map((parameter) => parameter.name);
      expect(headersOf({})).to.deep.equal([]);
      expect(headersOf({ method: 'post' })).to.deep.equal(['Idempotency-Key']);
      expect(headersOf({ limit: 'agent-poll' })).to.deep.equal(['x-agent-name']);
      expect(headersOf({ limit: 'mutation' })).to.deep.equal([]);
      const stream = { 200: { description: 'Frames', type: 'text/event-stream' } };
      expect(headersOf({ responses: stream })).to.deep.equal(['Last-Event-ID']);
    });

    it('adds the answers of the authorization in front of the route', () => {
      const statuses = (changes: Partial<Route>) => Object.keys(operation(changes).operation.responses);
      expect(statuses({ access: 'public' })).to.deep.equal(['200', 'default']);
      expect(statuses({ access: 'public', limit: 'login' })).to.deep.equal(['200', '429', 'default']);
      expect(statuses({ access: 'any' })).to.deep.equal(['200', '401', '429', '503', 'default']);
      expect(statuses({ access: 'viewer', scope: 'deployment' })).to.deep.equal([
        '200',
        '401',
        '403',
        '429',
        '503',
        'default',
      ]);
      expect(statuses({ access: 'admin', limit: 'heavy', query: z.object({}) })).to.deep.equal([
        '200',
        '400',
        '401',
        '403',
        '429',
        '503',
        'default',
      ]);
      // A repeated key, the Origin check, and what can be wrong with any body.
      expect(statuses({ method: 'post', access: 'public' })).to.deep.equal(['200', '400', '403', '409', 'default']);
      expect(statuses({ method: 'put', access: 'any', body: z.object({}) })).to.deep.equal([
        '200',
        '400',
        '401',
        '403',
        '413',
        '415',
        '429',
        '503',
        'default',
      ]);
    });

    it('keeps the route’s own description of an error', () => {
      const mine = { description: 'No such thing here', schema: errorSchema };
      const { responses } = operation({ responses: { ...ok, 404: mine }, refuses: [409] }).operation;
      expect(responses[404]).to.have.property('description', 'No such thing here');
      expect(responses[409]).to.deep.equal({ $ref: '#/components/responses/Conflict' });
    });

    it('supports optional bodies, answers without a body and other media types', () => {
      const { requestBody, responses } = operation({
        method: 'delete',
        body: z.object({}),
        bodyOptional: true,
        responses: { 204: { description: 'Gone' }, 200: { description: 'A table', type: 'text/csv' } },
      }).operation;
      expect(requestBody?.required).to.equal(false);
      expect(responses[204]).to.deep.equal({ description: 'Gone' });
      expect(responses[200]).to.have.deep.property('content', { 'text/csv': { schema: { type: 'string' } } });
    });

    it('states rate limits and what they are counted by', () => {
      const textOf = (limit: Route['limit']) => operation({ limit }).operation.description;
      expect(textOf('mutation')).to.include('60 requests per minute per address').and.include('class `mutation`');
      expect(textOf('agent-heartbeat')).to.include('30 requests per minute per agent');
      expect(textOf('users')).to.include('20 requests per minute per caller');
    });

    it('leaves out hidden routes, and tags that only they have', () => {
      const document = describeApi([route({}), route({ path: '/page', tag: 'Docs', hidden: true })]);
      expect(Object.keys(document.paths)).to.deep.equal(['/api/things']);
      expect(document.tags.map((tag) => tag.name)).to.deep.equal(['Agents']);
    });

    it('shows /api/docs, but neither the page nor its files', () => {
      expect(shown(docsRoutes(() => [])).map(nameOf)).to.deep.equal(['GET /api/docs']);
    });
  });

  describe('schemas', () => {
    /** What both sides must take and refuse. */
    const CASES: { what: string; schema: z.ZodType; takes: unknown[]; refuses: unknown[] }[] = [
      {
        what: 'an object with bounds, choices and nullable fields',
        schema: z.object({
          name: z.string().min(1).max(5),
          status: z.enum(['on', 'off']).default('off'),
          note: z.string().max(3).nullable().optional(),
          mood: z.enum(['good', 'bad']).nullable().optional(),
          count: z.int().positive().max(9).optional(),
        }),
        takes: [
          { name: 'a' },
          { name: 'abcde', status: 'on', note: null, mood: null, count: 9 },
          { name: 'a', note: 'abc', mood: 'bad', count: 1, more: true },
        ],
        refuses: [
          {},
          { name: '' },
          { name: 'abcdef' },
          { name: 'a', status: 'idle' },
          { name: 'a', note: 'abcd' },
          { name: 'a', mood: 'so so' },
          { name: 'a', count: 0 },
          { name: 'a', count: 10 },
          { name: 'a', count: 1.5 },
          { name: 7 },
          [],
          null,
          'a',
        ],
      },
      {
        what: 'a strict object',
        schema: z.strictObject({ a: z.boolean(), b: z.array(z.string()).max(2).optional() }),
        takes: [{ a: true }, { a: false, b: [] }, { a: true, b: ['x', 'y'] }],
        refuses: [{}, { a: 1 }, { a: true, c: 1 }, { a: true, b: ['x', 'y', 'z'] }, { a: true, b: [1] }],
      },
      {
        what: 'one of several objects',
        schema: z.discriminatedUnion('action', [
          z.object({ action: z.literal('add'), name: z.string() }),
          z.object({ action: z.literal('remove'), id: z.int() }),
        ]),
        takes: [
          { action: 'add', name: 'a' },
          { action: 'remove', id: 1 },
        ],
        refuses: [{ action: 'add' }, { action: 'remove', id: 'a' }, { action: 'toggle' }, {}],
      },
      {
        what: 'a record of numbers',
        schema: z.record(z.string(), z.number().min(0)),
        takes: [{}, { a: 0, b: 1.5 }],
        refuses: [{ a: -1 }, { a: '1' }, [], null],
      },
      {
        what: 'an id of a record',
        schema: z.object({ id: idValue }),
        takes: [{ id: 1 }, { id: 4_000_000_000 }],
        refuses: [{ id: 0 }, { id: -1 }, { id: 1.5 }, { id: null }, { id: true }, { id: 'one' }, {}],
      },
      {
        what: 'an error',
        schema: errorSchema,
        takes: [{ error: 'no' }, { error: 'no', details: ['a: b'], code: 'X', hint: 'y' }],
        refuses: [{}, { error: 1 }, { error: 'no', details: 'a' }],
      },
    ];
    for (const { what, schema, takes, refuses } of CASES) {
      it(`accept and refuse the same as zod: ${what}`, () => {
        const { document, schema: written } = described(schema, 'input');
        expect(problemsOf(document)).to.deep.equal([]);
        for (const one of takes) {
          expect(schema.safeParse(one).success, `zod ${JSON.stringify(one)}`).to.equal(true);
          expect(accepts(document, written, one), `description ${JSON.stringify(one)}`).to.equal(true);
        }
        for (const one of refuses) {
          expect(schema.safeParse(one).success, `zod ${JSON.stringify(one)}`).to.equal(false);
          expect(accepts(document, written, one), `description ${JSON.stringify(one)}`).to.equal(false);
        }
      });
    }

    it('accept and refuse the same as zod: parameters, which arrive as text', () => {
      const paramsOf = (changes: Partial<Route>) => {
        const document = describeApi([route(changes)]);
        const { parameters } = operationsOf(document)[0] as Described;
        return (name: string, value: unknown) =>
          accepts(document, parameters.find((parameter) => parameter.name === name)?.schema, value);
      };
      const takesId = paramsOf({ path: '/api/things/{id}', params: idParams });
      for (const id of [1, 42, 0, -1, 1.5, 'one']) {
        expect(takesId('id', id), `id ${id}`).to.equal(idParams.safeParse({ id: String(id) }).success);
      }
      // These two refuse nothing: what is outside their range is moved into it.
      const paging = z.object({ limit: limitParam(50, 500), offset: offsetParam });
      const takes = paramsOf({ query: paging });
      for (const value of [-1, 0, 1, 50, 500, 501]) {
        const read = paging.parse({ limit: String(value), offset: String(value) });
        expect(takes('limit', value), `limit ${value}`).to.equal(read.limit === value);
        expect(takes('offset', value), `offset ${value}`).to.equal(read.offset === value);
      }
    });

    it('are replaced where the contract overrides them, but keep their descriptions', () => {
      const moment = z
        .string()
        .transform((text) => new Date(text))
        .meta({ override: { type: 'string', format: 'date' } });
      const body = z.object({
        plain: moment,
        told: moment.describe('a day').optional(),
        none: moment.nullable().describe('a day or none'),
        // A field may well be called like the key of the contract's own marking.
        override: z.boolean(),
      });
      for (const io of ['input', 'output'] as const) {
        const { schema } = described(body, io);
        expect(schema.properties, io).to.deep.equal({
          plain: { type: 'string', format: 'date' },
          told: { type: 'string', format: 'date', description: 'a day' },
          none: { type: ['string', 'null'], format: 'date', description: 'a day or none' },
          override: { type: 'boolean' },
        });
      }
    });

    it('allow new fields in answers, except where the contract forbids them', () => {
      const { schema } = described(z.object({ open: z.object({}), closed: z.strictObject({}) }), 'output');
      expect(schema).not.to.have.property('additionalProperties');
      expect(schema).to.have.nested.property('properties.closed.additionalProperties', false);
      expect(schema).not.to.have.nested.property('properties.open.additionalProperties');
    });

    it('appear once under their name if both directions are the same', () => {
      const Thing = z.object({ a: z.string() }).meta({ id: 'Thing' });
      const document = describeApi([
        route({ method: 'put', body: Thing, responses: { 200: { description: 'Well', schema: Thing } } }),
      ]);
      expect(Object.keys(document.components.schemas)).to.deep.equal(['Error', 'Thing']);
    });

    it('appear twice if they differ, as do all schemas that refer to them', () => {
      const Leaf = z.object({ a: z.string().default('x') }).meta({ id: 'Leaf' });
      const Tree = z.object({ leaf: Leaf }).meta({ id: 'Tree' });
      const document = describeApi([
        route({ method: 'put', body: Tree, responses: { 200: { description: 'Well', schema: Tree } } }),
      ]);
      const { schemas } = document.components;
      expect(Object.keys(schemas)).to.deep.equal(['Error', 'Leaf', 'LeafInput', 'Tree', 'TreeInput']);
      expect(schemas.Leaf).to.have.deep.property('required', ['a']);
      expect(schemas.LeafInput).not.to.have.property('required');
      expect(schemas.TreeInput).to.have.deep.nested.property('properties.leaf', {
        $ref: '#/components/schemas/LeafInput',
      });
      expect(schemas.Tree).to.have.deep.nested.property('properties.leaf', { $ref: '#/components/schemas/Leaf' });
      expect(problemsOf(document)).to.deep.equal([]);
    });

    it('may be recursive if they have a name', () => {
      const Node = z
        .object({
          get next() {
            return Node.optional();
          },
        })
        .meta({ id: 'Node' });
      const { document, schema } = described(Node, 'input');
      expect(problemsOf(document)).to.deep.equal([]);
      expect(accepts(document, schema, { next: { next: {} } })).to.equal(true);
      expect(accepts(document, schema, { next: { next: 1 } })).to.equal(false);
    });
  });

  describe('refuses to describe anything inaccurately', () => {
    const failing: [string, () => unknown, RegExp][] = [
      [
        'a schema that JSON cannot say',
        () => described(z.object({ at: z.date() }), 'input'),
        /PUT \/api\/things.*override/,
      ],
      ['path parameters that are not in the path', () => describeApi([route({ params: idParams })]), /no \{id\}/],
      ['a query that is no object', () => describeApi([route({ query: z.string() })]), /must be one object/],
      ['a route twice', () => describeApi([route({}), route({})]), /the same operation/],
      [
        'two schemas under one name',
        () =>
          describeApi([
            route({ path: '/api/a', method: 'put', body: z.object({ a: z.string() }).meta({ id: 'Twin' }) }),
            route({ path: '/api/b', method: 'put', body: z.object({ b: z.string() }).meta({ id: 'Twin' }) }),
          ]),
        /Twin/,
      ],
      [
        'a nameless schema that contains itself',
        () => {
          const node = z.object({
            get next() {
              return node.optional();
            },
          });
          return described(node, 'input');
        },
        /needs a name/,
      ],
    ];
    for (const [what, run, message] of failing) {
      it(what, () => expect(run).to.throw(message));
    }
  });

  it('is checked by rules that detect errors', () => {
    const sound = describeApi([route({ query: z.object({ limit: limitParam(5) }) })]);
    expect(problemsOf(sound)).to.deep.equal([]);
    const get = '#/paths/~1api~1things/get';
    const broken: [string, object, RegExp][] = [
      [`${get}/parameters/0/schema`, { override: {} }, /override is no known keyword/],
      [`${get}/parameters/0/schema`, { type: 'int' }, /type has a wrong value/],
      [`${get}/parameters/0/schema`, { minimum: 300 }, /has no value/],
      [`${get}/parameters/0/schema`, { default: 0 }, /default of limit is not allowed/],
      [`${get}/parameters/0`, { in: 'path' }, /do not match the path/],
      [`${get}/responses`, { 200: { $ref: '#/no' } }, /#\/no leads nowhere/],
      [get, { tags: ['Other'] }, /tag that is not listed/],
      ['#/components/schemas/Error', { required: ['x'] }, /requires x/],
    ];
    for (const [place, change, problem] of broken) {
      const document = structuredClone(sound);
      Object.assign(follow(document, place) as object, change);
      expect(problemsOf(document).join('\n'), place).to.match(problem);
    }
  });
});
