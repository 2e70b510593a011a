/** Canonical JSON (RFC 8785): one text for each value, whatever the order of its keys. */

/**
 * JSON without white space, with keys in the order of their UTF-16 code units. Numbers and strings are as
 * `JSON.stringify` writes them, which is what the RFC asks for.
 *
 * @param value plain JSON: no undefined, bigint, NaN or cycle
 */
export function canonicalJson(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  let text = '';
  if (Array.isArray(value)) {
    for (const item of value) text += `${text === '' ? '' : ','}${canonicalJson(item)}`;
    return `[${text}]`;
  }
  for (const key of Object.keys(value).sort()) {
    text += `${text === '' ? '' : ','}${JSON.stringify(key)}:${canonicalJson((value as Record<string, unknown>)[key])}`;
  }
  return `{${text}}`;
}
