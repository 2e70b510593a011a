/**
 * The tools of MCP, derived from the routes that declare them: name, schema, description, annotations, and the call
 * behind a tool call. Arguments of path, query and body are one object.
 */
import { invalidField } from '../../shared/errors.ts';
import { hasPast, type InnerCall, type McpTool, type Route } from '../http/route.ts';
import { PARAMETERS } from '../openapi.ts';
import { type Found, REFERENCE, type Schema, toProperties } from '../openapi-schemas.ts';
import { portable, readArguments } from './arguments.ts';
import { MAX_TEXT } from './results.ts';

/** Where an argument goes. */
type Place = 'path' | 'query' | 'body' | 'header' | 'tool';

export interface Tool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  /** JSON Schema (draft 2020-12) of the arguments. */
  readonly inputSchema: Schema & { readonly type: 'object' };
  readonly annotations: {
    readonly readOnlyHint: boolean;
    readonly destructiveHint: boolean;
    readonly idempotentHint: boolean;
    /** False: the tools work on this service only. */
    readonly openWorldHint: false;
  };
  readonly route: Route;
  readonly declared: McpTool;
  readonly places: ReadonlyMap<string, Place>;
  /** Whether long texts of its result are cut (`results.ts`). */
  readonly cutsTexts: boolean;
}

/** Hosts refuse or cut longer descriptions. */
const MAX_DESCRIPTION = 1_024;
/** Rows of a list for a model, unless it asks for more. */
const DEFAULT_ROWS = 20;

/** The argument of tools with lists that shows texts whole. */
export const FULL_TEXTS = 'full_texts';

/** The argument of POST tools that replaces the header of this name. */
const IDEMPOTENCY_KEY = 'idempotency_key';

export const declaredOn = ({ mcp }: Route): readonly McpTool[] => (mcp === undefined ? [] : [mcp].flat());

/** Arguments by name, and the names of the required ones. */
interface Arguments {
  readonly properties: Record<string, Schema>;
  readonly required: string[];
  readonly places: Map<string, Place>;
}

/** @throws Error when two parts of a call have an argument of the same name, or a schema has no JSON form */
function argumentsOf(route: Route, { tool, takes, sets = {} }: McpTool): Arguments {
  const found: Found = { input: new Map(), output: new Map() };
  const properties: Record<string, Schema> = {};
  const required: string[] = [];
  const places = new Map<string, Place>();
  const add = (name: string, place: Place, schema: unknown, isRequired: boolean) => {
    if (name in properties) throw new Error(`the tool ${tool} has two arguments of the name ${name}`);
    properties[name] = portable(inlined(schema, found) as Schema);
    places.set(name, place);
    if (isRequired) required.push(name);
  };
  const named = (schema: Route['params'], place: Place) =>
    schema ? toProperties(schema, `the ${place} of the tool ${tool}`, found) : { properties: {}, required: [] };
  const path = named(route.params, 'path');
  for (const [, name = ''] of route.path.matchAll(/\{(\w+)\}/g))
    add(name, 'path', path.properties[name] ?? { type: 'string' }, true);
  const query = named(route.query, 'query');
  for (const [name, schema] of Object.entries(query.properties))
    add(name, 'query', withFewRows(name, schema as Schema), query.required.includes(name));
  const body = named(route.body, 'body');
  const taken = takes ?? Object.keys(body.properties);
  for (const name of [...taken, ...Object.keys(sets)])
    if (!(name in body.properties)) throw new Error(`the body of ${route.path} has no ${name} for the tool ${tool}`);
  for (const name of taken) if (!(name in sets)) add(name, 'body', body.properties[name], body.required.includes(name));
  if (isList(route, tool, places)) add(FULL_TEXTS, 'tool', FULL_TEXTS_SCHEMA, false);
  const general = ({ description, schema }: { readonly description: string; readonly schema: Schema }) => ({
    ...schema,
    description,
  });
  if (hasPast(route)) add('as_of', 'query', general(PARAMETERS.AsOf), false);
  if (route.method === 'post') add(IDEMPOTENCY_KEY, 'header', general(PARAMETERS.IdempotencyKey), false);
  return { properties, required, places };
}

/** Whether the result is a list of records. */
const isList = ({ method }: Route, tool: string, places: ReadonlyMap<string, Place>): boolean =>
  method === 'get' && (places.get('limit') === 'query' || tool.startsWith('list_'));

