/**
 * The description of the API (OpenAPI 3.1), generated from the routes and from the same schemas that validate their
 * requests. What a route does not declare itself, such as the responses of the authorization in front of it, is added
 * here.
 */
import type { z } from 'zod';
import { ERRORS, errorSchema } from '../shared/contract/common.ts';
import { ROLES, reaches } from '../shared/identity.ts';
import { PLAIN_COOKIE, securePrefix } from './auth/sessions.ts';
import { LIMITS, type LimitClass, WRONG_KEYS } from './http/limits.ts';
import type { PublicUrl } from './http/public-url.ts';
import { READ_BYTES } from './http/read-budget.ts';
import {
  type Access,
  errorsOf,
  hasPast,
  type Method,
  type ResponseSpec,
  type Route,
  type Rules,
  type Scope,
} from './http/route.ts';
import { type Found, relink, type Schema, settleSchemas, toProperties, toSchema } from './openapi-schemas.ts';

/** Version of the API, not of this program. */
const INTERFACE_VERSION = '1.3.0';

export interface Ref {
  readonly $ref: string;
}

export interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required: boolean;
  readonly description?: string;
  readonly deprecated?: boolean;
  readonly schema: Schema;
}

export interface ResponseObject {
  readonly description: string;
  readonly headers?: Readonly<Record<string, { readonly description: string; readonly schema: Schema }>>;
  readonly content?: Readonly<Record<string, { readonly schema: Schema }>>;
}

export interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description: string;
  readonly security?: readonly Readonly<Record<string, readonly string[]>>[];
  readonly parameters?: readonly (Parameter | Ref)[];
  readonly requestBody?: {
    readonly required: boolean;
    readonly content: Readonly<Record<string, { readonly schema: Schema }>>;
  };
  readonly responses: Readonly<Record<string, ResponseObject | Ref>>;
  readonly 'x-minimum-role': string;
  /** `deployment`: only callers of the default tenant. */
  readonly 'x-scope': Scope;
  /** Who may call: `anonymous` without a credential, and roles. */
  readonly 'x-roles': readonly string[];
  readonly 'x-agent-keys': Rules['agentKeys'];
  readonly 'x-strict': Rules['strict'];
  readonly 'x-past': Rules['past'];
  readonly 'x-prompt': Rules['prompts'];
  readonly 'x-rate-limit'?: { readonly class: LimitClass; readonly requests: number; readonly seconds: number };
}

export interface OpenApiDocument {
  readonly openapi: '3.1.0';
  readonly info: Readonly<Record<string, unknown>> & { readonly title: string; readonly version: string };
  readonly servers: readonly { readonly url: string }[];
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  readonly paths: Readonly<Record<string, Readonly<Partial<Record<Method, Operation>>>>>;
  readonly components: {
    readonly securitySchemes: Readonly<Record<string, Schema>>;
    readonly parameters: Readonly<Record<string, Parameter>>;
    readonly responses: Readonly<Record<string, ResponseObject>>;
    readonly schemas: Readonly<Record<string, Schema>>;
  };
}

