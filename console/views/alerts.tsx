/** Alert rules: what they watch, when they triggered, and how often a rule would have triggered in the past. */
import { useState } from 'preact/hooks';
import { setParams, useAddress } from '../client/address.ts';
import type { AlertRule } from '../client/api-types.ts';
import type { ResponseOf } from '../client/client.ts';
import { call } from '../client/client.ts';
import { useRead } from '../client/reads.ts';
import { useRights } from '../client/session.ts';
import { Act, ChangeButton, Dialog, Form, FormButton, type Values, write } from '../parts/act.tsx';
import { Page, Panel, Seconds, Shown, State, Table } from '../parts/basic.tsx';
import { count, duration, words } from '../parts/format.ts';
import { recordUrl } from '../parts/record.tsx';
import type { ChangeField } from '../parts/values.ts';
import { actionFields, actionText, ruleBody } from './rules.ts';

const OPERATORS = [
  'equals',
  'not_equals',
  'greater_than',
  'less_than',
  'contains',
  'count_above',
  'count_below',
  'age_minutes_above',
] as const;

const fieldsOf = (rule?: AlertRule): readonly ChangeField[] => [
  { name: 'name', label: 'Name', required: true, value: rule?.name },
  { name: 'description', label: 'What to do when it triggers', type: 'area', value: rule?.description, emptied: null },
  {
    name: 'entity_type',
    label: 'Watches',
    required: true,
    value: rule?.entity_type ?? 'task',
    options: ['agent', 'task', 'session', 'activity'],
  },
  { name: 'condition_field', label: 'Field', required: true, value: rule?.condition_field, hint: 'Such as status' },
  {
    name: 'condition_operator',
    label: 'Condition',
    required: true,
    value: rule?.condition_operator ?? 'equals',
    options: OPERATORS,
  },
  { name: 'condition_value', label: 'Value', required: true, value: rule?.condition_value },
  {
    name: 'cooldown_minutes',
    label: 'Minutes between two triggers',
    type: 'number',
    required: true,
    min: 1,
    value: rule?.cooldown_minutes ?? 60,
  },
  {
    name: 'cooldown_per',
    label: 'Quiet in between',
    required: true,
    value: rule?.cooldown_per ?? 'rule',
    options: ['rule', 'record'],
    hint: 'record: the rule still triggers for other records',
  },
  ...actionFields(rule),
];

const conditionOf = (rule: AlertRule): string =>
  `${rule.entity_type} ${words(rule.condition_field)} ${words(rule.condition_operator)} ${rule.condition_value}`;

const cooldownOf = ({ cooldown_minutes, cooldown_per }: AlertRule): string =>
  `${duration(cooldown_minutes * 60)}${cooldown_per === 'record' ? ' per record' : ''}`;

/** Rules that are named in a message. */
const NAMED = 3;

type Evaluation = Extract<ResponseOf<'POST /api/alerts'>, { readonly results: unknown }>;

function evaluationText({ evaluated, triggered, results }: Evaluation): string {
  const named = results.filter((one) => one.triggered).slice(0, NAMED);
  return [
    `${triggered} of ${evaluated} rules triggered.`,
    ...named.map(({ rule_name, reason }) => `${rule_name}: ${reason}.`),
  ].join(' ');
}

