/**
 * Rules for the names of users and agents. The audit trail and every list show these names, so no two may look the
 * same, none may look like a name of the service itself, and none may disturb the text around it.
 *
 * Names are checked when they are chosen. Lookups are case-sensitive, but no two names differ only in case. Names are compared and stored in Unicode form NFC.
 */
import { skeleton } from './confusables.ts';
import { SYSTEM_ACTORS } from './identity.ts';

/** Control and format characters, text direction marks, private-use and invisible characters. */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/u;
const ODD_BLANK = /(?! )\p{Zs}| {2}|^ | $/u;

/**
 * Sets of scripts in which a name may be written: those that Unicode recommends for names (UAX 31, table 5), and the
 * mixtures of Chinese, Korean and Japanese, with Latin letters. Within one of these sets, no letter looks like another.
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
/** Built for the first name that needs them, because they took a twentieth of the start time. */
let scripts: readonly RegExp[] | undefined;
const ASCII = /^[ -~]*$/;
function mixesScripts(name: string): boolean {
  if (ASCII.test(name)) return false;
  scripts ??= oneScript();
  return !scripts.some((script) => script.test(name));
}

/** Joiners inside an emoji: invisible, but they change the displayed emoji. */
const EMOJI_JOINERS = /(?<=\p{Extended_Pictographic}|\p{Emoji_Modifier}|\ufe0f)(?:\u200d|\ufe0f)/gu;
/** Joiners between letters of scripts that need them, such as Arabic and Devanagari. */
const LETTER_JOINERS =
  /(?<=\p{L}|\p{M})(?<!\p{Script=Latin}|\p{Script=Greek}|\p{Script=Cyrillic})(?:\u200c|\u200d)(?=\p{L})(?!\p{Script=Latin}|\p{Script=Greek}|\p{Script=Cyrillic})/gu;

const HIDDEN_FAULT = 'must not contain control characters, invisible characters or text direction marks';

/**
 * Replaces compatibility forms: full-width letters, ligatures, superscript digits. Thai and Lao AM is excepted, because
 * it cannot be written in another way.
 */
const plain = (name: string): string => name.replace(/[^\u0e33\u0eb3]+/gu, (part) => part.normalize('NFKC'));

/** Case folding: gives the same result for texts that differ only in case. */
const folded = (text: string): string => text.toUpperCase().toLowerCase();
/** Folded again because the skeleton of a digit or a sign may be a capital letter. */
const look = (name: string): string => folded(skeleton(folded(skeleton(name))));

/**
 * The keys by which a name is compared: names that share a key look alike, in one spelling or another. Most have one
 * key, the skeleton of the name in lower case; a second one for letters that look like others only as capitals (I and
 * l).
 */
export function nameKeys(name: string): readonly string[] {
  const [inLowerCase, asWritten] = [look(folded(name)), look(name)];
  return inLowerCase === asWritten ? [inLowerCase] : [inLowerCase, asWritten];
}

/** The keys by which a display name is compared with names. */
export const displayKeys = (name: string): readonly string[] => nameKeys(plain(name).trim());

/** Whether a text looks like a name, ignoring case. */
export function looksLike(text: string, name: string): boolean {
  const keys = [name, name.toUpperCase()].flatMap(nameKeys);
  return displayKeys(text).some((key) => keys.includes(key));
}

/** Replaces a username in a text: as the whole text, at its beginning, or at its end. */
export function withName(text: string, username: string, shown: string): string {
  if (text === username) return shown;
  if (text.startsWith(`${username} `)) return shown + text.slice(username.length);
  return text.endsWith(` ${username}`) ? text.slice(0, text.length - username.length) + shown : text;
}

/** The text with all separators of words replaced by blanks. */
const unseparated = (text: string): string => text.replace(/[\s_-]+/gu, ' ').trim();
/** The appearances of a name: in lower case, and as written. */
const appearances = (name: string): readonly string[] => {
  const shown = plain(name);
  return [`folded ${unseparated(look(folded(shown)))}`, `written ${unseparated(skeleton(shown))}`];
};
const capitalised = (name: string): string => `${name.charAt(0).toUpperCase()}${name.slice(1)}`;
const reserving = (names: readonly string[]) => {
  let reserved: ReadonlySet<string> | undefined;
  return (name: string): boolean => {
    reserved ??= new Set(
      names.flatMap((one) => [one, capitalised(one), one.toUpperCase()]).flatMap((one) => appearances(one)),
    );
    return appearances(name).some((one) => reserved?.has(one));
  };
};

