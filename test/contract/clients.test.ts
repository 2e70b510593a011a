/**
 * What clients of the interface send, and what they rely on in the answers: each row of it as one call, ids as numbers
 * and as text, DELETE with a body and without, and refusals that say what to change.
 */
import { expect } from 'chai';
import { fixture } from '../support/fixture.ts';
import { TEST_KEY } from '../support/service.ts';
import { PASSWORD, startAuthWorld } from '../support/worlds/auth.ts';

type Body = Readonly<Record<string, unknown>>;
/** Values of earlier answers, by name: `{agent}` in a path or a text stands for one. */
type Known = Record<string, unknown>;

interface Row {
  /** Method and path. */
  readonly call: string;
  readonly body?: Body;
  readonly status?: number;
  /** Keys of the answer; dotted for those of a record, `0` for the first of a list. */
  readonly keys?: readonly string[];
  /** What later rows call a value of this answer: name → dotted path. */
  readonly keep?: Readonly<Record<string, string>>;
}

const at = (value: unknown, path: string): unknown =>
  path.split('.').reduce<unknown>((one, key) => (one as Record<string, unknown> | undefined)?.[key], value);

const ACTIVITY = ['id', 'type', 'entity_type', 'entity_id', 'actor', 'description', 'metadata', 'created_at'];
const AUDIT = ['id', 'action', 'actor', 'target_type', 'target_id', 'detail', 'ip_address', 'created_at'];
const COMMS = ['id', 'from_agent', 'to_agent', 'content', 'type', 'created_at'];
const CONVERSATION = ['id', 'participants', 'last_message', 'updated_at'];
const CHAT = ['id', 'conversation_id', 'sender', 'content', 'created_at'];
const GATEWAY = ['id', 'name', 'url', 'status', 'last_health_check'];
const CONNECTION = [
  ...['id', 'agent_id', 'agent_name', 'tool_name', 'tool_version'],
  ...['connection_id', 'status', 'last_heartbeat', 'created_at'],
];
const CRON = ['name', 'schedule', 'enabled', 'last_run', 'last_status'];
const AGENT = ['id', 'name', 'role', 'status', 'session_key', 'soul_content', 'config', 'last_activity'];
const of = (prefix: string, keys: readonly string[]) => keys.map((key) => `${prefix}.${key}`);

