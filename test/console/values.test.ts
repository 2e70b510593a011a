/** What the forms of the console send. */
import { expect } from 'chai';
import { consoleCode } from './code.ts';

type Field = Readonly<Record<string, unknown>>;
type Filled = { get(name: string): unknown };
interface Code {
  valuesOf(fields: readonly Field[], data: Filled): object;
  changesOf(fields: readonly Field[], data: Filled): { readonly values: object; readonly labels: readonly string[] };
  changedText(labels: readonly string[]): string;
}

const filled = (values: Readonly<Record<string, string>>): Filled => new Map(Object.entries(values));

describe('forms of the console', () => {
  let code: Code;
  before(async () => {
    code = await consoleCode<Code>('parts/values.ts');
  });

  const FIELDS = [
    { name: 'title', label: 'Title', value: 'Paint the signal', required: true },
    { name: 'description', label: 'Description', type: 'area', value: 'one\r\ntwo ', emptied: '' },
    { name: 'assigned_to', label: 'Agent', value: 'ann', emptied: '' },
    { name: 'email', label: 'E-mail', type: 'email', value: 'a@b.test', emptied: null },
    { name: 'minutes', label: 'Minutes', type: 'number', value: 60, required: true },
    { name: 'password', label: 'New password', type: 'password' },
  ];
  const SAME = {
    title: 'Paint the signal',
    description: 'one\ntwo ',
    assigned_to: 'ann',
    email: 'a@b.test',
    minutes: '60',
    password: '',
  };

  it('send an emptied field as the API takes it, and name it', () => {
    const { values, labels } = code.changesOf(FIELDS, filled({ ...SAME, assigned_to: '', email: '', description: '' }));
    expect(values).to.deep.equal({ description: '', assigned_to: '', email: null });
    expect(code.changedText(labels)).to.equal('Saved: Description, Agent, E-mail.');
  });

  it('send only what was changed', () => {
    const { values } = code.changesOf(FIELDS, filled({ ...SAME, title: ' Paint it red ', minutes: '5' }));
    expect(values).to.deep.equal({ title: 'Paint it red', minutes: 5 });
  });

  it('say that nothing was changed, and then send nothing', () => {
    const { values, labels } = code.changesOf(FIELDS, filled(SAME));
    expect(values).to.deep.equal({});
    expect(code.changedText(labels)).to.equal('Nothing was changed.');
  });

  it('leave out the empty fields of a new record', () => {
    const { description, ...values } = code.valuesOf(FIELDS, filled({ ...SAME, description: '' })) as {
      description?: string;
    };
    expect(description).to.equal(undefined);
    expect(values).to.deep.include({ title: 'Paint the signal', minutes: 60 });
  });
});

describe('the form of an alert rule', () => {
  interface Rules {
    actionFields(rule?: object): readonly { readonly name: string; readonly value?: unknown }[];
    ruleBody(values: object, rule?: object): object;
    actionText(rule: object): string;
  }
  let code: Rules;
  before(async () => {
    code = await consoleCode<Rules>('views/rules.ts');
  });

  const CALLED = {
    action_type: 'webhook',
    action_config: { url: 'https://a.test/------', secret: '--------', team: 'x' },
  };
  const NOTIFIED = { action_type: 'notification', action_config: { recipient: 'ann' } };

  it('has every field of an action, with the values of the rule', () => {
    const values = (rule?: object) =>
      Object.fromEntries(code.actionFields(rule).map(({ name, value }) => [name, value]));
    expect(values()).to.deep.equal({
      action_type: 'notification',
      recipient: undefined,
      url: undefined,
      secret: undefined,
    });
    expect(values(CALLED)).to.deep.equal({
      ...{ action_type: 'webhook', recipient: undefined, url: 'https://a.test/------', secret: undefined },
    });
    expect(values(NOTIFIED)).to.include({ action_type: 'notification', recipient: 'ann' });
  });

  it('sends the config of an action for a new rule', () => {
    const set = { name: 'x', action_type: 'webhook', recipient: undefined, url: 'https://a.test', secret: 's' };
    expect(code.ruleBody(set)).to.deep.equal({
      ...{ name: 'x', action_type: 'webhook', action_config: { url: 'https://a.test', secret: 's' } },
    });
    expect(code.ruleBody({ name: 'x' })).to.deep.equal({ name: 'x' });
  });

  it('keeps what it does not show, and sends no config if no action was changed', () => {
    expect(code.ruleBody({ name: 'x' }, CALLED)).to.deep.equal({ name: 'x' });
    expect(code.ruleBody({ secret: 'new' }, CALLED)).to.deep.equal({
      action_config: { url: 'https://a.test/------', secret: 'new', team: 'x' },
    });
    expect(code.ruleBody({ recipient: null }, NOTIFIED)).to.deep.equal({ action_config: {} });
  });

  it('says in words what happens', () => {
    expect([code.actionText(NOTIFIED), code.actionText(CALLED)]).to.deep.equal(['Notifies ann', 'Calls a.test']);
    expect(code.actionText({ action_type: 'notification', action_config: {} })).to.equal('Notifies system');
  });
});
