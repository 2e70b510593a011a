import { expect } from 'chai';
import { decideReset, decideSettings, MAX_SETTINGS, settingsDecider } from '../../../commands/admin/settings.ts';
import { KNOWN_SETTINGS, type SettingName, settingsBody } from '../../../shared/contract/admin/settings.ts';
import { settingReset, settingsUpdated } from '../../../shared/events/admin/settings.ts';
import { givenFor } from '../../support/kit.ts';

const given = givenFor(settingsDecider);
const updated = (...changes: { name: string; old: string | null; value: string }[]) =>
  settingsUpdated.draft({ changes });

describe('settings', () => {
  it('are updated if they differ, and the event records the old value', () => {
    const before = given(updated({ name: 'a', old: null, value: '1' }));
    const drafts = decideSettings(before.state, [
      { name: 'a', value: '2' },
      { name: 'b', value: '3' },
    ]);
    expect(drafts).to.deep.equal([updated({ name: 'a', old: '1', value: '2' }, { name: 'b', old: null, value: '3' })]);
    before.when(decideSettings, [{ name: 'a', value: '1' }]).then();
  });

  it('can be reset only if stored, even under a name such as constructor', () => {
    const stored = updated({ name: 'a', old: null, value: '1' });
    const reset = settingReset.draft({ name: 'a', old: '1' });
    given(stored).when(decideReset, 'a').then(reset);
    given(stored, reset).when(decideReset, 'a').thenRefuses(404);
    given(stored, reset).when(decideReset, 'constructor').thenRefuses(404);
  });

  it('are limited in number', () => {
    const full = Array.from({ length: MAX_SETTINGS }, (_, n) => ({ name: `n${n}`, old: null, value: '' }));
    const before = given(updated(...full));
    before.when(decideSettings, [{ name: 'more', value: '1' }]).thenRefuses(409);
    expect(decideSettings(before.state, [{ name: 'n1', value: '1' }])).to.have.length(1);
  });

  it('are stored as text, and validated if known', () => {
    const take = (settings: object) => settingsBody.safeParse({ settings });
    const values = { 'x.flag': true, 'x.number': 5, 'x.list': [1], 'general.auto_backup': false };
    expect(take(values).data?.settings.map(({ value }) => value)).to.deep.equal(['true', '5', '[1]', 'false']);
    for (const [name, value] of [
      ['general.auto_backup', 'yes'],
      ['retention.logs_days', 3_651],
      ['retention.logs_days', '1e2'],
      ['general.interface_mode', 'wide'],
      ['gateway.port', 0],
      ['x', null],
      ['x', 'y'.repeat(4_001)],
      ['x', '\0'],
      ['my.api_key', 'v'],
      ['bad name', 'v'],
      ['__proto__x', 'v'],
    ] as const) {
      const { error } = take({ [name]: value });
      expect(error?.issues[0]?.path, `${name}=${value}`).to.deep.equal(['settings', name]);
    }
    expect(take({}).success).to.equal(false);
  });

  it('have valid defaults', () => {
    const defaults = new Proxy({}, { get: () => 30 }) as Parameters<
      (typeof KNOWN_SETTINGS)['retention.logs_days']['initial']
    >[0];
    for (const [name, one] of Object.entries(KNOWN_SETTINGS) as [SettingName, (typeof KNOWN_SETTINGS)[SettingName]][]) {
      expect(one.fault(one.initial(defaults)), name).to.equal(undefined);
    }
  });
});