/** Rows of the interface, in an order in which each has what it needs. */
const ROWS: readonly Row[] = [
  {
    call: 'POST /api/agents',
    body: { name: 'row', role: 'r' },
    status: 201,
    keys: of('agent', AGENT),
    keep: { agent: 'agent.id' },
  },
  {
    call: 'GET /api/agents?status=offline&role=r&limit=5&offset=0',
    keys: ['total', 'page', 'limit', ...of('agents.0', AGENT)],
  },
  { call: 'PUT /api/agents', body: { name: 'row', status: 'busy', last_activity: 'here' }, keys: ['success'] },
  { call: 'GET /api/agents/{agent}', keys: of('agent', AGENT) },
  {
    call: 'PUT /api/agents/{agent}',
    body: { role: 's', status: 'any text', config: { a: 1 } },
    keys: of('agent', AGENT),
  },
  {
    call: 'POST /api/agents/message',
    body: { from: 'a', to: 'row', content: 'c', type: 'note' },
    keys: ['success', 'id'],
  },
  { call: 'GET /api/agents/comms?agent=row&limit=5', keys: of('messages.0', COMMS) },
  { call: 'POST /api/agents/sync', keys: ['synced', 'created', 'updated'] },
  { call: 'GET /api/agents/{agent}/heartbeat', keys: ['agent', 'pending_tasks', 'messages'] },
  { call: 'POST /api/agents/{agent}/heartbeat', body: { connection_id: 'none', token_usage: {} }, keys: ['success'] },
  { call: 'POST /api/agents/{agent}/heartbeat', keys: ['success'] },
  { call: 'PUT /api/agents/{agent}/memory', body: { note: { deep: true } }, keys: ['success'] },
  { call: 'GET /api/agents/{agent}/memory', keys: ['note.deep'] },
  { call: 'DELETE /api/agents/{agent}/memory', keys: ['success', 'message', 'working_memory', 'updated_at'] },
  { call: 'DELETE /api/agents/row/memory', keys: ['success', 'message', 'working_memory', 'updated_at'] },
  { call: 'PUT /api/agents/{agent}/soul', body: { soul_content: 'calm' }, keys: ['success'] },
  { call: 'GET /api/agents/{agent}/soul', keys: ['soul_content'] },
  { call: 'PATCH /api/agents/row/soul' },
  { call: 'PATCH /api/agents/row/soul', body: {} },
  { call: 'POST /api/agents/{agent}/wake', body: { reason: 'now' }, keys: ['success'] },
  { call: 'POST /api/agents/{agent}/wake', keys: ['success'] },
  { call: 'GET /api/adapters' },
  {
    call: 'POST /api/adapters',
    body: { framework: 'generic', action: 'register', payload: { agentId: 'r2', name: 'r2' } },
  },
  { call: 'GET /api/activities?type=agent_created&actor=api&entity_type=agent&limit=1', keys: ['total'] },
  { call: 'GET /api/activities', keys: ['total', ...of('activities.0', ACTIVITY)] },
  { call: 'GET /api/auth/access-requests', keys: ['requests'] },
  { call: 'POST /api/auth/access-requests', body: { id: 99_999, action: 'reject' }, status: 404 },
  {
    call: 'POST /api/auth/users',
    body: { username: 'rita', password: PASSWORD, role: 'viewer', display_name: 'R', email: 'r@example.org' },
    status: 201,
    keys: ['user.id', 'user.username', 'user.role'],
    keep: { user: 'user.id' },
  },
  { call: 'GET /api/auth/users', keys: ['users.0.id'] },
  {
    call: 'PUT /api/auth/users',
    body: { id: '{user}', display_name: 'Rita', role: 'operator', email: null },
    keys: ['user.id'],
  },
  { call: 'GET /api/auth/me', keys: ['user.username', 'user.role'] },
  { call: 'PATCH /api/auth/me', body: { display_name: 'Boss' }, keys: ['success', 'user.id'] },
  { call: 'GET /api/audit?action=user_update&limit=1&offset=0', keys: ['total', ...of('entries.0', AUDIT)] },
  { call: 'DELETE /api/auth/users', body: { id: '{user}' }, keys: ['success'] },
  {
    call: 'POST /api/chat/messages',
    body: { content: 'hello', recipient: 'row' },
    status: 201,
    keys: of('message', CHAT),
    keep: { message: 'message.id', conversation: 'message.conversation_id' },
  },
  { call: 'GET /api/chat/conversations', keys: of('conversations.0', CONVERSATION) },
  { call: 'GET /api/chat/messages?conversation_id={conversation}&limit=5&offset=0', keys: of('messages.0', CHAT) },
  { call: 'GET /api/chat/messages/{message}' },
  { call: 'PATCH /api/chat/messages/{message}', body: { read: true } },
  {
    call: 'POST /api/connect',
    body: { tool_name: 't', agent_name: 'tool', tool_version: '1', agent_role: 'r', metadata: {} },
    keys: ['connection_id', 'agent_id', 'agent_name', 'status', 'sse_url', 'heartbeat_url', 'token_report_url'],
    keep: { connection: 'connection_id' },
  },
  { call: 'GET /api/connect', keys: of('connections.0', CONNECTION) },
  { call: 'DELETE /api/connect', body: { connection_id: '{connection}' }, keys: ['status', 'connection_id'] },
  { call: 'POST /api/claude/sessions', body: { session_id: 's', agent_name: 'row', model: 'm' } },
  { call: 'GET /api/claude/sessions' },
  { call: 'POST /api/backup', keys: ['success', 'path', 'size_bytes'] },
  { call: 'POST /api/cleanup', keys: ['success', 'deleted'] },
  { call: 'POST /api/cleanup', body: { older_than_days: 30 }, keys: ['success', 'deleted'] },
  {
    call: 'POST /api/cron',
    body: { action: 'add', name: 'j', schedule: '0 4 1 1 *', command: 'purge_logs' },
    keys: ['success'],
  },
  { call: 'GET /api/cron', keys: of('jobs.0', CRON) },
  { call: 'GET /api/cron?action=list', keys: ['jobs.0'] },
  { call: 'GET /api/cron?action=logs&job=j' },
  { call: 'POST /api/cron', body: { action: 'toggle', name: 'j', enabled: false }, keys: ['success'] },
  { call: 'POST /api/cron', body: { action: 'trigger', name: 'j' }, keys: ['success'] },
  { call: 'POST /api/cron', body: { action: 'remove', name: 'j' }, keys: ['success'] },
  { call: 'GET /api/export?type=tasks' },
  { call: 'GET /api/export?type=agents&format=json' },
  { call: 'GET /api/export?type=activities&format=csv' },
  { call: 'GET /api/export?type=all' },
  { call: 'PUT /api/gateway-config', body: { anything: { goes: 1 } }, keys: ['success'] },
  { call: 'GET /api/gateway-config' },
  {
    call: 'POST /api/gateways',
    body: { name: 'g', url: 'http://127.0.0.1:9' },
    status: 201,
    keep: { gateway: 'gateway.id' },
  },
  { call: 'GET /api/gateways', keys: of('gateways.0', GATEWAY) },
  { call: 'GET /api/exec-approvals' },
  { call: 'PUT /api/exec-approvals', body: { agents: {} } },
  { call: 'GET /api/agents/{agent}/attribution?privileged=1&hours=24&section=identity,cost' },
  { call: 'GET /api/agents/row/attribution?privileged=1' },
  {
    call: 'GET /api/agents/row/diagnostics?privileged=1&hours=720',
    keys: ['agent.id', 'timeframe.hours', 'summary', 'tasks', 'errors', 'activity', 'trends.alerts', 'tokens'],
  },
  {
    call: 'POST /api/alerts',
    body: {
      name: 'busy',
      entity_type: 'agent',
      condition_field: 'status',
      condition_operator: 'equals',
      condition_value: 'busy',
    },
    status: 201,
    keys: ['rule.id', 'rule.enabled', 'rule.action_type', 'rule.cooldown_minutes'],
    keep: { rule: 'rule.id' },
  },
  { call: 'GET /api/alerts', keys: ['rules.0.id'] },
  { call: 'PUT /api/alerts', body: { id: '{rule}', enabled: false, cooldown_minutes: 5 }, keys: ['rule.id'] },
  { call: 'POST /api/alerts', body: { action: 'evaluate' }, keys: ['evaluated', 'triggered', 'results'] },
  { call: 'DELETE /api/alerts', body: { id: '{rule}' }, keys: ['deleted'] },
  { call: 'GET /api/docs', keys: ['openapi', 'info.version'] },
  { call: 'DELETE /api/agents/{agent}', keys: ['success'] },
];

