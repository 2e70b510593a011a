/** The rows of alert rules. */
import { expect } from 'chai';
import { alertRulesProjection } from '../../../projections/alerts/rules.ts';
import { notificationsProjection } from '../../../projections/monitoring/notifications.ts';
import {
  alertRuleCreated,
  alertRuleDeleted,
  alertRuleTriggered,
  alertRuleUpdated,
  NO_RULE,
} from '../../../shared/events/alerts/rules.ts';
import { type Draft, eventsOf, rowsAfter, sample, timeOf } from '../../support/kit.ts';

const rule = { ...NO_RULE, name: 'errors', enabled: true, condition_field: 'status', condition_value: 'error' };
const created = alertRuleCreated.draft({ rule_id: 3, ...rule });
const triggered = (more: object = {}) =>
  sample(alertRuleTriggered, {
    ...{ rule_id: 3, name: 'errors', entity_type: 'agent', condition_field: 'status' },
    ...{
      condition_operator: 'equals',
      condition_value: 'error',
      action_type: 'notification',
      recipient: 'ann',
      count: 1,
      ...{
        cooldown_per: 'rule',
        records: [{ id: 8, name: 'bob', shown: true }],
        more: 0,
        cooling: null,
        reported_to: null,
      },
    },
    ...more,
  });
const rows = (...drafts: Draft[]) => rowsAfter(alertRulesProjection, eventsOf(drafts)).alert_rules;
const secondsOf = (n: number) => timeOf(n) / 1_000;

describe('alert rules: rows', () => {
  it('a new rule has not been triggered', () => {
    expect(rows(created)).to.deep.equal([
      {
        ...{ workspace_id: 1, id: 3, tenant_id: 1, ...rule },
        ...{ last_triggered_at: null, trigger_count: 0, cooling: null, reported_to: null, created_by: 'admin' },
        ...{ created_at: secondsOf(1), updated_at: secondsOf(1), position: 1 },
      },
    ]);
  });

  it('an update sets the given fields, and a trigger is not an update', () => {
    const changed = alertRuleUpdated.draft({ rule_id: 3, description: 'why', enabled: false, action_config: { a: 1 } });
    const [row] = rows(created, changed, triggered());
    expect(row).to.deep.include({
      ...{ name: 'errors', description: 'why', enabled: false, action_config: { a: 1 } },
      ...{ updated_at: secondsOf(2), last_triggered_at: secondsOf(3), trigger_count: 1 },
    });
    const [cleared] = rows(created, changed, alertRuleUpdated.draft({ rule_id: 3, description: null }));
    expect(cleared).to.include({ description: null, enabled: false });
  });

  it('a config whose key was deleted is empty, and a deleted rule has no row', () => {
    expect(rows(created, alertRuleUpdated.draft({ rule_id: 3, action_config: null }))[0]?.action_config).to.deep.equal(
      {},
    );
    expect(rows(created, triggered(), alertRuleDeleted.draft({ rule_id: 3, name: 'errors' }))).to.deep.equal([]);
  });

  it('records keep the time of their trigger until their cooldown ends', () => {
    const cooling = (ids: number[]) => triggered({ cooldown_per: 'record', cooling: ids });
    const long = { ...created, data: { ...created.data, cooldown_minutes: 60, cooldown_per: 'record' as const } };
    expect(rows(long, cooling([1]), cooling([2, 3]))[0]?.cooling).to.deep.equal({
      ...{ 1: secondsOf(2), 2: secondsOf(3), 3: secondsOf(3) },
    });
    const [first, , last] = eventsOf([long, cooling([1]), cooling([2])]);
    const later = { ...last, meta: { ...last?.meta, at: timeOf(2) + 3_600_000 } } as typeof last;
    const [, middle] = eventsOf([long, cooling([1]), cooling([2])]);
    expect(
      rowsAfter(alertRulesProjection, [first, middle, later] as never).alert_rules?.[0]?.cooling,
      'after an hour',
    ).to.deep.equal({ 2: secondsOf(2) + 3_600 });
  });

  it('a rule that is about other records has none of them in a cooldown', () => {
    const perRecord = alertRuleUpdated.draft({ rule_id: 3, cooldown_minutes: 60, cooldown_per: 'record' });
    const quiet = [created, perRecord, triggered({ cooldown_per: 'record', cooling: [8] })];
    const coolingAfter = (changes: object) =>
      rows(...quiet, alertRuleUpdated.draft({ rule_id: 3, ...changes }))[0]?.cooling;
    expect(coolingAfter({ condition_value: 'busy' })).to.deep.equal({ 8: secondsOf(3) });
    expect(coolingAfter({ entity_type: 'task' }), 'the task with the id of the agent').to.equal(null);
  });

  it('the newest reported activity stays known when the rule triggers for other records', () => {
    const [row] = rows(created, triggered({ reported_to: 41 }), triggered());
    expect(row?.reported_to).to.equal(41);
  });

  it('a trigger notifies its recipient, with the description if there is one', () => {
    const told = (draft: Draft) => rowsAfter(notificationsProjection, eventsOf([draft])).notifications;
    expect(told(triggered())[0]).to.include({
      ...{ recipient: 'ann', type: 'alert', title: 'Alert: errors', source_type: 'alert_rule', source_id: 3 },
      message: 'The condition of the rule "errors" is met: agent status equals error\nAgents: bob',
    });
    expect(told(triggered({ description: 'Look at the agents' }))[0]?.message).to.equal(
      'Look at the agents\nAgents: bob',
    );
    const records = [
      { id: 12, name: 'Fix the build', shown: true },
      { id: 15, name: 'A title that ann may not read', shown: false },
      { id: 16, name: 'x'.repeat(200), shown: true },
    ];
    const tasks = told(triggered({ entity_type: 'task', records, more: 3 }))[0]?.message;
    expect(tasks).to.match(/\nTasks: 12 \(Fix the build\), 15, 16 \(x{79}…\) and 3 more$/);
    expect(told(triggered({ records: [] }))[0]?.message).to.match(/equals error$/);
    expect(told(triggered({ actionType: 'webhook', recipient: null }))).to.deep.equal([]);
  });
});
