/** Requests generated from the description of the API, valid and invalid ones. */
import { brotliCompressSync, constants, deflateSync, gzipSync } from 'node:zlib';
import fc from 'fast-check';
import type { OpenApiDocument, Parameter } from '../../api/openapi.ts';
import { AGENT_KEY_SCOPES } from '../../shared/contract/agents/keys.ts';
import { type Described, follow } from './openapi.ts';

/** Callers who are signed in, by role. */
export const SESSIONS = ['admin', 'operator', 'viewer'] as const;
const KEYS = AGENT_KEY_SCOPES.map((scope) => `key with ${scope}` as const);
export const CALLERS = [...SESSIONS, ...KEYS, 'anonymous', 'wrong key'] as const;
export type Caller = (typeof CALLERS)[number];

export const isSession = (caller: Caller): caller is (typeof SESSIONS)[number] =>
  SESSIONS.some((one) => one === caller);
/** The scope of a caller with an agent's key; undefined: it has none. */
export const scopeOf = (caller: Caller) => AGENT_KEY_SCOPES.find((scope) => caller === `key with ${scope}`);

export interface GeneratedRequest {
  readonly target: Described;
  readonly caller: Caller;
  readonly method: string;
  /** Path and query, percent-encoded. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | undefined;
}

// --- Values ----------------------------------------------------------------------------------------------------------

/**
 * Stands in JSON for so many brackets around nothing, too deep for a value that is to be written by recursion, or for an
 * array of so many large numbers, which takes long to write.
 */
const MARKED = /"@(deep|many):(\d+)@"/g;
const MANY = new Map([100, 60_000].map((length) => [String(length), JSON.stringify(Array(length).fill(1e300))]));
const deep = fc.constantFrom(10, 63, 64, 65, 90, 101, 1_000, 5_000, 100_000).map((levels) => `@deep:${levels}@`);

/** Every code point but the halves of pairs. The `binary` unit of fast-check makes a table of them, which takes a second. */
const codePoint = fc
  .integer({ min: 0, max: 0x10_ffff - 0x800 })
  .map((number) => String.fromCodePoint(number < 0xd800 ? number : number + 0x800));

const oddText = fc.oneof(
  fc.string({ unit: codePoint, maxLength: 40 }),
  fc.string({ unit: 'grapheme', maxLength: 40 }),
  fc.constantFrom(
    '',
    ' ',
    '\0',
    'x\ud83d',
    '\udc00',
    '\u202eadmin\u200b',
    '..',
    '__proto__',
    'constructor',
    "'; --",
    '%00',
    '\r\nx: y',
    '\ufeff',
    '1e999',
    '--------',
    '0x10',
    'NaN',
  ),
  fc.nat({ max: 420 }).map((digits) => '9'.repeat(digits)),
  fc.constantFrom(199, 200, 201, 5_000, 200_001, 900_000).map((length) => `${'x'.repeat(length - 1)}😀`),
);

/** Where the integers of PostgreSQL and those of JavaScript end. */
const INT4 = 2 ** 31 - 1;
const EDGES = [INT4, 2 ** 31, 2 ** 53 - 1, 2 ** 53];

const oddNumber = fc.oneof(
  fc.double(),
  fc.maxSafeInteger(),
  fc.constantFrom(0, -0, -1, 1.5, ...EDGES, 2 ** 63, 1e21, 1e300, 5e-324, Number.MAX_VALUE),
);

/** Values that no schema describes. */
const odd: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 3, arbitrary: oddText },
  { weight: 2, arbitrary: oddNumber },
  { weight: 2, arbitrary: deep },
  { weight: 1, arbitrary: fc.constantFrom(null, true, false, [], {}) },
  { weight: 1, arbitrary: fc.jsonValue() },
  { weight: 1, arbitrary: fc.dictionary(oddText, oddText, { maxKeys: 4 }) },
  { weight: 1, arbitrary: fc.constantFrom({ sealed: 1, person: 'user:1', box: 'AAAA' }, { sealed: 0 }) },
  { weight: 1, arbitrary: fc.constantFrom(...MANY.keys()).map((length) => `@many:${length}@`) },
);

const anyJson = fc.oneof(fc.jsonValue({ maxDepth: 4 }), odd);