/** Calls that take an id in their body. Each gets a fresh record three times: `make`, and where its id is. */
const DELETED: readonly { readonly call: string; readonly make: Row; readonly field?: string }[] = [
  {
    call: 'DELETE /api/auth/users',
    make: {
      call: 'POST /api/auth/users',
      body: { username: 'u{n}', password: PASSWORD, role: 'viewer' },
      keep: { id: 'user.id' },
    },
  },
  {
    call: 'DELETE /api/workflows',
    make: { call: 'POST /api/workflows', body: { name: 'w{n}', task_prompt: 'p' }, keep: { id: 'template.id' } },
  },
  {
    call: 'DELETE /api/pipelines',
    make: {
      call: 'POST /api/pipelines',
      body: { name: 'p{n}', steps: [{ template_id: '{template}' }, { template_id: '{template}' }] },
      keep: { id: 'pipeline.id' },
    },
  },
  {
    call: 'DELETE /api/webhooks',
    make: {
      call: 'POST /api/webhooks',
      body: { name: 'h{n}', url: 'https://example.org/h', events: ['*'] },
      keep: { id: 'id' },
    },
  },
  {
    call: 'DELETE /api/gateways',
    make: { call: 'POST /api/gateways', body: { name: 'g{n}', url: 'http://127.0.0.1:9' }, keep: { id: 'gateway.id' } },
  },
  {
    call: 'DELETE /api/connect',
    field: 'connection_id',
    make: { call: 'POST /api/connect', body: { tool_name: 't', agent_name: 'c{n}' }, keep: { id: 'connection_id' } },
  },
  {
    call: 'DELETE /api/agents/{keyed}/keys',
    field: 'key_id',
    make: { call: 'POST /api/agents/{keyed}/keys', body: { name: 'k' }, keep: { id: 'key.id' } },
  },
  {
    call: 'DELETE /api/tokens/prices',
    field: 'model',
    make: { call: 'PUT /api/tokens/prices', body: { model: 'm{n}', input: 1, output: 1 }, keep: { id: 'price.model' } },
  },
  {
    call: 'DELETE /api/settings',
    field: 'key',
    make: { call: 'PUT /api/settings', body: { settings: { 'mine.s{n}': 'x' } } },
  },
];

