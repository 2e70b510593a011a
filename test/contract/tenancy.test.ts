/**
 * Workspaces never see each other. Three of them, the one of the deployment among them, are filled with marked records;
 * then every operation of the description is called by one with the ids and names of the others. Routes come from the
 * description and tables from the projections: a new one is in here without being named.
 */
import { expect } from 'chai';
import type { OpenApiDocument } from '../../api/openapi.ts';
import { seconds } from '../../shared/time.ts';
import { type Described, operationsOf, readsOf, type Sent, writesOf } from '../support/requests.ts';
import { runs } from '../support/runs.ts';
import type { Reply } from '../support/service.ts';
import { openStream } from '../support/stream.ts';
import { until } from '../support/until.ts';
import {
  AMBER,
  BIRCH,
  HOUSE,
  MIRROR,
  nameOf,
  othersThan,
  PARTIES,
  type Party,
  TWIN,
  tenancyWorld,
} from '../support/worlds/tenancy.ts';
import { BODIES, NOT_REPLAYED, REFUSED } from '../support/worlds/tenancy-requests.ts';
import { all, DEPLOYMENT_ONLY, hasTexts, ownerOf } from '../support/worlds/tenancy-rows.ts';

/** Leaves of a JSON value by their path. */
function leaves(value: unknown, path = '', found = new Map<string, unknown>()): Map<string, unknown> {
  if (typeof value !== 'object' || value === null) found.set(path, value);
  else for (const [key, one] of Object.entries(value)) leaves(one, `${path}/${key}`, found);
  return found;
}

/** Ids of records in a response, by their field: those that may be ids of several kinds of records prove nothing. */
const idsIn = (body: unknown): ReadonlySet<string> =>
  new Set(
    [...leaves(body)]
      .filter(
        ([path, value]) =>
          /(?<!^\/results\/\d+|entity|target|source|actor)(\/|_)id$/.test(path) &&
          typeof value === 'number' &&
          value > 0,
      )
      .map(([path, value]) => `${path.replace(/\/\d+(?=\/)/g, '')} ${value}`),
  );