const DESCRIPTION = `\
Signalbox directs AI agents: who they are, what they are to do, what they did and what it cost. Every change is \
recorded as an event that stays; responses are derived from these events.

**Credentials.** Send an API key in the header \`x-api-key\` (or \`Authorization: Bearer <key>\`), or sign in with \
\`POST /api/auth/login\` and send its cookie back. Roles: viewer < operator < admin; each call says which one it needs. \
A key or session belongs to one workspace and sees nothing of the others. After ${WRONG_KEYS} different wrong \
API keys from one address within a minute, every call that needs a credential responds 429 to keys that are new to it.

**Writes and reads.** After a response 2xx, the next read shows the change, on every process: a read shows every event \
that was in the log when it arrived. \`X-Signalbox-Position\` names the position in the log that a response shows: with \`as_of\` it gives the response again \
(\`X-Signalbox-Position-At-Least\`: parts of it may be later). After a \
write, that of its last event. A read that sends a position as \`X-Signalbox-Min-Position\` shows at least that one, and \
with \`X-Signalbox-Consistency: eventual\` it shows what is there. When a read model is too far behind, the response of the read is \
503 with the code \`READ_MODEL_BEHIND\`; a write never is. A \`POST\` may carry an \
\`Idempotency-Key\`: repeated with the same key, body and \`x-agent-name\` within 24 hours, it returns the first response again and does \
nothing twice. A \`DELETE\` that takes a body takes its fields from the query when it is sent without one.

**The past.** A \`GET\` with \`as_of\` responds as the service would have right after that position of the log, or at that \
time: the same response forever. Its "now" is the time of the last event until then.

**Lists.** \`limit\` is clamped to the range that the call names and \`offset\` to zero or more; anything but a whole number \
counts as the default. The records of a page are 4 MB at most, as JSON; then the page has fewer than \`limit\` says, but at least one. \
The next page begins at \`offset\` plus the number of records received; where there is a \`total\`, it counts all. \
Responses that are not cached and larger than 64 kB have a budget of ${READ_BYTES / 1_000_000} MB per caller and minute; beyond it, 429 with \
\`Retry-After\`.

**Times** are Unix seconds, UTC, unless a field says otherwise.

**Errors** are \`{error, details?, code?, hint?}\`: \`error\` says what to change, \`details\` has one line per field. Every \
response carries \`X-Request-Id\`; the events that the request caused carry the same id. Responses may gain fields: ignore \
those you do not know.`;

/** Groups of calls, in the order of the description: the first words of their paths after `/api/`, and what they are about. */
export const TAGS: readonly (readonly [name: string, paths: string, about: string])[] = [
  ['Auth', 'auth setup people', 'Signing in and out, users, requests for access'],
  [
    'Agents',
    'agents adapters',
    'Agents: life cycle, configuration, memory, persona, messages, attribution and diagnostics',
  ],
  ['Tasks', 'tasks', 'Tasks, their assignment and the queue that agents poll'],
  ['Chat', 'chat', 'Conversations and messages'],
  ['Tokens', 'tokens', 'Token use and what it costs'],
  ['Sessions', 'sessions claude', 'Sessions of agents and command-line tools'],
  ['Webhooks', 'webhooks', 'Webhooks and their deliveries'],
  ['Alerts', 'alerts', 'Alert rules and their evaluation'],
  ['Workflows', 'workflows', 'Workflow templates'],
  ['Pipelines', 'pipelines', 'Pipelines and their runs'],
  [
    'Monitoring',
    'activities audit events health logs notifications search standup status workload',
    'Activities, audit trail, live events, health',
  ],
  ['History', 'history', 'The log as it is stored, causes and effects, and proofs that nothing was altered'],
  [
    'Admin',
    'backup cleanup cron exec-approvals export gateway-config gateways resume scheduler settings workspaces',
    'Backup, retention, export, schedules, gateways and settings',
  ],
  ['Super Admin', 'super', 'Tenants and their provisioning'],
  ['Connections', 'connect', 'Command-line tools that connect without a gateway'],
  ['Projects', 'projects', 'Projects and their tasks'],
  ['Mentions', 'mentions', 'Whom a text can mention'],
  ['Quality', 'quality-review', 'Reviews that a task has to pass'],
  ['Releases', 'releases', 'Whether a newer release is out'],
  ['GitHub', 'github', 'Issues as tasks, and projects in step with their repositories'],
  ['Docs', 'docs', 'This description'],
];

/** @throws Error when no group has the path */
function tagOf({ path }: Route): string {
  const [, word = ''] = path.replace(/^\/api(?=\/)/, '').split('/');
  const tag = TAGS.find(([, paths]) => paths.split(' ').includes(word));
  if (!tag) throw new Error(`${path}: no group has this path; add its first word to one in TAGS`);
  return tag[0];
}

/** For responses that clients may cache. */
export const UNCHANGED: ResponseSpec = {
  description: 'Not modified since the response with the ETag in If-None-Match',
};

/** Names of the error responses in the description. */
const ERROR_NAMES: Readonly<Record<keyof typeof ERRORS, string>> = {
  400: 'InvalidInput',
  401: 'NotAuthenticated',
  403: 'NotPermitted',
  404: 'NotFound',
  409: 'Conflict',
  413: 'TooLarge',
  415: 'UnsupportedMediaType',
  422: 'Screened',
  429: 'RateLimited',
  500: 'InternalError',
  503: 'Unavailable',
};
/** The response for every status that an operation does not list. */
const OTHER_ERROR = 'OtherError';

