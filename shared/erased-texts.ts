/**
 * Removes personal texts from replies of other services that are stored, such as responses of webhooks' receivers. They
 * may quote a text in any case and encoding: plain, escaped for JSON or HTML, URL-encoded, or in base64. Pure.
 */

/** Shown in place of an erased text. */
export const ERASED = '[erased]';

/** A text that is no plain text, such as a compressed one: what it holds cannot be found in it. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for.
const UNSEARCHABLE = /[\uFFFD\0-\x08\x0b\x0e-\x1f]/;
const BASE64 = /[A-Za-z0-9+/_-]{8,}={0,2}/g;
/** Marks a reply that was cut off when it was stored (`infra/outgoing/post.ts`). */
const CUT = '...';
/** Fewer characters at the end of a reply that was cut off are not taken for the beginning of a text. */
const FEWEST = 3;
/** Shorter texts of ASCII are only found as whole words. */
const SHORT = 4;

const HTML_NAMES: Readonly<Record<string, string>> = { '&': 'amp', '<': 'lt', '>': 'gt', '"': 'quot', "'": 'apos' };
const JSON_NAMES: Readonly<Record<string, string>> = { '\n': 'n', '\r': 'r', '\t': 't', '\b': 'b', '\f': 'f' };

const quoted = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
const hex = (value: number, digits = 2): string => value.toString(16).padStart(digits, '0');

/** Every way to write one character, as a pattern. */
function formsOf(character: string): string {
  const same = new Set([character, character.toLowerCase(), character.toUpperCase(), character.normalize('NFD')]);
  const forms = [...same].flatMap((one) => {
    const units = Array.from({ length: one.length }, (_, at) => one.charCodeAt(at));
    const points = Array.from(one, (point) => point.codePointAt(0) as number);
    // The character itself comes last, because an escape may begin with it.
    return [
      // Escaped twice, when JSON stands in a text of JSON.
      units.map((unit) => `\\\\{1,3}u${hex(unit, 4)}`).join(''),
      [...Buffer.from(one)].map((byte) => `%(?:25)?${hex(byte)}`).join(''),
      points.map((point) => `&#(?:0{0,6}${point}|x0{0,6}${hex(point, 1)});`).join(''),
      ...(HTML_NAMES[one] === undefined ? [] : [`&${HTML_NAMES[one]};`]),
      ...(JSON_NAMES[one] === undefined ? [] : [`\\\\{1,3}${JSON_NAMES[one]}`]),
      ...(/["\\/]/.test(one) ? [`\\\\{1,3}${quoted(one)}`] : []),
      ...(one === ' ' ? ['\\+', '\\s'] : []),
      quoted(one),
    ];
  });
  return `(?:${[...new Set(forms)].join('|')})`;
}

/** A part of an escape at the end of a text. */
const PART = '(?:%[0-9a-f]?|\\\\u?[0-9a-f]{0,3}|&#?x?\\w*)?';

/** Finds a text in any form, and its beginning at the end of a reply that was cut off. */
function patternOf(text: string): RegExp {
  const characters = Array.from(text, formsOf);
  const word = text.length < SHORT && /^[\w.@-]+$/.test(text);
  const whole = characters.join('');
  const rest = characters.slice(FEWEST).reduceRight((inner, one) => `(?:${one}${inner})?`, '');
  const begun = `${characters.slice(0, FEWEST).join('')}${rest}${PART}(?=${quoted(CUT)}$)`;
  const anywhere = word ? `(?<![\\p{L}\\p{N}])${whole}(?![\\p{L}\\p{N}])` : whole;
  return new RegExp(characters.length > FEWEST ? `${anywhere}|${begun}` : anywhere, 'giu');
}

/** Returns a function that masks these texts in a reply. It replaces a reply that cannot be searched as a whole. */
export function erasing(texts: readonly string[]): (reply: string) => string {
  const patterns = texts
    .filter((text) => text.trim() !== '')
    .sort((a, b) => b.length - a.length)
    .flatMap((text) => [...new Set([text.normalize('NFC'), text.normalize('NFD'), text])])
    .map(patternOf);
  const masked = (text: string): string => patterns.reduce((rest, pattern) => rest.replace(pattern, ERASED), text);
  const inBase64 = (run: string): string => {
    const decoded = Buffer.from(run, 'base64').toString('utf8');
    return !UNSEARCHABLE.test(decoded) && masked(decoded) !== decoded ? ERASED : run;
  };
  return (reply) => {
    if (UNSEARCHABLE.test(reply)) return ERASED;
    const normal = reply.normalize('NFC');
    const result = masked(normal).replace(BASE64, inBase64);
    return result === normal ? reply : result;
  };
}

/** The same for every text in a JSON value. */
export function erasedIn(value: unknown, erase: (reply: string) => string): unknown {
  if (typeof value === 'string') return erase(value);
  if (Array.isArray(value)) return value.map((one) => erasedIn(one, erase));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, erasedIn(one, erase)]));
}
