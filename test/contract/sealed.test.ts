/** Secrets stay sealed in everything that shows the past, for admins too; fields of people are opened, and audited. */
import { expect } from 'chai';
import { MASK } from '../../shared/secrets.ts';
import { fixture } from '../support/fixture.ts';
import { connectMcp } from '../support/mcp.ts';
import { bodyOf } from '../support/service.ts';
import { openStream } from '../support/stream.ts';
import { startAuthWorld } from '../support/worlds/auth.ts';

const SECRET = 'whsec-or-token-0815';
const URL_WITH_TOKEN = `https://example.org/hook/${SECRET}?key=${SECRET}`;

describe('What is sealed in the log', function () {
  this.timeout(60_000);
  const world = fixture(() => startAuthWorld({ MC_WEBHOOK_ALLOWED_NETWORKS: '' }));
  let admin: string;
  const ask = async (method: string, path: string, body?: unknown, status = 200) =>
    bodyOf(await world.ask(method, path, { as: admin, body }), status);
  const rule = {
    name: 'silent',
    entity_type: 'agent',
    condition_field: 'status',
    condition_operator: 'equals',
    condition_value: 'error',
    action_type: 'webhook',
    action_config: { url: URL_WITH_TOKEN, secret: SECRET },
  };
  let webhook: number;
  let changed: number;
  let agent: { readonly id: number };
  let task: { readonly id: number };

  before(async () => {
    admin = await world.makeSession({ username: 'vera', role: 'admin', email: 'vera@example.org' });
    const fields = { name: 'out', url: URL_WITH_TOKEN, generate_secret: true };
    const created = await ask('POST', '/api/webhooks', fields);
    webhook = created.id;
    secrets.push(created.secret);
    await ask('POST', '/api/gateways', { name: 'gw', host: '127.0.0.1', port: 9, token: SECRET }, 201);
    await ask('PUT', '/api/gateway-config', { gateway: { auth: { token: SECRET } } });
    await ask('POST', '/api/alerts', rule, 201);
    const config = { apiKey: SECRET };
    agent = (await ask('POST', '/api/agents', { name: 'scout', role: 'x', config }, 201)).agent;
    task = (await ask('POST', '/api/tasks', { title: 'dig', metadata: { password: SECRET } }, 201)).task;
    await ask('PUT', `/api/agents/${agent.id}/memory`, { working_memory: 'w', login: { token: SECRET } });
    await ask(
      'POST',
      '/api/chat/messages',
      { content: 'hello', conversation_id: 'c', metadata: { token: SECRET } },
      201,
    );
    changed = await world.service.core.eventLog.head();
    await ask('PUT', `/api/tasks/${task.id}`, { metadata: { password: `${SECRET}-2` } });
  });
  const secrets = [SECRET];
  const silentOn = (shown: unknown, place: string) => {
    const text = typeof shown === 'string' ? shown : JSON.stringify(shown);
    for (const secret of secrets) expect(text, place).not.to.include(secret);
  };

  it('stays sealed with open=1 unless it belongs to a person, over REST and MCP', async () => {
    const mcp = await connectMcp(world.url, { cookie: admin });
    try {
      const types = ['WebhookCreated', 'GatewayAdded', 'GatewayConfigChanged', 'AlertRuleCreated', 'AgentRegistered'];
      for (const type of types) {
        const { events } = await ask('GET', `/api/history/events?type=${type}&open=1`);
        expect(events, type).to.have.length.above(0);
        expect(JSON.stringify(events[0].data), type).to.include('"box"');
        silentOn(events, type);
        const { id } = events[0];
        silentOn(await ask('GET', `/api/history/events/${id}?open=1`), `${type} alone`);
        silentOn(await ask('GET', `/api/history/causes/${id}?open=1`), `causes of ${type}`);
        silentOn(await mcp.value('list_events', { type, open: '1' }), `list_events of ${type}`);
        silentOn(await mcp.value('get_event', { id, open: '1' }), `get_event of ${type}`);
        silentOn(await mcp.value('get_causes', { id, open: '1' }), `get_causes of ${type}`);
      }
      const [vera] = (await ask('GET', '/api/history/events?type=UserCreated&actor=&open=1')).events.slice(-1);
      expect(vera.data.email).to.equal('vera@example.org');
    } finally {
      await mcp.close();
    }
  });

  it('is not shown as of a moment, in comparisons, in the history of a task and in exports', async () => {
    for (const path of [
      '/api/agents',
      `/api/agents/${agent.id}`,
      `/api/agents/${agent.id}/memory`,
      '/api/tasks',
      `/api/tasks/${task.id}`,
      '/api/alerts',
      '/api/webhooks',
      '/api/chat/messages?conversation_id=c',
      '/api/search?q=example&type=webhook',
    ])
      silentOn(await ask('GET', `${path}${path.includes('?') ? '&' : '?'}as_of=${changed}`), path);
    const head = await world.service.core.eventLog.head();
    for (const resource of ['agents', 'agent_texts', 'tasks', 'alerts', 'webhooks'])
      silentOn(await ask('GET', `/api/history/diff?from=0&to=${head}&resource=${resource}`), resource);
    const { changes } = await ask('GET', `/api/history/diff?from=0&to=${head}&resource=webhooks`);
    expect(changes[0].fields.url.after).to.equal(`https://example.org/${MASK}`);
    silentOn((await ask('GET', `/api/tasks/${task.id}?include=history`)).history, 'history of a task');
    const exported = await world.ask('GET', '/api/export?type=all', { as: admin });
    silentOn(JSON.stringify(exported.body), 'an export');
    // What is current is shown to admins, who have to change it.
    expect((await ask('GET', `/api/agents/${agent.id}`)).agent.config).to.deep.equal({ apiKey: SECRET });
    expect((await ask('GET', '/api/webhooks')).webhooks[0]).to.include({ id: webhook, url: URL_WITH_TOKEN });
  });

  it('is not in the stream, live or repeated', async () => {
    const stream = await openStream(`${world.url}/api/events?since=0`, { cookie: admin });
    try {
      await ask('PUT', `/api/agents/${agent.id}`, { config: { apiKey: `${SECRET}-3` } });
      await stream.until(() =>
        stream.frames.some(({ type, data }) => type === 'agent.updated' && data.id === agent.id),
      );
      expect(stream.frames.some(({ type }) => type === 'task.created')).to.equal(true);
      silentOn(stream.frames, 'the stream');
    } finally {
      await stream.close();
    }
  });

  it('of people is opened only for admins of the deployment, and leaves an entry in the audit trail', async () => {
    const entries = async () => (await ask('GET', '/api/audit?action=personal_fields_read&limit=200')).entries;
    const before = (await entries()).length;
    await ask('GET', '/api/history/events?type=UserCreated');
    await ask('GET', '/api/history/events?type=AgentSoulChanged&open=1');
    expect(await entries(), 'sealed, or nothing to open').to.have.length(before);
    const { events } = await ask('GET', '/api/history/events?type=UserCreated&limit=1&open=1');
    expect(events).to.have.length(1);
    const readable = Object.values(events[0].data).length;
    const one = await ask('GET', `/api/history/events/${events[0].id}?open=1`);
    await ask('GET', `/api/history/causes/${events[0].id}?open=1`);
    const found = (await entries()).slice(0, 3);
    expect(found.map(({ detail }: { detail: { filter: object } }) => detail.filter)).to.deep.equal([
      { id: one.id },
      { id: one.id },
      { type: 'UserCreated', limit: '1' },
    ]);
    for (const { actor, detail } of found) {
      expect(actor).to.equal('vera');
      expect(detail.fields).to.be.within(1, readable);
    }
    const tenant = bodyOf(
      await world.ask('POST', '/api/super/tenants', {
        as: world.adminKey,
        body: { slug: 'other', display_name: 'Other', gateway_port: 18_999 },
      }),
      201,
    ).tenant;
    const workspace = tenant.workspace_id ?? 2;
    const theirs = await world.makeSession({ username: 'otto', role: 'admin', tenant: tenant.id, workspace });
    const operator = await world.makeSession({ username: 'olga', role: 'operator' });
    for (const as of [theirs, operator])
      for (const path of ['events?open=1', `events/${one.id}?open=1`, `causes/${one.id}?open=1`])
        expect((await world.ask('GET', `/api/history/${path}`, { as })).status, path).to.equal(403);
    const mcp = await connectMcp(world.url, { cookie: theirs });
    try {
      expect((await mcp.call('list_events', { open: '1' })).isError).to.equal(true);
    } finally {
      await mcp.close();
    }
    expect(await entries()).to.have.length(before + 3);
  });
});
