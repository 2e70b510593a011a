/** Results of tools, for a model: a list has no long texts, and a large result is not sent twice. */
import { frontOf, isObject } from '../../shared/storable.ts';
import type { InnerResponse } from '../http/route.ts';

/** Characters of a text in a list. */
export const MAX_TEXT = 500;
/** Characters of a result that is sent as text and as a value; a longer one is sent as text only. */
const MAX_TWICE = 10_000;

export const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

/** The value with its long texts cut. */
export function withShortTexts(value: unknown): unknown {
  if (typeof value === 'string') {
    const rest = value.length - MAX_TEXT;
    return rest > 0 ? `${frontOf(value, MAX_TEXT)}… [${rest} more characters; full_texts shows them]` : value;
  }
  if (Array.isArray(value)) return value.map(withShortTexts);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([field, inner]) => [field, withShortTexts(inner)]));
}

export interface ErrorBody {
  readonly error?: string;
  readonly details?: readonly string[];
  readonly code?: string;
}

/** An error of the API as text: its message, and those findings that the message does not name. */
export function errorText({ error = 'The call failed.', details = [] }: ErrorBody): string {
  return [error, ...details.filter((detail) => detail !== error)].join('\n');
}

/** The result of a tool call: the response as text and as a value; errors with the message of the API. */
export function resultOf({ status, headers, text }: InnerResponse) {
  const value = parsed(text);
  if (status < 400) {
    const isTwice = isObject(value) && text.length <= MAX_TWICE;
    return { content: [{ type: 'text' as const, text }], ...(isTwice && { structuredContent: value }) };
  }
  const retry = headers['retry-after'];
  const body = isObject(value) ? value : {};
  return {
    isError: true,
    content: [{ type: 'text' as const, text: errorText(body) }],
    structuredContent: { ...body, status, ...(retry !== undefined && { retry_after_seconds: Number(retry) }) },
  };
}