type Rules = Readonly<Record<string, unknown>>;
const numberOr = (value: unknown, fallback: number): number => (typeof value === 'number' ? value : fallback);

function textOf(rules: Rules, known: readonly string[]): fc.Arbitrary<unknown> {
  const minLength = numberOr(rules.minLength, 0);
  const maxLength = Math.min(numberOr(rules.maxLength, 60), 300);
  const free = fc.string({ unit: 'grapheme-composite', minLength, maxLength: Math.max(minLength, maxLength) });
  const choices = [free, fc.constantFrom(...known)];
  // fast-check cannot make texts for assertions such as lookaheads.
  if (typeof rules.pattern === 'string' && !rules.pattern.includes('(?'))
    choices.push(fc.stringMatching(new RegExp(rules.pattern)));
  return fc.oneof(...choices);
}

/** Values that match a schema. Refinements that a schema cannot express may still refuse them. */
function asked(document: unknown, schema: unknown, known: readonly string[], level = 0): fc.Arbitrary<unknown> {
  if (typeof schema !== 'object' || schema === null || level > 6) return anyJson;
  const rules = schema as Rules;
  const inner = (one: unknown) => asked(document, one, known, level + 1);
  if (typeof rules.$ref === 'string') return inner(follow(document, rules.$ref));
  if (Array.isArray(rules.enum)) return fc.constantFrom(...rules.enum);
  if ('const' in rules) return fc.constant(rules.const);
  const forms = (rules.anyOf ?? rules.oneOf) as readonly unknown[] | undefined;
  if (forms) return fc.oneof(...forms.map(inner));
  if (Array.isArray(rules.type)) return fc.oneof(...rules.type.map((type: unknown) => inner({ ...rules, type })));
  switch (rules.type) {
    case 'string':
      return textOf(rules, known);
    case 'integer': {
      const max = numberOr(rules.maximum, Number.MAX_SAFE_INTEGER);
      const small = fc.integer({ min: numberOr(rules.minimum, -5), max: Math.min(numberOr(rules.maximum, 30), INT4) });
      const edges = EDGES.filter((edge) => edge <= max);
      return fc.oneof(small, fc.maxSafeNat(), edges.length > 0 ? fc.constantFrom(...edges) : small);
    }
    case 'number':
      return fc.double({ noNaN: true, noDefaultInfinity: true });
    case 'boolean':
      return fc.boolean();
    case 'null':
      return fc.constant(null);
    case 'array':
      return fc.array(inner(rules.items), { maxLength: 5 });
    case 'object': {
      const properties = (rules.properties ?? {}) as Rules;
      const model = Object.fromEntries(Object.entries(properties).map(([name, one]) => [name, inner(one)]));
      const required = (rules.required ?? []) as string[];
      if (Object.keys(model).length > 0) return fc.record(model, { requiredKeys: required });
      return fc.dictionary(fc.oneof(fc.string({ maxLength: 12 }), fc.constantFrom('agents', 'token')), anyJson, {
        maxKeys: 5,
      });
    }
    default:
      return anyJson;
  }
}

/** Mostly values that match a schema; sometimes with one deviation, or something else altogether. */
function nearly(wanted: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  const spoiled = fc.tuple(wanted, fc.nat(), odd).map(([value, index, instead]) => {
    if (typeof value !== 'object' || value === null) return instead;
    const keys = [...Object.keys(value), 'unheard'];
    return { ...value, [keys[index % keys.length] as string]: instead };
  });
  return fc.oneof({ weight: 6, arbitrary: wanted }, { weight: 4, arbitrary: spoiled }, { weight: 1, arbitrary: odd });
}

function jsonOf(value: unknown): string {
  const text = JSON.stringify(value) ?? '';
  return text.replace(MARKED, (_, kind: string, count: string) =>
    kind === 'many' ? (MANY.get(count) as string) : `${'['.repeat(Number(count))}${']'.repeat(Number(count))}`,
  );
}

// --- Bytes and headers -------------------------------------------------------------------------------------------------

interface Sent {
  readonly body: Buffer | undefined;
  readonly headers: Readonly<Record<string, string>>;
}

