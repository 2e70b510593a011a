/**
 * Screens text that will reach an agent (messages, forwarded chat, workflow prompts) for attempts to take over the
 * agent: one table of rules, applied to the text and to the forms in which an attacker hides it. Pure: no clock, no
 * I/O.
 *
 * The caller refuses a text with a finding (422). Rules that would only warn are left out, because nothing shows warnings.
 *
 * The text is hostile, so every matcher is linear in its length. "A, later on the line, B" is therefore a search for A
 * and then for B from there, never `A.*B`, which starts over at every A.
 */

import { AppError } from '../../shared/errors.ts';

export type Finding = {
  rule: string;
  /** One sentence for the sender. It never quotes the text. */
  description: string;
};

type Matcher = (text: string) => boolean;
type Rule = Finding & { hits: readonly (RegExp | Matcher)[] };

/** Length in UTF-16 units of the part that is screened; the rest is ignored. */
export const SCREENED_LENGTH = 50_000;

// --- Matchers -------------------------------------------------------------------------------------------------------

/** Where a match of `pattern` (which must have the g flag) ends when searched from `from`; -1 if there is none. */
function endOf(pattern: RegExp, text: string, from: number): number {
  pattern.lastIndex = from;
  return pattern.test(text) ? pattern.lastIndex : -1;
}

/** All patterns on one line, in this order. */
function inOrder(...patterns: [RegExp, ...RegExp[]]): Matcher {
  return (text) => {
    if (endOf(patterns[0], text, 0) < 0) return false;
    // A shell continues a line that ends in a backslash, so it is one line here too.
    const lines = text.replace(/\\\r?\n/g, ' ').split(/[\r\n]/);
    return lines.some((line) => {
      let position = 0;
      return patterns.every((pattern) => {
        position = endOf(pattern, line, position);
        return position >= 0;
      });
    });
  };
}

