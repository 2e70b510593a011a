/**
 * Which names indicate a secret: keys of JSON objects, names of variables, URL parameters. Sealing, masking and text
 * screening all use this list.
 */

/**
 * How certain a name is. `strong`: any value is a secret, even a number. `token`: texts are secrets; numbers are
 * amounts, as in maxTokens. `weak`: texts are secrets, but an object may also contain harmless values, as in `auth:
 * {mode: …}`.
 */
export type SecretName = 'strong' | 'token' | 'weak';

/** Parts of names, anywhere in them. For case-insensitive regular expressions. */
export const STRONG_PARTS =
  'password|passwd|passphrase|passcode|secret|credential|(?:api|private|access|auth|signing|encryption|master|account|ssh|tls)[_-]?key';
const STRONG = new RegExp(STRONG_PARTS, 'i');
const TOKEN = /token/i;

/** Last words of names. */
export const WEAK_WORDS = 'pwd|pass|auth|oauth|authorization|bearer|jwt|cookies?|creds?|keys?';
const WEAK = new RegExp(`^(?:${WEAK_WORDS})$`);
/** Keys that are identifiers. `session_key` is a public field of agents. */
const NO_SECRET_KEY = /^(?:public|primary|foreign|sort|partition|cache|row|group|lookup|short|hot|session|i18n|map)$/;

/** `clientAuth2` → client, auth */
const wordsOf = (name: string): string[] =>
  name
    .replace(/([a-z\d])([A-Z])/g, '$1 $2')
    .replace(/([A-Z])([A-Z][a-z])/g, '$1 $2')
    .toLowerCase()
    .split(/[^a-z]+/)
    .filter((word) => word !== '');

/** What a name says about its value; undefined: nothing. */
export function secretName(name: string): SecretName | undefined {
  if (STRONG.test(name.replace(/[. ]/g, '_'))) return 'strong';
  if (TOKEN.test(name)) return 'token';
  const words = wordsOf(name);
  const last = words.at(-1) ?? '';
  if (last !== 'pwd' && last.endsWith('pwd')) return 'weak';
  if (!WEAK.test(last)) return undefined;
  return last.startsWith('key') && NO_SECRET_KEY.test(words.at(-2) ?? '') ? undefined : 'weak';
}

/** Inside an object with a weak name, these only describe the secret. */
const PLAIN =
  /^(?:mode|type|kind|method|scheme|strategy|provider|profile|order|enabled|user|user_?name|login|name|id|url|host|issuer|audience|realm|scopes?)$/i;

/** What is known about the value `name` inside a value with the name `outer`. */
export function secretNameInside(outer: SecretName | undefined, name: string): SecretName | undefined {
  const own = secretName(name);
  if (own !== undefined || outer === undefined) return own;
  if (outer === 'weak') return PLAIN.test(name) ? undefined : 'weak';
  // Numbers are secrets only directly under a strong name.
  return 'token';
}
