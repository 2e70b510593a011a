/**
 * Workspaces never see each other. Three of them, the one of the deployment among them, are filled with marked records;
 * then every operation of the description is called by one with the ids and names of the others. Routes come from the
 * description and tables from the projections: a new one is in here without being named.
 */
import { createHash } from 'node:crypto';
import { expect } from 'chai';
import type { QueryResultRow } from 'pg';
import type { OpenApiDocument } from '../../api/openapi.ts';
import { sumUpHeartbeats } from '../../commands/agents/leases.ts';
import { projections } from '../../projections/index.ts';
import { defineTable, schemaOf, type Table } from '../../projections/projection.ts';
import { seconds } from '../../shared/time.ts';
import { allCaughtUp } from '../support/caught-up.ts';
import { fixture } from '../support/fixture.ts';
import { startFakeGateway } from '../support/gateway.ts';
import { GITHUB_TOKEN, startFakeGithub } from '../support/github.ts';
import { CLIENT_ID, ISSUER, startFakeGoogle } from '../support/google.ts';
import { startReceiver } from '../support/receiver.ts';
import {
  type Described,
  kindOf,
  operationsOf,
  readsOf,
  type Sent,
  type Values,
  writesOf,
} from '../support/requests.ts';
import { runs } from '../support/runs.ts';
import { bodyOf, type Reply } from '../support/service.ts';
import { openStream } from '../support/stream.ts';
import { until } from '../support/until.ts';
import { PASSWORD, startAuthWorld } from '../support/worlds/auth.ts';

/** A workspace, and the marks that distinguish its records from those of others. */
interface Party {
  /** Those of tenants that are made here are known once they are. */
  workspace: number;
  tenant: number;
  /** In every name that others may send as well, as when they guess it. */
  readonly names: string;
  /** In usernames, session keys and slugs, which are unique in a deployment; default: the names or texts. */
  readonly users?: string;
  /** In every other text: callers outside the workspace cannot know it. */
  readonly texts: string;
  /** Other workspaces of its tenant, which it has created by the way: its users may be moved there. */
  readonly more: Set<number>;
}

const HOUSE: Party = { workspace: 1, tenant: 1, names: 'nhouse9x', texts: 'thouse9x', more: new Set() };
const AMBER: Party = { workspace: 0, tenant: 0, names: 'namber9x', texts: 'tamber9x', more: new Set() };
const BIRCH: Party = { workspace: 0, tenant: 0, names: 'nbirch9x', texts: 'tbirch9x', more: new Set() };
const PARTIES = [HOUSE, AMBER, BIRCH];
/** A tenant whose records have the same names and texts: only ids tell the two apart. */
const MIRROR: Party = { ...BIRCH, users: 'nmirror9x', more: new Set() };
const othersThan = (party: Party) => PARTIES.filter((one) => one !== party);

const isSecret = (text: string) => PARTIES.some(({ texts }) => text.includes(texts));

const HOUSE_REPO = `${HOUSE.names}/${HOUSE.texts}`;

/** Every workspace has an agent of this name. */
const TWIN = 'scout';

type Place = Pick<Party, 'workspace' | 'tenant'>;

/** How many records of each kind and workspace others ask for by their ids. */
const IDS = 4;

/** An address without a server. */
const NOBODY = 'http://127.0.0.1:9';

