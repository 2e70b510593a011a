/**
 * The description of the API: it is a sound OpenAPI document, and it and the routes agree both ways.
 */
import { expect } from 'chai';
import { z } from 'zod';
import { LIMITS } from '../../api/http/limits.ts';
import type { Route } from '../../api/http/route.ts';
import { describeApi, type OpenApiDocument, TAGS } from '../../api/openapi.ts';
import { docsRoutes } from '../../api/routes/docs.ts';
import { routes } from '../../api/routes/index.ts';
import { errorSchema, idParams, limitParam, MAX_ID, secondsParam } from '../../shared/contract/common.ts';
import { accepts, type Described, follow, operationsOf, resolved } from '../support/openapi.ts';
import { described, nameOf, ok, operation, problemsOf, route, shown } from '../support/openapi-routes.ts';

describe('API description', () => {
  describe('of the whole API', () => {
    let document: OpenApiDocument;
    let operations: Described[];
    before(() => {
      document = describeApi(routes);
      operations = operationsOf(document);
    });

    it('is a valid OpenAPI 3.1 document', () => {
      expect(document.openapi).to.equal('3.1.0');
      expect(problemsOf(document)).to.deep.equal([]);
    });

    it('uses the names that the contract fixes', () => {
      expect(document.info).to.include({ title: 'Signalbox', version: '1.3.0' });
      expect(document.servers.map((server) => server.url)).to.deep.equal(['/']);
      expect(document.security).to.deep.equal([{ sessionCookie: [] }, { apiKey: [] }]);
      const { sessionCookie, apiKey } = document.components.securitySchemes;
      expect(sessionCookie).to.include({ type: 'apiKey', in: 'cookie', name: '__Host-mc-session' });
      expect(apiKey).to.include({ type: 'apiKey', in: 'header', name: 'x-api-key' });
      const tags = document.tags.map((tag) => tag.name);
      expect(tags).to.deep.equal(TAGS.map(([name]) => name).filter((name) => tags.includes(name)));
    });

    it('describes every route, and nothing else', () => {
      const described = operations.map((one) => one.name);
      expect(described).to.have.members(shown(routes).map(nameOf));
      expect(new Set(described).size).to.equal(described.length);
    });

    it('hides only routes that are not part of the API', () => {
      for (const { path, hidden } of routes) {
        expect(/^\/api\//.test(path), path).to.equal(!hidden);
      }
    });

    it('states for each route who may call it, how often, and what it accepts', () => {
      for (const one of shown(routes)) {
        const { operation, parameters } = operations.find(({ name }) => name === nameOf(one)) as Described;
        const isPublic = one.access === 'public';
        expect(operation.security, nameOf(one)).to.deep.equal(isPublic ? [] : undefined);
        const role = isPublic ? 'none' : one.access === 'any' ? 'viewer' : one.access;
        expect(operation['x-minimum-role'], nameOf(one)).to.equal(role);
        if (one.access !== 'public' && one.access !== 'any') expect(operation.description).to.include(one.access);
        expect(operation['x-scope'], nameOf(one)).to.equal(one.scope ?? 'workspace');
        const access = operation.description.split('\n').find((line) => line.startsWith('**Access:**'));
        expect(access?.includes('default tenant'), nameOf(one)).to.equal(one.scope === 'deployment');
        expect('401' in operation.responses || isPublic, `${nameOf(one)} without 401`).to.equal(true);
        // Wrong API keys are counted on every call that needs a credential, whether it has a limit of its own or not.
        expect('429' in operation.responses, `429 of ${nameOf(one)}`).to.equal(!isPublic || one.limit !== undefined);
        if (one.limit) expect(operation.description).to.include(`${LIMITS[one.limit].limit} requests per minute`);
        expect(Boolean(operation.requestBody), nameOf(one)).to.equal(Boolean(one.body));
        const keyed = parameters.some((parameter) => parameter.name === 'Idempotency-Key');
        expect(keyed, nameOf(one)).to.equal(one.method === 'post');
      }
    });

    it('uses the Error schema for every error, unless the route has its own', () => {
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

    it('accepts every body that a route accepts', () => {
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
    it('derives operation names from method and path', () => {
      const idOf = (method: Route['method'], path: string) => operation({ method, path }).operation.operationId;
      expect(idOf('get', '/api/agents')).to.equal('getAgents');
      expect(idOf('put', '/api/agents/{id}/soul')).to.equal('putAgentsByIdSoul');
      expect(idOf('post', '/api/quality-review')).to.equal('postQualityReview');
      expect(idOf('get', '/health/live')).to.equal('getHealthLive');
    });

    it('turns params and query properties into parameters', () => {
      const { parameters } = operation({
        path: '/api/tasks/{id}/{part}',
        params: idParams.extend({ part: z.string() }),
        query: z.object({
          kind: z.enum(['a', 'b']).describe('what kind'),
          limit: limitParam(50),
          since: secondsParam.describe('from then'),
        }),
      });
      expect(parameters).to.deep.equal([
        { name: 'id', in: 'path', required: true, schema: { type: 'integer', minimum: 1, maximum: MAX_ID } },
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
        parameters[5],
      ]);
      expect(parameters[5]).to.deep.include({ name: 'as_of', in: 'query', required: false });
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

    it('adds the responses of the authorization before the route', () => {
      const statuses = (changes: Partial<Route>) =>
        Object.keys(operation({ noPast: 'it is a test', ...changes }).operation.responses).join(' ');
      const past = operation({ access: 'viewer' });
      expect(Object.keys(past.operation.responses)).to.include.members(['304', '400', '409']);
      expect(operation({ noPast: 'it is a test' }).parameters.map(({ name }) => name)).not.to.include('as_of');
      expect(statuses({ access: 'public' })).to.equal('200 400 default');
      expect(statuses({ access: 'public', limit: 'login' })).to.equal('200 400 429 default');
      expect(statuses({ access: 'any' })).to.equal('200 400 401 429 503 default');
      expect(statuses({ access: 'viewer', scope: 'deployment' })).to.equal('200 400 401 403 429 503 default');
      expect(statuses({ access: 'admin', limit: 'heavy', query: z.object({}) })).to.equal(
        '200 400 401 403 429 503 default',
      );
      // A repeated key, the Origin check, and what can be wrong with any body.
      expect(statuses({ method: 'post', access: 'public' })).to.equal('200 400 403 409 default');
      expect(statuses({ method: 'put', access: 'any', body: z.object({}) })).to.equal(
        '200 400 401 403 413 415 429 503 default',
      );
    });

    it('keeps the route’s own description of an error', () => {
      const mine = { description: 'No such thing here', schema: errorSchema };
      const { responses } = operation({ responses: { ...ok, 404: mine }, refuses: [409] }).operation;
      expect(responses[404]).to.have.property('description', 'No such thing here');
      expect(responses[409]).to.deep.equal({ $ref: '#/components/responses/Conflict' });
    });

    it('supports optional bodies, responses without a body and other media types', () => {
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

    it('states rate limits and what they apply to', () => {
      const textOf = (limit: Route['limit']) => operation({ limit }).operation.description;
      expect(textOf('mutation')).to.include('60 requests per minute per address').and.include('class `mutation`');
      expect(textOf('agent-heartbeat')).to.include('30 requests per minute per agent');
      expect(textOf('users')).to.include('20 requests per minute per caller');
    });

    it('omits hidden routes, and tags used only by them', () => {
      const document = describeApi([route({}), route({ path: '/page', hidden: true })]);
      expect(Object.keys(document.paths)).to.deep.equal(['/api/tasks']);
      expect(document.tags.map((tag) => tag.name)).to.deep.equal(['Tasks']);
    });

    it('includes /api/docs, but not the page or its files', () => {
      expect(shown(docsRoutes(() => [])).map(nameOf)).to.deep.equal(['GET /api/docs']);
    });
  });

  describe('rejects inaccurate descriptions', () => {
    const failing: [string, () => unknown, RegExp][] = [
      [
        'a schema that JSON cannot say',
        () => described(z.object({ at: z.date() }), 'input'),
        /PUT \/api\/tasks.*override/,
      ],
      ['path parameters that are not in the path', () => describeApi([route({ params: idParams })]), /no \{id\}/],
      ['a query that is no object', () => describeApi([route({ query: z.string() })]), /must be one object/],
      ['a path of no group', () => describeApi([route({ path: '/api/things' })]), /no group has this path/],
      ['a route twice', () => describeApi([route({}), route({})]), /the same operation/],
      [
        'two schemas under one name',
        () =>
          describeApi([
            route({ path: '/api/agents/a', method: 'put', body: z.object({ a: z.string() }).meta({ id: 'Twin' }) }),
            route({ path: '/api/agents/b', method: 'put', body: z.object({ b: z.string() }).meta({ id: 'Twin' }) }),
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
    const get = '#/paths/~1api~1tasks/get';
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
