/**
 * No number of a request reaches the database unchecked: each has bounds that its column holds. Routes come from their
 * description and tables from the projections, so that new ones are in here without being named.
 */
import { expect } from 'chai';
import { describeApi } from '../../api/openapi.ts';
import { routes } from '../../api/routes/index.ts';
import { projections } from '../../projections/index.ts';
import { schemaOf } from '../../projections/projection.ts';
import { fixture } from '../support/fixture.ts';
import {
  type Described,
  type NumberField,
  numbersOf,
  operationsOf,
  readsOf,
  type Sent,
  withNumber,
  writesOf,
} from '../support/requests.ts';
import type { Reply } from '../support/service.ts';
import { freshAddress, startAuthWorld } from '../support/worlds/auth.ts';

const INT4 = 2 ** 31 - 1;

/** What a column of the type bigint or double holds: ids, times, and counts of tokens. */
const ID = /(^|_)ids?$|Ids?$/;
const TIME = /(^|_)(since|until|before|at|deadline|due_date|last_seen)$|^(olderThan|timestamp)$/;
const COUNT = /^(input|output)(_t|T)okens$|^cache(Read|Write)Tokens$|^(user|assistant)_messages$|^tool_uses$/;
/** Positions of the log, and sizes of the tree over it. */
const POSITION = /^(after|size|from|to)$/;
const isWide = (name: string): boolean => [ID, TIME, COUNT, POSITION].some((pattern) => pattern.test(name));

/** Ids of workspaces and tenants, which the service gives out; `workspaces.id` tells which there are. */
const OWN_IDS = ['workspace_id', 'tenant_id', 'main_workspace', 'moves_to'];

/** Ends of the ranges of integers in PostgreSQL and in JavaScript, and what is beyond them. */
const EDGES = [0, -1, -(2 ** 31) - 1, INT4, INT4 + 1, 2 ** 53 - 1, 2 ** 53, 2 ** 63, 1e300, 1.5];

/** Bodies that cannot be derived from the schema. */
const BODIES: Readonly<Record<string, (ref: { readonly name: string }) => unknown[]>> = {
  'POST /api/alerts': ({ name }) => [
    {
      ...{ name, entity_type: 'agent', condition_field: 'status', condition_operator: 'equals' },
      condition_value: name,
    },
  ],
  'PUT /api/alerts': ({ name }) => [{ id: 1, name }],
  'POST /api/cron': ({ name }) => [{ action: 'add', name, schedule: '0 4 1 1 *', command: 'purge_logs' }],
  'POST /api/gateways': ({ name }) => [{ name, url: 'http://127.0.0.1:9' }],
  'PUT /api/gateways': ({ name }) => [{ id: 1, name }],
  'POST /api/pipelines': ({ name }) => [{ name, steps: [{ template_id: 1 }, { template_id: 1 }] }],
  'POST /api/projects': ({ name }) => [{ name, ticket_prefix: name }],
  'POST /api/super/provision-jobs': () => [{ tenant_id: 2 }],
  'POST /api/super/tenants': ({ name }) => [{ slug: name, display_name: name, gateway_port: 2_000 }],
  'POST /api/tokens': ({ name }) => [{ model: name, sessionId: name, inputTokens: 1, outputTokens: 1 }],
  'POST /api/webhooks': ({ name }) => [{ name, url: 'https://example.org/hook', events: [name] }],
};

/** Answers about GitHub and gateways, which are not there. */
const UNREACHED = [502, 503];

/** Candidates that are sent to find one that is accepted. */
const MAX_TRIED = 30;

const operations = operationsOf(describeApi(routes));
const nameOf = ({ steps }: NumberField): string => String(steps.findLast((step) => typeof step === 'string') ?? '');
const boundsOf = ({ schema }: NumberField) => ({
  min: schema.minimum ?? schema.exclusiveMinimum,
  max: schema.maximum ?? schema.exclusiveMaximum,
});

/** The edges, and those of the field itself. Of the numbers that it must not have, the nearest will do. */
function valuesOf(field: NumberField): ReadonlySet<number> {
  const { min, max } = boundsOf(field);
  if (typeof min !== 'number' || typeof max !== 'number') return new Set(EDGES);
  const own = [min - 1, min, max, max + 1];
  const isNear = (value: number) => (value > min && value < max) || !Number.isInteger(value);
  return new Set([...EDGES.filter(isNear), ...own]);
}

