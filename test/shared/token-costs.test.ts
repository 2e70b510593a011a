import { expect } from 'chai';
import { costOf, priceOf, providerOf } from '../../shared/contract/tokens/costs.ts';

const MILLION = 1_000_000;
const cost = (
  model: string,
  own = [] as { model: string; input: number; output: number }[],
  subscribed: string[] = [],
) => costOf({ model, input_tokens: MILLION, output_tokens: MILLION }, own, subscribed);

describe('token prices', () => {
  it('come from the table by full name in any letter case, then by part of the name, then the default', () => {
    expect(priceOf('anthropic/claude-opus-4-6')).to.deep.include({ input: 5, output: 25 });
    expect(priceOf(' Claude-3-5-Haiku ')).to.deep.include({ input: 0.8, output: 4 });
    expect(priceOf('bedrock/claude-sonnet-4-5-v2:0')).to.deep.include({ input: 3, output: 15 });
    expect(priceOf('ollama/qwen2.5-coder:7b')).to.deep.include({ input: 0, output: 0 });
    for (const model of ['claude-opus-4-1', 'claude-haiku-3.5', 'something else', '']) {
      expect(priceOf(model), model).to.deep.include({ input: 3, output: 15 });
    }
    expect(cost('something else')).to.equal(18);
  });

  it('prefer custom prices: by full name, then by the longest part, and * for everything else', () => {
    const own = [
      { model: 'claude', input: 1, output: 1 },
      { model: 'me/claude-opus', input: 2, output: 2 },
      { model: 'claude-opus-4-6', input: 3, output: 3 },
      { model: '*', input: 4, output: 4 },
    ];
    expect(cost('claude-opus-4-6', own)).to.equal(6);
    expect(cost('anthropic/claude-opus-4-6', own), 'a full name of the built-in table').to.equal(30);
    expect(cost('claude-opus-9', own)).to.equal(4);
    expect(cost('claude-9', own)).to.equal(2);
    expect(cost('gpt-9', own)).to.equal(8);
    expect(cost('groq/llama-3.1-8b-instant-x', own), 'a part of a built-in name').to.equal(0.13);
  });

  it('derive the provider from the prefix, or else from the name', () => {
    const providers: Readonly<Record<string, string>> = {
      'anthropic/claude-opus-4-6': 'anthropic',
      'Claude/x': 'anthropic',
      'gpt/5': 'openai',
      'o3/mini': 'openai',
      'groq/llama': 'groq',
      'claude-sonnet-4': 'anthropic',
      'us.claude:0': 'anthropic',
      'codex:latest': 'openai',
      'o1-mini': 'openai',
      foo1: 'foo1',
      'constructor/x': 'constructor',
      'llama:7b': 'unknown',
      ' ': 'unknown',
    };
    for (const [model, provider] of Object.entries(providers)) expect(providerOf(model), model).to.equal(provider);
  });

  it('are zero for a subscribed provider', () => {
    expect(cost('anthropic/claude-opus-4-6', [], ['anthropic'])).to.equal(0);
    expect(cost('claude-opus-4-6', [], ['anthropic'])).to.equal(0);
    expect(cost('claude-opus-4-6', [], ['openai'])).to.equal(30);
  });

  it('yield costs in whole billionths of a dollar', () => {
    const one = (inputTokens: number, outputTokens: number) =>
      costOf({ model: 'groq/llama-3.1-8b-instant', input_tokens: inputTokens, output_tokens: outputTokens });
    expect(one(1, 0)).to.equal(0.00000005);
    expect(one(3, 7)).to.equal(0.00000071);
    expect(one(Number.MAX_SAFE_INTEGER, 0)).to.be.closeTo(450_359_962.73, 0.01);
  });
});
