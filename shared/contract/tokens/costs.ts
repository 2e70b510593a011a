/**
 * Costs of tokens. A report keeps the cost computed when it was recorded; a change of a price changes no earlier
 * report.
 *
 * Prices are in US dollars per million tokens. Costs are rounded to a billionth of a dollar, so their sums are exact
 * and do not depend on the order of addition.
 */

export interface Price {
  /** US dollars per million tokens. */
  readonly input: number;
  readonly output: number;
  /** Input that was read from the provider's prompt cache, and input that was written to it. */
  readonly cache_read: number;
  readonly cache_write: number;
}

/** A price with those for cached tokens, by default a tenth and 1.25 times the price of input. */
export const withCachePrices = ({
  input,
  output,
  cache_read,
  cache_write,
}: Pick<Price, 'input' | 'output'> & {
  readonly cache_read?: number | null | undefined;
  readonly cache_write?: number | null | undefined;
}): Price => ({ input, output, cache_read: cache_read ?? input / 10, cache_write: cache_write ?? input * 1.25 });

/** The price of the models that a name matches. */
export interface ModelPrice extends Price {
  /** Lower case. */
  readonly model: string;
}

/** The name of the price that applies if no other does. */
export const ANY_MODEL = '*';

/**
 * Where the cost of a report comes from. `default`: no name matched, so the cost is an estimate. `subscription`: the
 * tokens of the provider cost nothing.
 */
export const PRICE_SOURCES = ['own', 'built-in', 'default', 'subscription'] as const;
export type PriceSource = (typeof PRICE_SOURCES)[number];

const DEFAULT_PRICE = withCachePrices({ input: 3, output: 15 });

const CLAUDE: readonly (readonly [names: string, input: number, output: number])[] = [
  ['claude-3-5-haiku-latest', 0.8, 4],
  ['claude-haiku-4-5 claude-haiku-4-5-20251001', 1, 5],
  ['claude-opus-4-1-20250805 claude-opus-4-20250514', 15, 75],
  ['claude-opus-4-5 claude-opus-4-5-20251101 claude-opus-4-6 claude-opus-4-7', 5, 25],
  ['claude-sonnet-4-20250514 claude-sonnet-4-5 claude-sonnet-4-5-20250929 claude-sonnet-4-6', 3, 15],
];

const named = (names: string, input: number, output: number, prefix = ''): ModelPrice[] =>
  names.split(' ').map((name) => ({ model: prefix + name, ...withCachePrices({ input, output }) }));

/** The built-in prices. */
export const BUILT_IN_PRICES: readonly ModelPrice[] = [
  ...CLAUDE.flatMap(([names, input, output]) => named(names, input, output, 'anthropic/')),
  ...named('claude-3-5-haiku', 0.8, 4),
  ...CLAUDE.slice(1, 4).flatMap(([names, input, output]) => named(names, input, output)),
  ...named('claude-opus-4 claude-opus-4-1', 15, 75),
  ...named('claude-sonnet-4', 3, 15),
  ...CLAUDE.slice(4).flatMap(([names, input, output]) => named(names, input, output)),
  ...named('groq/llama-3.1-8b-instant', 0.05, 0.08),
  ...named('groq/llama-3.3-70b-versatile', 0.59, 0.79),
  ...named('minimax/minimax-m2.1', 0.3, 1.2),
  ...named('moonshot/kimi-k2.5', 0.6, 3),
  ...named('ollama/deepseek-r1:14b ollama/qwen2.5-coder:14b ollama/qwen2.5-coder:7b', 0, 0),
  ...named('venice/llama-3.3-70b', 0.7, 2.8),
  { model: ANY_MODEL, ...DEFAULT_PRICE },
];

const ALIASES: ReadonlyMap<string, string> = new Map([
  ['claude', 'anthropic'],
  ['gpt', 'openai'],
  ['o1', 'openai'],
  ['o3', 'openai'],
]);

/** Providers that Amazon Bedrock writes before a model, with a region before them: `us.anthropic.claude-opus-4-1`. */
const DOTTED =
  /^(?:[a-z]+(?:-[a-z]+)*\.)?(?:ai21|amazon|anthropic|cohere|deepseek|google|luma|meta|minimax|mistral|moonshot|moonshotai|nvidia|openai|qwen|stability|twelvelabs|writer|xai|zai)\./;

const VERSION = /(?:-\d{8}|-\d{4}-\d{2}-\d{2}|[-:]latest|@.*|-v\d+:\d+)$/;

/** A name of a model in parts. */
interface ModelName {
  readonly providers: readonly string[];
  /** Without providers. */
  readonly bare: string;
}