/** A body that lacks something or has it wrong, and the field that `error` must name. */
const REFUSED: readonly (readonly [call: string, body: Body, field: string])[] = [
  ['POST /api/agents', { role: 'r' }, 'name'],
  ['POST /api/agents', { name: 'n' }, 'role'],
  ['POST /api/agents', { name: 'n', role: 'r', status: 'asleep' }, 'status'],
  ['PUT /api/agents', { status: 'idle' }, 'name'],
  ['PUT /api/agents', { name: 'row', status: 'asleep' }, 'status'],
  ['POST /api/agents/message', { to: 'row', content: 'c' }, 'from'],
  ['POST /api/agents/message', { from: 'a', to: 'row' }, 'content'],
  ['PUT /api/agents/{kept}/soul', {}, 'soul_content'],
  ['POST /api/auth/login', { username: 'x' }, 'password'],
  ['POST /api/auth/google', {}, 'credential'],
  ['PATCH /api/auth/me', { current_password: 'x', new_password: 'short' }, 'new_password'],
  ['POST /api/auth/users', { username: 'x', password: PASSWORD }, 'role'],
  ['POST /api/auth/users', { username: 'x', password: PASSWORD, role: 'owner' }, 'role'],
  ['POST /api/auth/users', { password: PASSWORD, role: 'viewer' }, 'username'],
  ['PUT /api/auth/users', { role: 'viewer' }, 'id'],
  ['DELETE /api/auth/users', {}, 'id'],
  ['DELETE /api/auth/users', { id: 'one' }, 'id'],
  ['POST /api/auth/access-requests', { action: 'approve' }, 'id'],
  ['POST /api/auth/access-requests', { id: 1, action: 'ignore' }, 'action'],
  ['POST /api/chat/messages', {}, 'content'],
  ['POST /api/connect', { agent_name: 'a' }, 'tool_name'],
  ['POST /api/connect', { tool_name: 't' }, 'agent_name'],
  ['DELETE /api/connect', {}, 'connection_id'],
  ['POST /api/cron', {}, 'action'],
  ['POST /api/cron', { action: 'start' }, 'action'],
  ['POST /api/gateways', { url: 'http://127.0.0.1:9' }, 'name'],
  ['POST /api/gateways', { name: 'g' }, 'url'],
  ['POST /api/cleanup', { older_than_days: -1 }, 'older_than_days'],
  ['POST /api/workspaces', {}, 'name'],
  ['POST /api/tasks', {}, 'title'],
  ['POST /api/webhooks', { url: 'https://example.org' }, 'name'],
  ['POST /api/workflows', { name: 'w' }, 'task_prompt'],
  ['DELETE /api/webhooks', {}, 'id'],
  ['DELETE /api/workflows', {}, 'id'],
  ['DELETE /api/pipelines', {}, 'id'],
];

