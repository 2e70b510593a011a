import { expect } from 'chai';
import { settingsProjection } from '../../../projections/admin/settings.ts';
import { settingReset, settingsUpdated } from '../../../shared/events/admin/settings.ts';
import { seconds } from '../../../shared/time.ts';
import { eventsOf, rowsAfter, timeOf } from '../../support/kit.ts';

describe('projection settings', () => {
  it('has a row with the last author for each setting that differs from its default', () => {
    const changed = (name: string, value: string) => settingsUpdated.draft({ changes: [{ name, old: null, value }] });
    const events = eventsOf([
      ...[changed('a', '1'), changed('b', '1'), changed('a', '2')],
      settingReset.draft({ name: 'b', old: '1' }),
    ]);
    expect(rowsAfter(settingsProjection, events).settings).to.deep.equal([
      { name: 'a', value: '2', updated_by: 'admin', updated_at: seconds(timeOf(3)), position: 3 },
    ]);
  });
});
