/**
 * Requests generated from our own description, valid and not, as callers of every kind, against the real service: none
 * is answered with 5xx, or with anything that the description does not say. New calls are in it without a line here.
 *
 * GENERATED_RUNS: how many rounds (each of up to 8 requests at once), 40 by default and 100 with TEST_RUNS=many, in 20 s at most; with a number
 * given there is no time limit. GENERATED_SEED: which requests; a failure tells the seed that made it.
 */
import { Agent, request } from 'node:http';
import { gunzipSync } from 'node:zlib';
import { expect } from 'chai';
import fc from 'fast-check';
import type { OpenApiDocument } from '../../api/openapi.ts';
import {
  CALLERS,
  type Caller,
  type GeneratedRequest,
  isForged,
  isSession,
  OWN_ORIGIN,
  requestTo,
  scopeOf,
} from '../support/generated-requests.ts';
import { accepts, type Described, operationsOf, resolved } from '../support/openapi.ts';
import { runs } from '../support/runs.ts';
import { type AuthWorld, freshAddress, startAuthWorld } from '../support/worlds/auth.ts';

const SEED = Number(process.env.GENERATED_SEED ?? 20_261_121);
const RUNS = Number(process.env.GENERATED_RUNS ?? runs(40, 100));
const TIME_LIMIT_MS = process.env.GENERATED_RUNS === undefined ? 20_000 : undefined;

interface Reply {
  readonly status: number;
  readonly type: string;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly text: string;
}

/** What is wrong with an answer; undefined when it is as described. */
function fault(document: OpenApiDocument, one: GeneratedRequest, reply: Reply): string | undefined {
  const { target, method } = one;
  const { status, type, text, headers } = reply;
  if (isForged(one) && status !== 403) return `status ${status} for a page of another site`;
  const described = target.operation.responses[status];
  // 500 is described where a gateway may refuse, and 502 where something else outside may.
  if (status >= 500 && !((status === 500 || status === 502) && described)) return `status ${status}`;
  // HEAD stands beside GET without being described, unless GET changes something.
  if (method === 'HEAD' && status === 405) return headers.allow === 'GET' ? undefined : `Allow: ${headers.allow}`;
  if (!described) return `status ${status}, which the description does not list`;
  if (typeof headers['x-request-id'] !== 'string') return 'no X-Request-Id';
  if (typeof headers['cache-control'] !== 'string') return 'no Cache-Control';
  const { content } = resolved(document, described);
  if (status === 304 || method === 'HEAD' || !content)
    return text === '' ? undefined : 'a body where none is described';
  const media = type.split(';')[0] ?? '';
  if (!content[media]) return `the type ${type}`;
  if (media !== 'application/json') return undefined;
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch (error) {
    return `no JSON: ${error}`;
  }
  return accepts(document, content[media].schema, body) ? undefined : 'a body that is not of its schema';
}

