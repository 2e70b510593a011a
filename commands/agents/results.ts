/**
 * Results for agents that call through a tool protocol: texts of others in them are screened and marked, as in prompts
 * (`prompts.ts`), because the agent's model reads the result as it reads a prompt. Pure.
 */
import { isObject } from '../../shared/storable.ts';
import { inPieces } from '../../shared/waiting.ts';
import { SCREENED_LENGTH } from './injection.ts';
import { type Breach, breachesIn, marksFor, type Quotation } from './prompts.ts';

/**
 * Fields of records with prose. Every text inside of such a field is marked; other fields (names, states) are only
 * screened, and so are fields of the result itself, which are the service's own.
 */
const PROSE: ReadonlySet<string> = new Set([
  ...['title', 'description', 'content', 'message', 'last_message', 'notes', 'resolution', 'feedback_notes'],
  ...['error_message', 'subtitle', 'excerpt', 'snippet', 'preview', 'text', 'detail'],
]);

/** Fields that name the writer of the texts beside them, the first one that is there. */
const WRITERS = ['author', 'from_agent', 'reviewer', 'actor'] as const;

/** Characters of a text that can become a mark or break a rule at all. */
const SHORTEST = 3;

interface Place extends Omit<Quotation, 'text'> {
  readonly isProse: boolean;
  /** Of the result itself, not of a record in it. */
  readonly isOuter: boolean;
}

const writerIn = (record: Readonly<Record<string, unknown>>, outer: string): string => {
  const named = WRITERS.map((field) => record[field]).find((name) => typeof name === 'string' && name !== '');
  if (named !== undefined) return String(named);
  const { created_by: creator } = record;
  return typeof creator === 'string' && creator !== '' ? `others; created by ${creator}` : outer;
};

interface Changes {
  readonly text: (text: string, place: Place) => string;
  /** @param by the writer of the record that has the field */
  readonly field: (field: string, by: string) => string;
}

/** The value with each text and each name of a field replaced by what `change` gives for it. */
function withTexts(value: unknown, place: Place, change: Changes): unknown {
  if (typeof value === 'string') return change.text(value, place);
  if (Array.isArray(value)) return value.map((one) => withTexts(one, place, change));
  if (!isObject(value)) return value;
  const by = writerIn(value, place.by);
  return Object.fromEntries(
    Object.entries(value).map(([field, inner]) => {
      const what = place.isProse ? place.what : field;
      const isProse = place.isProse || (PROSE.has(field) && !(place.isOuter && typeof inner === 'string'));
      return [change.field(field, by), withTexts(inner, { what, by, isProse, isOuter: false }, change)];
    }),
  );
}

/** Characters that two parts of a long text have in common, so that an attempt at their border is found. */
const COMMON = 1_000;

/** The parts in which a text is screened: prose ends where the first part does, other texts are handed over whole. */
function partsOf({ text, isProse }: Quotation & Pick<Place, 'isProse'>): string[] {
  const parts = [text.slice(0, SCREENED_LENGTH)];
  for (let at = SCREENED_LENGTH - COMMON; !isProse && at + COMMON < text.length; at += SCREENED_LENGTH - COMMON)
    parts.push(text.slice(at, at + SCREENED_LENGTH));
  return parts;
}

/** In the place of a text that breaks a rule. */
const withheld = ({ what, by, rules }: Breach): string =>
  `[withheld: the ${what}, by ${by}, breaks ${rules.join(', ')}; a person can read and change it]`;

/**
 * A result as an agent gets it: texts and names of fields that break a rule are withheld, and prose stands between marks.
 *
 * @param own texts that the agent sent with the call itself: they are not of others
 */
export async function handedOver(
  result: unknown,
  own: ReadonlySet<string>,
): Promise<{ readonly result: unknown; readonly breaches: readonly Breach[] }> {
  const found: (Quotation & Pick<Place, 'isProse'>)[] = [];
  /** Clients name the fields of their own JSON, such as `metadata`. */
  const fields = new Map<string, Quotation>();
  const isOthers = (text: string) => text.length >= SHORTEST && !own.has(text);
  const outermost = { what: 'text', by: 'others', isProse: false, isOuter: true };
  withTexts(result, outermost, {
    text(text, { what, by, isProse }) {
      if (isOthers(text)) found.push({ what, by, text, isProse });
      return text;
    },
    field(field, by) {
      if (isOthers(field) && !fields.has(field)) fields.set(field, { what: 'name of a field', by, text: field });
      return field;
    },
  });
  const parts = found.flatMap((one, nth) => partsOf(one).map((text) => ({ ...one, text, nth })));
  const screened = new Map<number, Breach>();
  for (const [at, breach] of (await inPieces(parts, (one) => breachesIn([one])[0])).entries())
    if (breach) screened.set((parts[at] as { nth: number }).nth, breach);
  const names = [...fields.keys()];
  const named = await inPieces([...fields.values()], (one) => breachesIn([one])[0]);
  const withheldNames = new Map(names.filter((_, at) => named[at]).map((name, at) => [name, `[withheld ${at + 1}]`]));
  const { quote } = marksFor([...found, ...fields.values()]);
  let next = 0;
  const shown = withTexts(result, outermost, {
    text(text, { what, by, isProse }) {
      if (!isOthers(text)) return text;
      const breach = screened.get(next++);
      if (breach) return withheld(breach);
      return isProse ? quote({ what, by, text }) : text;
    },
    field: (field) => withheldNames.get(field) ?? field,
  });
  return { result: shown, breaches: [...screened.values(), ...named.filter((one) => one !== undefined)] };
}
