import { expect } from 'chai';
import { BUILT_IN_PRICES, costOf, priceOf, providerOf, withCachePrices } from '../../shared/contract/tokens/costs.ts';

const MILLION = 1_000_000;
const NONE = { input_tokens: 0, output_tokens: 0, cache_read_tokens: 0, cache_write_tokens: 0 };
const own = (...prices: readonly (readonly [model: string, input: number])[]) =>
  prices.map(([model, input]) => ({ model, ...withCachePrices({ input, output: 0 }) }));
const inputOf = (model: string, prices = own()) => priceOf(model, prices).price.input;
const cost = (model: string, subscribed: string[] = []) =>
  costOf({ ...NONE, model, input_tokens: MILLION, output_tokens: MILLION }, [], subscribed);

describe('token prices', () => {
  it('match a name in any letter case, without its provider and its version', () => {
    const prices = own(['claude-opus-9', 1]);
    for (const model of [
      'claude-opus-9',
      ' Claude-Opus-9 ',
      'anthropic/claude-opus-9',
      'anthropic.claude-opus-9',
      'bedrock/us.anthropic.claude-opus-9',
      'us-gov.anthropic.claude-opus-9-20250514-v1:0',
      'openrouter/anthropic/claude-opus-9:latest',
      'claude-opus-9-20250514',
      'claude-opus-9-2024-08-06',
      'claude-opus-9-latest',
      'vertex_ai/claude-opus-9@20250514',
      'claude-opus-9-v1:0',
    ])
      expect(priceOf(model, prices), model).to.deep.include({ source: 'own' });
  });

  it('match nothing but the whole name', () => {
    const prices = own(['o1', 1], ['gpt-4o', 2], ['claude', 3], ['llama', 4]);
    for (const model of [
      'solo1-small',
      'o1-mini',
      'gpt-4o-mini',
      'claude-opus-9',
      'llama:7b',
      'x-o1',
      'not.gpt-4o',
      '',
    ])
      expect(priceOf(model, prices), model).to.deep.include({ source: 'default' });
    expect(cost('gpt-4o-mini')).to.deep.equal({ cost: 18, price: 'default' });
  });

  it('of the workspace come before built-in ones', () => {
    const prices = own(['claude-opus-4-6', 7]);
    expect(inputOf('anthropic/claude-opus-4-6', prices)).to.equal(7);
    expect(priceOf('anthropic/claude-opus-4-7', prices)).to.deep.include({ source: 'built-in' });
  });

  it('of a name with the version come before those without; a version is priced for itself only', () => {
    const prices = own(['gpt-4o', 1], ['gpt-4o-2024-05-13', 2]);
    expect(inputOf('openai/gpt-4o-2024-05-13', prices)).to.equal(2);
    expect(inputOf('gpt-4o-2024-08-06', prices)).to.equal(1);
    expect(inputOf('gpt-4o', own(['gpt-4o-2024-05-13', 2])), 'the default').to.equal(3);
  });

  it('of a provider apply to its models, and to names without a provider', () => {
    const prices = own(['groq/llama-9', 1], ['llama-9', 2]);
    expect(inputOf('groq/llama-9', prices)).to.equal(1);
    expect(inputOf('together/llama-9', prices)).to.equal(2);
    expect(inputOf('llama-9', own(['groq/llama-9', 1]))).to.equal(1);
    expect(priceOf('together/deepseek-r1:14b'), 'not free as at ollama').to.deep.include({ source: 'default' });
  });

  it('of * apply where no name matches, and count as the default', () => {
    expect(priceOf('gpt-9', own(['*', 4]))).to.deep.include({ source: 'default' });
    expect(inputOf('gpt-9', own(['*', 4]))).to.equal(4);
    expect(inputOf('*', own(['*', 4]))).to.equal(4);
    expect(priceOf('*')).to.deep.include({ source: 'default' });
  });

  it('that are built in match their own names', () => {
    for (const { model, ...price } of BUILT_IN_PRICES.slice(0, -1)) {
      const found = priceOf(model);
      expect(found.source, model).to.equal('built-in');
      expect(found.price, model).to.deep.include(price);
    }
    expect(inputOf('claude-opus-4-1')).to.equal(15);
    expect(inputOf('claude-haiku-3.5'), 'the default').to.equal(3);
  });

  it('derive the provider from the prefix, or else from the name', () => {
    const providers: Readonly<Record<string, string>> = {
      'anthropic/claude-opus-4-6': 'anthropic',
      'Claude/x': 'anthropic',
      'gpt/5': 'openai',
      'o3/mini': 'openai',
      'groq/llama': 'groq',
      'claude-sonnet-4': 'anthropic',
      'us.anthropic.claude-opus-4-1-v1:0': 'anthropic',
      'codex:latest': 'openai',
      'o1-mini': 'openai',
      foo1: 'foo1',
      'solo1-small': 'solo1-small',
      'my-gpt-clone': 'my-gpt-clone',
      'constructor/x': 'constructor',
      'llama:7b': 'unknown',
      ' ': 'unknown',
    };
    for (const [model, provider] of Object.entries(providers)) expect(providerOf(model), model).to.equal(provider);
  });

  it('are zero for a subscribed provider', () => {
    const free = { cost: 0, price: 'subscription' };
    expect(cost('anthropic/claude-opus-4-6', ['anthropic'])).to.deep.equal(free);
    expect(cost('claude-opus-4-6', ['anthropic'])).to.deep.equal(free);
    expect(cost('claude-opus-4-6', ['openai'])).to.deep.equal({ cost: 30, price: 'built-in' });
  });

  it('are a tenth and 1.25 times the input price for cached tokens, unless they say otherwise', () => {
    const cached = { ...NONE, cache_read_tokens: MILLION, cache_write_tokens: MILLION };
    expect(costOf({ ...cached, model: 'claude-opus-4-6' }).cost).to.equal(0.5 + 6.25);
    const price = { model: 'm', ...withCachePrices({ input: 1, output: 1, cache_read: 0, cache_write: 7 }) };
    expect(costOf({ ...cached, model: 'm' }, [price]).cost).to.equal(7);
  });

  it('yield costs in whole billionths of a dollar', () => {
    const one = (inputTokens: number, outputTokens: number) =>
      costOf({ ...NONE, model: 'groq/llama-3.1-8b-instant', input_tokens: inputTokens, output_tokens: outputTokens })
        .cost;
    expect(one(1, 0)).to.equal(0.00000005);
    expect(one(3, 7)).to.equal(0.00000071);
    expect(one(Number.MAX_SAFE_INTEGER, 0)).to.be.closeTo(450_359_962.73, 0.01);
  });
});
