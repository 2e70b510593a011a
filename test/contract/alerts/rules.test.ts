/** Alert rules through HTTP: created, changed, evaluated, their actions. One service and one receiver for all. */
import { expect } from 'chai';
import {
  alertRuleResponse,
  alertRulesResponse,
  backtestResponse,
  evaluationResponse,
  ruleDeletedResponse,
} from '../../../shared/contract/alerts/rules.ts';
import { alertRuleTriggered } from '../../../shared/events/alerts/rules.ts';
import type { DomainEvent } from '../../../shared/events/define.ts';
import { EvidenceReader, logOf } from '../../support/evidence.ts';
import { checkAlerts } from '../../support/evidence-checks.ts';
import { fixture } from '../../support/fixture.ts';
import { startReceiver } from '../../support/receiver.ts';
import { until } from '../../support/until.ts';
import { testOrigin } from '../../support/world.ts';
import { conforms, startAgentsWorld } from '../../support/worlds/agents.ts';

const PATH = '/api/alerts';

describe('contract: alerts', function () {
  this.timeout(60_000);
  const receiver = fixture(startReceiver);
  const world = fixture(() =>
    startAgentsWorld({
      WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8',
      MC_DISABLE_RATE_LIMIT: '1',
      // Rules are evaluated only when a test says so: by default the clock does it every minute, in between.
      ALERT_EVALUATION_SECONDS: '86400',
    }),
  );

  /** Nothing is ever like this. */
  const NEVER = {
    name: 'never',
    entity_type: 'task',
    condition_field: 'title',
    condition_operator: 'equals',
    condition_value: 'no task has this title',
  };
  const create = async (fields: object = {}) =>
    conforms(alertRuleResponse, await world.ask('POST', PATH, { ...NEVER, ...fields }), 201).rule;
  const list = async () => conforms(alertRulesResponse, await world.ask('GET', PATH)).rules;
  const find = async (id: number) => (await list()).find((rule: { id: number }) => rule.id === id);
  const evaluate = async () =>
    conforms(evaluationResponse, await world.ask('POST', PATH, { action: 'evaluate', name: 7 }));
  const reasonOf = async (id: number) =>
    (await evaluate()).results.find(({ rule_id }: { rule_id: number }) => rule_id === id)?.reason;
  const audited = async (action: string, id: number) => {
    const { entries } = (await world.ask('GET', `/api/audit?action=${action}&limit=200`)).body;
    return entries.filter((entry: { target_id: number }) => entry.target_id === id);
  };

  describe('rules', () => {
    it('creates a rule with defaults, lists it and records it in the audit trail', async () => {
      const rule = await create({ name: ' Quiet ', description: '' });
      expect(rule).to.deep.include({
        ...NEVER,
        ...{ name: 'Quiet', description: null, enabled: true, action_type: 'notification', action_config: {} },
        ...{ cooldown_minutes: 60, last_triggered_at: null, trigger_count: 0, created_by: 'api', workspace_id: 1 },
      });
      expect((await list())[0], 'newest first').to.deep.equal(rule);
      expect((await audited('alert_rule_created', rule.id))[0]).to.deep.include({ detail: { name: 'Quiet' } });
    });

    it('rejects an invalid rule with a message that states the correction', async () => {
      const refused = (fields: object, says: RegExp) => world.refused('POST', PATH, { ...NEVER, ...fields }, 400, says);
      await world.refused('POST', PATH, {}, 400, /name: is required/);
      await refused({ entity_type: 'planet' }, /entity_type: must be one of agent, task, session, activity/);
      await refused({ condition_operator: 'like' }, /condition_operator: must be one of equals,/);
      const unknown = await refused({ condition_field: 'colour' }, /condition_field: must be one of status, priority,/);
      expect(unknown.body.error).to.match(/^condition_field: must be one of .*title.*, for entity_type task$/);
      await refused({ condition_operator: 'count_above', condition_value: 'many' }, /condition_value: must be a whole/);
      await refused({ condition_operator: 'greater_than', condition_value: '5 apples' }, /must be a number/);
      await refused({ condition_operator: 'age_minutes_above', condition_value: '5' }, /must be a time/);
      await refused({ action_type: 'mail' }, /action_type: must be one of notification, webhook/);
      await refused({ action_type: 'webhook' }, /action_config\.url: is required/);
      await refused({ action_type: 'webhook', action_config: { url: 'http://10.0.0.1/' } }, /not a public address/);
      await refused(
        { action_config: { note: 'x'.repeat(10_000) } },
        /action_config: must have at most 10000 characters/,
      );
      await refused({ cooldown_minutes: 0 }, /cooldown_minutes: must be at least 1/);
      await refused({ cooldown_minutes: 1.5 }, /cooldown_minutes/);
      await refused({ condition_value: 5 }, /condition_value: must be a string/);
    });

    it('creates a rule whatever its action, unless that is evaluate or backtest', async () => {
      for (const action of ['create', 'explode', '', null, 5]) {
        const rule = await create({ action });
        expect(rule, String(action)).to.deep.include({ name: NEVER.name }).and.not.to.have.property('action');
      }
    });

    it('updates the given fields, and accepts the formats that clients send', async () => {
      const { id, created_at } = await create();
      const reply = await world.ask('PUT', PATH, {
        id: String(id),
        enabled: 0,
        cooldown_minutes: 5,
        description: 'why',
      });
      conforms(alertRuleResponse, reply);
      expect(reply.body.rule).to.deep.include({
        id,
        enabled: false,
        cooldown_minutes: 5,
        description: 'why',
        created_at,
      });
      expect((await world.ask('PUT', PATH, { id, enabled: true, description: null })).body.rule).to.deep.include({
        enabled: true,
        description: null,
      });
      expect(await find(id)).to.deep.include({ enabled: true, cooldown_minutes: 5 });
      await world.refused('PUT', PATH, { id }, 400, /nothing to change/);
      await world.refused('PUT', PATH, { name: 'x' }, 400, /id: is required/);
      await world.refused('PUT', PATH, { id, condition_field: 'colour' }, 400, /condition_field: must be one of/);
      await world.refused(
        'PUT',
        PATH,
        { id, condition_operator: 'count_below' },
        400,
        /condition_value: must be a whole/,
      );
      await world.refused('PUT', PATH, { id: 999_999, name: 'x' }, 404);
    });

    it('deletes a rule once, by an id in the body or in the query', async () => {
      for (const [path, body] of [
        [PATH, (id: number) => ({ id })],
        [PATH, (id: number) => ({ id: String(id) })],
        [`${PATH}?id=`, () => undefined],
      ] as const) {
        const { id } = await create();
        const sent = path.endsWith('=') ? `${path}${id}` : path;
        conforms(ruleDeletedResponse, await world.ask('DELETE', sent, body(id)));
        expect(await find(id)).to.equal(undefined);
        expect(await audited('alert_rule_deleted', id)).to.have.length(1);
        await world.refused('DELETE', sent, body(id), 404, /Alert rule not found/);
      }
      await world.refused('DELETE', PATH, undefined, 400, /id: is required/);
      await world.refused('DELETE', `${PATH}?id=x`, undefined, 400, /id: must be/);
    });

    it('shows action secrets only to admins, not in the log, and keeps them if a mask is sent back', async () => {
      const config = { url: `${receiver.url}/T0/hidden-path`, secret: 'hidden-secret', note: 'x' };
      const { id, action_config } = await create({ action_type: 'webhook', action_config: config });
      expect(action_config).to.deep.equal(config);
      const operator = await world.world.makeSession({ username: 'ops-of-alerts', role: 'operator' });
      const shown = (await world.ask('GET', PATH, undefined, operator)).body.rules.find(
        (rule: { id: number }) => rule.id === id,
      );
      expect(shown.action_config).to.deep.equal({
        url: `${new URL(receiver.url).origin}/--------`,
        secret: '--------',
        note: 'x',
      });
      const put = await world.ask('PUT', PATH, { id, action_config: { ...shown.action_config, note: 'y' } }, operator);
      expect(put.body.rule.action_config).to.deep.equal({ ...shown.action_config, note: 'y' });
      expect((await find(id)).action_config).to.deep.equal({ ...config, note: 'y' });
      const raw = await world.world.rawLog();
      for (const text of ['hidden-path', 'hidden-secret']) expect(raw).not.to.include(text);
    });
  });

  describe('evaluation', () => {
    const onAgent = (name: string, more: object = {}) =>
      create({
        name,
        entity_type: 'agent',
        condition_field: 'name',
        condition_operator: 'equals',
        condition_value: name,
        ...more,
      });

    it('a rule whose condition is met sends one notification per cooldown', async () => {
      const { id } = await onAgent('watched-1', { action_config: { recipient: 'ann-of-alerts' } });
      expect(await reasonOf(id)).to.equal('Condition not met');
      const watched = await world.create({ name: 'watched-1', status: 'idle' });
      const { evaluated, triggered, results } = await evaluate();
      expect(evaluated).to.equal(results.length);
      expect(triggered).to.equal(results.filter((one: { triggered: boolean }) => one.triggered).length);
      expect(results.find((one: { rule_id: number }) => one.rule_id === id)).to.deep.equal({
        ...{ rule_id: id, rule_name: 'watched-1', triggered: true, reason: 'Condition met. Agents: watched-1' },
      });
      expect(results.map((one: { rule_id: number }) => one.rule_id)).to.deep.equal(
        results.map((one: { rule_id: number }) => one.rule_id).sort((a: number, b: number) => a - b),
      );
      expect(await reasonOf(id)).to.equal('In cooldown');
      const { notifications } = (await world.ask('GET', '/api/notifications?recipient=ann-of-alerts')).body;
      expect(notifications).to.have.length(1);
      expect(notifications[0]).to.deep.include({
        type: 'alert',
        title: 'Alert: watched-1',
        source_type: 'alert_rule',
        source_id: id,
        message: 'The condition of the rule "watched-1" is met: agent name equals watched-1\nAgents: watched-1',
      });
      const rule = await find(id);
      expect(rule).to.deep.include({ trigger_count: 1 });
      expect(rule.last_triggered_at).to.be.within(rule.created_at, Math.floor(Date.now() / 1_000));
      expect(rule.updated_at).to.equal(rule.created_at);
      await world.stream.until(() => world.framesOf('alert.triggered', id).length === 1);
      const [frame] = world.framesOf('alert.triggered', id);
      expect(frame?.data).to.deep.include({ records: [{ id: watched.id, name: 'watched-1' }], more: 0 });
    });

    const titled = async (title: string, more: object = {}): Promise<number> =>
      (await world.ask('POST', '/api/tasks', { title, ...more })).body.task.id;
    const onTitle = (title: string, more: object = {}) =>
      create({ name: title, condition_operator: 'contains', condition_value: title, ...more });
    const toldOf = async (recipient: string, id: number): Promise<string[]> => {
      const { notifications } = (await world.ask('GET', `/api/notifications?recipient=${recipient}`)).body;
      return notifications
        .filter(({ type, source_id }: { type: string; source_id: number }) => type === 'alert' && source_id === id)
        .map(({ message }: { message: string }) => message.split('\n').at(-1));
    };

    it('names ten records and how many more there are, and to an agent only the titles of its own tasks', async () => {
      await world.create({ name: 'lookout', status: 'idle' });
      const own = await titled('leak of the lookout', { assigned_to: 'lookout' });
      const others: number[] = [];
      for (let n = 1; n <= 11; n++) others.push(await titled(`leak ${n}`));
      const forAll = await onTitle('leak', { action_config: { recipient: 'ann-of-leaks' } });
      const forAgent = await onTitle('leak', { action_config: { recipient: 'lookout' } });
      const all = `Tasks: ${[`${own} (leak of the lookout)`, ...others.slice(0, 9).map((id, n) => `${id} (leak ${n + 1})`)].join(', ')} and 2 more`;
      const { results } = await evaluate();
      const reasons = results.filter(({ rule_id }: { rule_id: number }) => [forAll.id, forAgent.id].includes(rule_id));
      expect(reasons.map(({ reason }: { reason: string }) => reason)).to.deep.equal([
        `Condition met. ${all}`,
        `Condition met. ${all}`,
      ]);
      expect(await toldOf('ann-of-leaks', forAll.id)).to.deep.equal([all]);
      const mine = `Tasks: ${own} (leak of the lookout), ${others.slice(0, 9).join(', ')} and 2 more`;
      expect(await toldOf('lookout', forAgent.id)).to.deep.equal([mine]);
      await world.stream.until(() => world.framesOf('alert.triggered', forAll.id).length === 1);
      // Agents' keys get this frame as well.
      const records = [own, ...others.slice(0, 9)].map((id) => ({ id, name: null }));
      expect(world.framesOf('alert.triggered', forAll.id)[0]?.data).to.deep.include({ records, more: 2 });
    });

    it('with a cooldown per record, a second record is reported while the first one is quiet', async () => {
      const { id } = await onTitle('outage', {
        cooldown_per: 'record',
        action_config: { recipient: 'ann-of-outages' },
      });
      const first = await titled('outage of disks');
      expect(await reasonOf(id)).to.equal(`Condition met. Tasks: ${first} (outage of disks)`);
      expect(await reasonOf(id)).to.equal('In cooldown');
      const second = await titled('outage of networks');
      expect(await reasonOf(id)).to.equal(`Condition met. Tasks: ${second} (outage of networks)`);
      expect(await reasonOf(id)).to.equal('In cooldown');
      expect(await find(id)).to.deep.include({ trigger_count: 2, cooldown_per: 'record' });
      const whole = await onTitle('blackout');
      await titled('blackout of disks');
      expect(await reasonOf(whole.id)).to.match(/^Condition met\. /);
      await titled('blackout of networks');
      expect(await reasonOf(whole.id), 'of the rule, by default').to.equal('In cooldown');
    });

    it('each activity is reported once with a cooldown per record', async () => {
      const { id } = await create({
        ...{ name: 'news', entity_type: 'activity', condition_field: 'description', condition_operator: 'contains' },
        ...{ condition_value: 'flood of', cooldown_per: 'record' },
      });
      // All within a second or two: none is lost because it came in the second of a trigger.
      for (const title of ['flood of rivers', 'flood of lakes', 'flood of seas']) {
        await titled(title);
        expect(await reasonOf(id)).to.match(/^Condition met\. Activities: \d+ \(task_created\)$/);
        expect(await reasonOf(id)).to.equal('Condition not met');
      }
    });

    it('refuses a cooldown per record for a count', async () => {
      const counted = { condition_operator: 'count_above', condition_value: '3', cooldown_per: 'record' };
      const { status, body } = await world.ask('POST', PATH, { ...NEVER, ...counted });
      expect([status, body.error]).to.deep.equal([
        400,
        'cooldown_per: must be rule for count_above, which is about all records at once',
      ]);
    });

    it('a recipient that is an agent is notified under its new name, and a deleted one is replaced', async () => {
      await world.world.makeUser({ username: 'root-of-alerts', role: 'admin' });
      const bell = await world.create({ name: 'bell', status: 'idle' });
      const rule = await onTitle('chime', { action_config: { recipient: 'bell', note: 'kept' } });
      expect((await world.ask('PUT', `/api/agents/${bell.id}`, { name: 'carillon' })).status).to.equal(200);
      await world.create({ name: 'bell', status: 'idle' });
      expect((await find(rule.id)).action_config).to.deep.equal({ recipient: 'carillon', note: 'kept' });
      const task = await titled('chime at noon', { assigned_to: 'carillon' });
      await evaluate();
      expect(await toldOf('carillon', rule.id)).to.deep.equal([`Tasks: ${task} (chime at noon)`]);
      expect(await toldOf('bell', rule.id)).to.deep.equal([]);
      expect((await world.ask('DELETE', `/api/agents/${bell.id}`)).status).to.equal(200);
      expect((await find(rule.id)).action_config).to.deep.equal({ note: 'kept' });
      expect(await toldOf('root-of-alerts', rule.id)).to.deep.equal([
        'Alert rule "chime" notifies system: its recipient, the agent carillon, was deleted. Name another recipient.',
      ]);
    });

    it('a disabled rule is not evaluated', async () => {
      const { id } = await onAgent('watched-1', { enabled: false });
      expect(await reasonOf(id)).to.equal(undefined);
    });

    it('the schedule evaluates rules', async () => {
      const { id } = await onAgent('watched-2');
      await world.create({ name: 'watched-2', status: 'idle' });
      const reply = await world.ask('POST', '/api/scheduler', { task_id: 'alert_evaluation' });
      expect(reply.body, JSON.stringify(reply.body)).to.deep.include({ ok: true });
      expect(reply.body.message).to.match(/^\d+ rules were evaluated, \d+ triggered\.$/);
      expect(await find(id)).to.deep.include({ trigger_count: 1 });
    });

    it('a webhook is called with one id and a signature until it responds', async () => {
      let failures = 1;
      receiver.react(() => (failures-- > 0 ? { status: 500 } : { status: 200 }));
      const { id } = await onAgent('watched-3', {
        action_type: 'webhook',
        action_config: { url: `${receiver.url}/alert`, secret: 'a'.repeat(64) },
      });
      await world.create({ name: 'watched-3', status: 'idle' });
      expect(await reasonOf(id)).to.equal('Condition met. Agents: watched-3');
      await until('the second attempt', () => receiver.of('alert.triggered').length === 2, 20_000);
      const [one, two] = receiver.of('alert.triggered');
      expect(two?.headers['webhook-id']).to.equal(one?.headers['webhook-id']);
      expect(two?.headers['x-mc-signature']).to.match(/^sha256=[0-9a-f]{64}$/);
      expect(two?.body).to.deep.include({ event: 'alert.triggered' });
      expect(two?.body.data).to.deep.include({
        id,
        name: 'watched-3',
        entity_type: 'agent',
        trigger_count: 1,
        workspace_id: 1,
        more: 0,
      });
      expect(two?.body.data.records.map(({ name }: { name: string }) => name)).to.deep.equal(['watched-3']);
      const { notifications } = (await world.ask('GET', '/api/notifications?recipient=system&type=alert')).body;
      expect(notifications.filter((one: { source_id: number }) => one.source_id === id)).to.deep.equal([]);
    });

    it('a backtest evaluates a rule on past data without triggering it', async () => {
      const { id } = await onAgent('watched-4', { cooldown_minutes: 1 });
      const agent = await world.create({ name: 'watched-4', status: 'idle' });
      const rule = { ...NEVER, entity_type: 'agent', condition_field: 'id', condition_value: 'x' };
      const tried = async (body: object) =>
        conforms(backtestResponse, await world.ask('POST', PATH, { action: 'backtest', ...body }));
      const found = await tried({ id: String(id), hours: 1 });
      expect(found).to.deep.include({ rule_id: id, hours: 1 });
      // A slow store shared with other logs may not get through it in time, and then says so.
      if (!found.complete) expect(found.message).to.include('too much to replay');
      expect(found.since).to.be.at.least(agent.created_at - 3_600);
      expect(found.triggers).to.have.length(found.triggered);
      const { entity_type, condition_operator, ...rest } = NEVER;
      const made = { ...rest, entity_type, condition_operator, condition_field: 'name' };
      expect(await tried({ rule: { ...made, entity_type: 'agent', condition_value: 'nobody' } })).to.deep.include({
        ...{ rule_id: null, hours: 24, triggered: 0 },
      });
      expect(await find(id)).to.deep.include({ trigger_count: 0, last_triggered_at: null });
      const refused = (body: object, status: number, says: RegExp) =>
        world.refused('POST', PATH, { action: 'backtest', ...body }, status, says);
      await refused({}, 400, /send either a rule, or the id of one/);
      await refused({ id, rule: made }, 400, /send either/);
      await refused({ rule }, 400, /condition_field: must be one of status/);
      await refused({ id, hours: 721 }, 400, /hours: must be at most 720/);
      await refused({ id: 999_999 }, 404, /Alert rule not found/);
    });

    it('the response shows the events behind each number, and the log confirms the number', async () => {
      const answerOf = (body: object) => {
        if ('rules' in body) return alertRulesResponse;
        if ('rule' in body) return alertRuleResponse;
        return 'results' in body ? evaluationResponse : backtestResponse;
      };
      const shown = async (method: string, query: string, body?: object, as?: string) => {
        const reply = await world.ask(method, `${PATH}?evidence=1${query}`, body, as);
        expect(reply.status, JSON.stringify(reply.body)).to.be.within(200, 201);
        conforms(answerOf(reply.body), reply, reply.status);
        checkAlerts(reply.body, new EvidenceReader(await logOf(world), as === undefined ? 1 : 2));
        return reply.body;
      };
      const { name, id: agentId } = await world.create({ status: 'idle' });
      const condition = { entity_type: 'agent', condition_field: 'name', condition_operator: 'equals' };
      const rule = { ...NEVER, ...condition, condition_value: name, cooldown_minutes: 1 };
      const { id } = (await shown('POST', '', rule)).rule;
      await create({ enabled: false });
      const deleted = await create();
      await world.ask('DELETE', `${PATH}?id=${deleted.id}`);
      const evaluated = await shown('POST', '', { action: 'evaluate' });
      expect(evaluated.triggered).to.be.above(0);
      const position = (await world.ask('GET', PATH)).headers.get('x-signalbox-position');
      // So that it triggers again at once.
      const { store } = world.world.service.core;
      const [first] = (await store.readStream(`alert-1-${id}`)).filter(({ type }) => type === 'AlertRuleTriggered');
      const again = alertRuleTriggered.draft({ ...(first as DomainEvent).data, count: 2 } as never);
      await world.world.service.core.commands.record(`alert-1-${id}`, { origin: testOrigin }, [again]);
      expect((await shown('POST', '', { action: 'evaluate' })).triggered).to.equal(0);
      expect((await shown('PUT', '', { id, description: 'changed' })).rule.trigger_count).to.equal(2);
      const number = `rules.${id}.trigger_count`;
      for (const [limit, key] of [
        [1, 'from'],
        [1_000, 'positions'],
      ] as const) {
        const now = await shown('GET', `&limit=${limit}`);
        expect(now.evidence[number]).to.include({ total: 2 }).and.to.have.any.keys(key);
        const then = await shown('GET', `&limit=${limit}&as_of=${position}`);
        expect(then.evidence[number].total).to.equal(1);
      }
      expect(await list()).to.deep.equal((await shown('GET', '')).rules);

      await world.ask('PUT', `/api/agents/${agentId}`, { status: 'error' });
      const counted = { ...condition, condition_operator: 'count_above', condition_value: '0', cooldown_minutes: 1 };
      for (const field of ['status=error', 'status', 'role']) {
        const tried = { ...counted, condition_field: field };
        const found = await shown('POST', '', { action: 'backtest', rule: tried, hours: 1 });
        expect(found.evidence).to.include.keys('evaluated');
      }
      // Another workspace has none of these events.
      const strange = await world.world.makeSession({
        username: 'alert-admin',
        role: 'admin',
        workspace: 2,
        tenant: 2,
      });
      expect((await shown('POST', '', rule, strange)).evidence['rule.trigger_count'].total).to.equal(0);
      expect((await shown('POST', '', { action: 'evaluate' }, strange)).evaluated).to.equal(1);
    });

    it('webhook subscribers receive the event', async () => {
      const hook = { name: 'all alerts', url: `${receiver.url}/subscribed`, events: ['alert.triggered'] };
      expect((await world.ask('POST', '/api/webhooks', hook)).status).to.equal(200);
      const { id } = await onAgent('watched-3');
      expect(await reasonOf(id)).to.match(/^Condition met\. Agents: watched-/);
      const heard = () =>
        receiver.of('alert.triggered').filter(({ path, body }) => path.endsWith('/subscribed') && body.data.id === id);
      await until('the subscriber hears of it', () => heard().length === 1);
    });
  });
});