const PACKERS: Readonly<Record<string, (plain: Buffer) => Buffer>> = {
  gzip: (plain) => gzipSync(plain),
  deflate: (plain) => deflateSync(plain),
  // At the default quality, a large body took half a second instead of a millisecond.
  br: (plain) => brotliCompressSync(plain, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } }),
};

const BOMB = gzipSync(Buffer.alloc(40_000_000, ' '));

/** The bytes of a body, with headers that describe them correctly or not. */
function sentAs(text: fc.Arbitrary<string>): fc.Arbitrary<Sent> {
  const json = { 'content-type': 'application/json' };
  const plain = text.map((one): Sent => ({ body: Buffer.from(one), headers: json }));
  const packed = fc.tuple(text, fc.constantFrom(...Object.keys(PACKERS))).map(
    ([one, encoding]): Sent => ({
      body: PACKERS[encoding]?.(Buffer.from(one)),
      headers: { ...json, 'content-encoding': encoding },
    }),
  );
  const lying = fc
    .tuple(text, fc.constantFrom('gzip', 'deflate', 'br', 'compress', 'identity', 'gzip, br', 'x', ''))
    .map(([one, encoding]): Sent => ({ body: Buffer.from(one), headers: { ...json, 'content-encoding': encoding } }));
  const typed = fc
    .tuple(
      text,
      fc.constantFrom(
        'text/plain',
        'application/json; charset=utf-16le',
        'application/json; charset=latin1',
        'application/json; charset=utf-99',
        'application/json; charset=',
        'multipart/form-data; boundary=x',
        ';;;',
        '',
      ),
    )
    .map(([one, type]): Sent => ({ body: Buffer.from(one), headers: { 'content-type': type } }));
  const broken = fc.oneof(
    fc.uint8Array({ maxLength: 50 }).map((bytes): Sent => ({ body: Buffer.from(bytes), headers: json })),
    fc
      .constantFrom('{', '', 'null', '[]', '"x"', '{"a":1}{')
      .map((one): Sent => ({ body: Buffer.from(one), headers: json })),
    fc.constant<Sent>({ body: BOMB, headers: { ...json, 'content-encoding': 'gzip' } }),
    fc.constant<Sent>({ body: undefined, headers: {} }),
  );
  return fc.oneof(
    { weight: 12, arbitrary: plain },
    { weight: 2, arbitrary: packed },
    { weight: 1, arbitrary: lying },
    { weight: 1, arbitrary: typed },
    { weight: 2, arbitrary: broken },
  );
}

/** Headers hold no other characters. */
const headerText = fc.string({ maxLength: 60 }).map((text) => text.replace(/[^\x20-\x7e]/g, ''));

const moreHeaders = fc.record(
  {
    'idempotency-key': fc.oneof(fc.constantFrom('key-1', 'key-2', 'with blank', ''), headerText, fc.uuid()),
    'x-agent-name': headerText,
    origin: fc.constantFrom('https://evil.example', 'null', 'http://localhost', '::'),
    'user-agent': fc.oneof(headerText, fc.constant('u'.repeat(3_000))),
    'accept-encoding': fc.constantFrom('gzip', 'br;q=0, *', ';'),
    'if-none-match': fc.constantFrom('*', '"x"', ''),
    'last-event-id': fc.oneof(headerText, fc.constantFrom('0', '1.0', '9'.repeat(17))),
    'x-forwarded-host': headerText,
    authorization: fc.oneof(headerText, fc.constant('Bearer x')),
    cookie: headerText,
  },
  { requiredKeys: [] },
);

/** Stands in headers for the origin of the service. */
export const OWN_ORIGIN = '@own@';

/** What a browser says of the page that makes a request: of this service, of another one, or of none. */
const browserHeaders = fc.record(
  {
    'sec-fetch-site': fc.constantFrom('same-origin', 'same-site', 'cross-site', 'none'),
    'sec-fetch-mode': fc.constantFrom('cors', 'no-cors', 'navigate'),
    'sec-fetch-dest': fc.constantFrom('empty', 'document', 'image'),
    origin: fc.constantFrom(OWN_ORIGIN, OWN_ORIGIN, 'null', 'https://evil.example', `${OWN_ORIGIN}1`),
    referer: fc.constantFrom(`${OWN_ORIGIN}/docs`, 'https://evil.example/'),
    'upgrade-insecure-requests': fc.constant('1'),
  },
  { requiredKeys: [] },
);
const headers = fc.oneof(
  { weight: 3, arbitrary: fc.constant({}) },
  { weight: 1, arbitrary: moreHeaders },
  { weight: 1, arbitrary: browserHeaders },
);

