/** What can be done with alert rules, and when one triggers. */
import { expect } from 'chai';
import { type AlertFindings, decideTrigger } from '../../../commands/alerts/evaluations.ts';
import {
  decideChange,
  decideCreate,
  decideDelete,
  decideRecipient,
  ruleDecider,
} from '../../../commands/alerts/rules.ts';
import type { WatchedRule } from '../../../queries/alerts/rules.ts';
import {
  alertRuleCreated,
  alertRuleDeleted,
  alertRuleTriggered,
  alertRuleUpdated,
  type RuleFields,
} from '../../../shared/events/alerts/rules.ts';
import { notificationRaised } from '../../../shared/events/monitoring/notifications.ts';
import { maskedConfig } from '../../../shared/secrets.ts';
import { givenFor, refusalOf, sample, timeOf } from '../../support/kit.ts';

const RULE: RuleFields = {
  name: 'errors',
  description: null,
  enabled: true,
  entity_type: 'agent',
  condition_field: 'status',
  condition_operator: 'equals',
  condition_value: 'error',
  action_type: 'notification',
  action_config: {},
  cooldown_minutes: 5,
  cooldown_per: 'rule',
};
const ruleOf = (fields: Partial<RuleFields> = {}): RuleFields => ({ ...RULE, ...fields });
const created = (fields: Partial<RuleFields> = {}, agent: number | null = null) =>
  alertRuleCreated.draft({ rule_id: 7, ...ruleOf(fields), recipient_agent: agent });
const given = givenFor(ruleDecider);
const anyUrl = () => undefined;
const local = (url: string) => (url.includes('127.0.0.1') ? 'must not point to 127.0.0.1' : undefined);

/** Seconds of the n-th event. */
const at = (n: number) => timeOf(n) / 1_000;

const watched = (fields: Partial<WatchedRule> = {}): WatchedRule => ({
  ...{ tenant: 1, workspace: 1, id: 7, last_triggered_at: null, reported_to: null, trigger_count: 0, position: 1 },
  ...RULE,
  ...fields,
});

const ANN = { id: 3, name: 'ann', shown: true };
const findings = (more: Partial<AlertFindings> = {}): AlertFindings => ({
  ...{ records: [ANN], more: 0, ids: [3], reported_to: null },
  recipient: { text: 'system', agent: null, name: 'system' },
  ...more,
});

const triggered = (count: number, fields: object = {}) =>
  sample(alertRuleTriggered, {
    rule_id: 7,
    name: 'errors',
    entity_type: 'agent',
    condition_field: 'status',
    condition_operator: 'equals',
    condition_value: 'error',
    action_type: 'notification',
    recipient: 'system',
    cooldown_per: 'rule',
    records: [ANN],
    more: 0,
    cooling: null,
    reported_to: null,
    count,
    ...fields,
  });