const FULL_TEXTS_SCHEMA: Schema = {
  type: 'boolean',
  description: `true: texts are whole; otherwise those of more than ${MAX_TEXT} characters are cut`,
};

/** Limits of lists have a default that suits the context of a model. */
function withFewRows(name: string, schema: Schema): Schema {
  const { default: rows } = schema;
  return isLimit(name) && typeof rows === 'number' && rows > DEFAULT_ROWS
    ? { ...schema, default: DEFAULT_ROWS }
    : schema;
}
const isLimit = (name: string): boolean => name === 'limit' || name.endsWith('_limit');

/** A schema with references replaced by the named parts. */
function inlined(schema: unknown, found: Found): unknown {
  if (typeof schema !== 'object' || schema === null) return schema;
  if (Array.isArray(schema)) return schema.map((part) => inlined(part, found));
  const { $ref, ...rest } = schema as Schema;
  const id = typeof $ref === 'string' ? REFERENCE.exec($ref)?.[2] : undefined;
  const whole = id === undefined ? schema : { ...found.input.get(id), ...rest };
  return Object.fromEntries(Object.entries(whole).map(([key, part]) => [key, inlined(part, found)]));
}

function toolOf(route: Route, declared: McpTool): Tool {
  const { tool, summary = route.summary, destructive = false, idempotent = false } = declared;
  const { properties, required, places } = argumentsOf(route, declared);
  const readOnly = route.method === 'get' && !route.writes;
  const description = [`${summary}.`, declared.description ?? route.description].filter(Boolean).join('\n\n');
  if (description.length >= MAX_DESCRIPTION)
    throw new Error(`the tool ${tool} has a description of ${description.length} characters; it needs one of its own`);
  if (readOnly && (destructive || idempotent)) throw new Error(`the tool ${tool} only reads`);
  return {
    name: tool,
    title: summary,
    description,
    inputSchema: { type: 'object', properties, required, additionalProperties: false },
    annotations: {
      readOnlyHint: readOnly,
      destructiveHint: destructive,
      idempotentHint: readOnly || idempotent,
      openWorldHint: false,
    },
    route,
    declared,
    places,
    cutsTexts: places.has(FULL_TEXTS),
  };
}

/** Tools by name. @throws Error when two have the same name, or one cannot be described accurately */
export function toolsOf(routes: readonly Route[]): ReadonlyMap<string, Tool> {
  const tools = new Map<string, Tool>();
  for (const route of routes) {
    for (const declared of declaredOn(route)) {
      if (tools.has(declared.tool)) throw new Error(`two tools have the name ${declared.tool}`);
      tools.set(declared.tool, toolOf(route, declared));
    }
  }
  return tools;
}

/** A value in a path or a query. @throws AppError 400 */
function textOf(name: string, value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  throw invalidField(name, 'must be a text, a number or a boolean');
}

/**
 * The API call for a tool call. The route checks the values.
 *
 * @throws AppError 400 for arguments that the tool does not have, and for missing parts of the path
 */
export function callOf(
  { route, declared, places, name: tool, inputSchema }: Tool,
  given: Readonly<Record<string, unknown>>,
): Omit<InnerCall, 'via'> {
  const params: Record<string, string> = {};
  const query: Record<string, string> = {};
  const body: Record<string, unknown> = {};
  let idempotencyKey: string | undefined;
  for (const [name, value] of Object.entries(readArguments(inputSchema, given))) {
    const place = places.get(name);
    if (place === undefined)
      throw invalidField(name, `is not an argument of ${tool}; it takes ${[...places.keys()].join(', ') || 'none'}`);
    if (place === 'body') body[name] = value;
    else if (place === 'path') params[name] = textOf(name, value);
    else if (place === 'query') query[name] = textOf(name, value);
    else if (place === 'header') idempotencyKey = textOf(name, value);
  }
  for (const [name, schema] of Object.entries(inputSchema.properties as Record<string, Schema>)) {
    if (places.get(name) === 'query' && isLimit(name)) query[name] ??= String(schema.default);
  }
  for (const [name, place] of places) {
    if (place === 'path' && (params[name] ?? '') === '') throw invalidField(name, 'is required');
  }
  return { route, params, query, idempotencyKey, ...(route.body && { body: { ...body, ...declared.sets } }) };
}
