/**
 * Which names indicate a secret: keys of JSON objects, names of variables, URL parameters. Sealing, masking and text
 * screening all use this list.
 */

/** Shown in place of a secret. */
export const MASK = '--------';

/**
 * How certain a name is. `strong`: any value is a secret, even a number. `token`: texts are secrets; numbers are
 * amounts, as in maxTokens. `weak`: texts are secrets, but an object may also contain harmless values, as in `auth:
 * {mode: …}`.
 */
export type SecretName = 'strong' | 'token' | 'weak';

/** Parts of names, anywhere in them. For case-insensitive regular expressions. */
export const STRONG_PARTS =
  'password|passwd|passphrase|passcode|secret|credential|(?:api|private|access|auth|signing|encryption|master|account|ssh|tls)[_-]?key';
const STRONG = new RegExp(STRONG_PARTS.replace('[_-]', '[-_. ]'), 'i');
const TOKEN = /token/i;

/** Last words of names: whole words, because "spinning" contains "pin". */
const STRONG_WORDS = /(?:^| )(?:pin|pin code|pincode|t?otp|t?otp code|cvv|cvc)$/;
/** Kinds of pins that are not secret numbers. */
const NO_SECRET_PIN = /^(?:gpio|map|drop|push|led|data|clock|input|output|reset|power|ground)$/;
const WEAK = /^(?:pw|pwd|pass|auth|oauth|authorization|bearer|jwt|cookies?|cookiejar|creds?|keys?)$/;
const COOKIE = /^(?:cookies?|setcookie)$/;
/** Keys that are identifiers. `session_key` is a public field of agents. */
const NO_SECRET_KEY = /^(?:public|primary|foreign|sort|partition|cache|row|group|lookup|short|hot|session|i18n|map)$/;

/** Every name of a secret contains one of these. Most names do not, and a large value has thousands of names. */
const PARTS = /pass|secret|cred|key|token|pin|otp|cvv|cvc|pw|auth|bearer|jwt|cookie/i;

/** Only this many characters at the end of a name are split into words. */
const MAX_SPLIT = 1_000;

/** `clientAuth2` → client, auth */
const wordsOf = (name: string): string[] =>
  (name.slice(-MAX_SPLIT).match(/[A-Z]+(?![a-z])|[A-Z]?[a-z]+/g) ?? []).map((word) => word.toLowerCase());

/** The kind of secret that a name indicates; undefined: none. */
export function secretName(name: string): SecretName | undefined {
  if (!PARTS.test(name)) return undefined;
  if (STRONG.test(name)) return 'strong';
  if (TOKEN.test(name)) return 'token';
  const words = wordsOf(name);
  const last = words.at(-1) ?? '';
  const before = words.at(-2) ?? '';
  if (STRONG_WORDS.test(words.slice(-2).join(' ')))
    return last === 'pin' && NO_SECRET_PIN.test(before) ? undefined : 'strong';
  if (last !== 'pwd' && last.endsWith('pwd')) return 'weak';
  if (WEAK.test(last)) return last.startsWith('key') && NO_SECRET_KEY.test(before) ? undefined : 'weak';
  // A cookie's header, jar or value, but not its name or path.
  const cookie = words.findIndex((word) => COOKIE.test(word));
  return cookie < 0 || PLAIN.test(words.slice(cookie + 1).join('_')) ? undefined : 'weak';
}

/** Inside an object with a weak name, these only describe the secret. */
const PLAIN =
  /^(?:mode|type|kind|method|scheme|strategy|provider|profile|order|enabled|user|user_?name|login|name|prefix|id|url|host|domain|path|issuer|audience|realm|scopes?|policy|consent|same_?site|max_?age|ttl|expires(?:_?at)?|secure|http_?only)$/i;

/** Keys of a pair whose value names the pair, and keys of the value itself. */
const LABELS = /^(?:name|key|id|header|variable|env|field|param|parameter|option|setting|attribute|property)$/i;
const PAIRED = /^(?:value|val|default|default_?value)$/i;
/** Maximum number of characters in such a name; a longer text is prose. */
const MAX_LABEL = 100;