/** Whether a page of another site may have made this request to change something. */
export function isForged({ caller, method, headers }: GeneratedRequest): boolean {
  const { origin = OWN_ORIGIN, 'sec-fetch-site': site = 'none' } = headers;
  if (method === 'GET' || method === 'HEAD' || !isSession(caller)) return false;
  return origin !== OWN_ORIGIN || !['same-origin', 'none'].includes(site);
}

// --- Requests --------------------------------------------------------------------------------------------------------

/** Percent-encodes anything, halves of surrogate pairs included. */
const encoded = (text: string): string =>
  [...Buffer.from(text)]
    .map((byte) =>
      /\w/.test(String.fromCharCode(byte)) ? String.fromCharCode(byte) : `%${byte.toString(16).padStart(2, '0')}`,
    )
    .join('');

const segment = (document: unknown, parameter: Parameter, known: readonly string[]): fc.Arbitrary<string> =>
  fc
    .oneof(
      { weight: 3, arbitrary: fc.constantFrom(...known) },
      { weight: 2, arbitrary: asked(document, parameter.schema, known).map(String) },
      { weight: 1, arbitrary: fc.constantFrom(...EDGES).map(String) },
      { weight: 1, arbitrary: oddText.map((text) => text.slice(0, 2_000)) },
    )
    // An empty segment, or one that begins another path, is another call.
    .map((text) => (text === '' || /^[a-z]{3,}$/i.test(text) ? `${text}-1` : text))
    .chain((text) => fc.constantFrom(encoded(text), encoded(text), encoded(text), '%ff', '%'));

function queryOf(document: unknown, parameters: readonly Parameter[], known: readonly string[]): fc.Arbitrary<string> {
  const one = (parameter: Parameter) =>
    fc
      .oneof(
        asked(document, parameter.schema, known).map(String),
        oddText.map((text) => text.slice(0, 2_000)),
      )
      .map((value) => `${parameter.name}=${encoded(value)}`);
  const described = parameters.map((parameter) => fc.option(one(parameter), { nil: undefined }));
  const stray = fc.constantFrom(undefined, undefined, undefined, 'x=y', '%', '=', 'limit=1&limit=2', 'a[b]=c');
  return fc.tuple(...described, stray).map((parts) => {
    const text = parts.filter((part) => part !== undefined).join('&');
    return text === '' ? '' : `?${text}`;
  });
}

/** One request to an operation. `known`: names and ids that exist. */
export function requestTo(
  document: OpenApiDocument,
  target: Described,
  known: readonly string[],
): fc.Arbitrary<GeneratedRequest> {
  const { method, path, operation, parameters } = target;
  const inPath = parameters.filter((parameter) => parameter.in === 'path');
  const inQuery = parameters.filter((parameter) => parameter.in === 'query');
  const schema = operation.requestBody?.content['application/json']?.schema;
  const nothing = fc.constant<Sent>({ body: undefined, headers: {} });
  const sent = schema ? sentAs(nearly(asked(document, schema, known)).map(jsonOf)) : nothing;
  return fc
    .record({
      caller: fc.oneof(
        { weight: 3, arbitrary: fc.constantFrom<Caller>('admin', 'key with admin') },
        { weight: 3, arbitrary: fc.constantFrom(...CALLERS) },
      ),
      method: method === 'GET' ? fc.constantFrom('GET', 'GET', 'GET', 'HEAD') : fc.constant(method),
      segments: fc.tuple(...inPath.map((parameter) => segment(document, parameter, known))),
      query: queryOf(document, inQuery, known),
      sent,
      headers,
    })
    .map(({ caller, segments, query, sent, headers, ...rest }) => {
      let filled = path;
      for (const [index, parameter] of inPath.entries())
        filled = filled.replace(`{${parameter.name}}`, () => segments[index] as string);
      return {
        target,
        caller,
        ...rest,
        url: filled + query,
        headers: { ...headers, ...sent.headers },
        body: sent.body,
      };
    });
}