describe('contract: tenancy', function () {
  // One test makes some thousand requests, and compares what the others have after each kind.
  this.timeout(300_000);

  const tenancy = tenancyWorld();
  const { world, gatewayServer, sessions, ask, together, fill, rowsOf, marksOf, hashesOf, valuesOf, ownPathOf } =
    tenancy;

  let operations: readonly Described[];
  before(async () => {
    operations = operationsOf((await world.ask('GET', '/api/docs')).body as OpenApiDocument);
  });
  const reads = () => operations.filter(({ method, isStream }) => method === 'GET' && !isStream);
  /** Deepest paths first among those that delete: what a path hangs on is deleted last. */
  const writes = () => {
    const depth = ({ method, path }: Described) => (method === 'DELETE' ? 100 - path.split('/').length : 0);
    return operations.filter(({ method }) => method !== 'GET').sort((a, b) => depth(a) - depth(b));
  };

  // --- What must not be seen ---------------------------------------------------------------------------------------

  /** What an answer says of workspaces that are not the caller's, beyond the names that the caller has sent. */
  function leakedIn(party: Party, answer: string, said = ''): string[] {
    const marks = othersThan(party).flatMap(({ names, texts }) => [texts, ...(said.includes(names) ? [] : [names])]);
    const isOwn = (column: string | undefined, id: number) =>
      column === 'tenant' ? id === party.tenant : id === party.workspace || party.more.has(id);
    const places = [...answer.matchAll(/"(workspace|tenant)_id":(\d+)/g)].filter(
      ([, column, id]) => !isOwn(column, Number(id)),
    );
    return [...marks.filter((mark) => answer.includes(mark)), ...places.map(([text]) => text)];
  }

  const textOf = ({ body, headers }: Reply) =>
    `${typeof body === 'string' ? body : JSON.stringify(body)}${JSON.stringify([...headers])}`;

  const describeRequest = ({ method, path, body }: Sent) =>
    `${method} ${path}${body === undefined ? '' : ` ${JSON.stringify(body)}`}`;

  /** Names of others that were sent in a body may have been stored, in the sender's own records. */
  const stored = PARTIES.map(({ names }) => names).join(' ');

  /** The log is that of the whole deployment, and shown to its admins as it is: others are refused. */
  const isWholeLog = (party: Party, { path }: Sent) => party === HOUSE && path.startsWith('/api/history/');

  /** Checks one response to a caller that has sent these names before. */
  function check(party: Party, sent: Sent, reply: Reply, said = describeRequest(sent)): void {
    expect(reply.status, describeRequest(sent)).not.to.equal(500);
    if (isWholeLog(party, sent)) return;
    // Admins of the deployment see which tenants there are, and nothing of what these have.
    const isAboutTenants = party === HOUSE && sent.path.startsWith('/api/super/');
    const leaks = leakedIn(party, textOf(reply), said).filter((leak) => !(isAboutTenants && /^"\w+_id":/.test(leak)));
    if (leaks.length > 0) throw new Error(`${describeRequest(sent)} as ${party.names} shows ${leaks.join(', ')}`);
  }

  /** Closed to callers of other tenants, before anything that a request names is read. */
  const isClosed = ({ status, body }: Reply) => status === 403 && /concerns the whole deployment/.test(body.error);

  // --- Tests -------------------------------------------------------------------------------------------------------

  it('every table of every read model holds marked records of every workspace', async () => {
    const empty: string[] = [];
    const stored = new Map(await Promise.all(PARTIES.map(async (one) => [one, await rowsOf(one)] as const)));
    for (const one of all) {
      const isEverybodys = ownerOf(one.table) !== undefined && !DEPLOYMENT_ONLY.includes(one.table.name);
      for (const party of isEverybodys ? PARTIES : [HOUSE]) {
        const { workspace, names, texts } = party;
        const rows = stored.get(party)?.get(one.place) ?? [];
        // Where there are no texts, there is nothing to mark.
        const marked = hasTexts(one.table) ? (row: string) => row.includes(names) || row.includes(texts) : () => true;
        if (!rows.some(marked)) {
          empty.push(`${one.place} of workspace ${workspace}`);
        }
      }
    }
    expect(empty, 'tables that `fill` leaves empty').to.deep.equal([]);
  });

  it('nothing that one workspace reads, by session or key, contains data of the others', async () => {
    // The last tenant is of the same kind as the second.
    const some = PARTIES.slice(0, runs(2, 3)).reverse();
    const callers = await Promise.all(
      some.map(async (party) => {
        const { agent } = (await ask(party, { method: 'GET', path: `/api/agents/${TWIN}` })).body;
        const path = `/api/agents/${agent.id}/keys`;
        const key = (await ask(party, { method: 'POST', path, body: { scopes: ['admin'] } })).body.api_key;
        const theirs = await valuesOf(some.filter((one) => one !== party));
        return { party, key, values: { ...theirs, names: [...new Set([TWIN, ...theirs.names])] } };
      }),
    );
    for (const operation of reads()) {
      // Each query is asked by one of those who may, and by all of them with TEST_RUNS=many.
      let turns = runs(callers.length, 1);
      for (const [turn, { party, key, values }] of callers.entries()) {
        const own = await ownPathOf(operation, party);
        const requests = [...readsOf(operation, values, { own })];
        // Of a key it is enough to see that it stands for the same workspace.
        const [bare, ...others] = requests as [Sent, ...Sent[]];
        check(party, bare, await world.ask('GET', bare.path, { as: key }));
        const reply = await ask(party, bare);
        check(party, bare, reply);
        if (isClosed(reply)) turns = 1;
        if (isClosed(reply) || isWholeLog(party, bare)) continue;
        const [bares, queries] = [
          others.filter((sent) => !sent.path.includes('?')),
          others.filter((sent) => sent.path.includes('?')),
        ];
        const taken = queries.filter((_, at) => at % turns === turn % turns);
        await together([...bares, ...taken], async (sent) => check(party, sent, await ask(party, sent)));
      }
    }
  });

  it('reads of one workspace do not change while only others write, also under the same names, including counts and totals', async () => {
    const own = await valuesOf([BIRCH]);
    const values = { numbers: own.numbers.slice(0, 1), names: [TWIN, nameOf(BIRCH), BIRCH.texts] };
    const { agent } = (await ask(BIRCH, { method: 'GET', path: `/api/agents/${TWIN}` })).body;
    const key = await world.makeKey(agent.id, ['admin'], BIRCH.workspace, BIRCH.tenant);
    const requests: (Sent & { readonly as?: string })[] = [];
    const open: Described[] = [];
    for (const operation of reads()) {
      // What is outside /api tells of the process, not of a workspace.
      if (!operation.path.startsWith('/api/')) continue;
      // An export is recorded in the audit trail, so what the next one holds moves by itself.
      if (operation.path === '/api/export') continue;
      const own = await ownPathOf(operation, BIRCH);
      const some = [...readsOf(operation, values, { own })].filter(({ path }) => runs(1, 2) > 1 || !path.includes('&'));
      const statuses = await Promise.all(some.slice(0, 1).map(async (sent) => (await ask(BIRCH, sent)).status));
      // A denial is recorded, so it changes what the next request reads.
      if (statuses.includes(403)) continue;
      open.push(operation);
      requests.push(...some);
      const [path] = [some.at(operation.path.includes('{') ? -1 : 0)?.path ?? ''];
      if ((await world.ask('GET', path, { as: key })).status === 200) requests.push({ method: 'GET', path, as: key });
    }
    await world.service.securityEvents?.drain();
    let passes = 0;
    const named = ({ path, as }: (typeof requests)[number]) => `${path}${as === undefined ? '' : ' with a key'}`;
    const known = new Map<string, ReadonlySet<string>>();
    const readAll = async (requests: readonly (Sent & { readonly as?: string })[]) => {
      passes++;
      const answers = new Map<string, Map<string, unknown>>();
      await together(requests, async (sent) => {
        // Each pass has URLs of its own: an answer that was kept from the pass before would prove nothing.
        const path = `${sent.path}${sent.path.includes('?') ? '&' : '?'}pass=${passes}`;
        const { as } = sent;
        const { status, body } = await (as ? world.ask('GET', path, { as }) : ask(BIRCH, { ...sent, path }));
        const isRecord = status === 200 && typeof body === 'object';
        answers.set(named(sent), leaves(isRecord ? { status, body } : { status }));
        known.set(named(sent), idsIn(body));
      });
      return answers;
    };
    const called = gatewayServer.seen.length;
    const before = await readAll(requests);
    expect(gatewayServer.seen.length, 'calls of the gateway of the deployment').to.equal(called);
    await tenancy.makeTenant(MIRROR);
    await Promise.all([fill(AMBER, 2), fill(HOUSE, 2), fill(MIRROR, 1)]);
    const after = await readAll(requests);
    expect(after.size, 'answers to compare').to.be.above(100);
    const read = seconds(Date.now());
    const different = requests.filter((sent) => {
      const [one, two] = [before.get(named(sent)), after.get(named(sent))];
      return [...new Set([...(one?.keys() ?? []), ...(two?.keys() ?? [])])].some(
        (leaf) => one?.get(leaf) !== two?.get(leaf) || one?.has(leaf) !== two?.has(leaf),
      );
    });
    // Otherwise a time in a response could look unchanged.
    await until('the clock shows another second', () => seconds(Date.now()) > read);
    const again = await readAll(different);
    const moved: string[] = [];
    for (const [path, three] of again) {
      const [one, two] = [before.get(path), after.get(path)];
      // What moves by itself, such as the time, is no sign, nor is the last use of the key that reads.
      const stands = (leaf: string) =>
        two?.get(leaf) === three.get(leaf) &&
        two?.has(leaf) === three.has(leaf) &&
        !/\/(last_used_at|keys\/\d+\/updated_at)$/.test(leaf);
      for (const leaf of new Set([...(one?.keys() ?? []), ...(two?.keys() ?? [])])) {
        if (stands(leaf) && (one?.get(leaf) !== two?.get(leaf) || one?.has(leaf) !== two?.has(leaf))) {
          moved.push(`GET ${path}: ${leaf} from ${String(one?.get(leaf))} to ${String(two?.get(leaf))}`);
        }
      }
    }
    expect(moved.slice(0, 10)).to.deep.equal([]);

    // A look-up without its workspace may find the first record of a name, which is right for the first tenant only.
    const shared: string[] = [];
    const isByName = (path: string) =>
      !path.includes('?') || (!path.includes('&') && values.names.some((name) => path.includes(name)));
    for (const operation of open) {
      const byName = [...readsOf(operation, { ...values, numbers: [] })].filter(({ path }) => isByName(path));
      await together(byName, async (sent) => {
        const theirs = known.get(sent.path) ?? idsIn((await ask(BIRCH, sent)).body);
        const own = idsIn((await ask(MIRROR, sent)).body);
        shared.push(...[...own].filter((id) => theirs.has(id)).map((id) => `GET ${sent.path}: ${id}`));
      });
    }
    expect(shared.slice(0, 10), 'ids in the responses to both tenants').to.deep.equal([]);
  });

  it('streams contain no data of other workspaces, live and while catching up', async () => {
    const streams = operations.filter((operation) => operation.isStream);
    expect(streams.map(({ name }) => name)).to.include('GET /api/events');
    for (const { path } of streams) {
      const open = (party: Party, query = '') =>
        openStream(`${world.url}${path}${query}`, { cookie: sessions.get(party) ?? '' });
      const opened: { readonly party: Party; readonly stream: Awaited<ReturnType<typeof open>> }[] = [];
      for (const party of PARTIES) {
        for (const query of ['', '?since=0']) opened.push({ party, stream: await open(party, query) });
      }
      await Promise.all(PARTIES.map((party) => fill(party, 3)));
      // The last event: a reader that has it has all earlier events.
      for (const party of PARTIES) {
        await ask(party, {
          method: 'PUT',
          path: '/api/agents',
          body: { name: TWIN, last_activity: `${party.texts} end` },
        });
      }
      for (const { party, stream } of opened) {
        await stream.until(() => JSON.stringify(stream.frames.slice(-4)).includes(`${party.texts} end`));
      }
      // Frames of another workspace would come after the own ones: catch up once more behind the last event.
      for (const party of PARTIES) opened.push({ party, stream: await open(party, '?since=0') });
      for (const { party, stream } of opened) {
        await stream.until(() => JSON.stringify(stream.frames).includes(`${party.texts} end`));
        for (const frame of stream.frames) {
          const leaks = leakedIn(party, JSON.stringify(frame));
          expect(leaks, `${path} as ${party.names}: ${JSON.stringify(frame)}`).to.deep.equal([]);
        }
        stream.close();
      }
    }
  });

  it('agents of another workspace give the same status as agents that do not exist', async () => {
    const { agent } = (await ask(AMBER, { method: 'GET', path: `/api/agents/${nameOf(AMBER)}` })).body;
    const theirs = { numbers: [agent.id], names: [agent.name] };
    const unknown = { numbers: [987_654_321], names: ['unknown-agent'] };
    for (const operation of operations.filter(({ path }) => path.startsWith('/api/agents'))) {
      // Its name is free in this workspace.
      if (['POST /api/agents', 'POST /api/agents/register'].includes(operation.name)) continue;
      const toUnknown = writesOf(operation, unknown, BODIES[operation.name]);
      for (const sent of writesOf(operation, theirs, BODIES[operation.name])) {
        const { status } = await ask(BIRCH, toUnknown.next().value as Sent);
        expect((await ask(BIRCH, sent)).status, describeRequest(sent)).to.equal(status);
      }
    }
  });

  it('the same Idempotency-Key in another workspace is a different key', async () => {
    const values = await valuesOf([AMBER]);
    let answered = 0;
    for (const operation of writes().filter(({ method }) => method === 'POST')) {
      if (operation.isPublic) continue;
      const headers = { 'idempotency-key': operation.name.replace(/[^\w-]/g, '-') };
      for (const sent of writesOf(
        operation,
        { ...values, names: [`${AMBER.names}-new`, ...values.names] },
        BODIES[operation.name],
      )) {
        const first = await ask(AMBER, sent, headers);
        if (first.status > 201) continue;
        answered++;
        for (const body of [sent.body, { other: 1 }]) {
          const again = { ...sent, ...(sent.body !== undefined && { body }) };
          const reply = await ask(BIRCH, again, headers);
          check(BIRCH, again, reply, stored);
          expect(reply.headers.get('idempotency-replayed'), describeRequest(again)).to.equal(null);
          expect(reply.body.code, describeRequest(again)).not.to.equal('IDEMPOTENCY_KEY_REUSED');
          // The second body is to be looked at as the first one of this caller is.
          headers['idempotency-key'] += '-2';
        }
        break;
      }
    }
    expect(answered, 'routes that answered with a key').to.be.above(5);
  });

  it('writes with ids and names of other workspaces change and reveal nothing', async () => {
    // A read without a workspace, or in the default one, finds records of the default one.
    const theirs = await valuesOf([HOUSE, AMBER].slice(0, runs(1, 2)));
    // What they were refused before is counted, and recorded a minute later.
    await world.service.securityEvents?.drain();
    // The schedule would do this at any time.
    await tenancy.sumUp();
    const hashes = async () => ({ house: await hashesOf(HOUSE), amber: await hashesOf(AMBER) });
    const before = await hashes();
    const marks = await marksOf([HOUSE, AMBER]);
    const called = gatewayServer.seen.length;
    // Marks of all tables take longer than the requests of an operation, so several operations share a look at them.
    let unseen: string[] = [];
    const look = async () => {
      expect(await marksOf([HOUSE, AMBER]), `after ${unseen.join(', ')} by another workspace`).to.deep.equal(marks);
      unseen = [];
    };
    let fresh = 0;
    for (const operation of writes()) {
      // Who is not asked for a credential acts in the default workspace.
      if (operation.isPublic) continue;
      const values = { ...theirs, names: [`${BIRCH.names}-new-${++fresh}`, ...theirs.names] };
      const own = await ownPathOf(operation, BIRCH);
      const write = async (sent: Sent) => {
        const reply = await ask(BIRCH, sent);
        check(BIRCH, sent, reply, stored);
        return reply;
      };
      const [first, ...others] = [...writesOf(operation, values, BODIES[operation.name], { own })] as [Sent, ...Sent[]];
      if (!isClosed(await write(first))) {
        const isOwn = ({ path }: Sent) => own !== undefined && path.startsWith(own);
        await together(
          others.filter((sent) => !isOwn(sent)),
          write,
        );
        // Each changes the same record, which several at once would be refused.
        for (const sent of others.filter(isOwn)) await write(sent);
      }
      expect(gatewayServer.seen.length, `calls of the gateway by ${operation.name}`).to.equal(called);
      unseen.push(operation.name);
      if (unseen.length === 10) await look();
    }
    await look();
    // Without regard to the position of a row.
    expect(await hashes(), 'after all of them').to.deep.equal(before);
  });

  it('the stream of a record has events of one workspace', async () => {
    const workspaces = new Map<string, Set<unknown>>();
    for await (const events of world.service.core.eventLog.readAll()) {
      for (const { stream, meta } of events) {
        const { workspace } = meta as { readonly workspace: number };
        workspaces.set(stream, (workspaces.get(stream) ?? new Set()).add(workspace));
      }
    }
    // Tenants, names and security events are those of the deployment.
    const several = [...workspaces].filter(
      ([stream, { size }]) => size > 1 && !/^(tenant|name-all|security_events)-/.test(stream),
    );
    expect(several.map(([stream, found]) => `${stream}: ${[...found].join(', ')}`)).to.deep.equal([]);
  });

  // What was refused above for its form would prove nothing: the same requests, made by who may, are accepted.
  it('all of these requests succeed in their own workspace, a POST once for an Idempotency-Key', async () => {
    const reached = new Map<string, Set<number>>();
    let sends = 0;
    const isReached = (name: string) =>
      [...(reached.get(name) ?? [])].some((status) => status < 300 || status === REFUSED[name]);
    /** @returns whether one of them has the expected response */
    const run = async (operation: Described, requests: Iterable<Sent>): Promise<boolean> => {
      const statuses = new Set<number>();
      reached.set(operation.name, statuses);
      for (const sent of requests) {
        const headers = { 'idempotency-key': `reached-${++sends}` };
        const reply = await ask(HOUSE, sent, headers);
        statuses.add(reply.status);
        if (reply.status === REFUSED[operation.name]) break;
        if (reply.status >= 300) continue;
        if (operation.method === 'POST' && !NOT_REPLAYED.includes(operation.name)) {
          const again = await ask(HOUSE, sent, headers);
          const what = `${describeRequest(sent)} again`;
          expect([again.headers.get('idempotency-replayed'), again.body], what).to.deep.equal(['true', reply.body]);
        }
        break;
      }
      return isReached(operation.name);
    };
    // A guessed gateway takes the place of the one that answers, which later calls need.
    const answeringGatewayFirst = async () => {
      const body = { id: tenancy.primaryGateway(), url: gatewayServer.url, is_primary: true };
      expect((await ask(HOUSE, { method: 'PUT', path: '/api/gateways', body })).status).to.equal(200);
    };
    // Ids and names meet in turn: those of records that are gone would take the turns of others.
    const present = all.filter(({ table }) => table.name !== 'deleted_users');
    let values = await valuesOf([HOUSE], present);
    for (const operation of reads()) await run(operation, readsOf(operation, values));
    for (const operation of writes()) {
      const write = () =>
        run(
          operation,
          writesOf(
            operation,
            { ...values, names: [`${HOUSE.names}-new`, `${HOUSE.names}-new-${++sends}`, ...values.names] },
            BODIES[operation.name],
          ),
        );
      // Records that earlier operations have deleted.
      if (!(await write())) {
        values = await valuesOf([HOUSE], present);
        await write();
      }
      if (operation.path === '/api/gateways') await answeringGatewayFirst();
    }
    const missed = [...reached].filter(([name]) => !isReached(name));
    expect(missed.map(([name, statuses]) => `${name}: ${[...statuses].join(', ')}`)).to.deep.equal([]);
  });
});
