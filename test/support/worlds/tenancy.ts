/** Workspaces filled with marked records, the one of the deployment among them. */
import { expect } from 'chai';
import { sumUpHeartbeats } from '../../../commands/agents/leases.ts';
import { fixture } from '../fixture.ts';
import { startFakeGateway } from '../gateway.ts';
import { GITHUB_TOKEN, startFakeGithub } from '../github.ts';
import { CLIENT_ID, ISSUER, startFakeGoogle } from '../google.ts';
import { startReceiver } from '../receiver.ts';
import type { Sent } from '../requests.ts';
import { bodyOf, type Reply } from '../service.ts';
import { PASSWORD, startAuthWorld } from './auth.ts';
import { tenancyRows } from './tenancy-rows.ts';

/** A workspace, and the marks that distinguish its records from those of others. */
export interface Party {
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

export const HOUSE: Party = { workspace: 1, tenant: 1, names: 'nhouse9x', texts: 'thouse9x', more: new Set() };
export const AMBER: Party = { workspace: 0, tenant: 0, names: 'namber9x', texts: 'tamber9x', more: new Set() };
export const BIRCH: Party = { workspace: 0, tenant: 0, names: 'nbirch9x', texts: 'tbirch9x', more: new Set() };
export const PARTIES = [HOUSE, AMBER, BIRCH];
/** A tenant whose records have the same names and texts: only ids tell the two apart. */
export const MIRROR: Party = { ...BIRCH, users: 'nmirror9x', more: new Set() };
export const othersThan = (party: Party) => PARTIES.filter((one) => one !== party);

const isSecret = (text: string) => PARTIES.some(({ texts }) => text.includes(texts));

const HOUSE_REPO = `${HOUSE.names}/${HOUSE.texts}`;

/**
 * The name of an agent, a project, a workspace and others that a party has. It is the same for all, because each text of a
 * request may be the name of any of them.
 */
export const nameOf = ({ names }: Party, round = 1): string => `${names}-${round}`;

/** Every workspace has an agent of this name. */
export const TWIN = 'scout';

/** An address without a server. */
export const NOBODY = 'http://127.0.0.1:9';

/** Opens in the enclosing suite. */
export function tenancyWorld() {
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
  async function together<S extends Sent>(requests: readonly S[], each: (sent: S) => Promise<unknown>): Promise<void> {
    for (let at = 0; at < requests.length; at += 8) await Promise.all(requests.slice(at, at + 8).map(each));
  }

  // --- Records -----------------------------------------------------------------------------------------------------

  /** Records in every read model. */
  async function fill(party: Party, round: number): Promise<void> {
    const { names, texts } = party;
    const done = async (method: string, path: string, body?: unknown) =>
      bodyOf(await ask(party, { method, path, body }), 200, 201);
    const name = nameOf(party, round);
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
    await done('POST', '/api/workspaces', { name, slug, brand: texts });
    const { template } = await done('POST', '/api/workflows', { name: texts, task_prompt: texts, tags: [texts] });
    // One that no pipeline uses can be deleted.
    await done('POST', '/api/workflows', { name: `${texts}-spare`, task_prompt: texts, tags: [texts] });
    const steps = [{ template_id: template.id }, { template_id: template.id }];
    const { pipeline } = await done('POST', '/api/pipelines', { name: texts, steps });
    await done('POST', '/api/pipelines/run', { action: 'start', pipeline_id: pipeline.id });
    const { project } = await done('POST', '/api/projects', {
      name,
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
    const name = nameOf(HOUSE);
    const credential = await google.token({ sub: `${names}-sub`, email: `${texts}@example.net`, name: names });
    expect((await world.ask('POST', '/api/auth/google', { body: { credential } })).status).to.equal(403);
    expect((await ask(HOUSE, { method: 'POST', path: '/api/tokens/rotate' })).status).to.equal(200);
    const settings = { [name]: texts };
    expect((await ask(HOUSE, { method: 'PUT', path: '/api/settings', body: { settings } })).status).to.equal(200);
    const customer = { slug: `${names}-tenant`, display_name: texts, gateway_port: 2_000, config: { note: texts } };
    expect((await ask(HOUSE, { method: 'POST', path: '/api/super/tenants', body: customer })).status).to.equal(201);
    const gateway = { name: `${names}-gateway`, url: NOBODY, token: texts };
    expect((await ask(HOUSE, { method: 'POST', path: '/api/gateways', body: gateway })).status).to.equal(201);
    const primary = { name, url: gatewayServer.url, token: texts, is_primary: true };
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
    const job = { action: 'add', name, schedule: '0 4 1 1 *', command: 'purge_logs' };
    expect((await ask(HOUSE, { method: 'POST', path: '/api/cron', body: job })).status).to.equal(200);
    const asked = { action: 'trigger', name };
    expect((await ask(HOUSE, { method: 'POST', path: '/api/cron', body: asked })).status).to.equal(200);
    const allowed = { agents: { [`${names}-agent`]: [{ pattern: texts }] } };
    expect((await ask(HOUSE, { method: 'PUT', path: '/api/exec-approvals', body: allowed })).status).to.equal(200);
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
    await Promise.all(PARTIES.map((party) => fill(party, 1)));
    await sumUp();
    await fillDeployment();
  });
  return {
    world,
    gatewayServer,
    /** The id of the gateway that answers. */
    primaryGateway: () => primaryGateway,
    sessions,
    ask,
    together,
    fill,
    makeTenant,
    sumUp,
    ...tenancyRows(() => world.service.core, isSecret),
  };
}
