/** The action of an alert rule, as a form shows it: the fields of its config that the contract knows. */
import type { AlertRule } from '../client/api-types.ts';
import type { ChangeField, Values } from '../parts/values.ts';

type Rule = Pick<AlertRule, 'action_type' | 'action_config'>;

const ACTION_FIELDS = ['recipient', 'url', 'secret'] as const;

const textIn = (rule: Rule | undefined, name: string): string | undefined => {
  const value = rule?.action_config[name];
  return typeof value === 'string' ? value : undefined;
};

export const actionFields = (rule?: Rule): readonly ChangeField[] => [
  {
    name: 'action_type',
    label: 'When it triggers',
    required: true,
    value: rule?.action_type ?? 'notification',
    options: [
      ['notification', 'notify a recipient'],
      ['webhook', 'call a URL'],
    ],
  },
  {
    name: 'recipient',
    label: 'Recipient',
    value: textIn(rule, 'recipient'),
    emptied: null,
    hint: 'Of a notification: an agent or a user. Empty: system.',
  },
  { name: 'url', label: 'URL', type: 'url', value: textIn(rule, 'url'), emptied: null, hint: 'Of a call.' },
  {
    name: 'secret',
    label: 'Secret',
    type: 'password',
    hint: `Calls are signed with it. Empty: ${textIn(rule, 'secret') === undefined ? 'no signature' : 'unchanged'}.`,
  },
];

/** The body of a request from the values of a form. What the form does not show of the config stays. */
export function ruleBody(values: Values, rule?: Rule): Values {
  const fields = Object.entries(values);
  const isAction = (name: string) => ACTION_FIELDS.some((one) => one === name);
  const set = fields.filter(([name, value]) => isAction(name) && value !== undefined);
  const rest = Object.fromEntries(fields.filter(([name]) => !isAction(name)));
  if (set.length === 0) return rest;
  const config = { ...rule?.action_config, ...Object.fromEntries(set) };
  return { ...rest, action_config: Object.fromEntries(Object.entries(config).filter(([, value]) => value !== null)) };
}

/** What happens when a rule triggers, in words. */
export function actionText(rule: Rule): string {
  if (rule.action_type === 'notification') return `Notifies ${textIn(rule, 'recipient') ?? 'system'}`;
  const url = textIn(rule, 'url') ?? '';
  return `Calls ${URL.canParse(url) ? new URL(url).host : 'a URL'}`;
}