const optional = (place: Parameter['in'], name: string, schema: Schema, description: string) => ({
  name,
  in: place,
  required: false,
  description,
  schema,
});

export const PARAMETERS = {
  IdempotencyKey: optional(
    'header',
    'Idempotency-Key',
    { type: 'string', pattern: '^[!-~]{1,255}$', minLength: 1, maxLength: 255 },
    'Makes retries safe: within 24 hours, the same key, body and `x-agent-name` get the first response again (with the header `Idempotency-Replayed: true`); a different body or agent gets 409.',
  ),
  AgentName: optional(
    'header',
    'x-agent-name',
    { type: 'string' },
    'The agent that the caller speaks for. An agent’s own key speaks for that agent without this header.',
  ),
  Consistency: optional(
    'header',
    'X-Signalbox-Consistency',
    { type: 'string', enum: ['eventual'] },
    '`eventual`: responds at once with what is there, which may lack the last events. If omitted, the response shows every event that was in the log when the request arrived.',
  ),
  MinPosition: optional(
    'header',
    'X-Signalbox-Min-Position',
    { type: 'integer', minimum: 0 },
    'The response shows at least this position of the log, such as the one that `X-Signalbox-Position` of a write named, and may lack later events.',
  ),
  AsOf: optional(
    'query',
    'as_of',
    { type: 'string' },
    'A position of the log, such as that of `X-Signalbox-Position`, or a time in RFC 3339: the response is the one that the service would have given then. `X-Signalbox-As-Of` names the position. Who may see what is decided as of now.',
  ),
  LastEventId: optional(
    'header',
    'Last-Event-ID',
    { type: 'string' },
    'Id of the last frame received; the stream resumes after it.',
  ),
} as const satisfies Record<string, Parameter>;

/**
 * Describes all routes that are not hidden.
 *
 * @throws Error when a route cannot be described accurately: a schema without a JSON form, path parameters that are
 *   not in the path, two schemas with the same name
 */
export function describeApi(routes: readonly Route[], settings: PublicUrl = {}): OpenApiDocument {
  const shown = routes.filter((route) => !route.hidden);
  const found: Found = { input: new Map(), output: new Map() };
  const paths: Record<string, Partial<Record<Method, Operation>>> = {};
  const ids = new Map<string, string>();
  for (const route of shown) {
    const where = nameOf(route);
    const operation = describeOperation(route, found);
    const path = paths[route.path] ?? {};
    const twin = path[route.method] ? where : ids.get(operation.operationId);
    if (twin) throw new Error(`${where} and ${twin} would be the same operation; change the path of one of them`);
    ids.set(operation.operationId, where);
    path[route.method] = operation;
    paths[route.path] = path;
  }
  const responses = describeErrors(found);
  const used = new Set(shown.map(tagOf));
  const { schemas, nameIn } = settleSchemas(found);
  const document = {
    openapi: '3.1.0',
    info: {
      title: 'Signalbox',
      version: INTERFACE_VERSION,
      summary: 'Event-sourced backend that orchestrates AI agents',
      description: DESCRIPTION,
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: settings.publicUrl ?? '/', description: 'This server' }],
    tags: TAGS.filter(([name]) => used.has(name)).map(([name, , description]) => ({ name, description })),
    security: [{ sessionCookie: [] }, { apiKey: [] }],
    paths,
    components: {
      securitySchemes: {
        apiKey: {
          type: 'apiKey',
          in: 'header',
          name: 'x-api-key',
          description: 'The API key of the deployment or of an agent. `Authorization: Bearer <key>` works as well.',
        },
        sessionCookie: {
          type: 'apiKey',
          in: 'cookie',
          name: securePrefix(settings) + PLAIN_COOKIE,
          description:
            'Set by `POST /api/auth/login`; over plain HTTP its name is `mc-session`. After signing in, a browser sends it automatically, so nothing needs to be entered here.',
        },
      },
      parameters: PARAMETERS,
      responses,
      schemas,
    },
  };
  return relink(document, nameIn) as OpenApiDocument;
}

const nameOf = (route: Route) => `${route.method.toUpperCase()} ${route.path}`;