export function Alerts() {
  const { query } = useAddress();
  const { isOperator, isAdmin } = useRights();
  const read = useRead('GET /api/alerts', {}, { kinds: ['alert.'] });
  const trying = isOperator && read.data?.rules.find(({ id }) => String(id) === query.get('backtest'));
  return (
    <Page
      title="Alerts"
      about="Rules are evaluated on a schedule. A rule that triggers notifies its recipient, or calls a URL."
      more={
        isOperator && (
          <>
            <Act
              act={async () => {
                const result = await write('POST /api/alerts', { body: { action: 'evaluate' } });
                if ('results' in result) return write('GET /api/alerts', {}, evaluationText(result));
              }}
            >
              Evaluate now
            </Act>
            <FormButton
              main
              text="New rule"
              title="New rule"
              submit="Create"
              fields={fieldsOf()}
              send={(body) =>
                write('POST /api/alerts', { body: { ...ruleBody(body), action: 'create' } }, 'The rule is created.')
              }
            />
          </>
        )
      }
    >
      <Panel title="Rules" read={read}>
        <Shown read={read}>
          {({ rules }) => (
            <Table
              label="Alert rules"
              rows={
                query.has('rule')
                  ? [...rules].sort(
                      (a, b) => Number(String(b.id) === query.get('rule')) - Number(String(a.id) === query.get('rule')),
                    )
                  : rules
              }
              id={(rule) => rule.id}
              href={(rule) => recordUrl('alert', rule.id)}
              empty="There are no rules yet. A rule notifies a recipient or calls a URL when its condition is met."
              columns={[
                {
                  name: 'Rule',
                  of: (rule) => <strong>{rule.name}</strong>,
                  class: 'grow',
                },
                { name: 'Condition', of: conditionOf, class: 'short' },
                { name: 'Quiet for', of: cooldownOf, class: 'short' },
                { name: 'When it triggers', of: actionText, class: 'short' },
                { name: 'What to do', of: (rule) => <span class="dim">{rule.description ?? '–'}</span> },
                {
                  name: 'State',
                  of: (rule) => (rule.enabled ? <State is="on" tone="good" /> : <State is="off" tone="none" />),
                },
                { name: 'Triggered', of: (rule) => `${count(rule.trigger_count)} ×`, class: 'number' },
                { name: 'Last', of: (rule) => <Seconds at={rule.last_triggered_at} none="never" />, class: 'time' },
                isOperator && {
                  name: 'Actions',
                  of: (rule) => (
                    <span class="buttons">
                      <button type="button" onClick={() => setParams({ backtest: rule.id })}>
                        Backtest
                      </button>
                      <ChangeButton
                        title="Change the rule"
                        fields={fieldsOf(rule)}
                        send={(body) => write('PUT /api/alerts', { body: { ...ruleBody(body, rule), id: rule.id } })}
                      />
                      <Act act={() => write('PUT /api/alerts', { body: { id: rule.id, enabled: !rule.enabled } })}>
                        {rule.enabled ? 'Switch off' : 'Switch on'}
                      </Act>
                      {isAdmin && (
                        <Act
                          danger
                          confirm={`The rule "${rule.name}" is deleted.`}
                          act={() => write('DELETE /api/alerts', { body: { id: rule.id } }, 'The rule is deleted.')}
                        >
                          Delete
                        </Act>
                      )}
                    </span>
                  ),
                },
              ]}
            />
          )}
        </Shown>
      </Panel>
      {trying && <Backtest key={trying.id} rule={trying} close={() => setParams({ backtest: undefined })} />}
    </Page>
  );
}

type Outcome = Extract<ResponseOf<'POST /api/alerts'>, { readonly triggers: unknown }>;

function Backtest({ rule, close }: { readonly rule: AlertRule; readonly close: () => void }) {
  const [outcome, setOutcome] = useState<Outcome>();
  const run = async ({ hours }: Values) => {
    const { data } = await call(
      'POST /api/alerts',
      { body: { action: 'backtest', id: rule.id, hours } },
      { isLong: true },
    );
    if ('triggers' in data) setOutcome(data);
  };
  return (
    <Dialog title={`Backtest: ${rule.name}`} close={close}>
      <p>How often would it have triggered? Nothing is sent.</p>
      <Form
        fields={[{ name: 'hours', label: 'Hours back', type: 'number', value: 168, required: true, min: 1 }]}
        submit="Run the backtest"
        send={run}
      />
      {outcome && (
        <div role="status">
          <p>
            <strong>{count(outcome.triggered)} ×</strong> in {duration(outcome.until - outcome.since)}; evaluated{' '}
            {count(outcome.evaluated)} times. {outcome.message}
          </p>
          {!outcome.complete && <p>The log could not be read to its end in time. Choose fewer hours.</p>}
          <ul class="lines">
            {outcome.triggers.slice(-20).map((at) => (
              <li key={at}>
                <Seconds at={at} />
              </li>
            ))}
          </ul>
        </div>
      )}
    </Dialog>
  );
}
