/** The tools of MCP: their schemas are those of the routes, and their calls are requests to the routes. */
import { expect } from 'chai';
import { z } from 'zod';
import { targetOf } from '../../api/http/inside.ts';
import { defineRoute, type McpTool, type Route } from '../../api/http/route.ts';
import { resourcesOf } from '../../api/mcp/resources.ts';
import { callOf, declaredOn, type Tool, toolsOf } from '../../api/mcp/tools.ts';
import { describeApi, type Operation, PARAMETERS } from '../../api/openapi.ts';
import { routes } from '../../api/routes/index.ts';

const tools = toolsOf(routes);
const api = describeApi(routes);
const toolNamed = (name: string): Tool => tools.get(name) ?? expect.fail(`there is no tool ${name}`);

type Named = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

/** A schema of the API description, with its components in their places. */
function whole(value: unknown, schemas: Named): unknown {
  if (Array.isArray(value)) return value.map((part) => whole(part, schemas));
  if (typeof value !== 'object' || value === null) return value;
  const { $ref, ...rest } = value as Record<string, unknown>;
  const named = typeof $ref === 'string' ? { ...schemas[$ref.split('/').at(-1) as string], ...rest } : rest;
  return Object.fromEntries(Object.entries(named).map(([key, part]) => [key, whole(part, schemas)]));
}

/** The arguments of a call, according to the API description: by name, and which are required. */
function described(route: Route): { readonly properties: Named; readonly required: readonly string[] } {
  const operation = api.paths[route.path]?.[route.method] as Operation;
  const schemas = api.components.schemas as Named;
  const properties: Record<string, Record<string, unknown>> = {};
  const required: string[] = [];
  for (const parameter of operation.parameters ?? []) {
    if ('$ref' in parameter || parameter.in === 'header') continue;
    const { name, description, deprecated, schema } = parameter;
    const shown = { ...(description !== undefined && { description }), ...(deprecated && { deprecated }), ...schema };
    properties[name] = whole(shown, schemas) as Record<string, unknown>;
    if (parameter.required) required.push(name);
  }
  const body = whole(operation.requestBody?.content['application/json']?.schema ?? {}, schemas) as {
    readonly properties?: Record<string, Record<string, unknown>>;
    readonly required?: readonly string[];
  };
  return { properties: { ...properties, ...body.properties }, required: [...required, ...(body.required ?? [])] };
}

/** What differs on purpose: Unicode patterns, which not every host compiles, and the default number of rows. */
function forHosts(name: string, schema: Readonly<Record<string, unknown>>): unknown {
  const anyType = JSON.stringify(schema).replaceAll('"additionalProperties":{}', '"additionalProperties":true');
  const { pattern, default: given, ...rest } = JSON.parse(anyType) as Record<string, unknown>;
  const fewer = name.endsWith('limit') && typeof given === 'number' ? Math.min(given, 20) : given;
  return {
    ...rest,
    ...(pattern !== undefined && !String(pattern).includes('\\p{') && { pattern }),
    ...(fewer !== undefined && { default: fewer }),
  };
}