describe('commands: alert rules', () => {
  it('creation stores all fields of a rule', () => {
    expect(decideCreate(7, RULE, anyUrl)).to.deep.equal([created()]);
  });

  it('a webhook requires an allowed URL, and a recipient a valid name', () => {
    const refusal = (fields: Partial<RuleFields>) => refusalOf(() => decideCreate(7, ruleOf(fields), local));
    expect(refusal({ action_type: 'webhook' }).message).to.match(/^action_config\.url: is required/);
    expect(refusal({ action_type: 'webhook', action_config: { url: 'http://127.0.0.1/x' } }).message).to.match(
      /^action_config\.url: must not point to/,
    );
    const url = 'https://example.org';
    expect(refusal({ action_type: 'webhook', action_config: { url, secret: 5 } }).message).to.match(/secret/);
    for (const recipient of ['', 7, 'x'.repeat(201)])
      expect(refusal({ action_config: { recipient } }).message).to.match(/^action_config\.recipient/);
    expect(decideCreate(7, ruleOf({ action_config: { recipient: 'ann', more: 1 } }), local)).to.have.length(1);
  });

  it('an update records only differences', () => {
    const changes = { name: 'errors', condition_value: 'offline', enabled: false };
    given(created())
      .when(decideChange, changes as never, anyUrl)
      .then(alertRuleUpdated.draft({ rule_id: 7, condition_value: 'offline', enabled: false }));
  });

  it('a rule must be valid as a whole after an update', () => {
    const change = (fields: object) =>
      refusalOf(() => decideChange(given(created()).state, fields as never, anyUrl)).message;
    expect(change({ condition_operator: 'count_above' })).to.equal(
      'condition_value: must be a whole number, 0 or more, for count_above',
    );
    expect(change({ entity_type: 'task', condition_field: 'role' })).to.match(
      /^condition_field: must be one of status,/,
    );
    expect(change({ action_type: 'webhook' })).to.match(/^action_config\.url/);
  });

  it('unknown rules cannot be changed or deleted', () => {
    const gone = given(created(), alertRuleDeleted.draft({ rule_id: 7, name: 'errors' }));
    for (const before of [given(), gone]) {
      before.when(decideChange, { name: 'x' } as never, anyUrl).thenRefuses(404);
      before.when(decideDelete).thenRefuses(404);
      before.when(decideTrigger, watched(), at(9), findings()).then();
    }
    given(created())
      .when(decideDelete)
      .then(alertRuleDeleted.draft({ rule_id: 7, name: 'errors' }));
  });

  it('secrets are masked, and masks sent back keep the secrets', () => {
    const config = { url: 'https://hooks.example.org/T0/B0/abc', secret: 'very-secret', note: 'x' };
    const shown = maskedConfig(config);
    expect(shown).to.deep.equal({ url: 'https://hooks.example.org/--------', secret: '--------', note: 'x' });
    expect(maskedConfig({ url: 'https://example.org/' })).to.deep.equal({ url: 'https://example.org/' });
    const before = given(created({ action_type: 'webhook', action_config: config }));
    const sent = { action_config: { ...shown, note: 'y' } };
    before
      .when(decideChange, sent as never, anyUrl)
      .then(alertRuleUpdated.draft({ rule_id: 7, action_config: { ...config, note: 'y' } }));
    expect(refusalOf(() => decideCreate(7, ruleOf({ action_config: { secret: '--------' } }), anyUrl)).status).to.equal(
      400,
    );
  });

  it('a rule triggers, then stays quiet during its cooldown', () => {
    given(created()).when(decideTrigger, watched(), at(2), findings()).then(triggered(1));
    const quiet = given(created(), triggered(1));
    for (const now of [at(1), at(2), at(2) + 299]) quiet.when(decideTrigger, watched(), now, findings()).then();
    quiet.when(decideTrigger, watched(), at(2) + 300, findings()).then(triggered(2));
  });

  it('a rule that was disabled or changed after its evaluation does not trigger', () => {
    const triggersAs = (fields: Partial<RuleFields>) =>
      decideTrigger(
        given(created(), alertRuleUpdated.draft({ rule_id: 7, ...ruleOf(fields) })).state,
        watched(),
        at(9),
        findings(),
      );
    expect(triggersAs({ enabled: false })).to.deep.equal([]);
    expect(triggersAs({ condition_value: 'idle' })).to.deep.equal([]);
    expect(triggersAs({ entity_type: 'task' })).to.deep.equal([]);
    expect(triggersAs({ cooldown_per: 'record' })).to.deep.equal([]);
    // What was found is named as the former recipient may see it.
    expect(triggersAs({ action_config: { recipient: 'bob' } })).to.deep.equal([]);
    expect(triggersAs({ name: 'renamed' })).to.have.length(1);
  });

  it('a cooldown per record begins for the records that were found, unless the rule has triggered meanwhile', () => {
    const perRecord = { cooldown_per: 'record' as const };
    const before = given(created(perRecord), triggered(1, { ...perRecord, cooling: [3] }));
    const found = findings({ records: [{ ...ANN, id: 4, name: 'bob' }], ids: [4] });
    before
      .when(decideTrigger, watched({ ...perRecord, trigger_count: 1 }), at(2), found)
      .then(triggered(2, { ...perRecord, records: found.records, cooling: [4] }));
    before.when(decideTrigger, watched({ ...perRecord, trigger_count: 0 }), at(2), found).then();
  });

  it('a cooldown per record is refused for counts', () => {
    const change = { condition_operator: 'count_above', condition_value: '3', cooldown_per: 'record' };
    expect(refusalOf(() => decideChange(given(created()).state, change as never, anyUrl)).message).to.match(
      /^cooldown_per: must be rule for count_above/,
    );
  });

  it('a recipient that is an agent follows its rename, and the default one replaces a deleted one', () => {
    const config = { recipient: 'ann', more: 1 };
    const raised = notificationRaised.draft({
      ...{ recipient: 'admin', type: 'alert', title: 'Recipient deleted', message: 'x' },
      ...{ source_type: null, source_id: null, by: null },
    });
    const notify = () => [raised];
    const before = given(created({ action_config: config }, 3));
    before
      .when(decideRecipient, { id: 3, name: 'anna', known: 'anna' }, notify)
      .then(alertRuleUpdated.draft({ rule_id: 7, action_config: { more: 1, recipient: 'anna' } }));
    before
      .when(decideRecipient, { id: 3, name: null, known: 'ann' }, notify)
      .then(alertRuleUpdated.draft({ rule_id: 7, action_config: { more: 1 }, recipient_agent: null }), raised);
    before.when(decideRecipient, { id: 3, name: 'ann', known: 'ann' }, notify).then();
    before.when(decideRecipient, { id: 4, name: 'anna', known: 'anna' }, notify).then();
    // The same configuration, sent a second time, still means the same agent, even if another one has the name now.
    before
      .when(decideChange, { action_config: { ...config, more: 2 } } as never, anyUrl, 9)
      .then(alertRuleUpdated.draft({ rule_id: 7, action_config: { ...config, more: 2 } }));
    before
      .when(decideChange, { action_config: { recipient: 'bob' } } as never, anyUrl, 9)
      .then(alertRuleUpdated.draft({ rule_id: 7, action_config: { recipient: 'bob' }, recipient_agent: 9 }));
  });

  it('a triggered rule notifies the recipient, by default system; a webhook action notifies no one', () => {
    const recipientOf = (fields: Partial<RuleFields>) =>
      decideTrigger(given(created(fields)).state, watched(), at(9), findings()).map(({ data }) => data.recipient);
    expect(recipientOf({})).to.deep.equal(['system']);
    expect(recipientOf({ action_type: 'webhook', action_config: { url: 'https://example.org' } })).to.deep.equal([
      null,
    ]);
  });
});
