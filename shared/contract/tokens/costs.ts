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
}

/** The price of the models that a name matches. */
export interface ModelPrice extends Price {
  /** Lower case. */
  readonly model: string;
}

/** The name of the price that applies if no other does. */
export const ANY_MODEL = '*';

const DEFAULT_PRICE: Price = { input: 3, output: 15 };

const CLAUDE: readonly (readonly [names: string, input: number, output: number])[] = [
  ['claude-3-5-haiku-latest', 0.8, 4],
  ['claude-haiku-4-5 claude-haiku-4-5-20251001', 1, 5],
  ['claude-opus-4-1-20250805 claude-opus-4-20250514', 15, 75],
  ['claude-opus-4-5 claude-opus-4-5-20251101 claude-opus-4-6 claude-opus-4-7', 5, 25],
  ['claude-sonnet-4-20250514 claude-sonnet-4-5 claude-sonnet-4-5-20250929 claude-sonnet-4-6', 3, 15],
];

const named = (names: string, input: number, output: number, prefix = ''): ModelPrice[] =>
  names.split(' ').map((name) => ({ model: prefix + name, input, output }));

/** The built-in prices, in the order in which they are tried. */
export const BUILT_IN_PRICES: readonly ModelPrice[] = [
  ...CLAUDE.flatMap(([names, input, output]) => named(names, input, output, 'anthropic/')),
  ...named('claude-3-5-haiku', 0.8, 4),
  ...CLAUDE.slice(1, 4).flatMap(([names, input, output]) => named(names, input, output)),
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

/** The provider of a model, lower case; `unknown` if the name does not show it. */
export function providerOf(model: string): string {
  const name = model.trim().toLowerCase();
  const slash = name.indexOf('/');
  const head = slash < 0 ? name : name.slice(0, slash);
  if (slash >= 0 && head !== '' && !head.includes(':')) return ALIASES.get(head) ?? head;
  if (head.includes('claude')) return 'anthropic';
  if (/gpt|codex|(?<![a-z])o[13]/.test(head)) return 'openai';
  return head === '' || head.includes(':') ? 'unknown' : head;
}

const shortName = (model: string): string => model.slice(model.lastIndexOf('/') + 1);

/**
 * The price of a model. The workspace's own prices take precedence over the built-in ones, full names over parts of
 * names, and among the own ones longer parts over shorter ones.
 */
export function priceOf(model: string, own: readonly ModelPrice[] = []): Price {
  const name = model.trim().toLowerCase();
  const isFull = (price: ModelPrice) => price.model === name;
  const isPart = (price: ModelPrice) => price.model !== ANY_MODEL && name.includes(shortName(price.model));
  const isAny = (price: ModelPrice) => price.model === ANY_MODEL;
  const longest = [...own].sort((a, b) => shortName(b.model).length - shortName(a.model).length);
  return (
    own.find(isFull) ??
    BUILT_IN_PRICES.find(isFull) ??
    longest.find(isPart) ??
    BUILT_IN_PRICES.find(isPart) ??
    own.find(isAny) ??
    DEFAULT_PRICE
  );
}

/** Billionths of a US dollar in a dollar: the unit in which read models sum costs. */
export const NANO = 1e9;

/** US dollars, rounded to a billionth. @param subscribed providers whose tokens are paid for in another way */
export function costOf(
  {
    model,
    input_tokens: inputTokens,
    output_tokens: outputTokens,
  }: { model: string; input_tokens: number; output_tokens: number },
  own: readonly ModelPrice[] = [],
  subscribed: readonly string[] = [],
): number {
  if (subscribed.includes(providerOf(model))) return 0;
  const { input, output } = priceOf(model, own);
  return Math.round((inputTokens * input + outputTokens * output) * 1_000) / NANO;
}