/** What a schema does not tell of the bodies that a route takes. */
const BODIES: Readonly<Record<string, (ref: { readonly number: number; readonly name: string }) => unknown[]>> = {
  'POST /api/adapters': ({ name }) => [
    { framework: 'generic', action: 'register', payload: { agentId: name, name } },
    { framework: 'generic', action: 'assignments', payload: { agentId: name } },
  ],
  'POST /api/alerts': ({ name }) => [
    { action: 'evaluate' },
    {
      ...{ name, entity_type: 'agent', condition_field: 'status', condition_operator: 'equals' },
      condition_value: name,
    },
  ],
  'PUT /api/alerts': ({ number, name }) => [{ id: number, name }],
  'POST /api/webhooks': ({ name }) => [{ name, url: 'https://example.org/hook', events: [name] }],
  'POST /api/scheduler': () => [{ task_id: 'purge_logs' }],
  'POST /api/gateways': ({ name }) => [{ name, url: NOBODY }],
  // A name that no other gateway has, whichever numbers and names meet.
  'PUT /api/gateways': ({ number, name }) => [{ id: number, name: `${name}-${number}` }],
  'POST /api/cron': ({ name }) => [{ action: 'add', name, schedule: '0 4 1 1 *', command: 'purge_logs' }],
  'POST /api/workspaces': ({ name }) => [{ name }],
  'PUT /api/workspaces/{id}': ({ name }) => [{ name }],
  'POST /api/super/tenants': ({ name }) => [{ slug: name, display_name: name, gateway_port: 2_000 }],
  'POST /api/super/provision-jobs': ({ number }) => [{ tenant_id: number }],
  'POST /api/super/provision-jobs/{id}': () => [{ action: 'approve' }],
  'DELETE /api/backup': () => [{ name: 'mc-backup-2020-01-01_00-00-00.db' }],
  'PUT /api/exec-approvals': ({ name }) => [{ agents: { [name]: [{ pattern: name }] } }],
  'PATCH /api/chat/session-prefs': ({ name }) => [{ key: `local:${name}`, name }],
  // A guessed `timestamp` is too old.
  'POST /api/tokens/batch': ({ name }) => [
    { reports: [{ model: name, sessionId: name, inputTokens: 1, outputTokens: 1 }] },
  ],
  'POST /api/pipelines': ({ number, name }) => [
    { name, steps: [{ template_id: number }, { template_id: number, on_failure: 'continue' }] },
  ],
};

/** Calls that cannot succeed with guessed input: their responses. */
const REFUSED: Readonly<Record<string, number>> = {
  'DELETE /api/backup': 404, // of no name that is guessed
  'POST /api/resume': 409, // the deployment is not paused
  'POST /api/auth/login': 401, // of no password that is guessed
  'POST /api/auth/google': 400, // of no token that is guessed
  'POST /api/auth/google/disconnect': 400, // of a user with a password
  // No provider is configured.
  'POST /api/auth/oidc': 400,
  'POST /api/auth/oidc/begin': 400,
  'POST /api/setup': 403, // of a deployment that has users
  // Ids of events are no names: test/contract/history has real ones.
  'GET /api/history/events/{id}': 400,
  'GET /api/history/causes/{id}': 400,
  // Its moments have to be given: see the same.
  'GET /api/history/diff': 400,
  'GET /api/history/proof': 400,
  'DELETE /api/connect': 404, // of a connection whose id is guessed
  'POST /api/tasks/{id}/branch': 400, // of a project without a repository
};

/** Their response ends the session, or is about messages that have keys of their own. */
const NOT_REPLAYED = ['POST /api/auth/logout', 'POST /mcp'];

/** Kept beside the read models, and listed to callers. */
const deliveries = defineTable(
  'webhook_deliveries',
  { workspace_id: 'int', webhook_id: 'bigint', id: 'bigint', payload: 'text' },
  { key: ['id'] },
);

const DELIVERIES = 'service.webhook_deliveries';

/** Filled with the deployment's token, which only its own tenant may use. */
const DEPLOYMENT_ONLY = ['github_syncs', 'github_projects', 'github_links'];

const all = [
  ...projections.flatMap((projection) =>
    projection.tables.map((table) => ({ table, place: `${schemaOf(projection)}.${table.name}` })),
  ),
  { table: deliveries as unknown as Table, place: DELIVERIES },
];
/** Columns whose texts are words of Signalbox: callers cannot mark them. */
const OWN_WORDS: ReadonlySet<string> = new Set([
  'key',
  'kind',
  'type',
  'entity_type',
  'known_by',
  'unit',
  'action',
  'status',
]);
const hasTexts = (table: Table) =>
  Object.entries(table.columns).some(([name, type]) => /text|json/.test(String(type)) && !OWN_WORDS.has(name));