function describeOperation(route: Route, found: Found): Operation {
  const parameters = [
    ...pathParameters(route, found),
    ...objectParameters(route.query, 'query', `the query of ${nameOf(route)}`, found),
    ...generalParameters(route),
  ];
  return {
    operationId: operationIdOf(route),
    tags: [tagOf(route)],
    summary: route.summary,
    description: [route.description, accessText(route), limitText(route.limit)].filter(Boolean).join('\n\n'),
    ...(route.access === 'public' && { security: [] }),
    ...(parameters.length > 0 && { parameters }),
    ...(route.body && {
      requestBody: {
        required: !route.bodyOptional,
        content: {
          'application/json': { schema: toSchema(route.body, 'input', `the body of ${nameOf(route)}`, found) },
        },
      },
    }),
    responses: describeResponses(route, found),
    'x-minimum-role': route.access === 'public' ? 'none' : route.access === 'any' ? 'viewer' : route.access,
    'x-scope': route.scope ?? 'workspace',
    'x-roles': rolesOf(route.access),
    'x-agent-keys': route.rules.agentKeys,
    'x-strict': route.rules.strict,
    'x-past': route.rules.past,
    'x-prompt': route.rules.prompts,
    ...(route.limit && {
      'x-rate-limit': { class: route.limit, requests: LIMITS[route.limit].limit, seconds: 60 },
    }),
  };
}

/** `GET /api/agents/{id}/soul` is `getAgentsByIdSoul`: derived from method and path alone, so it is stable. */
function operationIdOf({ method, path }: Route): string {
  const capital = (word: string) => word.charAt(0).toUpperCase() + word.slice(1);
  const words = path
    .replace(/^\/api(?=\/)/, '')
    .replace(/\{/g, 'by-')
    .split(/[^A-Za-z0-9]+/);
  return method + words.map(capital).join('');
}

const rolesOf = (access: Access): readonly string[] => {
  if (access === 'public') return ['anonymous', ...ROLES];
  return ROLES.filter((role) => reaches(role, access === 'any' ? 'viewer' : access));
};

/** What the description of a call says about agents' keys. */
const AGENT_KEYS: Readonly<Record<Rules['agentKeys'], string>> = {
  any: '',
  tasks: ' With the key of an agent, for its own tasks only, unless it has the scope `admin`.',
  own: ' The key of an agent may be used for that agent only, unless it has the scope `admin`.',
  admin: ' With the key of an agent only if it has the scope `admin`.',
  never: ' Not with the key of an agent, whatever its scopes.',
};

const STRICT: Readonly<Record<Rules['strict'], string>> = {
  allowed: '',
  partly: ' Callers of a strictly isolated workspace get 403 for what other workspaces share.',
  refused: ' Callers of a strictly isolated workspace get 403.',
};

function accessText({ access, scope, rules }: Pick<Route, 'access' | 'scope' | 'rules'>): string {
  if (access === 'public') return '**Access:** public, no credential needed.';
  const callers =
    access === 'any' ? 'any caller with a credential' : `role ${access}${access === 'admin' ? '' : ' or higher'}`;
  const rest = `${STRICT[rules.strict]}${AGENT_KEYS[rules.agentKeys]}`;
  if (scope !== 'deployment') return `**Access:** ${callers}.${rest}`;
  return `**Access:** ${callers}, in the default tenant, because the call concerns the whole deployment.${rest}`;
}

function limitText(limit: LimitClass | undefined): string | undefined {
  if (!limit) return undefined;
  return `**Rate limit:** ${LIMITS[limit].limit} requests per minute ${limitKeyText(limit)}, counted together for all calls of the class \`${limit}\`.`;
}

/** What a limit class counts by, as text; derived from its key function. */
function limitKeyText(limit: LimitClass): string {
  const { key } = LIMITS[limit];
  if (key === LIMITS['agent-poll'].key) return 'per agent (`x-agent-name`, otherwise the address)';
  return key === LIMITS.users.key ? 'per caller' : 'per address';
}

function pathParameters(route: Route, found: Found): Parameter[] {
  const names = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as string);
  const where = `the path of ${nameOf(route)}`;
  const described = objectParameters(route.params, 'path', where, found);
  const stray = described.find((parameter) => !names.includes(parameter.name));
  if (stray) throw new Error(`${where} has no {${stray.name}}, but its schema has`);
  return names.map((name) => {
    const parameter = described.find((one) => one.name === name);
    // Without a schema, the handler gets the text of the segment unchanged.
    return { ...(parameter ?? { name, in: 'path' as const, schema: { type: 'string' } }), required: true };
  });
}