/** Undefined for what is no JSON. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const shown = ({ caller, method, url, headers, body }: GeneratedRequest): string =>
  `${method} ${url.slice(0, 300)} as ${caller} ${JSON.stringify(headers).slice(0, 600)} ${body?.toString('utf8').slice(0, 800) ?? ''}`;

describe('generated requests', () => {
  let world: AuthWorld;
  let document: OpenApiDocument;
  let targets: Described[];
  let known: string[];
  const generators = new Map<Described, fc.Arbitrary<GeneratedRequest>>();
  /** Making the generator of a call takes longer than generating a request. */
  function requestsTo(target: Described): fc.Arbitrary<GeneratedRequest> {
    const made = generators.get(target) ?? requestTo(document, target, known);
    generators.set(target, made);
    return made;
  }
  const agent = new Agent({ keepAlive: true });
  const credentials = new Map<Caller, Promise<Record<string, string>>>();
  let made = 0;

  /** Of a new user or agent: what is generated signs callers out, deletes them, and takes their keys. */
  async function credentialOf(caller: Caller): Promise<Record<string, string>> {
    const name = `caller-${++made}`;
    if (isSession(caller)) {
      await world.makeUser({ username: name, role: caller });
      return { cookie: await world.signIn(name) };
    }
    const scope = scopeOf(caller);
    if (scope) return { 'x-api-key': await world.makeKey(await world.makeAgent(name), [scope]) };
    return caller === 'wrong key' ? { 'x-api-key': `mc_${'0'.repeat(48)}` } : {};
  }

  function credential(caller: Caller): Promise<Record<string, string>> {
    const present = credentials.get(caller) ?? credentialOf(caller);
    credentials.set(caller, present);
    return present;
  }

  async function send({ caller, method, url, headers, body }: GeneratedRequest): Promise<Reply> {
    const own = await credential(caller);
    const length = body && { 'content-length': String(body.length) };
    const given = Object.entries(headers).map(([name, value]) => [name, value.replace(OWN_ORIGIN, world.url)]);
    const all = { ...Object.fromEntries(given), ...own, ...length, 'x-forwarded-for': freshAddress() };
    const reply = await new Promise<Reply>((resolve, reject) => {
      const asked = request(`${world.url}`, { agent, method, path: url, headers: all, timeout: 30_000 }, (response) => {
        const { statusCode: status = 0, headers } = response;
        const type = String(headers['content-type'] ?? '');
        const chunks: Buffer[] = [];
        response.on('error', reject);
        if (type === 'text/event-stream' && method !== 'HEAD') {
          resolve({ status, type, headers, text: '' });
          asked.destroy();
          return;
        }
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () => {
          const bytes = Buffer.concat(chunks);
          const plain = headers['content-encoding'] === 'gzip' && bytes.length > 0 ? gunzipSync(bytes) : bytes;
          resolve({ status, type, headers, text: plain.toString('utf8') });
        });
      });
      asked.on('timeout', () => asked.destroy(new Error(`no answer within 30 s: ${method} ${url}`)));
      asked.on('error', reject);
      asked.end(body);
    });
    // Signed out, deleted or revoked meanwhile: the next request uses a new caller.
    if (reply.status === 401) credentials.delete(caller);
    return reply;
  }

  const statuses = new Map<number, number>();
  async function judge(one: GeneratedRequest): Promise<string | undefined> {
    const reply = await send(one);
    statuses.set(reply.status, (statuses.get(reply.status) ?? 0) + 1);
    const wrong = fault(document, one, reply);
    return wrong && `${wrong}\n  ${shown(one)}\n  → ${reply.status} ${reply.type} ${reply.text.slice(0, 500)}`;
  }

  before(async function () {
    this.timeout(60_000);
    world = await startAuthWorld();
    document = (await world.ask('GET', '/api/docs')).body as OpenApiDocument;
    targets = operationsOf(document);
    const id = await world.makeAgent('known-agent');
    const user = await world.makeUser({ username: 'known-user' });
    await world.makeKey(id, ['viewer']);
    known = ['known-agent', 'known-user', String(id), String(user), '1', '2', 'standard'];
    await world.ask('PUT', '/api/gateway-config', {
      as: world.adminKey,
      body: { gateway: { port: 1 }, agents: { list: [{ id: 'known-agent', model: { primary: 'm' } }] } },
    });
  });
  after(async () => {
    agent.destroy();
    await world?.close();
  });

  it('are checked: an undescribed response is detected', () => {
    const target = targets.find(({ method, path }) => `${method} ${path}` === 'GET /api/agents') as Described;
    const one: GeneratedRequest = { target, caller: 'admin', method: 'GET', url: '/', headers: {}, body: undefined };
    const reply = (status: number, text: string, type = 'application/json; charset=utf-8', headers: object = {}) => ({
      status,
      text,
      type,
      headers: { 'x-request-id': 'x', 'cache-control': 'no-store', ...headers },
    });
    expect(fault(document, one, reply(401, '{"error":"no"}'))).to.equal(undefined);
    expect(fault(document, one, reply(500, '{"error":"no"}'))).to.match(/status 500/);
    expect(fault(document, one, reply(418, '{"error":"no"}'))).to.match(/does not list/);
    expect(fault(document, one, reply(401, '<html>', 'text/html'))).to.match(/type text\/html/);
    expect(fault(document, one, reply(401, '{'))).to.match(/no JSON/);
    expect(fault(document, one, reply(401, '{"details":[]}'))).to.match(/not of its schema/);
    expect(fault(document, one, reply(401, '{"error":"no"}', undefined, { 'cache-control': undefined }))).to.match(
      /Cache-Control/,
    );
  });

  it('cover every kind of request for every operation', () => {
    const headers = new Set<string>();
    const numbers = new Set<string>();
    const callers = new Set<Caller>();
    let forged = 0;
    for (const [index, target] of targets.entries()) {
      const name = `${target.method} ${target.path}`;
      const schema = target.operation.requestBody?.content['application/json']?.schema;
      let [good, others] = [0, 0];
      // Ten are enough for most; those whose bodies have to meet more rules get more.
      for (let seed = 1; seed === 1 || (schema && seed <= 12 && (good === 0 || others === 0)); seed++) {
        for (const one of fc.sample(requestsTo(target), { seed: 12 * index + seed, numRuns: 10 })) {
          callers.add(one.caller);
          if (isForged(one)) forged++;
          for (const number of `${one.url} ${one.body?.toString() ?? ''}`.match(/\b\d{10,16}\b/g) ?? [])
            numbers.add(number);
          headers.add(one.headers['content-encoding'] ?? '').add(one.headers['content-type'] ?? '');
          if (!schema || one.headers['content-encoding']) continue;
          const body = parsed(one.body?.toString() ?? '');
          if (body !== undefined && accepts(document, schema, body)) good++;
          else others++;
        }
      }
      if (!schema) continue;
      expect(good, `${name}: bodies as described`).to.be.above(0);
      expect(others, `${name}: other bodies`).to.be.above(0);
    }
    expect(callers).to.have.all.keys(...CALLERS);
    expect(numbers).to.include.all.keys('2147483647', '2147483648', '9007199254740991', '9007199254740992');
    expect(forged, 'requests of other sites').to.be.above(20);
    expect(headers).to.include.all.keys('gzip', 'x', 'application/json', 'application/json; charset=utf-99');
  });

  // By hand, before the others may have taken the callers their roles: what each of them has to be able to meet.
  it('trigger every kind of response', async () => {
    const json = { 'content-type': 'application/json' };
    const bytes = (value: unknown) => Buffer.from(JSON.stringify(value));
    const agent = { name: 'generated', role: 'x' };
    const cases: readonly [number, string, Caller, Buffer?, Record<string, string>?, string?][] = [
      [200, 'GET /api/agents', 'viewer'],
      [201, 'POST /api/agents', 'admin', bytes(agent)],
      [400, 'POST /api/agents', 'admin', Buffer.from('{')],
      [401, 'GET /api/agents', 'anonymous'],
      [401, 'GET /api/agents', 'wrong key'],
      [403, 'POST /api/agents', 'viewer', bytes(agent)],
      [404, 'GET /api/agents/{id}', 'key with viewer', undefined, {}, '/api/agents/987654321'],
      [409, 'POST /api/agents', 'admin', bytes(agent)],
      [413, 'POST /api/agents', 'admin', bytes({ ...agent, name: 'x'.repeat(3_000_000) })],
      [415, 'POST /api/agents', 'admin', bytes(agent), { 'content-type': 'application/json; charset=utf-99' }],
    ];
    for (const [status, name, caller, body, headers = json, url] of cases) {
      const target = targets.find(({ method, path }) => `${method} ${path}` === name) as Described;
      const one = { target, caller, method: target.method, url: url ?? target.path, headers, body };
      const reply = await send(one);
      expect(reply.status, `${name} as ${caller}: ${reply.text.slice(0, 300)}`).to.equal(status);
      expect(fault(document, one, reply)).to.equal(undefined);
    }
  });

  it('get no 5xx and no undescribed response', async function () {
    this.timeout(TIME_LIMIT_MS === undefined ? 0 : 120_000);
    const faults: string[] = [];
    // Every call once, whatever the time limit leaves of the rest.
    for (const [index, target] of targets.entries()) {
      // With one seed for all, all would be made by the same callers.
      for (const one of fc.sample(requestsTo(target), { seed: SEED + index, numRuns: 2 })) {
        const wrong = await judge(one);
        if (wrong) faults.push(wrong);
      }
    }
    expect(faults, `GENERATED_SEED=${SEED}\n${faults.join('\n')}`).to.have.length(0);
    const requests = fc.array(fc.constantFrom(...targets).chain(requestsTo), { minLength: 4, maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(requests, async (all) => {
        const wrong = (await Promise.all(all.map(judge))).filter((one) => one !== undefined);
        if (wrong.length > 0) throw new Error(`${wrong.join('\n')}\nrun again with GENERATED_SEED=${SEED}`);
      }),
      {
        seed: SEED,
        numRuns: RUNS,
        endOnFailure: true,
        ...(TIME_LIMIT_MS !== undefined && { interruptAfterTimeLimit: TIME_LIMIT_MS, markInterruptAsFailure: false }),
      },
    );
  });

  it('leave every read model healthy', async () => {
    const all = [...statuses.values()].reduce((sum, count) => sum + count, 0);
    const told = [...statuses].sort(([a], [b]) => a - b).map(([status, count]) => `${count} × ${status}`);
    console.log(`      ${all} requests to ${targets.length} calls: ${told.join(', ')}`);
    const ready = await world.ask('GET', '/health/ready', { as: world.adminKey });
    expect(ready.status, JSON.stringify(ready.body)).to.equal(200);
  });
});
