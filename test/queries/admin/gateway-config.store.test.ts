/** The gateway's document, as it may be shown. */
import { expect } from 'chai';
import { gatewayConfigProjection } from '../../../projections/admin/gateway-config.ts';
import { gatewayConfig, hasGatewayConfig, storedText } from '../../../queries/admin/gateway-config.ts';
import { hashOf } from '../../../shared/contract/admin/gateway-document.ts';
import { gatewayConfigChanged } from '../../../shared/events/admin/gateway-config.ts';
import { sample } from '../../support/kit.ts';
import { readModels } from '../../support/rows.ts';

describe('gateway configuration queries', () => {
  const document = { name: 'Zoë', token: 'very-secret-token' };
  const models = readModels([gatewayConfigProjection], () => [
    sample(gatewayConfigChanged, { document, cause: 'update', updated_keys: ['*'] }),
  ]);

  it('mask its secrets, and return the size in bytes and the hash of the stored text', async () => {
    const text = JSON.stringify(document);
    expect(await storedText(models.reads, 1)).to.equal(text);
    expect(await hasGatewayConfig(models.reads, 1)).to.equal(true);
    const shown = await gatewayConfig(models.reads, 1);
    expect(shown).to.include({
      path: 'event-log:gateway_config-1',
      raw_size: Buffer.byteLength(text),
      hash: hashOf(text),
    });
    expect(shown.config).to.include({ name: 'Zoë' });
    expect(JSON.stringify(shown.config)).to.not.include('very-secret-token');
  });

  it('return the document of one workspace', async () => {
    expect(await storedText(models.reads, 2)).to.equal(undefined);
    expect(await hasGatewayConfig(models.reads, 2)).to.equal(false);
    expect(await gatewayConfig(models.reads, 2)).to.deep.equal({
      path: 'event-log:gateway_config-2',
      config: {},
      raw_size: 0,
      hash: hashOf(''),
    });
  });
});