function generalParameters(route: Route): Ref[] {
  const names: (keyof typeof PARAMETERS)[] = [];
  if (route.method === 'post') names.push('IdempotencyKey');
  if (route.cache) names.push('Consistency', 'MinPosition');
  // This header is read by limits that count per agent, and by calls that agents may make only for themselves.
  const countsByAgent = route.limit !== undefined && LIMITS[route.limit].key === LIMITS['agent-poll'].key;
  if (countsByAgent || route.path.startsWith('/api/agents/{id}/')) names.push('AgentName');
  if (Object.values(route.responses).some(({ type }) => type === 'text/event-stream')) names.push('LastEventId');
  if (hasPast(route)) names.push('AsOf');
  return names.map((name) => ({ $ref: `#/components/parameters/${name}` }));
}

/** One parameter per property of an object schema. */
function objectParameters(
  schema: z.ZodType | undefined,
  place: 'path' | 'query',
  where: string,
  found: Found,
): Parameter[] {
  if (!schema) return [];
  const { properties, required } = toProperties(schema, where, found);
  return Object.entries(properties).map(([name, property]) => {
    const { description, deprecated, ...rest } = property;
    return {
      name,
      in: place,
      required: required.includes(name),
      ...(typeof description === 'string' && { description }),
      ...(deprecated === true && { deprecated }),
      schema: rest,
    };
  });
}

function describeResponses(route: Route, found: Found): Record<string, ResponseObject | Ref> {
  const specs: Record<number, ResponseSpec> = { ...route.responses };
  for (const status of errorsOf(route)) specs[status] ??= ERRORS[status];
  if (route.cache || hasPast(route)) specs[304] ??= UNCHANGED;
  const described: Record<string, ResponseObject | Ref> = {};
  // JavaScript iterates over number-like keys in ascending order.
  for (const [status, spec] of Object.entries(specs)) {
    const shared = Number(status) as keyof typeof ERRORS;
    described[status] =
      spec === ERRORS[shared]
        ? { $ref: `#/components/responses/${ERROR_NAMES[shared]}` }
        : describeResponse(spec, Number(status), `response ${status} of ${nameOf(route)}`, found);
  }
  described.default = { $ref: `#/components/responses/${OTHER_ERROR}` };
  return described;
}

function describeResponse(spec: ResponseSpec, status: number, where: string, found: Found): ResponseObject {
  const schema = spec.schema ?? (status >= 400 && !spec.type ? errorSchema : undefined);
  if (!schema && !spec.type) return { description: spec.description };
  return {
    description: spec.description,
    content: {
      [spec.type ?? 'application/json']: {
        schema: schema ? toSchema(schema, 'output', where, found) : { type: 'string' },
      },
      ...Object.fromEntries((spec.also ?? []).map((type) => [type, { schema: { type: 'string' } }])),
    },
  };
}

/** The error responses, to which operations refer. */
function describeErrors(found: Found): Record<string, ResponseObject> {
  const schema = toSchema(errorSchema, 'output', 'the error response', found);
  const content = { 'application/json': { schema } };
  const named: Record<string, ResponseObject> = {};
  for (const [status, name] of Object.entries(ERROR_NAMES)) {
    const { description } = ERRORS[Number(status) as keyof typeof ERRORS];
    named[name] = { description, ...(status === '429' && { headers: LIMIT_HEADERS }), content };
  }
  named[OTHER_ERROR] = { description: 'Any other failure', content };
  return named;
}

const LIMIT_HEADERS: NonNullable<ResponseObject['headers']> = {
  'Retry-After': { description: 'Seconds until the limit resets', schema: { type: 'integer', minimum: 1 } },
  'X-RateLimit-Limit': { description: 'Requests per minute', schema: { type: 'integer' } },
  'X-RateLimit-Remaining': { description: 'Requests left; always 0 here', schema: { type: 'integer' } },
  'X-RateLimit-Reset': { description: 'When the limit resets, Unix seconds', schema: { type: 'integer' } },
};
