/** Sessions of tools and of gateways, through HTTP. */
import { expect } from 'chai';
import { ageText, cliSession, listCliSessions, shortened } from '../../queries/sessions.ts';
import {
  cliSessionsResponse,
  controlResponse,
  registeredSessionResponse,
  type SessionRecord,
  sessionActionResponse,
  sessionDeletedResponse,
  sessionPrefResponse,
  sessionPrefsResponse,
  sessionsResponse,
} from '../../shared/contract/sessions.ts';
import { fixture } from '../support/fixture.ts';
import { type FakeGateway, startFakeGateway } from '../support/gateway.ts';
import { conforms, startAgentsWorld } from '../support/worlds/agents.ts';

describe('contract: sessions', function () {
  this.timeout(120_000);
  const world = fixture(startAgentsWorld);

  const { ask } = world;
  const register = async (session_id: string, more: object = {}) =>
    conforms(registeredSessionResponse, await ask('POST', '/api/claude/sessions', { session_id, ...more })).session;
  const listed = async (query = '') => conforms(cliSessionsResponse, await ask('GET', `/api/claude/sessions${query}`));
  const all = async (): Promise<SessionRecord[]> =>
    conforms(sessionsResponse, await ask('GET', '/api/sessions')).sessions;
  const find = async (id: string) => (await all()).find((session) => session.id === id);
  const controls = (key: string) =>
    world.stream.frames.filter(({ type, data }) => type === 'session.control' && data.session_key === key);

  it('is registered with the expected fields, and listed', async () => {
    expect((await listed()).stats).to.deep.equal({
      total_sessions: 0,
      active_sessions: 0,
      total_input_tokens: 0,
      total_output_tokens: 0,
      total_estimated_cost: 0,
      unique_projects: 0,
    });
    const session = await register('first', { agent_name: 'ada', model: 'sonnet' });
    expect(session).to.include({ session_id: 'first', agent_name: 'ada', model: 'sonnet', project_slug: 'ada' });
    expect(session).to.include({ is_active: 1, input_tokens: 0, workspace_id: 1 });
    expect(Date.parse(session.last_message_at)).to.be.closeTo(Date.now(), 60_000);
    const { sessions, total } = await listed();
    expect(sessions).to.deep.equal([session]);
    expect(total).to.equal(1);
    const found = (workspace: number) => cliSession(world.world.service.core.reads, workspace, 'first', Date.now());
    expect((await found(1))?.session_id).to.equal('first');
    expect(await found(4_711), 'in another workspace').to.equal(undefined);
  });

  it('reports its state, and the totals include its numbers', async () => {
    const numbers = { input_tokens: 35_400, output_tokens: 1_250_000, estimated_cost: 1.239, user_messages: 3 };
    const before = await register('second', { project_slug: 'site', git_branch: 'main', project_path: '/srv/site' });
    const after = await register('second', numbers);
    expect(after).to.include({ id: before.id, project_slug: 'site', git_branch: 'main', ...numbers });
    const { stats } = await listed('?project=site');
    expect(stats).to.include({
      total_sessions: 2,
      active_sessions: 2,
      total_input_tokens: 35_400,
      total_estimated_cost: 1.24,
      unique_projects: 2,
    });
    expect(await find('second')).to.deep.equal({
      id: 'second',
      key: 'site',
      agent: 'site',
      kind: 'claude-code',
      age: 'now',
      model: 'unknown',
      tokens: '35k/1.2m',
      channel: 'local',
      flags: ['main'],
      active: true,
      startTime: before.created_at * 1_000,
      lastActivity: after.scanned_at * 1_000,
      source: 'local',
      userMessages: 3,
      assistantMessages: 0,
      toolUses: 0,
      estimatedCost: 1.239,
      lastUserPrompt: null,
      workingDir: '/srv/site',
      totalTokens: 1_285_400,
      label: null,
      settings: {},
    });
  });

  it('can be filtered and paged', async () => {
    await register('third', { project_slug: 'site' });
    const ids = ({ sessions }: { sessions: { session_id: string }[] }) => sessions.map(({ session_id }) => session_id);
    const { sessions } = await listed('?project=site&limit=1&offset=1');
    expect(sessions).to.have.length(1);
    expect((await listed('?project=site')).total).to.equal(2);
    expect(ids(await listed('?project=nothing'))).to.deep.equal([]);
    expect(ids(await listed('?active=1'))).to.have.members(['first', 'second', 'third']);
  });

  it('is no longer active after a quarter of an hour without reports', async () => {
    const { reads } = world.world.service.core;
    const now = Math.floor(Date.now() / 1_000);
    const at = (seconds: number, query: object = {}) =>
      listCliSessions(reads, 1, { limit: 50, offset: 0, active: undefined, project: undefined, ...query }, seconds);
    expect((await at(now + 14 * 60)).stats.active_sessions).to.be.above(0);
    const later = await at(now + 16 * 60);
    expect(later.stats.active_sessions).to.equal(0);
    expect(later.sessions.map(({ is_active }) => is_active)).not.to.include(1);
    expect((await at(now + 16 * 60, { active: '1' })).total).to.equal(0);
  });

  it('can be configured, and its tool is notified', async () => {
    const act = async (action: string, body: object) => {
      const reply = await ask('POST', `/api/sessions?action=${action}`, { sessionKey: 'first', ...body });
      conforms(sessionActionResponse, reply);
    };
    await act('set-thinking', { level: 'high' });
    await act('set-verbose', { level: 'full' });
    await act('set-reasoning', { level: 'stream' });
    await act('set-label', { label: 'mine' });
    const settings = { thinking: 'high', verbose: 'full', reasoning: 'stream' };
    expect(await find('first')).to.deep.include({ label: 'mine', settings });
    await world.stream.until(() => controls('first').length >= 4);
    expect(controls('first')[0]?.data).to.include({ action: 'set-thinking', value: 'high' });
    const { activities } = (await ask('GET', '/api/activities?type=session_control&limit=1')).body;
    expect(activities[0]).to.deep.include({
      entity_type: 'session',
      entity_id: 0,
      metadata: { session_key: 'first', action: 'set-label' },
    });
  });

  it('can be asked to pause or to end, under both names of the actions', async () => {
    for (const action of ['monitor', 'pause', 'resume', 'kill']) {
      const body = conforms(controlResponse, await ask('POST', '/api/sessions/third/control', { action }));
      expect(body).to.include({ action, session: 'third' });
    }
    expect(await find('third')).to.include({ active: false });
    await world.stream.until(() => controls('third').length >= 4);
    expect(controls('third').map(({ data }) => data.action)).to.deep.equal(['monitor', 'pause', 'resume', 'terminate']);
  });

  it('can be deleted, and is registered again by its next report', async () => {
    const reply = await ask('DELETE', '/api/sessions', { sessionKey: 'third' });
    conforms(sessionDeletedResponse, reply);
    expect(await find('third')).to.equal(undefined);
    await world.refused('DELETE', '/api/sessions', { sessionKey: 'third' }, 404, /Session/);
    expect(await register('third')).to.include({ project_slug: 'default', is_active: 1 });
  });

  it('is rejected if invalid, with the reason', async () => {
    const set = (action: string, body: object, status: number, says?: RegExp) =>
      world.refused('POST', `/api/sessions${action}`, body, status, says);
    await set('?action=set-label', {}, 400, /session key/);
    await set('?action=nothing', { sessionKey: 'first' }, 400, /Invalid action/);
    await set('', { sessionKey: 'first' }, 400, /Invalid action/);
    await set('?action=set-thinking', { sessionKey: 'first', level: 'much' }, 400, /thinking level/);
    await set('?action=set-verbose', { sessionKey: 'first' }, 400, /verbose level/);
    await set('?action=set-label', { sessionKey: 'first', label: 'x'.repeat(101) }, 400, /Label/);
    await set('?action=set-label', { sessionKey: 'nobody', label: 'x' }, 404, /Session/);
    await world.refused('DELETE', '/api/sessions', { sessionKey: 'a b' }, 400, /session key/);
    await world.refused('POST', '/api/sessions/a:b/control', { action: 'pause' }, 400);
    await world.refused('POST', '/api/sessions/first/control', { action: 'explode' }, 400, /action/);
    await world.refused('POST', '/api/sessions/nobody/control', { action: 'pause' }, 404);
    for (const body of [undefined, {}, { session_id: ' ' }, { session_id: 5 }, { session_id: 'x', input_tokens: -1 }])
      await world.refused('POST', '/api/claude/sessions', body, 400);
  });

  it('accepts counts as large as a sum over a million sessions can hold, and no larger', async () => {
    const stats = async () => (await ask('GET', '/api/claude/sessions')).body.stats;
    const before = await stats();
    const most = { input_tokens: 9_000_000_000, output_tokens: 9_000_000_000, tool_uses: 9_000_000_000 };
    const reply = await ask('POST', '/api/claude/sessions', { session_id: 'counted', ...most });
    expect(reply.body.session).to.include(most);
    expect((await stats()).total_input_tokens).to.equal(before.total_input_tokens + most.input_tokens);
    for (const field of ['input_tokens', 'output_tokens', 'tool_uses', 'user_messages', 'assistant_messages']) {
      for (const count of [9_000_000_001, Number.MAX_SAFE_INTEGER]) {
        const body = { session_id: 'counted', [field]: count };
        await world.refused('POST', '/api/claude/sessions', body, 400, new RegExp(`${field}: .*9000000000`));
      }
    }
    await ask('POST', '/api/claude/sessions', { session_id: 'counted', input_tokens: 0, output_tokens: 0 });
  });

  it('can be registered by an agent’s key for that agent only', async () => {
    const agent = await world.create();
    const key = await world.world.makeKey(agent.id, ['operator']);
    const as = (body: object) => ask('POST', '/api/claude/sessions', { session_id: 'keyed', ...body }, key);
    expect((await as({ agent_name: 'somebody' })).status).to.equal(403);
    expect((await as({})).body.session).to.include({ agent_name: agent.name });
  });

  it('is shown with a name and a color until both are removed', async () => {
    const set = async (body: object) =>
      conforms(sessionPrefResponse, await ask('PATCH', '/api/chat/session-prefs', { key: 'local:first', ...body }))
        .pref;
    const prefs = async () => conforms(sessionPrefsResponse, await ask('GET', '/api/chat/session-prefs')).prefs;
    expect(await set({ name: 'mine', color: 'blue' })).to.deep.equal({ name: 'mine', color: 'blue' });
    expect(await set({ color: null })).to.deep.equal({ name: 'mine' });
    expect(await prefs()).to.deep.equal({ 'local:first': { name: 'mine' } });
    expect(await set({ name: '' })).to.equal(undefined);
    expect(await prefs()).to.deep.equal({});
    for (const body of [{}, { key: 'first' }, { key: 'a:b', color: 'pinkish' }, { key: 'a:b', name: 'x'.repeat(81) }])
      await world.refused('PATCH', '/api/chat/session-prefs', body, 400);
  });

  describe('at the primary gateway', () => {
    let gateway: FakeGateway;
    let id = 0;
    const LIVE = {
      key: 'agent:ada:main',
      sessionId: 'live-1',
      agent: 'ada',
      chatType: 'direct',
      model: 'opus',
      channel: 'web',
      label: 'mine',
      thinkingLevel: 'high',
      totalTokens: 7_000,
      contextTokens: 200_000,
    };
    const DAYS = 'retention.gateway_sessions_days';
    before(async () => {
      await register('first');
      gateway = await startFakeGateway();
      const added = { name: 'live', url: gateway.url, token: 'live-token', is_primary: true };
      id = (await ask('POST', '/api/gateways', added)).body.gateway.id;
    });
    after(async () => {
      await ask('PUT', '/api/gateways', { id, is_primary: false });
      await ask('DELETE', '/api/gateways', { id });
      await gateway?.close();
    });
    /** What was heard before a change of the gateway is not used again. */
    const listedAnew = async () => {
      expect((await ask('PUT', '/api/gateways', { id, sessions_count: gateway.sessions.length })).status).to.equal(200);
      return (await all()).filter(({ source }) => source === 'gateway');
    };

    it('is listed with the sessions of tools, last active first', async () => {
      const updatedAt = Date.now() - 90 * 60_000;
      gateway.sessions = [{ ...LIVE, updatedAt }, { key: 'cron' }, { no: 'key' }];
      const [live, cron, ...others] = await listedAnew();
      expect(live).to.deep.equal({
        id: 'live-1',
        key: 'agent:ada:main',
        agent: 'ada',
        kind: 'direct',
        age: '1h',
        model: 'opus',
        tokens: '7k/200k (4%)',
        channel: 'web',
        flags: [],
        active: false,
        startTime: updatedAt,
        lastActivity: updatedAt,
        source: 'gateway',
        label: 'mine',
        settings: { thinking: 'high' },
      });
      expect(cron).to.include({ id: 'unknown:cron', key: 'cron', agent: 'unknown', tokens: '0/35k (0%)' });
      expect(others).to.deep.equal([]);
      const everything = await all();
      expect(everything.slice(-2).map(({ source }) => source)).to.deep.equal(['gateway', 'gateway']);
      expect(everything.length).to.be.above(2);
      const { line, authorization } = gateway.seen.at(-1) ?? {};
      expect([line, authorization]).to.deep.equal(['GET /api/sessions', 'Bearer live-token']);
    });

    it('is not listed once it is older than the configured age', async () => {
      const updatedAt = Date.now() - 25 * 3_600_000;
      gateway.sessions = [{ ...LIVE, updatedAt }, { key: 'ageless' }];
      const keys = async () => (await listedAnew()).map(({ key }) => key);
      expect(await keys()).to.deep.equal([LIVE.key, 'ageless']);
      const days = (value: number) => ask('PUT', '/api/settings', { settings: { [DAYS]: value } });
      await days(1);
      expect((await ask('GET', '/api/cleanup')).body.retention.gatewaySessions).to.equal(1);
      expect(await keys()).to.deep.equal(['ageless']);
      await days(0);
      expect(await keys()).to.deep.equal([LIVE.key, 'ageless']);
      await ask('DELETE', '/api/settings', { key: DAYS });
    });

    it('is omitted if the gateway fails, while sessions of tools are listed', async () => {
      gateway.sessions = [LIVE];
      for (const mode of ['broken', 'redirects'] as const) {
        gateway.mode = mode;
        expect(await listedAnew(), mode).to.deep.equal([]);
        expect(await find('first')).to.include({ source: 'local' });
      }
      gateway.mode = 'well';
      expect(await listedAnew()).to.have.length(1);
    });

    it('is configured, paused and deleted by the gateway, whose response is returned', async () => {
      gateway.sessions = [LIVE];
      const key = LIVE.key;
      const path = '/api/sessions/agent%3Aada%3Amain';
      const set = (action: string, body: object) =>
        ask('POST', `/api/sessions?action=${action}`, { sessionKey: key, ...body });
      for (const [action, given, handed] of [
        ['set-thinking', { level: 'low' }, { thinkingLevel: 'low' }],
        ['set-verbose', { level: 'full' }, { verboseLevel: 'full' }],
        ['set-reasoning', { level: 'on' }, { reasoningLevel: 'on' }],
        ['set-label', { label: 'yours' }, { label: 'yours' }],
      ] as const) {
        const body = conforms(sessionActionResponse, await set(action, given));
        const result = { done: `PATCH ${key}`, ...handed };
        expect(body).to.deep.equal({ success: true, action, sessionKey: key, result });
        expect(gateway.seen.at(-1)).to.deep.equal({
          line: `PATCH ${path}`,
          authorization: 'Bearer live-token',
          body: JSON.stringify(handed),
        });
      }
      const body = conforms(controlResponse, await ask('POST', '/api/sessions/live-1/control', { action: 'kill' }));
      expect(body).to.deep.include({ success: true, action: 'kill', session: 'live-1' });
      expect(body.result).to.deep.equal({ done: 'POST live-1', action: 'terminate' });
      expect(gateway.seen.at(-1)?.line).to.equal('POST /api/sessions/live-1/control');
      const deleted = await ask('DELETE', '/api/sessions', { sessionKey: key });
      conforms(sessionDeletedResponse, deleted);
      expect(deleted.body.result).to.deep.equal({ done: `DELETE ${key}` });
      const { activities } = (await ask('GET', '/api/activities?type=session_control&limit=6')).body;
      expect(activities.map(({ metadata }: { metadata: object }) => metadata)).to.deep.equal([
        { session_key: key, action: 'delete' },
        { session_key: 'live-1', action: 'terminate' },
        ...['set-label', 'set-reasoning', 'set-verbose', 'set-thinking'].map((action) => ({
          session_key: key,
          action,
        })),
      ]);
      expect(activities[0]).to.include({ entity_type: 'session', entity_id: 0, actor: 'api' });
      // Tools that listen have nothing to do with it.
      expect(controls(key)).to.deep.equal([]);
    });

    it('is fetched again after an action on it', async () => {
      gateway.sessions = [{ ...LIVE, label: 'before' }];
      expect(await listedAnew()).to.have.length(1);
      gateway.sessions = [{ ...LIVE, label: 'after' }];
      await ask('POST', '/api/sessions?action=set-label', { sessionKey: LIVE.key, label: 'after' });
      expect((await find('live-1'))?.label).to.equal('after');
    });

    it('cannot be controlled if the gateway does not know it, rejects the action or is unreachable', async () => {
      gateway.sessions = [LIVE];
      const remove = (status: number, says: RegExp, sessionKey: string = LIVE.key) =>
        world.refused('DELETE', '/api/sessions', { sessionKey }, status, says);
      await remove(404, /Session not found/, 'nobody');
      // As parts of a path they would name something else than a session.
      const calls = gateway.seen.length;
      for (const key of ['.', '..']) await remove(404, /Session not found/, key);
      expect(gateway.seen.length).to.equal(calls);
      gateway.mode = 'broken';
      await remove(500, /The gateway responded with status 500: out of order/);
      gateway.mode = 'redirects';
      await remove(500, /The gateway responded with status 302/);
      gateway.mode = 'well';
      await ask('PUT', '/api/gateways', { id, url: 'http://127.0.0.1:1' });
      await remove(500, /The gateway could not be reached/);
      await world.refused('POST', '/api/sessions/live-1/control', { action: 'pause' }, 500, /could not be reached/);
      await ask('PUT', '/api/gateways', { id, url: gateway.url });
    });

    it('the gateway receives no requests for the session of a tool', async () => {
      const before = gateway.seen.length;
      const reply = await ask('POST', '/api/sessions/first/control', { action: 'monitor' });
      expect(reply.body.result).to.deep.equal({ requested: true });
      expect(gateway.seen.length).to.equal(before);
    });
  });

  it('shows numbers and ages in a short format', () => {
    expect([0, 999, 1_000, 35_999, 999_999, 1_000_000, 1_290_000].map(shortened)).to.deep.equal([
      ...['0', '999', '1k', '35k', '999k', '1m', '1.2m'],
    ]);
    expect([0, 59, 60, 3_599, 3_600, 86_399, 86_400].map(ageText)).to.deep.equal([
      ...['now', 'now', '1m', '59m', '1h', '23h', '1d'],
    ]);
  });
});