describe('contract: clients', function () {
  this.timeout(120_000);
  let admin: string;
  const known: Known = {};

  const filled = (text: string): unknown => {
    // The value itself where the text is nothing but one: ids stay numbers.
    const whole = /^\{(\w+)\}$/.exec(text)?.[1];
    if (whole !== undefined && whole in known) return known[whole];
    return text.replace(/\{(\w+)\}/g, (mark, name: string) => (name in known ? String(known[name]) : mark));
  };
  const fill = (value: unknown): unknown =>
    typeof value === 'string'
      ? filled(value)
      : Array.isArray(value)
        ? value.map(fill)
        : typeof value === 'object' && value !== null
          ? Object.fromEntries(Object.entries(value).map(([key, one]) => [String(filled(key)), fill(one)]))
          : value;

  async function send(call: string, body?: unknown) {
    const [method = '', path = ''] = call.split(' ');
    const reply = await world.ask(method, String(filled(path)), { as: admin, body: fill(body) });
    return reply;
  }
  async function does({ call, body, status, keys = [], keep = {} }: Row): Promise<void> {
    const reply = await send(call, body);
    const what = `${call} ${JSON.stringify(body)}: ${JSON.stringify(reply.body)?.slice(0, 300)}`;
    if (status === undefined) expect(reply.status, what).to.be.oneOf([200, 201]);
    else expect(reply.status, what).to.equal(status);
    for (const key of keys) expect(at(reply.body, key), `${key} of ${what}`).not.to.equal(undefined);
    for (const [name, path] of Object.entries(keep)) known[name] = at(reply.body, path);
  }

  const world = fixture(startAuthWorld);
  before(async () => {
    admin = TEST_KEY;
    await does({
      call: 'POST /api/agents',
      body: { name: 'kept', role: 'r' },
      keep: { kept: 'agent.id', keyed: 'agent.id' },
    });
    await does({
      call: 'POST /api/workflows',
      body: { name: 'w', task_prompt: 'p' },
      keep: { template: 'template.id' },
    });
  });
  let admins = 0;
  // Another one for each test, because some limits are counted by caller.
  beforeEach(async () => {
    const username = `admin-${++admins}`;
    admin = await world.makeSession({ username, role: 'admin' });
  });

  it('every route of the interface returns its status and its keys', async () => {
    for (const row of ROWS) {
      // Without the status of the row, it is 200.
      await does({ status: 200, ...row });
    }
  });

  it('DELETE accepts its fields in the body, as text, and in the query without a body', async () => {
    let n = 0;
    for (const { call, make, field = 'id' } of DELETED) {
      for (const form of ['number', 'text', 'query'] as const) {
        known.n = ++n;
        known.id = `mine.s${n}`;
        await does(make);
        const value = form === 'number' ? known.id : String(known.id);
        const query = `?${field}=${encodeURIComponent(String(known.id))}`;
        const reply = form === 'query' ? await send(call + query) : await send(call, { [field]: value });
        expect(reply.status, `${call} by ${form}: ${JSON.stringify(reply.body)}`).to.equal(200);
        const again = await send(call, { [field]: value });
        // A connection stays, as disconnected; deleting a pipeline that is not there is a success.
        const isTold = call !== 'DELETE /api/connect' && call !== 'DELETE /api/pipelines';
        const isGone = again.status === 404 || again.body.deleted === false || !isTold;
        expect(isGone, `${call} again`).to.equal(true);
      }
      const without = await send(call);
      expect([call, without.status]).to.deep.equal([call, 400]);
      expect(without.body.error, call).to.include('body required');
    }
  });

  it('ids in the body of an update may be numbers or text', async () => {
    known.n = 900;
    for (const { call, make } of DELETED.slice(0, 5)) {
      await does(make);
      const id = String(known.id);
      const path = call.split(' ')[1];
      const reply = await send(`PUT ${path}`, { id, name: `renamed-${id}`, display_name: 'x' });
      expect(reply.status, `PUT ${path}: ${JSON.stringify(reply.body)}`).to.equal(200);
    }
  });

  it('a rejection names the field and the reason', async () => {
    for (const [call, body, field] of REFUSED) {
      const reply = await send(call, body);
      const error = String(reply.body.error);
      expect([call, reply.status], error).to.deep.equal([call, 400]);
      expect(error, `${call} ${JSON.stringify(body)}`).to.match(new RegExp(`^${field}\\b`));
      expect(error.length, error).to.be.above(field.length + 5);
    }
  });
});
