/** Mentions in texts: `@handle` of a user or an agent. */
import { type MentionTarget, mentionTargets } from '../queries/mentions.ts';
import type { Reads } from '../queries/reads.ts';
import { AppError, invalid } from '../shared/errors.ts';

/** A text with more mentions is refused. */
export const MAX_MENTIONS = 200;

/** Not in an e-mail address: no character of a handle may stand before the `@`. */
const MENTION = /(?<![A-Za-z0-9._-])@([\p{L}\p{N}][\p{L}\p{M}\p{N}._-]{0,63})/gu;
/** What may follow a handle without a blank: punctuation, and words of scripts that have no blanks or add particles. */
const TRAILING =
  /[.-]$|[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Thai}\p{Script=Lao}]$/u;

export interface Mentioned {
  /** As typed, without the `@`; each handle once, in the order of the text. */
  readonly tokens: readonly string[];
  /** Usernames and names of agents, each once, in the order of the text. */
  readonly recipients: readonly string[];
  /** Those recipients that are agents. */
  readonly agents: readonly string[];
}

/** The tokens after `@` in a text: each once, ignoring case, in its first spelling and in Unicode form NFC. */
export function mentionsIn(text: string): string[] {
  const tokens = new Map<string, string>();
  for (const [, token = ''] of text.normalize('NFC').matchAll(MENTION)) {
    const handle = token.toLowerCase();
    if (!tokens.has(handle)) tokens.set(handle, token);
  }
  return [...tokens.values()];
}

/** Possible readings of a token: itself, or a handle that other text follows. The longest comes first. */
export function readingsOf(token: string): string[] {
  const readings = [token];
  for (let rest = token; TRAILING.test(rest); readings.push(rest)) {
    rest = rest.replace(TRAILING, '');
    if (rest === '') break;
  }
  return readings;
}

/** @throws AppError 400 that names the unknown handles */
export function resolveMentions(tokens: readonly string[], targets: readonly MentionTarget[]): Mentioned {
  const byHandle = new Map(targets.map((target) => [target.handle, target]));
  const found = new Map<string, { readonly token: string; readonly target: MentionTarget }>();
  const missing: string[] = [];
  for (const token of tokens) {
    const reading = readingsOf(token).find((one) => byHandle.has(one.toLowerCase()));
    const target = reading && byHandle.get(reading.toLowerCase());
    if (!target) missing.push(token);
    else if (!found.has(target.handle)) found.set(target.handle, { token: reading, target });
  }
  if (missing.length > 0) throw unknownMentions(missing);
  const all = [...found.values()];
  return {
    tokens: all.map(({ token }) => token),
    recipients: [...new Set(all.map(({ target }) => target.recipient))],
    agents: [...new Set(all.filter(({ target }) => target.type === 'agent').map(({ target }) => target.recipient))],
  };
}

const unknownMentions = (missing: readonly string[]) =>
  new AppError(
    400,
    `Unknown mentions: ${missing.map((token) => `@${token}`).join(', ')}. Mention users and agents by the handles that GET /api/mentions lists.`,
    { body: { missing_mentions: missing } },
  );

/**
 * The tokens of a text, and the handles that they may be, in lower case; beyond ASCII as typed too, because not every
 * database has the lower case of such letters.
 *
 * @throws AppError 400 if there are too many
 */
export function handlesIn(text: string): { readonly tokens: readonly string[]; readonly handles: readonly string[] } {
  const tokens = mentionsIn(text);
  if (tokens.length > MAX_MENTIONS)
    throw invalid(`A text may mention at most ${MAX_MENTIONS} users and agents; this one mentions ${tokens.length}.`);
  const handles = tokens
    .flatMap(readingsOf)
    .flatMap((reading) => (/^[ -~]*$/.test(reading) ? [reading.toLowerCase()] : [reading.toLowerCase(), reading]));
  return { tokens, handles: [...new Set(handles)] };
}

/** The recipients mentioned in a text. @throws AppError 400 if a mention is unknown, or there are too many */
export async function mentionedIn(reads: Reads, workspace: number, text: string): Promise<Mentioned> {
  const { tokens, handles } = handlesIn(text);
  return resolveMentions(tokens, tokens.length === 0 ? [] : await mentionTargets(reads, workspace, handles));
}
