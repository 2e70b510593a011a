import { expect } from 'chai';
import { gatewayConfigProjection } from '../../../projections/admin/gateway-config.ts';
import { gatewayConfigChanged } from '../../../shared/events/admin/gateway-config.ts';
import { eventsOf, rowsAfter as rowsOf, sample } from '../../support/kit.ts';

const changed = (document: Record<string, unknown> | null) =>
  sample(gatewayConfigChanged, { document, cause: 'update', updated_keys: ['*'] });

describe('projection gateway_config', () => {
  const rowsAfter = (...documents: readonly (Record<string, unknown> | null)[]) =>
    rowsOf(gatewayConfigProjection, eventsOf(documents.map(changed))).gateway_config;

  it('keeps the last document as text with the order of its keys', () => {
    const [row, ...others] = rowsAfter({ a: 1 }, { zz: 1, a: { y: 1, b: 2 } });
    expect(others).to.have.length(0);
    expect(row).to.include({ workspace_id: 1, position: 2, updated_at: 1_700_000_002 });
    expect(row?.document).to.equal('{"zz":1,"a":{"y":1,"b":2}}');
  });

  it('keeps a document from before the size limits, in no more space than it needs', () => {
    const levels = 900;
    const text = `${'['.repeat(levels)}${'1,'.repeat(340_000)}1${']'.repeat(levels)}`;
    const [row] = rowsAfter({ k: JSON.parse(text) });
    expect(row?.document).to.equal(`{"k":${text}}`);
  });

  it('has no document once its key is deleted', () => {
    expect(rowsAfter({ a: 1 }, null)).to.deep.equal([]);
  });
});
