/**
 * Finds credentials in texts: tokens with a known format, passwords in URLs, assignments to names that
 * `secret-names.ts` lists. Pure.
 *
 * The text may be hostile, so every pattern takes linear time: it begins with a literal, and a match attempt can only
 * start where a token starts.
 */
import { isAmount, MASK, STRONG_PARTS, secretName } from './secret-names.ts';

interface Detector {
  readonly type: string;
  /** With a capture group, the last one is the credential; otherwise the whole match. The first of two is its name. */
  readonly pattern: RegExp;
  /** A text without it has no match. Most texts are short, and trying every pattern takes longer than reading the text. */
  readonly hint: string | RegExp;
  /** For patterns with a capture: whether the captured value is a credential and not a placeholder or code. */
  readonly accepts?: (value: string, name: string) => boolean;
}

/** A variable, a mask, a type or a call in place of the credential. */
const NOT_A_VALUE =
  /^(?:[<${[*%\u2022]|x{4}|\.{3}|-{8}|(?:process|import|os|env|config|options|req|request|this|self)\.|(?:undefined|required|optional|redacted|unchanged)\b)|^[\w$.]+\(/i;
const isValue = (value: string): boolean => !NOT_A_VALUE.test(value);
/** Used after words that usually have another meaning: accepts no paths, words or numbers. */
const looksRandom = (value: string): boolean =>
  isValue(value) && !/^[/~.]/.test(value) && /\d/.test(value) && /[a-z]/i.test(value);

/** A value under a name of `secret-names.ts`: certain names have any value, the others one that looks like a secret. */
const isNamed = (value: string, name: string): boolean => {
  const level = secretName(name);
  if (level === undefined || isAmount(name, value)) return false;
  return level === 'strong' ? isValue(value) : looksRandom(value);
};
const SIGNATURE = /(?:^|[-_.])sig(?:nature)?$/i;

const ASSIGNED = `["']?\\s*(?:=|:=?)\\s*["'\`]?`;

/** From specific to general: text found by one detector is blanked out, so that later ones do not count it again. */
const DETECTORS: readonly Detector[] = [
  { type: 'agent_api_key', hint: 'mca_', pattern: /(?<!\w)mca_[0-9a-f]{48}(?!\w)/g },
  { type: 'global_api_key', hint: 'mc_', pattern: /(?<!\w)mc_[0-9a-f]{48}(?!\w)/g },
  { type: 'aws_access_key', hint: /A[KS]IA/, pattern: /(?<!\w)(?:AKIA|ASIA)[0-9A-Z]{16}(?!\w)/g },
  {
    type: 'github_token',
    hint: /gh[pousr]_|github_pat_/,
    pattern: /(?<!\w)(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_\w{22,})/g,
  },
  { type: 'gitlab_token', hint: 'glpat-', pattern: /(?<!\w)glpat-[\w-]{20,}/g },
  { type: 'slack_token', hint: 'xox', pattern: /(?<!\w)xox[abeoprs]-(?=[A-Za-z0-9-]{0,16}\d)[A-Za-z0-9-]{10,}/g },
  { type: 'anthropic_key', hint: 'sk-ant-', pattern: /(?<!\w)sk-ant-[\w-]{20,}/g },
  // The digit, here and for Slack, distinguishes keys from names such as sk-loading-spinner-container.
  { type: 'openai_key', hint: 'sk-', pattern: /(?<![\w-])sk-(?=[\w-]{0,64}\d)[\w-]{20,}/g },
  { type: 'google_api_key', hint: 'AIza', pattern: /(?<!\w)AIza[\w-]{35}/g },
  { type: 'stripe_key', hint: 'k_live_', pattern: /(?<!\w)[sr]k_live_[A-Za-z0-9]{16,}/g },
  // With headers and the key itself, up to the line that ends it.
  {
    type: 'private_key',
    hint: '-----BEGIN ',
    pattern: /-----BEGIN (?:[A-Z0-9]{1,16} ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:[^-]|-(?!----))*/g,
  },
  { type: 'jwt', hint: 'eyJ', pattern: /(?<![\w-])eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}/g },
  {
    type: 'database_url',
    hint: '://',
    pattern:
      /(?<!\w)(?:postgres(?:ql)?|mysql|mariadb|mongodb(?:\+srv)?|rediss?|amqps?|mssql|sqlserver|clickhouse|esdb(?:\+discover)?):\/\/[^\s:/@]*:([^\s/"'`]+)@/gi,
    accepts: isValue,
  },
  {
    type: 'webhook_url',
    hint: /\/(?:services|workflows|triggers|webhooks|webhookb2)\//i,
    pattern:
      /(?:hooks\.slack(?:-gov)?\.com\/(?:services|workflows|triggers)|discord(?:app)?\.com\/api\/(?:v\d{1,2}\/)?webhooks|webhook\.office\.com\/webhookb2)\/([\w@/-]{8,})/gi,
    accepts: isValue,
  },
  { type: 'telegram_token', hint: /\d{8}:/, pattern: /(?<![a-z\d])(?:bot)?\d{8,12}:[\w-]{35}(?![\w-])/gi },
  {
    type: 'url_password',
    hint: '://',
    pattern: /(?<![\w+.-])[a-z][a-z\d+.-]{1,30}:\/\/[^\s:/@?#]*:([^\s/"'`]+)@/gi,
    accepts: isValue,
  },
  {
    // A key in place of the user, as in a Sentry DSN.
    type: 'url_key',
    hint: '://',
    pattern: /(?<![\w+.-])[a-z][a-z\d+.-]{1,30}:\/\/([\w-]{20,128})(?::[^\s/"'`@]{0,128})?@/gi,
    accepts: looksRandom,
  },
  { type: 'bearer_token', hint: /bearer\s/i, pattern: /(?<!\w)bearer\s+(?=[\w.~+/-]{0,64}\d)[\w.~+/-]{16,}/gi },
  {
    type: 'authorization',
    hint: /authorization/i,
    pattern: /(?<![a-z])authorization["']?\s*[:=]\s*["'`]?(?:basic|token|apikey|digest)\s+([^\s"'`,;]{4,})/gi,
    accepts: isValue,
  },
  {
    type: 'credential_assignment',
    hint: /[:=]/,
    pattern: new RegExp(
      `(?:${STRONG_PARTS}|(?:api|access|auth|refresh|bot|id|session)[_-]?token)${ASSIGNED}([^\\s"'\`,;]{8,})`,
      'gi',
    ),
    accepts: isValue,
  },
  {
    type: 'credential_assignment',
    hint: /[:=]/,
    pattern: new RegExp(`(?<![a-z])(?:pwd?|pass|auth|authorization|token|key)${ASSIGNED}([^\\s"'\`,;&]{8,})`, 'gi'),
    accepts: looksRandom,
  },
  {
    type: 'cookie',
    hint: /cookie/i,
    pattern: /(?<![\w-])(?:set-)?cookie["']?\s*:\s*["'`]?([^\r\n"'`]{4,})/gi,
    accepts: (value) => /^[\w.-]+=[^\s;-]/.test(value),
  },
  {
    type: 'url_parameter',
    hint: /[?&]/,
    pattern: /[?&]([\w.-]{1,64})=([^\s&#"'`<>]+)/g,
    accepts: (value, name) => (SIGNATURE.test(name) ? isValue(value) : isNamed(value, name)),
  },
  {
    type: 'command_option',
    hint: /-[A-Za-z]/,
    pattern: /(?<![\w-])--?([A-Za-z][\w.-]{0,63})=["'`]?([^\s"'`]+)/g,
    accepts: isNamed,
  },
  {
    type: 'command_option',
    hint: /-[A-Za-z]/,
    pattern: /(?<![\w-])--?([A-Za-z][\w.-]{0,63})\s+["'`]?([^\s"'`-][^\s"'`]*)/g,
    accepts: (value, name) => looksRandom(value) && isNamed(value, name),
  },
  {
    // The whole text is one line of an environment, or one header.
    type: 'credential_line',
    hint: /[:=]/,
    pattern: /^(?:export )?([A-Za-z][\w.-]{0,63})(?:=|: ?)["'`]?([^\s"'`]+)["'`]?$/g,
    accepts: isNamed,
  },
];

/** Types that `eachSecret` can report, in the order of the table. */
export const SECRET_TYPES: readonly string[] = [...new Set(DETECTORS.map(({ type }) => type))];

/** `text` with every credential replaced by the result of `replace`. */
function replaceSecrets(text: string, replace: (secret: string, type: string) => string): string {
  let rest = text;
  for (const { type, pattern, accepts, hint } of DETECTORS) {
    if (typeof hint === 'string' ? !rest.includes(hint) : !hint.test(rest)) continue;
    rest = rest.replace(pattern, (match: string, ...captured: unknown[]) => {
      if (!accepts) return replace(match, type);
      const [name, value = name] = captured.filter((one) => typeof one === 'string').slice(0, -1) as string[];
      if (value === undefined || !accepts(value, name ?? '')) return match;
      const at = match.lastIndexOf(value);
      return match.slice(0, at) + replace(value, type) + match.slice(at + value.length);
    });
  }
  return rest;
}

/** Calls `found` with the type of every credential in `text`; one that fits several patterns counts once. */
export function eachSecret(text: string, found: (type: string) => void): void {
  replaceSecrets(text, (secret, type) => {
    found(type);
    return '*'.repeat(secret.length);
  });
}

/** Shorter texts cannot contain any of the above. */
const SHORTEST = 5;

/** `text` with the mask in place of every credential in it. */
export const maskedText = (text: string): string => (text.length < SHORTEST ? text : replaceSecrets(text, () => MASK));

/**
 * What stands between the scheme and the host: a user, a key, a user and a password. A password may contain slashes,
 * which a path after a port has as well.
 */
const USER_INFO =
  /(?<![\w+.-])([a-z][a-z\d+.-]{0,30}:\/\/)(?:[^\s/?#"'`<>]{1,512}|[^\s:/?#"'`<>]{0,512}:(?!\d{1,5}\/)[^\s"'`<>]{1,512})@/gi;
const PARAMETER = /([?&#;]([\w.-]{1,64})=)([^\s&#;"'`<>\\]+)/g;

/**
 * `text`, such as a line of the log or an error message, with the mask in place of everything in addresses that can be a
 * secret: names, passwords and keys before the host, and parameters with a secret's name. Unlike `maskedText`, at any
 * length and whatever the value looks like: clients do not send these texts back.
 */
export function maskedAddresses(text: string): string {
  if (!text.includes('://') && !text.includes('?')) return text;
  return text
    .replace(USER_INFO, `$1${MASK}@`)
    .replace(PARAMETER, (match, start: string, name: string, value: string) =>
      (SIGNATURE.test(name) || secretName(name) !== undefined) && !isAmount(name, value) ? start + MASK : match,
    );
}

/** A sample that is recognised as a credential in every possible place. */
const SAMPLE = 'S4mple0f4Credent1al00';
const MASKS = new RegExp(`(?<!-)${MASK}(?!-)`, 'g');

/** Whether `text` has a mask in place of a credential. */
export function holdsMask(text: string): boolean {
  let holds = false;
  replaceSecrets(text.replace(MASKS, SAMPLE), (secret) => {
    holds ||= secret.includes(SAMPLE);
    return secret;
  });
  return holds;
}