const SUBSTITUTION_TOKEN = /\$\(|[()]|\b(?:rm|wget|curl|nc|bash|sh)\b/gi;

/** `$( … )` with a dangerous command inside, at any depth: `$(a $(b) (c) curl x)` counts, `$(a) (curl)` does not. */
function dangerousSubstitution(text: string): boolean {
  const open: { substitution: boolean; dangerous: boolean }[] = [];
  for (const [token] of text.matchAll(SUBSTITUTION_TOKEN)) {
    const innermost = open.at(-1);
    if (token === '$(' || token === '(') {
      open.push({ substitution: token === '$(', dangerous: false });
    } else if (token !== ')') {
      if (innermost) innermost.dangerous = true;
    } else if (innermost?.dangerous) {
      if (innermost.substitution) return true;
      open.pop();
      const outer = open.at(-1);
      if (outer) outer.dangerous = true;
    } else {
      open.pop();
    }
  }
  return false;
}

// --- Words several rules share --------------------------------------------------------------------------------------

const FETCHER = /\b(?:curl|wget|fetch|http\.get|requests\.get|axios)\b/gi;
const LOOPBACK = String.raw`(?:localhost|127(?:\.\d{1,3}){1,3}|0\.0\.0\.0|\[::(?:1|ffff:127\.\d{1,3}\.\d{1,3}\.\d{1,3})?\])`;
/** Without a scheme, a loopback name counts only with a port: people write about localhost. */
const INTERNAL_ADDRESS = new RegExp(
  String.raw`169\.254\.169\.254|metadata\.google|100\.100\.100\.200|(?<!\w)${LOOPBACK}:\d|:\/\/(?:[^\s/@]*@)?${LOOPBACK}(?!\.?[\w-])`,
  'gi',
);

// --- The rules ------------------------------------------------------------------------------------------------------
// Small words between the parts ("all of the", "your") are allowed where the rule would be trivial to dodge without.

const RULES: readonly Rule[] = [
  {
    rule: 'prompt-override',
    description: 'Tells the agent to ignore, forget or override its instructions.',
    hits: [
      /\b(?:ignore|disregard|forget|override)\s+(?:(?:all|any|of|the|these|those)\s+){0,3}(?:(?:previous|prior|above|your|system)\s+){1,3}(?:instruction|rule|guideline|prompt|directive|constraint)s?\b/i,
    ],
  },
  {
    rule: 'prompt-new-identity',
    description: 'Gives the agent a new or unrestricted identity.',
    hits: [
      /\byou\s+are\s+now\b/i,
      /\bact\s+as\s+(?:if\s+you\s+(?:are|were)\s+)?(?:an?\s+)?(?:restricted|unrestricted|evil|jailbroken|different|new)\b/i,
    ],
  },
  {
    rule: 'prompt-safety-bypass',
    description: 'Asks to switch off or get around safety, security or moderation.',
    hits: [
      /\b(?:bypass|disable|turn\s+off|deactivate|circumvent)\s+(?:(?:all|any|of|your)\s+){0,3}(?:safety|security|content|moderation|ethic(?:s|al)?)\b/i,
      // "turn off the content cache" is daily work, so after "the" the thing switched off must be a guard.
      /\b(?:bypass|disable|turn\s+off|deactivate|circumvent)\s+(?:all\s+)?(?:of\s+)?the\s+(?:safety|security|content|moderation|ethic(?:s|al)?)\s+(?:filter|check|guard|guardrail|rule|measure|restriction)s?\b/i,
    ],
  },
  {
    rule: 'prompt-hidden-instruction',
    description: 'Carries a bracketed system, admin or hidden marker followed by text.',
    hits: [
      /\[\s*(?:SYSTEM|INST|HIDDEN|ADMIN|IMPORTANT)(?:[\s_-]+(?:OVERRIDE|MESSAGE|INSTRUCTION)S?)?\s*[\]:]\s*\S[\s\S]{9}/i,
    ],
  },
  {
    rule: 'cmd-shell-metachar',
    description: 'Chains or substitutes a shell command that downloads, deletes or interprets code.',
    hits: [
      /[;&|`$]\s*(?:\/(?:usr\/)?(?:local\/)?s?bin\/)?(?:rm|wget|curl|nc|ncat|bash|sh|python\d*|perl|ruby|php|node)\b/i,
      dangerousSubstitution,
    ],
  },
  {
    rule: 'cmd-path-traversal',
    description: 'Climbs two or more directories up in a path.',
    hits: [/(?:\.\.[\\/]+){2}/],
  },
  {
    rule: 'cmd-pipe-download',
    description: 'Pipes a download into an interpreter.',
    hits: [
      inOrder(
        /\b(?:curl|wget)\b/gi,
        /\|\s*(?:sudo\s+)?(?:\/(?:usr\/)?(?:local\/)?bin\/)?(?:bash|sh|zsh|python\d*|perl|ruby|node)\b/gi,
      ),
    ],
  },
  {
    rule: 'cmd-reverse-shell',
    description: 'Opens a shell to another machine.',
    hits: [
      /\/dev\/tcp\//i,
      /\bmkfifo\b/i,
      // The flag may follow the host, but not in another command and not after a whole sentence.
      /\b(?:nc|ncat)(?:\s+[^\s;|&]+){0,4}?\s+-(?:[a-z]*[elp]|-(?:exec|sh-exec|listen)\b)/i,
      inOrder(/\b(?:ba)?sh\s+-i\b/gi, />&?\s*\/dev\//g),
      inOrder(/\bpython/gi, /\bsocket\b/gi, /\b(?:connect|connect_ex|create_connection)\s*\(/gi),
    ],
  },
  {
    rule: 'cmd-ssrf',
    description: 'Fetches from a cloud metadata or loopback address.',
    hits: [inOrder(FETCHER, INTERNAL_ADDRESS)],
  },
  {
    rule: 'cmd-sql-injection',
    description: 'Contains SQL that breaks out of a query.',
    hits: [
      /\bunion\s+(?:all\s+)?select\b/i,
      /;\s*drop\s+table\b/i,
      /['"][\s)]*\bor\b[\s(]*(?:true\s*(?:--|#)|['"]?(\w{1,32})['"]?\s*=\s*['"]?\1\b)/i,
      /['"]\s*;\s*(?:delete|insert|update|alter)\b/i,
    ],
  },
  {
    rule: 'exfil-send-data',
    description: 'Asks to send data, files or credentials somewhere.',
    hits: [
      /\b(?:send|post|upload|transmit|exfiltrate|forward)\s+(?:(?:all|of|the|your)\s+){0,3}(?:(?:api|access|secret|private|ssh)[\s_-]+)?(?:data|files|contents|secrets|keys|tokens|credentials|passwords|env)\s+(?:to|via|using|through)\b/i,
    ],
  },
];

// --- The forms a text is screened in --------------------------------------------------------------------------------

const INVISIBLE = /\p{Default_Ignorable_Code_Point}+/gu;
/** Invisible copies of ASCII: people do not see a message in them, but models read it. */
const TAG_CHARACTERS = /[\u{E0020}-\u{E007E}]/gu;
/** Arabic phrases and Japanese words in one character grow up to 18-fold when normalised; no rule has their letters. */
const LONG_LIGATURES = /[\uFDFA\uFDFB\u3300-\u3357]/g;

/** Look-alikes of each ASCII character. Escapes, because the difference is not visible. */
const LOOKALIKES: Readonly<Record<string, string>> = {
  a: '\u0430\u03b1\u0251\u1d00',
  b: '\u0432\u03b2\u0299',
  c: '\u0441\u03f2\u1d04',
  d: '\u0501\u0111\u1d05',
  e: '\u0435\u03b5\u1d07',
  f: '\ua730',
  g: '\u0261\u0262\u0581',
  h: '\u04bb\u043d\u029c\u0570',
  i: '\u0456\u03b9\u0131\u026a\u0269\u04cf',
  j: '\u0458\u03f3\u1d0a',
  k: '\u043a\u03ba\u1d0b',
  l: '\u029f\u0142',
  m: '\u043c\u1d0d',
  n: '\u0274\u03b7\u0578\u043f',
  o: '\u043e\u03bf\u1d0f\u00f8\u0585',
  p: '\u0440\u03c1\u1d18',
  q: '\u051b',
  r: '\u0433\u0280',
  s: '\u0455\ua731',
  t: '\u0442\u03c4\u1d1b',
  u: '\u03c5\u1d1c\u057d',
  v: '\u03bd\u0475\u1d20',
  w: '\u051d\u1d21\u03c9',
  x: '\u0445\u03c7',
  y: '\u0443\u03b3\u028f',
  z: '\u1d22',
  A: '\u0410\u0391',
  B: '\u0412\u0392',
  C: '\u0421\u03f9',
  D: '\u0110',
  E: '\u0415\u0395',
  H: '\u041d\u0397',
  I: '\u0406\u0399\u04c0',
  J: '\u0408',
  K: '\u041a\u039a',
  L: '\u0141',
  M: '\u041c\u039c',
  N: '\u039d',
  O: '\u041e\u039f\u00d8',
  P: '\u0420\u03a1',
  S: '\u0405',
  T: '\u0422\u03a4',
  X: '\u0425\u03a7',
  Y: '\u03a5\u0423\u04ae',
  Z: '\u0396',
  "'": '\u2018\u2019\u201b\u2032',
  '"': '\u201c\u201d\u2033',
  '-': '\u2010\u2012\u2013\u2014\u2212',
  '/': '\u2044\u2215',
  '|': '\u01c0\u2223\u2502',
  ':': '\u2236\ua789',
  '<': '\u2039\u27e8',
  '>': '\u203a\u27e9',
};
const ASCII_OF = new Map(Object.entries(LOOKALIKES).flatMap(([ascii, like]) => [...like].map((c) => [c, ascii])));
const LOOKALIKE = new RegExp(`[${[...ASCII_OF.keys()].join('')}]`, 'g');

/**
 * Plain letters: compatibility forms resolved, marks and invisible characters removed, look-alikes as ASCII. NFKD
 * instead of NFKC, because it separates accents so that they can be removed: struck-out or accented letters read the
 * same.
 */
function plain(text: string, invisible = ''): string {
  return text
    .replace(INVISIBLE, invisible)
    .replace(LONG_LIGATURES, '')
    .normalize('NFKD')
    .replace(/\p{Mark}+/gu, '')
    .replace(LOOKALIKE, (character) => ASCII_OF.get(character) ?? character);
}

/** Words on which the rules depend, long enough not to appear in ROT13 of ordinary text. */
const DANGER_WORDS = (
  'ignore disregard forget override previous instructions guidelines prompt system unrestricted jailbroken bypass ' +
  'disable safety security moderation curl wget bash python mkfifo ncat union select upload transmit exfiltrate ' +
  'forward secrets tokens credentials passwords'
).split(' ');

function rot13(text: string): string {
  return text.replace(/[a-z]/gi, (letter) => {
    const base = letter <= 'Z' ? 65 : 97;
    return String.fromCharCode(((letter.charCodeAt(0) - base + 13) % 26) + base);
  });
}

function revealsDanger(decoded: string, original: string): boolean {
  const [after, before] = [decoded.toLowerCase(), original.toLowerCase()];
  return DANGER_WORDS.some((word) => after.includes(word) && !before.includes(word));
}

/** Buffer, because decodeURIComponent throws on the first malformed byte and would leave the whole text unscreened. */
function percentDecoded(text: string): string {
  return text.replace(/(?:%[0-9a-f]{2})+/gi, (bytes) => Buffer.from(bytes.replaceAll('%', ''), 'hex').toString('utf8'));
}

const BASE64_RUN = /[A-Za-z0-9+/_-]{24,}/g;
const MAX_BASE64_RUNS = 5;
const UNPRINTABLE = /[^\P{Control}\t\n\r]|\uFFFD/u;

/** The first runs that decode to text. Hashes and ids do not, so they cannot use up the five places. */
function base64Decoded(text: string): string[] {
  const found: string[] = [];
  for (const [run] of text.matchAll(BASE64_RUN)) {
    const decoded = Buffer.from(run, 'base64').toString('utf8');
    if (UNPRINTABLE.test(decoded)) continue;
    found.push(decoded);
    if (found.length === MAX_BASE64_RUNS) break;
  }
  return found;
}

/** The text itself first, then each other form that differs from it. */
function formsOf(text: string): Set<string> {
  const normal = plain(text);
  const forms = new Set([text, normal]);
  // Invisible characters hide words by splitting them (removed above) and by standing in for the spaces.
  if (text.search(INVISIBLE) >= 0) {
    const tags = text.match(TAG_CHARACTERS) ?? [];
    forms.add(plain(text, ' '));
    forms.add(tags.map((tag) => String.fromCharCode((tag.codePointAt(0) ?? 0) - 0xe0000)).join(''));
  }

  const rotated = rot13(normal);
  if (revealsDanger(rotated, normal)) forms.add(rotated);

  // Form encoding writes a space as "+"; servers decode twice often enough that attackers encode twice.
  const once = percentDecoded(normal.replaceAll('+', ' '));
  const twice = percentDecoded(once);
  if (once !== normal) forms.add(plain(once));
  if (twice !== once) forms.add(plain(twice));

  for (const hidden of base64Decoded(normal)) forms.add(plain(hidden));
  return forms;
}

/** What the rules find in the first 50,000 characters, at most once per rule, in the order of the table. Never throws. */
export function screenText(text: string): Finding[] {
  const forms = [...formsOf(text.slice(0, SCREENED_LENGTH))];
  const matches = (matcher: RegExp | Matcher) =>
    forms.some((form) => (matcher instanceof RegExp ? matcher.test(form) : matcher(form)));
  return RULES.filter(({ hits }) => hits.some(matches)).map(({ rule, description }) => ({ rule, description }));
}

/** A text was refused for its findings; nothing was stored. */
export class InjectionRefused extends AppError {
  /** Names of the broken rules. */
  readonly rules: readonly string[];
  constructor(subject: string, findings: readonly Finding[]) {
    super(422, `${subject} was refused: it tries to take the agent over. Reword what the findings name.`, {
      body: { injection: findings },
    });
    this.rules = findings.map(({ rule }) => rule);
  }
}

/**
 * @param subject the text with its article, as the start of a sentence: `The message`
 * @throws AppError 422 `{error, injection}` for an attempt to take over an agent
 */
export function refuseInjection(subject: string, text: string): void {
  const findings = screenText(text);
  if (findings.length > 0) throw new InjectionRefused(subject, findings);
}
