import { expect } from 'chai';
import { successResponse } from '../../../shared/contract/common.ts';
import { tokenPriceResponse, tokenPricesResponse } from '../../../shared/contract/tokens/prices.ts';
import { fixture } from '../../support/fixture.ts';
import { conforms } from '../../support/worlds/agents.ts';
import { startTasksWorld } from '../../support/worlds/tasks.ts';
import { usage } from '../../support/worlds/tokens.ts';

const PATH = '/api/tokens/prices';

describe('prices of tokens', () => {
  const world = fixture(startTasksWorld);

  const { ask } = world;
  const prices = async () => conforms(tokenPricesResponse, await ask('GET', PATH)).prices;
  const costOf = async (model: string) => {
    const fields = { model, inputTokens: 1_000_000, outputTokens: 1_000_000 };
    return (await ask('POST', '/api/tokens', usage(fields))).body.record.cost;
  };

  it('are built in', async () => {
    const all = await prices();
    const built = { source: 'built-in', updated_at: null, updated_by: null };
    expect(all).to.deep.include({
      model: 'anthropic/claude-opus-4-6',
      ...{ input: 5, output: 25, cache_read: 0.5, cache_write: 6.25 },
      ...built,
    });
    expect(all.at(-1)).to.deep.equal({
      model: '*',
      ...{ input: 3, output: 15, cache_read: 0.3, cache_write: 3.75 },
      ...built,
    });
  });

  it('apply to later reports once set, and can be removed', async () => {
    const model = world.fresh('priced');
    const record = (await ask('POST', '/api/tokens', usage({ model }))).body.record;
    expect(await costOf(model)).to.equal(18);
    const body = conforms(
      tokenPriceResponse,
      await ask('PUT', PATH, { model: ` ${model.toUpperCase()}`, input: 0.001, output: 2 }),
    );
    expect(body.price).to.deep.include({ model, input: 0.001, output: 2, source: 'own', updated_by: 'api' });
    expect((await prices())[0]).to.deep.equal(body.price);
    expect(await costOf(model)).to.equal(2.001);
    expect(await costOf(`some/${model}-20250514`), 'with a provider and a version').to.equal(2.001);
    expect(await costOf(`${model}-mini`), 'another model').to.equal(18);
    const { usage: listed } = (await ask('GET', '/api/tokens')).body;
    expect(listed.find((one: { id: string }) => one.id === record.id)).to.deep.equal(record);
    conforms(successResponse, await ask('DELETE', PATH, { model }));
    expect(await costOf(model)).to.equal(18);
    await world.refused('DELETE', PATH, { model }, 404);
  });

  it('can override the built-in prices', async () => {
    const price = { input: 1, output: 1 };
    for (const model of ['anthropic/claude-opus-4-7', '*']) {
      await ask('PUT', PATH, { model, ...price });
      expect((await prices()).filter((one: { model: string }) => one.model === model)).to.have.length(1);
    }
    expect(await costOf('anthropic/claude-opus-4-7')).to.equal(2);
    expect(await costOf('unheard of')).to.equal(2);
    for (const model of ['anthropic/claude-opus-4-7', '*']) await ask('DELETE', PATH, { model });
    expect(await costOf('unheard of')).to.equal(18);
  });

  it('that no name matched are marked in the report and in sums', async () => {
    const spender = world.fresh('spender');
    const as = await world.world.makeSession({ username: spender, role: 'operator', workspace: 11, tenant: 11 });
    const report = async (model: string) => (await ask('POST', '/api/tokens', usage({ model }), as)).body.record;
    await ask('PUT', PATH, { model: 'gpt-4o', input: 2.5, output: 10 }, as);
    expect(await report('openai/gpt-4o-2024-08-06')).to.deep.include({ price: 'own', cost: 0.0035 });
    expect(await report('gpt-4o-mini')).to.deep.include({ price: 'default', cost: 0.0045 });
    expect(await report('claude-opus-4-7')).to.deep.include({ price: 'built-in', cost: 0.0075 });
    // A price for all other models is a guess, too.
    await ask('PUT', PATH, { model: '*', input: 1, output: 1 }, as);
    expect(await report('unheard-of')).to.deep.include({ price: 'default', cost: 0.0011 });
    const sums = (await ask('GET', '/api/tokens?action=stats', undefined, as)).body;
    expect(sums.summary).to.deep.include({ totalCost: 0.0166, estimatedCost: 0.0056 });
    expect(sums.models['gpt-4o-mini']).to.deep.include({ totalCost: 0.0045, estimatedCost: 0.0045 });
    expect(sums.models['openai/gpt-4o-2024-08-06']).to.deep.include({ estimatedCost: 0 });
    const exported = (await ask('GET', '/api/tokens?action=export', undefined, as)).body;
    expect(exported.summary).to.deep.equal(sums.summary);
    const { summary } = (await ask('GET', '/api/tokens/by-agent', undefined, as)).body;
    expect(summary).to.deep.include({ total_cost: 0.0166, estimated_cost: 0.0056 });
  });

  it('are recorded in the audit trail', async () => {
    const model = world.fresh('audited');
    await ask('PUT', PATH, { model, input: 1, output: 1 });
    await ask('DELETE', PATH, { model });
    for (const action of ['token_price_set', 'token_price_removed']) {
      const { entries } = (await ask('GET', `/api/audit?action=${action}&limit=1`)).body;
      expect(JSON.stringify(entries[0]), action).to.include(model);
    }
  });

  it('are rejected if invalid', async () => {
    const price = { model: 'm', input: 1, output: 1 };
    for (const [fields, says] of [
      [{ model: '' }, /model/],
      [{ model: ' ' }, /model/],
      [{ model: 'anthropic/' }, /model/],
      [{ model: 'm'.repeat(201) }, /model/],
      [{ input: -1 }, /input/],
      [{ output: '1' }, /output/],
      [{ output: 1_000_001 }, /output/],
      [{ input: undefined }, /input/],
      [{ cache_read: -1 }, /cache_read/],
      [{ cache_write: '1' }, /cache_write/],
    ] as const) {
      await world.refused('PUT', PATH, { ...price, ...fields }, 400, says);
    }
  });
});
