/** What the tests of tokens share. */

/** A report of tokens, like any other unless `fields` say otherwise. */
export const usage = <T extends object>(fields: T = {} as T) => ({
  model: 'anthropic/claude-opus-4-6',
  sessionId: 'nobody:cli',
  inputTokens: 1_000,
  outputTokens: 100,
  ...fields,
});
