/**
 * Recognises credentials in text, so that a message that carries one raises a `secret_exposure` security event.
 * Pure; says how many and of which types, and never returns or quotes a credential: the answer is stored and shown.
 *
 * The text is hostile, so every pattern is linear: it begins with a literal, and a run that ends in something else
 * can only begin where a token begins.
 */

export type SecretReport = {
  /** Credentials found; one that fits several patterns counts once. */
  count: number;
  /** Their types, each once, in the order of the table. */
  types: string[];
};

type Detector = {
  type: string;
  pattern: RegExp;
  /** For patterns with a capture: whether the captured value is a credential and not a placeholder or code. */
  accepts?: (value: string) => boolean;
};

/** Length in UTF-16 units of the part that is searched. */
export const SEARCHED_LENGTH = 200_000;

/** A variable, a mask, a type or a call stands where the credential would. */
const NOT_A_VALUE =
  /^(?:[<${[*%\u2022]|x{4}|\.{3}|(?:process|import|os|env|config|options|req|request|this|self)\.|(?:undefined|required|optional|redacted|unchanged)\b)|^[\w$.]+\(/i;
const isValue = (value: string): boolean => !NOT_A_VALUE.test(value);

/** Specific before general: what a detector finds is blanked, so the later ones do not count it again. */
const DETECTORS: readonly Detector[] = [
  { type: 'agent_api_key', pattern: /(?<!\w)mca_[0-9a-f]{48}(?!\w)/g },
  { type: 'global_api_key', pattern: /(?<!\w)mc_[0-9a-f]{48}(?!\w)/g },
  { type: 'aws_access_key', pattern: /(?<!\w)(?:AKIA|ASIA)[0-9A-Z]{16}(?!\w)/g },
  { type: 'github_token', pattern: /(?<!\w)(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_\w{22,})/g },
  { type: 'gitlab_token', pattern: /(?<!\w)glpat-[\w-]{20,}/g },
  { type: 'slack_token', pattern: /(?<!\w)xox[abeoprs]-(?=[A-Za-z0-9-]{0,16}\d)[A-Za-z0-9-]{10,}/g },
  { type: 'anthropic_key', pattern: /(?<!\w)sk-ant-[\w-]{20,}/g },
  // The digit, here and in Slack's, tells keys from names such as sk-loading-spinner-container.
  { type: 'openai_key', pattern: /(?<![\w-])sk-(?=[\w-]{0,64}\d)[\w-]{20,}/g },
  { type: 'google_api_key', pattern: /(?<!\w)AIza[\w-]{35}/g },
  { type: 'stripe_key', pattern: /(?<!\w)[sr]k_live_[A-Za-z0-9]{16,}/g },
  { type: 'private_key', pattern: /-----BEGIN (?:[A-Z0-9]{1,16} ){0,3}PRIVATE KEY(?: BLOCK)?-----/g },
  { type: 'jwt', pattern: /(?<![\w-])eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,}/g },
  {
    type: 'database_url',
    pattern:
      /(?<!\w)(?:postgres(?:ql)?|mysql|mariadb|mongodb(?:\+srv)?|rediss?|amqps?|mssql|sqlserver|clickhouse|esdb(?:\+discover)?):\/\/[^\s:/@]*:([^\s/@]+)@/gi,
    accepts: isValue,
  },
  { type: 'bearer_token', pattern: /(?<!\w)bearer\s+(?=[\w.~+/-]{0,64}\d)[\w.~+/-]{16,}/gi },
  {
    type: 'credential_assignment',
    pattern:
      /(?:password|passwd|passphrase|secret|(?:api|secret|private|access)[_-]?key|(?:api|access|auth|refresh|bot)[_-]?token)["']?\s*(?:=|:=?)\s*["'`]?([^\s"'`,;]{8,})/gi,
    accepts: isValue,
  },
];

/** Credentials in the first 200,000 characters of `text`. Never throws. */
export function findSecrets(text: string): SecretReport {
  let rest = text.slice(0, SEARCHED_LENGTH);
  let count = 0;
  const types: string[] = [];
  for (const { type, pattern, accepts } of DETECTORS) {
    let found = 0;
    rest = rest.replace(pattern, (match: string, value: unknown) => {
      if (accepts && !(typeof value === 'string' && accepts(value))) return match;
      found += 1;
      return '*'.repeat(match.length);
    });
    count += found;
    if (found > 0) types.push(type);
  }
  return { count, types };
}
