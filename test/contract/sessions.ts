/** Sessions of tools, through HTTP. */
import { expect } from 'chai';
import { ageText, listCliSessions, shortened } from '../../queries/sessions.ts';
import {
  cliSessionsAnswer,
  controlAnswer,
  registeredSessionAnswer,
  type SessionRecord,
  sessionActionAnswer,
  sessionDeletedAnswer,
  sessionPrefAnswer,
  sessionPrefsAnswer,
  sessionsAnswer,
} from '../../shared/contract/sessions.ts';
import { type AgentsWorld, conforms } from '../support/worlds/agents.ts';

export function describeSessions(service: () => AgentsWorld): void {
  describe('contract: sessions', () => {
    let world: AgentsWorld;
    before(() => {
      world = service();
    });
    const ask: AgentsWorld['ask'] = (...asked) => world.ask(...asked);
    const register = async (session_id: string, more: object = {}) => {
      const reply = await ask('POST', '/api/claude/sessions', { session_id, ...more });
      conforms(registeredSessionAnswer, reply);
      return reply.body.session;
    };
    const listed = async (query = '') => {
      const reply = await ask('GET', `/api/claude/sessions${query}`);
      conforms(cliSessionsAnswer, reply);
      return reply.body;
    };
    const all = async (): Promise<SessionRecord[]> => {
      const reply = await ask('GET', '/api/sessions');
      conforms(sessionsAnswer, reply);
      return reply.body.sessions;
    };
    const find = async (id: string) => (await all()).find((session) => session.id === id);
    const controls = (key: string) =>
      world.stream.frames.filter(({ type, data }) => type === 'session.control' && data.session_key === key);

    it('is registered with what the interface asks for, and listed', async () => {
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
    });

    it('reports where it is; the numbers of all are added up', async () => {
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

    it('is filtered and paged', async () => {
      await register('third', { project_slug: 'site' });
      const ids = ({ sessions }: { sessions: { session_id: string }[] }) =>
        sessions.map(({ session_id }) => session_id);
      const { sessions } = await listed('?project=site&limit=1&offset=1');
      expect(sessions).to.have.length(1);
      expect((await listed('?project=site')).total).to.equal(2);
      expect(ids(await listed('?project=nothing'))).to.deep.equal([]);
      expect(ids(await listed('?active=1'))).to.have.members(['first', 'second', 'third']);
    });

    it('is no longer active without reports for a quarter of an hour', async () => {
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

    it('is set, and its tool learns of it', async () => {
      const act = async (action: string, body: object) => {
        const reply = await ask('POST', `/api/sessions?action=${action}`, { sessionKey: 'first', ...body });
        conforms(sessionActionAnswer, reply);
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

    it('is asked to pause or to end, under both names of the actions', async () => {
      for (const action of ['monitor', 'pause', 'resume', 'kill']) {
        const reply = await ask('POST', '/api/sessions/third/control', { action });
        conforms(controlAnswer, reply);
        expect(reply.body).to.include({ action, session: 'third' });
      }
      expect(await find('third')).to.include({ active: false });
      await world.stream.until(() => controls('third').length >= 4);
      expect(controls('third').map(({ data }) => data.action)).to.deep.equal([
        'monitor',
        'pause',
        'resume',
        'terminate',
      ]);
    });

    it('is deleted, and registered anew by its next report', async () => {
      const reply = await ask('DELETE', '/api/sessions', { sessionKey: 'third' });
      conforms(sessionDeletedAnswer, reply);
      expect(await find('third')).to.equal(undefined);
      await world.refused('DELETE', '/api/sessions', { sessionKey: 'third' }, 404, /Session/);
      expect(await register('third')).to.include({ project_slug: 'default', is_active: 1 });
    });

    it('refuses what is wrong, and says what', async () => {
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

    it('lets an agent’s key register sessions of that agent only', async () => {
      const agent = await world.create();
      const key = await world.world.makeKey(agent.id, ['operator']);
      const as = (body: object) => ask('POST', '/api/claude/sessions', { session_id: 'keyed', ...body }, key);
      expect((await as({ agent_name: 'somebody' })).status).to.equal(403);
      expect((await as({})).body.session).to.include({ agent_name: agent.name });
    });

    it('is shown under a name and in a color, until both are taken away', async () => {
      const set = async (body: object) => {
        const reply = await ask('PATCH', '/api/chat/session-prefs', { key: 'local:first', ...body });
        conforms(sessionPrefAnswer, reply);
        return reply.body.pref;
      };
      const prefs = async () => {
        const reply = await ask('GET', '/api/chat/session-prefs');
        conforms(sessionPrefsAnswer, reply);
        return reply.body.prefs;
      };
      expect(await set({ name: 'mine', color: 'blue' })).to.deep.equal({ name: 'mine', color: 'blue' });
      expect(await set({ color: null })).to.deep.equal({ name: 'mine' });
      expect(await prefs()).to.deep.equal({ 'local:first': { name: 'mine' } });
      expect(await set({ name: '' })).to.equal(undefined);
      expect(await prefs()).to.deep.equal({});
      for (const body of [{}, { key: 'first' }, { key: 'a:b', color: 'pinkish' }, { key: 'a:b', name: 'x'.repeat(81) }])
        await world.refused('PATCH', '/api/chat/session-prefs', body, 400);
    });

    it('numbers and ages are short', () => {
      expect([0, 999, 1_000, 35_999, 999_999, 1_000_000, 1_290_000].map(shortened)).to.deep.equal([
        ...['0', '999', '1k', '35k', '999k', '1m', '1.2m'],
      ]);
      expect([0, 59, 60, 3_599, 3_600, 86_399, 86_400].map(ageText)).to.deep.equal([
        ...['now', 'now', '1m', '59m', '1h', '23h', '1d'],
      ]);
    });
  });
}