describe('MCP tools', () => {
  for (const route of routes) {
    for (const declared of declaredOn(route)) {
      it(`${declared.tool}: the input schema is that of ${route.method.toUpperCase()} ${route.path}`, () => {
        const { inputSchema, annotations, title } = toolNamed(declared.tool);
        const { as_of, idempotency_key, full_texts: _, ...own } = inputSchema.properties as Named;
        const { properties, required } = described(route);
        const { takes, sets = {} } = declared;
        const bodyFields = new Set(
          Object.keys(
            (
              z.toJSONSchema(route.body ?? z.object({}), { io: 'input', unrepresentable: 'any' }) as {
                properties?: object;
              }
            ).properties ?? {},
          ),
        );
        const taken = Object.entries(properties).filter(
          ([name]) => !bodyFields.has(name) || ((takes?.includes(name) ?? true) && !(name in sets)),
        );
        expect(own).to.deep.equal(Object.fromEntries(taken.map(([name, schema]) => [name, forHosts(name, schema)])));
        expect(inputSchema.required).to.have.members(required.filter((name) => !(name in sets)));
        // What every call of this kind takes.
        if (as_of) expect(as_of.description).to.equal(PARAMETERS.AsOf.description);
        if (route.method === 'post')
          expect(idempotency_key?.description).to.equal(PARAMETERS.IdempotencyKey.description);
        else expect(idempotency_key).to.equal(undefined);
        expect(annotations.readOnlyHint).to.equal(route.method === 'get' && !route.writes);
        expect(title).to.equal(declared.summary ?? route.summary);
      });
    }
  }

  it('have names that the protocol allows and schemas without references', () => {
    for (const { name, inputSchema } of tools.values()) {
      expect(name).to.match(/^[a-z][a-z_]{2,63}$/);
      expect(JSON.stringify(inputSchema)).not.to.include('$ref');
    }
  });

  it('cover each part of an agent’s and an analyst’s day', () => {
    const [reading, writing] = [true, false].map((reads) =>
      [...tools.values()].filter(({ annotations }) => annotations.readOnlyHint === reads).map(({ name }) => name),
    );
    expect(writing).to.include.members([
      ...['register_agent', 'send_heartbeat', 'next_task', 'update_task', 'comment_on_task', 'ask_for_review'],
      ...['send_message', 'report_tokens'],
    ]);
    expect(reading).to.include.members([
      ...['who_am_i', 'read_messages', 'search', 'list_agents', 'get_attribution', 'get_diagnostics', 'get_costs'],
      ...['list_activities', 'list_audit_entries', 'compare_moments', 'get_causes'],
    ]);
  });

  it('pass arguments to the path, the query, the body and the header', () => {
    const { params, query } = callOf(toolNamed('get_task'), { id: 7, include: 'history', history_limit: null });
    expect({ params, query }).to.deep.equal({
      params: { id: '7' },
      query: { include: 'history', history_limit: '20' },
    });
    expect(callOf(toolNamed('comment_on_task'), { id: 7, content: 'ä', idempotency_key: 'k' })).to.deep.include({
      body: { content: 'ä' },
      idempotencyKey: 'k',
    });
    expect(callOf(toolNamed('ask_for_review'), { id: 7, resolution: 'r' }).body).to.deep.equal({
      resolution: 'r',
      status: 'quality_review',
    });
    const agent = callOf(toolNamed('get_agent'), { id: 'a/b?c', as_of: '12' });
    expect(targetOf(agent)).to.equal('/api/agents/a%2Fb%3Fc?as_of=12');
  });

  it('reject unknown arguments, missing path parameters and values that no path can have', () => {
    const refused = (args: Record<string, unknown>, says: RegExp) =>
      expect(() => callOf(toolNamed('get_task'), args)).to.throw(says);
    refused({ id: 7, colour: 1 }, /^colour: is not an argument of get_task; it takes id, include/);
    refused({}, /^id: is required$/);
    refused({ id: '' }, /^id: is required$/);
    refused({ id: {} }, /^id: must be a text, a number or a boolean$/);
    // A field that the tool sets cannot be given.
    expect(() => callOf(toolNamed('ask_for_review'), { id: 7, status: 'done' })).to.throw(
      /^status: is not an argument/,
    );
  });

  it('reject invalid declarations', () => {
    const route = (mcp: McpTool, more: object = {}) =>
      defineRoute({
        ...{ method: 'put', path: '/api/x/{id}', summary: 's', access: 'viewer' },
        rules: { agentKeys: 'any', strict: 'allowed', past: 'none', prompts: 'none' },
        params: z.object({ id: z.string() }),
        body: z.object({ name: z.string() }),
        responses: { 200: { description: 'd' } },
        handle: () => ({ body: {} }),
        mcp,
        ...more,
      } as Parameters<typeof defineRoute>[0]);
    const fails = (declared: readonly Route[], says: RegExp) => expect(() => toolsOf(declared)).to.throw(says);
    fails([route({ tool: 'x' }, { body: z.object({ id: z.string() }) })], /two arguments of the name id/);
    fails([route({ tool: 'x' }), route({ tool: 'x' })], /two tools have the name x/);
    fails([route({ tool: 'x', takes: ['other'] })], /has no other/);
    fails([route({ tool: 'x', destructive: true }, { method: 'get', body: undefined })], /only reads/);
    expect(() => resourcesOf([route({ tool: 'x', resource: 'x://{name}' })])).to.throw(/parameter of the path/);
  });

  it('read resources by URI, at a past moment if the route supports it', () => {
    const [agent, task, event] = resourcesOf(routes);
    expect([agent, task, event].map((one) => one?.uriTemplate)).to.deep.equal([
      'agent://{id}{?as_of}',
      'task://{id}{?as_of}',
      'event://{id}',
    ]);
    expect(task?.callOf('task://7')).to.deep.include({ params: { id: '7' }, query: {} });
    expect(task?.callOf('task://7?as_of=120')).to.deep.include({ params: { id: '7' }, query: { as_of: '120' } });
    expect(agent?.callOf('agent://code%20bot')).to.deep.include({ params: { id: 'code bot' } });
    for (const uri of ['agent://7', 'task://', 'task://7/8', 'task://7?x=1', 'task://%', 'task:7', ''])
      expect(task?.callOf(uri), uri).to.equal(undefined);
    expect(event?.callOf('event://7?as_of=1')).to.equal(undefined);
  });
});