function partsOf(model: string): ModelName {
  const name = model.trim().toLowerCase();
  const slash = name.lastIndexOf('/');
  const last = name.slice(slash + 1);
  const dotted = DOTTED.exec(last)?.[0] ?? '';
  const labels = [...name.slice(0, Math.max(0, slash)).split('/'), dotted.split('.').at(-2) ?? ''];
  return {
    providers: labels.filter((label) => label !== '').map((label) => ALIASES.get(label) ?? label),
    bare: last.slice(dotted.length),
  };
}

/** The provider of a model, lower case; `unknown` if the name does not show it. */
export function providerOf(model: string): string {
  const { providers, bare } = partsOf(model);
  const [first] = providers;
  if (first !== undefined && !first.includes(':')) return first;
  if (/^claude(?![a-z])/.test(bare)) return 'anthropic';
  if (/^(?:(?:chat)?gpt(?![a-z])|codex(?![a-z])|o[13](?![a-z0-9]))/.test(bare)) return 'openai';
  return bare === '' || bare.includes(':') ? 'unknown' : bare;
}

/** Lists of prices by bare name; every report looks up all of them. */
const indexes = new WeakMap<
  readonly ModelPrice[],
  ReadonlyMap<string, readonly (readonly [ModelName, ModelPrice])[]>
>();

function indexOf(prices: readonly ModelPrice[]) {
  const known = indexes.get(prices);
  if (known) return known;
  const index = new Map<string, (readonly [ModelName, ModelPrice])[]>();
  for (const price of prices) {
    const parts = partsOf(price.model);
    index.set(parts.bare, [...(index.get(parts.bare) ?? []), [parts, price]]);
  }
  indexes.set(prices, index);
  return index;
}

/** The price with this bare name. One that names a provider of the model comes first; one of another provider is none. */
function withName(prices: readonly ModelPrice[], bare: string, providers: readonly string[]): Price | undefined {
  const found = bare === ANY_MODEL ? [] : (indexOf(prices).get(bare) ?? []);
  const isShared = ([own]: readonly [ModelName, ModelPrice]) => own.providers.some((one) => providers.includes(one));
  const isOpen = ([own]: readonly [ModelName, ModelPrice]) => own.providers.length === 0 || providers.length === 0;
  return (found.find(isShared) ?? found.find(isOpen))?.[1];
}

/**
 * The price of a model. A price matches the whole name of a model, without its provider and with or without its
 * version; the name with its version comes first. The workspace's own prices come before the built-in ones.
 */
export function priceOf(
  model: string,
  own: readonly ModelPrice[] = [],
): { readonly price: Price; readonly source: Exclude<PriceSource, 'subscription'> } {
  const { providers, bare } = partsOf(model);
  const names = [bare];
  for (let name = bare; VERSION.test(name); ) {
    name = name.replace(VERSION, '');
    names.push(name);
  }
  for (const [prices, source] of [
    [own, 'own'],
    [BUILT_IN_PRICES, 'built-in'],
  ] as const)
    for (const name of names) {
      const price = withName(prices, name, providers);
      if (price) return { price, source };
    }
  return { price: own.find((one) => one.model === ANY_MODEL) ?? DEFAULT_PRICE, source: 'default' };
}

/** Billionths of a US dollar in a dollar: the unit in which read models sum costs. */
export const NANO = 1e9;

/** The tokens of one report. Cached tokens are not part of `input_tokens`. */
export interface TokenCounts {
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cache_read_tokens: number;
  readonly cache_write_tokens: number;
}

/** All input of a report, cached tokens included. */
export const allInput = (one: Omit<TokenCounts, 'output_tokens'>): number =>
  one.input_tokens + one.cache_read_tokens + one.cache_write_tokens;

/**
 * The cost of a report in US dollars, rounded to a billionth, and which price it comes from.
 *
 * @param subscribed providers whose tokens are paid for in another way
 */
export function costOf(
  { model, ...tokens }: TokenCounts & { readonly model: string },
  own: readonly ModelPrice[] = [],
  subscribed: readonly string[] = [],
): { readonly cost: number; readonly price: PriceSource } {
  if (subscribed.includes(providerOf(model))) return { cost: 0, price: 'subscription' };
  const { price, source } = priceOf(model, own);
  const millionths =
    tokens.input_tokens * price.input +
    tokens.output_tokens * price.output +
    tokens.cache_read_tokens * price.cache_read +
    tokens.cache_write_tokens * price.cache_write;
  return { cost: Math.round(millionths * 1_000) / NANO, price: source };
}
