/** Settings of the deployment. */
import { expect } from 'chai';
import {
  type SettingResponse,
  settingResetResponse,
  settingsPutResponse,
  settingsResponse,
} from '../../../shared/contract/admin/settings.ts';
import { fixture } from '../../support/fixture.ts';
import { bodyOf } from '../../support/service.ts';
import { conforms } from '../../support/worlds/agents.ts';
import { startAuthWorld } from '../../support/worlds/auth.ts';

describe('/api/settings', function () {
  this.timeout(120_000);
  const world = fixture(() => startAuthWorld({ MC_RETAIN_ACTIVITIES_DAYS: '12' }));

  const PATH = '/api/settings';
  const ask = (method: string, body?: unknown) => world.ask(method, PATH, { as: world.adminKey, body });
  const list = async (): Promise<SettingResponse[]> => {
    const { settings, grouped } = conforms(settingsResponse, await ask('GET'));
    expect(Object.values(grouped).flat()).to.have.deep.members(settings);
    return settings;
  };
  const one = async (key: string) => (await list()).find((setting) => setting.key === key);

  it('have defaults, some of them from the environment', async () => {
    expect(await one('retention.logs_days')).to.deep.equal({
      ...{ key: 'retention.logs_days', value: '30', category: 'retention', is_default: true },
      description: 'How long lines of the log are kept, days; 0: forever',
      ...{ updated_by: null, updated_at: null },
    });
    expect(await one('retention.activities_days')).to.include({ value: '12' });
    expect(await one('gateway.port')).to.include({ value: '18789', category: 'gateway' });
  });

  it('are stored as text with their author, and custom ones may be added', async () => {
    const settings = { 'general.site_name': 'Yard', 'general.auto_backup': true, 'my.theme': { dark: true } };
    const body = conforms(settingsPutResponse, await ask('PUT', { settings }));
    expect(body).to.deep.equal({ updated: Object.keys(settings), count: 3 });
    const stored = await one('general.auto_backup');
    expect(stored).to.include({ value: 'true', is_default: false, updated_by: 'api' });
    expect(stored?.updated_at).to.be.a('number');
    expect(await one('my.theme')).to.include({ value: '{"dark":true}', category: 'custom', description: '' });
    const [entry] = await world.audit('settings_update');
    expect(entry?.detail).to.deep.equal({
      updated_keys: Object.keys(settings),
      changes: {
        ...{ 'general.site_name': { new: 'Yard' }, 'general.auto_backup': { new: 'true' } },
        'my.theme': { new: '{"dark":true}' },
      },
    });
    await ask('PUT', { settings: { 'general.site_name': 'Yard' } });
    expect(await world.audit('settings_update'), 'nothing has changed').to.have.length(1);
    expect((await ask('DELETE', { key: 'general.auto_backup' })).status).to.equal(200);
  });

  it('are reset to their defaults, or removed if custom', async () => {
    await ask('PUT', { settings: { 'general.backup_retention_count': 3, 'my.note': 'x' } });
    const body = conforms(settingResetResponse, await ask('DELETE', { key: 'general.backup_retention_count' }));
    expect(body).to.deep.equal({ reset: 'general.backup_retention_count', default_value: '10' });
    expect(await one('general.backup_retention_count')).to.include({ value: '10', is_default: true });
    expect((await ask('DELETE', { key: 'my.note' })).body).to.deep.equal({ reset: 'my.note' });
    expect(await one('my.note')).to.equal(undefined);
    expect((await world.audit('settings_reset'))[0]?.detail).to.deep.equal({ key: 'my.note', old_value: 'x' });
    expect((await ask('DELETE', { key: 'my.note' })).status).to.equal(404);
    expect(bodyOf(await ask('DELETE'), 400).error).to.include('body required');
    expect((await ask('DELETE', {})).status).to.equal(400);
  });

  it('are rejected with the name of the setting and the reason', async () => {
    const reply = await ask('PUT', { settings: { 'general.interface_mode': 'wide', 'my.password': 'x' } });
    expect(reply.status).to.equal(400);
    expect(reply.body.error).to.equal('settings.general.interface_mode: must be essential or full');
    expect(reply.body.details).to.have.length(2);
    expect(await one('general.interface_mode')).to.include({ is_default: true });
    for (const body of [{}, { settings: {} }, { settings: [] }]) expect((await ask('PUT', body)).status).to.equal(400);
  });
});