/** The name of the value in `{name: 'API_KEY', value: …}`; several if the pair has several names. */
export function labelsOf(pair: Readonly<Record<string, unknown>>): readonly string[] {
  const keys = Object.keys(pair);
  if (!keys.some((key) => PAIRED.test(key))) return [];
  return keys.flatMap((key) => {
    const label = LABELS.test(key) ? pair[key] : undefined;
    return typeof label === 'string' && label.length <= MAX_LABEL && secretName(label) !== undefined ? [label] : [];
  });
}

/** An amount, as in `--max-tokens 4096`, is no secret. */
export const isAmount = (name: string, value: unknown): boolean => /tokens$/i.test(name) && /^\d+$/.test(String(value));

/**
 * The kinds of the values of an object with the name `outer`, by their keys: from the key itself, and in a pair from
 * its label, which is not masked.
 */
export function secretNamesIn(
  outer: SecretName | undefined,
  object: Readonly<Record<string, unknown>>,
): (key: string) => SecretName | undefined {
  const [label] = outer === undefined ? labelsOf(object) : [];
  const paired = label === undefined ? undefined : secretName(label);
  return (key) => {
    if (paired === undefined) return secretNameInside(outer, key);
    if (PAIRED.test(key)) return isAmount(label ?? '', object[key]) ? undefined : paired;
    return LABELS.test(key) && object[key] === label ? undefined : secretNameInside(outer, key);
  };
}

/** `--token` in `['--token', 'x']`; undefined: it is not an option. */
export const optionOf = (word: unknown): string | undefined =>
  typeof word === 'string' ? /^--?([A-Za-z][\w.-]*)$/.exec(word)?.[1] : undefined;

/** A name of several words, as of a variable or a header: `DB_PASSWORD`, `X-Api-Key`, `authToken`. */
const COMPOUND = /[A-Za-z]+[_-][A-Za-z]|[a-z][A-Z]/;
/** Such a name and nothing else. */
const NAME = /^(?:[A-Za-z]+(?:[_-][A-Za-z]+)+|[a-z]+(?:[A-Z][a-z]+)+)$/;
/** What a single word, as in `['auth', 'billing']`, has behind it when that is a secret: a scheme, an assignment, digits. */
const CREDENTIAL =
  /^(?:bearer|basic|digest|token|apikey|negotiate)\s+\S|^[\w.-]+=\S|^(?![/~.])(?=.*\d)(?=.*[A-Za-z])\S{7,}$/i;

/**
 * What `['X-Api-Key', …]` calls its second entry; undefined: it is no pair of a name and a secret, but for example a list
 * of names.
 */
export function pairLabel(list: readonly unknown[]): string | undefined {
  const [label, value] = list;
  if (list.length !== 2 || typeof label !== 'string' || label.length > MAX_LABEL) return undefined;
  const name = secretName(label);
  if (name === undefined || optionOf(label) !== undefined || isAmount(label, value)) return undefined;
  if (typeof value === 'number') return name === 'strong' ? label : undefined;
  if (typeof value !== 'string') return undefined;
  if (NAME.test(value) && secretName(value) !== undefined) return undefined;
  return name === 'strong' || COMPOUND.test(label) || value === MASK || CREDENTIAL.test(value) ? label : undefined;
}

/** What is known about an entry of a list with the name `outer`: that of the list, of the option or the label before it. */
export function secretNameAt(
  outer: SecretName | undefined,
  list: readonly unknown[],
  index: number,
): SecretName | undefined {
  if (outer !== undefined) return outer;
  const label = index === 1 ? pairLabel(list) : undefined;
  if (label !== undefined) return secretName(label);
  const option = optionOf(list[index - 1]);
  if (option === undefined || optionOf(list[index]) !== undefined || isAmount(option, list[index])) return undefined;
  return secretName(option);
}

/** The kind of the value `name` inside a value with the name `outer`. */
function secretNameInside(outer: SecretName | undefined, name: string): SecretName | undefined {
  const own = secretName(name);
  if (own !== undefined || outer === undefined) return own;
  if (outer === 'weak') return PLAIN.test(name) ? undefined : 'weak';
  // Numbers are secrets only directly under a strong name.
  return 'token';
}