const isServices = reserving([
  'aegis',
  'scheduler',
  'system',
  'api',
  'api access',
  'anonymous',
  'notification_daemon',
  'github-sync',
  'signalbox',
  '[erased]',
]);
const isPartOfService = reserving(SYSTEM_ACTORS);
const isAdmin = reserving(['admin']);
/** Messages to the coordinator are for the agent that has its part; that agent may also have the name. */
const isCoordinator = reserving(['coordinator']);
/** The only account with this name. */
const ADMIN = 'admin';

/** Callers with an agent's key act as `agent:<name>`. */
const AGENT = /^folded agent ?:/u;
const isReserved = (name: string): boolean =>
  isServices(name) || appearances(name).some((appearance) => AGENT.test(appearance));

const RESERVED_FAULT = 'is a name that the service itself uses, or looks like one; choose another one';
/** A path, or a number: `/api/agents/25` means the agent with this id. */
const NO_NAME = /^(?:\.{1,2}|\p{N}+)$/u;
const NO_NAME_FAULT = 'must not be ".", ".." or a number: add letters';

const withoutJoiners = (text: string): string => text.replace(EMOJI_JOINERS, '');

/** The error of a text that is shown next to names, such as the label of a key; undefined: none. */
export const textFault = (text: string): string | undefined =>
  HIDDEN.test(withoutJoiners(text).replace(LETTER_JOINERS, '')) ? HIDDEN_FAULT : undefined;

/**
 * The error of a display name; undefined: none. The caller checks for an empty name.
 *
 * @param username of the person; undefined: not known yet, so whether it may be "Admin" is not checked
 */
export function displayNameFault(name: string, username?: string): string | undefined {
  const hidden = textFault(name);
  if (hidden !== undefined) return hidden;
  if (NO_NAME.test(name.trim())) return NO_NAME_FAULT;
  const isOther = username !== undefined && username.toLowerCase() !== ADMIN;
  return isReserved(name) || isCoordinator(name) || (isOther && isAdmin(name)) ? RESERVED_FAULT : undefined;
}

/** The error of a new name that identifies a user or an agent; the common rules of both. */
function nameFault(name: string): string | undefined {
  if (HIDDEN.test(withoutJoiners(name))) return HIDDEN_FAULT;
  if (ODD_BLANK.test(name)) return 'must use only single, plain spaces, and none at the start or end';
  if (NO_NAME.test(name)) return NO_NAME_FAULT;
  if (mixesScripts(name)) return 'must not mix scripts, such as Latin and Cyrillic letters: write it in one of them';
  return isReserved(name) ? RESERVED_FAULT : undefined;
}

/** The error of a new agent's name. */
export const agentNameFault = (name: string): string | undefined =>
  nameFault(name) ?? (isAdmin(name) ? RESERVED_FAULT : undefined);

/** The error of a new user's name. */
export function userNameFault(name: string): string | undefined {
  const fault = nameFault(name);
  if (fault !== undefined) return fault;
  if (plain(name) !== name) return `must be written in plain characters: ${plain(name)}`;
  return isPartOfService(name) || isCoordinator(name) || (isAdmin(name) && name.toLowerCase() !== ADMIN)
    ? RESERVED_FAULT
    : undefined;
}

/** The error of a username that is derived from an account elsewhere, which cannot be "admin". */
export const derivedNameFault = (name: string): string | undefined =>
  userNameFault(name) ?? (isAdmin(name) ? RESERVED_FAULT : undefined);

/** Cleans up a display name from elsewhere; null when no character is left, or when it is the name of the service. */
export function cleanDisplayName(name: string): string | null {
  const hidden = new RegExp(HIDDEN.source, 'gu');
  const clean = textFault(name) === undefined ? name : name.replace(hidden, '');
  const tidy = clean.normalize('NFC').replace(/\s+/gu, ' ').trim();
  return tidy === '' || displayNameFault(tidy, '') !== undefined ? null : tidy;
}
