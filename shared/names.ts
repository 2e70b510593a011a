/**
 * Rules for the names of users and agents. The audit trail and every list show these names, so no two may look the
 * same, none may look like a name of the service itself, and none may disturb the text around it.
 *
 * Names are checked when they are chosen. Names that older versions accepted stay valid, also for signing in. Names are
 * case-sensitive.
 */
import { SYSTEM_ACTORS } from './identity.ts';

/** Control and format characters, text direction marks, private-use and invisible characters. */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/u;
const ODD_BLANK = /(?! )\p{Zs}| {2}|^ | $/u;

/**
 * Sets of scripts that a name may be written in: those that Unicode recommends for names (UAX 31, table 5), and what
 * Chinese, Korean and Japanese mix, with Latin letters. No letter of one of these sets passes for another letter of it.
 * This is the "highly restrictive" level of UTS 39: a Cyrillic or Greek look-alike in a Latin name fits none of them.
 */
const RECOMMENDED = (
  'Arabic Armenian Bengali Bopomofo Cyrillic Devanagari Ethiopic Georgian Greek Gujarati Gurmukhi Hangul Han Hebrew ' +
  'Hiragana Kannada Katakana Khmer Lao Latin Malayalam Myanmar Oriya Sinhala Tamil Telugu Thaana Thai Tibetan'
).split(' ');
const MIXED = [
  ['Latin', 'Han', 'Hiragana', 'Katakana'],
  ['Latin', 'Han', 'Bopomofo'],
  ['Latin', 'Han', 'Hangul'],
];
/** Digits, punctuation, emoji and accents belong to all scripts. */
const lettersOf = (scripts: readonly string[]) =>
  ['Common', 'Inherited', ...scripts].map((script) => `\\p{Script_Extensions=${script}}`).join('');
const oneScript = () => [
  ...[...RECOMMENDED.map((script) => [script]), ...MIXED].map(
    (scripts) => new RegExp(`^[${lettersOf(scripts)}]*$`, 'u'),
  ),
  // All other scripts, such as Cherokee, count as one: they do not mix with the recommended ones.
  new RegExp(`^(?:[${lettersOf([])}]|[^${lettersOf(RECOMMENDED)}])*$`, 'u'),
];
/** Made for the first name that needs them: they took a twentieth of a start. */
let scripts: readonly RegExp[] | undefined;
const ASCII = /^[ -~]*$/;
function mixesScripts(name: string): boolean {
  if (ASCII.test(name)) return false;
  scripts ??= oneScript();
  return !scripts.some((script) => script.test(name));
}

/** Joiners inside an emoji: invisible by themselves, but they change what is shown. */
const EMOJI_JOINERS = /(?<=\p{Extended_Pictographic}|\p{Emoji_Modifier}|\ufe0f)(?:\u200d|\ufe0f)/gu;
/** Joiners between letters of scripts that need them, such as Arabic and Devanagari. */
const LETTER_JOINERS =
  /(?<=\p{L}|\p{M})(?<!\p{Script=Latin}|\p{Script=Greek}|\p{Script=Cyrillic})(?:\u200c|\u200d)(?=\p{L})(?!\p{Script=Latin}|\p{Script=Greek}|\p{Script=Cyrillic})/gu;

const HIDDEN_FAULT = 'must not contain control characters, invisible characters or text direction marks';

/**
 * Replaces compatibility forms: full-width letters, ligatures, superscript digits. Thai and Lao AM is excepted, because
 * there is no other way to write it.
 */
const plain = (name: string): string => name.replace(/[^\u0e33\u0eb3]+/gu, (part) => part.normalize('NFKC'));

/** Maps all names that look alike to the same text. */
const skeleton = (name: string): string =>
  name
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[\s_-]+/gu, ' ')
    .trim();

const EVERYBODYS = new Set([
  'api',
  'api access',
  'anonymous',
  'system',
  'notification_daemon',
  'signalbox',
  '[erased]',
]);
const SYSTEMS = new Set<string>(SYSTEM_ACTORS.map(skeleton));
/** Callers with an agent's key act as `agent:<name>`. */
const AGENT = /^agent ?:/u;

const RESERVED_FAULT = 'is a name that the service itself uses; choose another one';

/** What is wrong with a text that is shown next to names, such as the label of a key; undefined: nothing. */
export const textFault = (text: string): string | undefined =>
  HIDDEN.test(text.replace(EMOJI_JOINERS, '').replace(LETTER_JOINERS, '')) ? HIDDEN_FAULT : undefined;

/** What is wrong with a display name; undefined: nothing. An empty name is left to the caller. */
export function displayNameFault(name: string): string | undefined {
  const key = skeleton(name);
  return textFault(name) ?? (EVERYBODYS.has(key) || AGENT.test(key) ? RESERVED_FAULT : undefined);
}

/** What is wrong with the name of a new agent. */
export function agentNameFault(name: string): string | undefined {
  if (HIDDEN.test(name)) return HIDDEN_FAULT;
  if (ODD_BLANK.test(name)) return 'must use only single, plain spaces, and none at the start or end';
  if (name !== name.normalize('NFC')) return 'must be in Unicode normalization form C (NFC)';
  if (mixesScripts(name)) return 'must not mix scripts, such as Latin and Cyrillic letters: write it in one of them';
  const key = skeleton(name);
  return EVERYBODYS.has(key) || AGENT.test(key) ? RESERVED_FAULT : undefined;
}

/** What is wrong with the name of a new user. The name must already be in NFC. */
export function userNameFault(name: string): string | undefined {
  const fault = agentNameFault(name);
  if (fault !== undefined) return fault;
  if (plain(name) !== name) return `must be written in plain characters: ${plain(name)}`;
  return SYSTEMS.has(skeleton(name)) ? RESERVED_FAULT : undefined;
}

/** Cleans up a display name from elsewhere; null when nothing is left of it. */
export function cleanDisplayName(name: string): string | null {
  const hidden = new RegExp(HIDDEN.source, 'gu');
  const clean = textFault(name) === undefined ? name : name.replace(hidden, '');
  const tidy = clean.normalize('NFC').replace(/\s+/gu, ' ').trim();
  return tidy === '' || displayNameFault(tidy) !== undefined ? null : tidy;
}