/** The column that says whose a row is. */
const ownerOf = (table: Table): 'workspace_id' | 'tenant_id' | undefined => {
  if ('workspace_id' in table.columns) return 'workspace_id';
  return table.name === 'workspaces' ? 'tenant_id' : undefined;
};

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

  let operations: readonly Described[];
  const reads = () => operations.filter(({ method, isStream }) => method === 'GET' && !isStream);
  /** Deepest paths first among those that delete: what a path hangs on is deleted last. */
  const writes = () => {
    const depth = ({ method, path }: Described) => (method === 'DELETE' ? 100 - path.split('/').length : 0);
    return operations.filter(({ method }) => method !== 'GET').sort((a, b) => depth(a) - depth(b));
  };

  // --- Callers -----------------------------------------------------------------------------------------------------

  const sessions = new Map<Party, string>();
  let users = 0;
  async function freshAdmin(party: Party): Promise<void> {
    const { workspace, tenant, names, texts } = party;
    const username = `${party.users ?? names}-admin-${++users}`;
    await world.makeUser({ username, display_name: texts, role: 'admin', workspace, tenant });
    sessions.set(party, await world.signIn(username));
  }

  /** As an admin of the workspace; as another one where this one has been signed out or has reached a limit. */
  async function ask(party: Party, { method, path, body }: Sent, headers: Record<string, string> = {}): Promise<Reply> {
    const once = () => world.ask(method, path, { as: sessions.get(party), body, headers });
    let reply = await once();
    if (reply.status === 401 || reply.status === 429) {
      await freshAdmin(party);
      reply = await once();
    }
    if (method === 'POST' && path === '/api/workspaces' && reply.status === 201)
      party.more.add(reply.body.workspace.id);
    return reply;
  }

  /** Several requests at once take a seventh less CPU time than one after the other. */
  async function together<S extends Sent>(requests: readonly S[], each: (sent: S) => Promise<void>): Promise<void> {
    for (let at = 0; at < requests.length; at += 8) await Promise.all(requests.slice(at, at + 8).map(each));
  }

  // --- Records -----------------------------------------------------------------------------------------------------

  /** Records in every read model. */
  async function fill(party: Party, round: number): Promise<void> {
    const { names, texts } = party;
    const done = async (method: string, path: string, body?: unknown) =>
      bodyOf(await ask(party, { method, path, body }), 200, 201);
    const name = `${names}-agent-${round}`;
    const details = { role: `${texts}-role`, config: { note: texts }, soul_content: texts };
    const session = { session_key: `${party.users ?? texts}-${round}` };
    const { agent } = await done('POST', '/api/agents', { name, ...details, ...session });
    if (round === 1) await done('POST', '/api/agents', { name: TWIN, ...details });
    else await done('PUT', '/api/agents', { name: TWIN, last_activity: `${texts} ${round}` });
    for (const one of [agent.id, TWIN]) {
      await done('PUT', `/api/agents/${one}/memory`, { working_memory: `${texts} ${round}` });
      await done('POST', `/api/agents/${one}/wake`, { reason: texts });
      // The second one changes nothing.
      for (let n = 0; n < 2; n++) await done('POST', `/api/agents/${one}/heartbeat`);
    }
    for (const [from, to] of [
      [name, TWIN],
      [TWIN, name],
    ]) {
      await done('POST', '/api/agents/message', { from, to, content: texts });
    }
    const said = { content: texts, recipient: name, metadata: { note: texts } };
    const { message } = await done('POST', '/api/chat/messages', said);
    await done('POST', '/api/chat/messages', { content: texts, conversation_id: message.conversation_id });
    await done('PATCH', `/api/chat/messages/${message.id}`, { read: true });
    await done('POST', '/api/claude/sessions', { session_id: name, agent_name: name, project_path: texts });
    await done('PATCH', '/api/chat/session-prefs', { key: `local:${name}`, name: texts });
    await done('POST', '/api/connect', { tool_name: texts, agent_name: name, metadata: { note: texts } });
    await done('POST', `/api/agents/${agent.id}/keys`, { name: texts });
    const username = `${party.users ?? names}-user-${round}`;
    await done('POST', '/api/auth/users', {
      username,
      password: PASSWORD,
      role: 'viewer',
      display_name: texts,
      email: `${texts}-${round}@example.org`,
    });
    const left = {
      username: `${party.users ?? names}-left-${round}`,
      password: PASSWORD,
      role: 'viewer',
      display_name: texts,
    };
    const { user } = await done('POST', '/api/auth/users', left);
    await done('DELETE', '/api/auth/users', { id: user.id });
    const slug = `${party.users ?? names}-lab-${round}`;
    await done('POST', '/api/workspaces', { name: `${names}-lab-${round}`, slug, brand: texts });
    const { template } = await done('POST', '/api/workflows', { name: texts, task_prompt: texts, tags: [texts] });
    // One that no pipeline uses can be deleted.
    await done('POST', '/api/workflows', { name: `${texts}-spare`, task_prompt: texts, tags: [texts] });
    const steps = [{ template_id: template.id }, { template_id: template.id }];
    const { pipeline } = await done('POST', '/api/pipelines', { name: texts, steps });
    await done('POST', '/api/pipelines/run', { action: 'start', pipeline_id: pipeline.id });
    const { project } = await done('POST', '/api/projects', {
      name: `${names}-project-${round}`,
      ticket_prefix: `${names}${round}`,
      description: texts,
    });
    await done('POST', `/api/projects/${project.id}/agents`, { agent_name: name, role: texts });
    const content = { title: `${texts}-task`, description: texts, tags: [texts], metadata: { note: texts } };
    const { task } = await done('POST', '/api/tasks', { ...content, assigned_to: name });
    await done('POST', '/api/quality-review', { taskId: task.id, status: 'rejected', reviewer: names, notes: texts });
    await done('POST', `/api/tasks/${task.id}/comments`, { content: texts });
    await done('POST', `/api/tasks/${task.id}/broadcast`, { message: texts });
    await done('PUT', `/api/tasks/${task.id}`, { resolution: `${texts} ${round}` });
    const ended = (await done('POST', '/api/tasks', { ...content, title: `${texts}-ended`, assigned_to: name })).task
      .id;
    await done('POST', '/api/quality-review', { taskId: ended, status: 'approved', notes: texts });
    await done('PUT', `/api/tasks/${ended}`, { status: 'done', outcome: 'success' });
    const used = { id: `${texts}-${round}`, model: texts, sessionId: `${name}:cli`, inputTokens: 7, outputTokens: 7 };
    await done('POST', '/api/tokens', { ...used, taskId: task.id });
    await done('POST', '/api/tokens/batch', { reports: [{ ...used, id: undefined, sessionId: `${texts}:cli` }] });
    await done('PUT', '/api/tokens/prices', { model: texts, input: round, output: 1 });
    const list = [{ id: `${names}-imported`, name: `${names}-imported` }];
    await done('PUT', '/api/gateway-config', { agents: { list }, note: texts, round });
    // It receives tests only: background deliveries would change the compared responses.
    const hook = await done('POST', '/api/webhooks', { name: texts, url: receiver.url, events: [texts] });
    const tested = await done('POST', '/api/webhooks/test', { id: hook.id });
    await done('POST', '/api/webhooks/retry', { delivery_id: tested.delivery_id });
    // Its condition is never met, so that nothing moves by itself.
    const condition = { entity_type: 'task', condition_field: 'title', condition_operator: 'equals' };
    const action_config = { recipient: texts };
    await done('POST', '/api/alerts', { name: texts, ...condition, condition_value: `${texts} never`, action_config });
    await done('POST', '/api/logs', { action: 'add', message: texts, source: texts, session: texts });
    await done('POST', '/api/standup', { agents: [name] });
    await done('POST', '/api/adapters', { framework: 'generic', action: 'register', payload: { agentId: name, name } });
  }

  let tenants = 0;
  async function makeTenant(party: Party): Promise<void> {
    const at = tenants++;
    const body = { slug: `tenant-${at}`, display_name: `Tenant ${at}`, gateway_port: 2_000 };
    const { tenant } = bodyOf(await ask(HOUSE, { method: 'POST', path: '/api/super/tenants', body }), 201);
    Object.assign(party, { tenant: tenant.id, workspace: tenant.workspace_id });
    await freshAdmin(party);
  }

  /** Writes the summary of heartbeats that changed nothing. */
  const sumUp = () => {
    const { commands, leases, positions } = world.service.core;
    return sumUpHeartbeats({ commands, leases, readModels: positions });
  };

  let primaryGateway: number;
  /** What belongs to the deployment, and so to the default workspace. */
  async function fillDeployment(): Promise<void> {
    const { names, texts } = HOUSE;
    const credential = await google.token({ sub: `${names}-sub`, email: `${texts}@example.net`, name: names });
    expect((await world.ask('POST', '/api/auth/google', { body: { credential } })).status).to.equal(403);
    expect((await ask(HOUSE, { method: 'POST', path: '/api/tokens/rotate' })).status).to.equal(200);
    const settings = { [`${names}-setting`]: texts };
    expect((await ask(HOUSE, { method: 'PUT', path: '/api/settings', body: { settings } })).status).to.equal(200);
    const customer = { slug: `${names}-tenant`, display_name: texts, gateway_port: 2_000, config: { note: texts } };
    expect((await ask(HOUSE, { method: 'POST', path: '/api/super/tenants', body: customer })).status).to.equal(201);
    const gateway = { name: `${names}-gateway`, url: NOBODY, token: texts };
    expect((await ask(HOUSE, { method: 'POST', path: '/api/gateways', body: gateway })).status).to.equal(201);
    const primary = { name: `${names}-primary`, url: gatewayServer.url, token: texts, is_primary: true };
    primaryGateway = bodyOf(await ask(HOUSE, { method: 'POST', path: '/api/gateways', body: primary }), 201).gateway.id;
    expect((await ask(HOUSE, { method: 'POST', path: '/api/gateways/health' })).status).to.equal(200);
    gatewayServer.mark = texts;
    gatewayServer.sessions = [{ key: `${names}-live`, agent: texts, label: texts }];
    const live = await ask(HOUSE, { method: 'GET', path: '/api/sessions' });
    expect(live.body.sessions.map(({ label }: { label: string }) => label)).to.include(texts);
    const schema = await ask(HOUSE, { method: 'GET', path: '/api/gateway-config?action=schema' });
    expect(schema.body.title).to.equal(texts);
    const project = { name: `${names}-synced`, ticket_prefix: `${names}S`, github_repo: HOUSE_REPO };
    const made = await ask(HOUSE, { method: 'POST', path: '/api/projects', body: project });
    const path = `/api/projects/${made.body.project.id}`;
    const on = { github_sync_enabled: true };
    expect((await ask(HOUSE, { method: 'PATCH', path, body: on })).status).to.equal(200);
    github.issue(HOUSE_REPO, { title: texts });
    const sync = { method: 'POST', path: '/api/github/sync', body: { action: 'trigger-all' } };
    expect((await ask(HOUSE, sync)).body).to.deep.include({ pulled: 1 });
    const job = { action: 'add', name: `${names}-job`, schedule: '0 4 1 1 *', command: 'purge_logs' };
    expect((await ask(HOUSE, { method: 'POST', path: '/api/cron', body: job })).status).to.equal(200);
    const asked = { action: 'trigger', name: job.name };
    expect((await ask(HOUSE, { method: 'POST', path: '/api/cron', body: asked })).status).to.equal(200);
    const allowed = { agents: { [`${names}-agent`]: [{ pattern: texts }] } };
    expect((await ask(HOUSE, { method: 'PUT', path: '/api/exec-approvals', body: allowed })).status).to.equal(200);
  }

  /** Rows of a table, those of workspaces where the table has some. */
  function from({ table, place }: (typeof all)[number], parties: readonly Place[]): string {
    const owner = ownerOf(table);
    const owners = parties.map(({ workspace, tenant }) => (owner === 'tenant_id' ? tenant : workspace));
    return `FROM ${place} t ${owner ? `WHERE ${owner} IN (${owners.join(', ')})` : ''}`;
  }

  /** Reads them as text. */
  const rowsIn = (one: (typeof all)[number], party: Place) =>
    `SELECT '${one.place}' AS place, row_to_json(t)::text COLLATE "C" AS row ${from(one, [party])}`;

  /** Prepares the statement: planning it takes longer than what it reads, and it is asked for hundreds of times. */
  async function query<Row extends QueryResultRow>(text: string): Promise<Row[]> {
    const name = createHash('sha1').update(text).digest('base64url');
    await allCaughtUp(world.service.core);
    return (await world.service.core.database.pool.query<Row>({ name, text })).rows;
  }

  /** Rows of tables as text, in order, in one statement. */
  async function rowsOf(party: Place, tables = all): Promise<Map<string, string[]>> {
    const each = tables.map((one) => rowsIn(one, party));
    const found = new Map(tables.map(({ place }): [string, string[]] => [place, []]));
    for (const { place, row } of await query<{ place: string; row: string }>(
      `${each.join(' UNION ALL ')} ORDER BY 1, 2`,
    )) {
      found.get(place)?.push(row);
    }
    return found;
  }

  /**
   * Differs, in some table, after every change that a projection makes to what these have: a row gets the position of the
   * event that changes it, which is higher than all before. Takes a fraction of what hashes do.
   */
  async function marksOf(parties: readonly Party[]): Promise<Record<string, string>> {
    const rows = 'count(*), max(t."position"), sum(t."position")';
    await allCaughtUp(world.service.core);
    const each = all.map((one) => {
      const what = one.place === DELIVERIES ? `json_agg(t ORDER BY t.id)` : rows;
      return `SELECT '${one.place}' AS place, concat_ws(' ', ${what}) AS mark ${from(one, parties)}`;
    });
    const found = await query<{ place: string; mark: string }>(each.join(' UNION ALL '));
    return Object.fromEntries(found.map(({ place, mark }) => [place, mark]));
  }

  /** Hash of everything that a workspace has, by table. */
  async function hashesOf(party: Party): Promise<Record<string, string>> {
    const hash = `encode(sha256(convert_to(coalesce(string_agg(row, chr(10) ORDER BY row), ''), 'UTF8')), 'hex') AS hash`;
    const each = all.map((one) => `SELECT '${one.place}' AS place, ${hash} FROM (${rowsIn(one, party)}) rows`);
    const rows = await query<{ place: string; hash: string }>(each.join(' UNION ALL '));
    return Object.fromEntries(rows.map(({ place, hash }) => [place, hash]));
  }

  /** Ids and names in the records of these: the last of each column. */
  async function valuesOf(parties: readonly Party[], tables = all): Promise<Values> {
    await allCaughtUp(world.service.core);
    const numbers = new Set<number>();
    const names = new Set<string>();
    const ids = new Map<string, number[]>();
    for (const party of parties) {
      const stored = await rowsOf(party);
      for (const { table, place } of tables) {
        const rows = (stored.get(place) ?? []).map((row) => JSON.parse(row) as Record<string, unknown>);
        const known = rows.flatMap(({ id }) => (typeof id === 'number' && id > 0 ? [id] : []));
        const some = known.sort((a, b) => a - b).slice(-IDS);
        if (some.length > 0) ids.set(table.name, [...(ids.get(table.name) ?? []), ...some]);
        for (const column of Object.keys(table.columns).filter((name) => /^(id|.*_id|name|username)$/.test(name))) {
          if (column === 'workspace_id' || column === 'tenant_id') continue;
          const value = rows.map((row) => row[column]).findLast((cell) => cell !== null);
          if (typeof value === 'number' && value > 0) numbers.add(value);
          if (typeof value === 'string' && /name$/.test(column) && !isSecret(value)) names.add(value);
        }
      }
    }
    return { numbers: [...numbers], names: [...names], ids };
  }

  /** The path of an operation with a record of the caller's own, the last of the kind that the path names. */
  async function ownPathOf({ path }: Described, party: Party): Promise<string | undefined> {
    const kind = kindOf(path);
    const one = all.find(({ table }) => table.name === kind);
    const row = one && (await rowsOf(party, [one])).get(one.place)?.at(-1);
    const id = row === undefined ? undefined : (JSON.parse(row) as { id?: number }).id;
    return id === undefined ? undefined : path.replace('{id}', String(id));
  }

  const google = fixture(startFakeGoogle);
  const receiver = fixture(startReceiver);
  const github = fixture(startFakeGithub);
  /** The primary gateway of the deployment. */
  const gatewayServer = fixture(startFakeGateway);
  const world = fixture(() =>
    startAuthWorld({
      GOOGLE_CLIENT_ID: CLIENT_ID,
      GOOGLE_KEYS_URL: google.url,
      GOOGLE_ISSUERS: ISSUER,
      MC_AGENT_TIMEOUT_MINUTES: '0',
      MC_CONNECTION_TIMEOUT_MINUTES: '0',
      WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8',
      GITHUB_API_URL: github.url,
      GITHUB_TOKEN,
      GITHUB_DEFAULT_REPO: HOUSE_REPO,
      GITHUB_SYNC_INTERVAL_MS: '86400000',
    }),
  );
  before(async () => {
    await freshAdmin(HOUSE);
    for (const party of [AMBER, BIRCH]) await makeTenant(party);
    for (const party of PARTIES) await fill(party, 1);
    await sumUp();
    await fillDeployment();
    operations = operationsOf((await world.ask('GET', '/api/docs')).body as OpenApiDocument);
  });

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

  /** Checks one response to a caller that has sent these names before. */
  function check(party: Party, sent: Sent, reply: Reply, said = describeRequest(sent)): void {
    expect(reply.status, describeRequest(sent)).not.to.equal(500);
    // The log is that of the whole deployment, and shown to its admins as it is: others are refused.
    if (party === HOUSE && sent.path.startsWith('/api/history/')) return;
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
    const some = PARTIES.slice(0, runs(2, 3));
    for (const party of some) {
      const theirs = await valuesOf(some.filter((one) => one !== party));
      const { agent } = (await ask(party, { method: 'GET', path: `/api/agents/${TWIN}` })).body;
      const path = `/api/agents/${agent.id}/keys`;
      const key = (await ask(party, { method: 'POST', path, body: { scopes: ['admin'] } })).body.api_key;
      for (const operation of reads()) {
        const own = await ownPathOf(operation, party);
        const requests = [...readsOf(operation, { ...theirs, names: [TWIN, ...theirs.names] }, { own })];
        // Of a key it is enough to see that it stands for the same workspace.
        for (const sent of requests.slice(0, 2)) check(party, sent, await world.ask('GET', sent.path, { as: key }));
        const [bare, ...others] = requests as [Sent, ...Sent[]];
        const reply = await ask(party, bare);
        check(party, bare, reply);
        if (isClosed(reply)) continue;
        await together(others, async (sent) => check(party, sent, await ask(party, sent)));
      }
    }
  });

  it('reads of one workspace do not change while only others write, also under the same names, including counts and totals', async () => {
    const own = await valuesOf([BIRCH]);
    const values = { numbers: own.numbers.slice(0, 3), names: [TWIN, ...own.names.slice(0, 1), BIRCH.texts] };
    const { agent } = (await ask(BIRCH, { method: 'GET', path: `/api/agents/${TWIN}` })).body;
    const key = await world.makeKey(agent.id, ['admin'], BIRCH.workspace, BIRCH.tenant);
    const requests: (Sent & { readonly as?: string })[] = [];
    for (const operation of reads()) {
      // What is outside /api tells of the process, not of a workspace.
      if (!operation.path.startsWith('/api/')) continue;
      // An export is recorded in the audit trail, so what the next one holds moves by itself.
      if (operation.path === '/api/export') continue;
      const some = [...readsOf(operation, values, { own: await ownPathOf(operation, BIRCH) })];
      const statuses = await Promise.all(some.slice(0, 1).map(async (sent) => (await ask(BIRCH, sent)).status));
      // A denial is recorded, so it changes what the next request reads.
      if (statuses.includes(403)) continue;
      requests.push(...some);
      const [first = '', last = ''] = [some[0]?.path, some.at(-1)?.path];
      for (const path of new Set([first, last])) {
        if ((await world.ask('GET', path, { as: key })).status === 200) requests.push({ method: 'GET', path, as: key });
      }
    }
    await world.service.securityEvents?.drain();
    let passes = 0;
    const named = ({ path, as }: (typeof requests)[number]) => `${path}${as === undefined ? '' : ' with a key'}`;
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
      });
      return answers;
    };
    const called = gatewayServer.seen.length;
    const before = await readAll(requests);
    expect(gatewayServer.seen.length, 'calls of the gateway of the deployment').to.equal(called);
    await fill(AMBER, 2);
    await fill(HOUSE, 2);
    await makeTenant(MIRROR);
    await fill(MIRROR, 1);
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
      // What moves by itself, such as the time, is no sign.
      const stands = (leaf: string) =>
        two?.get(leaf) === three.get(leaf) && two?.has(leaf) === three.has(leaf) && !leaf.endsWith('/last_used_at');
      for (const leaf of new Set([...(one?.keys() ?? []), ...(two?.keys() ?? [])])) {
        if (stands(leaf) && (one?.get(leaf) !== two?.get(leaf) || one?.has(leaf) !== two?.has(leaf))) {
          moved.push(`GET ${path}: ${leaf} from ${String(one?.get(leaf))} to ${String(two?.get(leaf))}`);
        }
      }
    }
    expect(moved.slice(0, 10)).to.deep.equal([]);

    // A look-up without its workspace may find the first record of a name, which is right for the first tenant only.
    const shared: string[] = [];
    for (const operation of reads().filter(({ path }) => path.startsWith('/api/'))) {
      const names = { numbers: [], names: [TWIN, ...values.names.slice(1), `${BIRCH.names}-agent-1`] };
      await together([...readsOf(operation, names)], async (sent) => {
        const [theirs, own] = await Promise.all([ask(BIRCH, sent), ask(MIRROR, sent)]);
        const known = idsIn(theirs.body);
        shared.push(...[...idsIn(own.body)].filter((id) => known.has(id)).map((id) => `GET ${sent.path}: ${id}`));
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
      for (const party of PARTIES) await fill(party, 3);
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
    const { agent } = (await ask(AMBER, { method: 'GET', path: `/api/agents/${AMBER.names}-agent-1` })).body;
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
    const theirs = await valuesOf([HOUSE, AMBER]);
    // What they were refused before is counted, and recorded a minute later.
    await world.service.securityEvents?.drain();
    // The schedule would do this at any time.
    await sumUp();
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
      for (const sent of writesOf(operation, values, BODIES[operation.name], { own })) {
        const reply = await ask(BIRCH, sent);
        check(BIRCH, sent, reply, stored);
        if (isClosed(reply)) break;
      }
      expect(gatewayServer.seen.length, `calls of the gateway by ${operation.name}`).to.equal(called);
      unseen.push(operation.name);
      if (unseen.length === 10) await look();
    }
    await look();
    // Without regard to the position of a row.
    expect(await hashes(), 'after all of them').to.deep.equal(before);
  });

  // What was refused above for its form would prove nothing: the same requests, made by who may, are accepted.
  it('all of these requests succeed in their own workspace, a POST once for an Idempotency-Key', async () => {
    const reached = new Map<string, Set<number>>();
    const run = async (operation: Described, requests: Iterable<Sent>) => {
      const statuses = new Set<number>();
      reached.set(operation.name, statuses);
      for (const [at, sent] of [...requests].entries()) {
        const headers = { 'idempotency-key': `${operation.name.replace(/[^\w-]/g, '-')}-${at}` };
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
    };
    // A guessed gateway takes the place of the one that answers, which later calls need.
    const answeringGatewayFirst = async () => {
      const body = { id: primaryGateway, url: gatewayServer.url, is_primary: true };
      expect((await ask(HOUSE, { method: 'PUT', path: '/api/gateways', body })).status).to.equal(200);
    };
    // Ids and names meet in turn: those of records that are gone would take the turns of others.
    const present = all.filter(({ table }) => table.name !== 'deleted_users');
    const values = await valuesOf([HOUSE], present);
    for (const operation of reads()) await run(operation, readsOf(operation, values));
    for (const operation of writes()) {
      const own = await valuesOf([HOUSE], present);
      const values = { ...own, names: [`${HOUSE.names}-new`, ...own.names] };
      await run(operation, writesOf(operation, values, BODIES[operation.name]));
      if (operation.path === '/api/gateways') await answeringGatewayFirst();
    }
    const missed = [...reached].filter(
      ([name, statuses]) => ![...statuses].some((status) => status < 300 || status === REFUSED[name]),
    );
    expect(missed.map(([name, statuses]) => `${name}: ${[...statuses].join(', ')}`)).to.deep.equal([]);
  });
});