describe('contract: integers', function () {
  this.timeout(300_000);

  it('in requests have bounds; only ids, times and counts may exceed int4', () => {
    const loose: string[] = [];
    for (const operation of operations) {
      for (const field of numbersOf(operation).filter(({ place }) => place !== 'path')) {
        const { min, max } = boundsOf(field);
        const here = `${operation.name} ${field.steps.join('.')}: ${String(min)}..${String(max)}`;
        if (typeof min !== 'number' || typeof max !== 'number') loose.push(here);
        else if (max > Number.MAX_SAFE_INTEGER || (max > INT4 && !isWide(nameOf(field)))) loose.push(here);
      }
    }
    expect(loose, 'declare a minimum and a maximum').to.deep.equal([]);
  });

  it('in read models are bigint if a request may name them', () => {
    const narrow = projections.flatMap((projection) =>
      projection.tables.flatMap((table) =>
        Object.entries(table.columns)
          .filter(([name, type]) => /^int\b/.test(String(type)) && isWide(name) && !OWN_IDS.includes(name))
          .map(([name]) => `${schemaOf(projection)}.${table.name}.${name}`),
      ),
    );
    expect(narrow, 'make them bigint').to.deep.equal([]);
  });

  describe('at and beyond the bounds of every type', () => {
    /** The session of an admin. */
    let admin: string;
    let admins = 0;
    async function freshAdmin(): Promise<void> {
      const username = `admin-${++admins}`;
      admin = await world.makeSession({ username, role: 'admin' });
    }

    const world = fixture(() => startAuthWorld({ MC_AGENT_TIMEOUT_MINUTES: '0', MC_CONNECTION_TIMEOUT_MINUTES: '0' }));
    before(async () => {
      await freshAdmin();
      // The first of their kind, so that the id 1 has one where the order of the calls does not make it in time.
      await world.makeAgent('first');
      for (const [path, body] of [
        ['/api/webhooks', { name: 'first', url: 'https://example.org/hook', events: ['none'] }],
        ['/api/alerts', ...(BODIES['POST /api/alerts']?.({ name: 'first' }) ?? [])],
        ['/api/super/tenants', { slug: 'first', display_name: 'First', gateway_port: 2_000 }],
      ] as const) {
        const reply = await ask({ method: 'POST', path, body });
        expect(reply.status, JSON.stringify(reply.body)).to.be.within(200, 201);
      }
    });

    /** As an admin; as another one where this one has been deleted or has reached a limit. */
    async function ask({ method, path, body }: Sent): Promise<Reply> {
      const once = () => world.ask(method, path, { as: admin, body });
      const reply = await once();
      if (reply.status !== 401 && reply.status !== 429) return reply;
      await freshAdmin();
      return once();
    }

    let names = 0;
    const fresh = () => ({ numbers: [1], names: [`some-${++names}`] });

    /** What can be sent to an operation; the same kinds each time, with names of their own. */
    function candidates(operation: Described): Sent[] {
      const { method, path, name } = operation;
      if (method === 'GET') return [...readsOf(operation, fresh())];
      const values = fresh();
      const own = BODIES[name]?.({ name: values.names[0] as string }) ?? [];
      return [...own.map((body) => ({ method, path, body })), ...writesOf(operation, values)];
    }

    /** Which of the candidates is accepted; the last one if none is. */
    async function accepted(operation: Described): Promise<number> {
      const count = Math.min(candidates(operation).length, MAX_TRIED);
      for (let at = 0; at < count; at++) {
        const { status } = await ask(candidates(operation)[at] as Sent);
        if (status < 300) return at;
      }
      return count - 1;
    }

    function changed(operation: Described, sent: Sent, { place, steps }: NumberField, value: number): Sent {
      const [name] = steps as [string];
      if (place === 'body') return { ...sent, body: withNumber(sent.body, steps, value) };
      if (place === 'query') return { ...sent, path: `${sent.path.split('?')[0]}?${name}=${value}` };
      const at = operation.path.split('/').indexOf(`{${name}}`);
      const path = sent.path.split('/').map((segment, index) => (index === at ? String(value) : segment));
      return { ...sent, path: path.join('/') };
    }

    const ORDER = ['POST', 'PUT', 'PATCH', 'GET', 'DELETE'];

    it('are handled without an error and leave every read model healthy', async () => {
      const faults: string[] = [];
      let stored = 0;
      const inOrder = operations
        .filter(({ isStream }) => !isStream)
        .sort((a, b) => ORDER.indexOf(a.method) - ORDER.indexOf(b.method));
      for (const operation of inOrder) {
        const fields = numbersOf(operation);
        if (fields.length === 0) continue;
        const base = await accepted(operation);
        for (const field of fields) {
          for (const value of valuesOf(field)) {
            const sent = changed(operation, candidates(operation)[base] as Sent, field, value);
            const { status, body } = await ask(sent);
            if (status < 300) stored++;
            if (status >= 500 && !UNREACHED.includes(status))
              faults.push(
                `${status} ${sent.method} ${sent.path} ${JSON.stringify(sent.body)}: ${JSON.stringify(body)}`,
              );
          }
        }
      }
      expect(faults.slice(0, 20)).to.deep.equal([]);
      expect(stored, 'accepted requests').to.be.above(300);
      const ready = await world.ask('GET', '/health/ready', { as: world.adminKey, ip: freshAddress() });
      expect(ready.status, JSON.stringify(ready.body)).to.equal(200);
    });
  });
});
