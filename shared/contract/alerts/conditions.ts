/**
 * Conditions of alert rules: their fields, which conditions are valid, and when one is met. Pure; the database
 * evaluates the same conditions in `queries/alerts/conditions.ts`.
 */
import { folded } from '../../folding.ts';
import { HOUR, MINUTE } from '../../time.ts';

export const ENTITY_TYPES = ['agent', 'task', 'session', 'activity'] as const;
export type EntityType = (typeof ENTITY_TYPES)[number];

export const OPERATORS = [
  'equals',
  'not_equals',
  'greater_than',
  'less_than',
  'contains',
  'count_above',
  'count_below',
  'age_minutes_above',
] as const;
export type Operator = (typeof OPERATORS)[number];

/** What stays quiet after a trigger: the whole rule, or each of the records for which it triggered. */
export const COOLDOWNS = ['rule', 'record'] as const;
export type CooldownPer = (typeof COOLDOWNS)[number];

export interface Cooldown {
  readonly cooldown_minutes: number;
  readonly cooldown_per: CooldownPer;
}

export interface Condition {
  readonly entity_type: EntityType;
  /** For counts also `field=value`. */
  readonly condition_field: string;
  readonly condition_operator: Operator;
  readonly condition_value: string;
}

/** `time`: Unix seconds. `none`: records have no such field, so nothing matches. */
export type FieldKind = 'text' | 'integer' | 'amount' | 'time' | 'none';

/** The fields that conditions can use, by the names of the records. */
export const FIELDS: Readonly<Record<EntityType, Readonly<Record<string, FieldKind>>>> = {
  agent: {
    status: 'text',
    role: 'text',
    name: 'text',
    last_seen: 'time',
    last_activity: 'text',
    created_at: 'time',
    updated_at: 'time',
  },
  task: {
    status: 'text',
    priority: 'text',
    assigned_to: 'text',
    title: 'text',
    outcome: 'text',
    project_id: 'integer',
    due_date: 'time',
    completed_at: 'time',
    created_at: 'time',
    updated_at: 'time',
  },
  session: {
    status: 'none',
    session_id: 'text',
    agent_name: 'text',
    project_slug: 'text',
    model: 'text',
    input_tokens: 'integer',
    output_tokens: 'integer',
    estimated_cost: 'amount',
    created_at: 'time',
    updated_at: 'time',
  },
  activity: {
    status: 'none',
    type: 'text',
    actor: 'text',
    entity_type: 'text',
    entity_id: 'integer',
    description: 'text',
    created_at: 'time',
  },
};

/** Activities count for this long after their time, seconds. */
export const ACTIVITY_WINDOW = HOUR;

const isCount = (operator: Operator): boolean => operator === 'count_above' || operator === 'count_below';

/** Numbers written as text. Whole numbers and fractions; the digits fit a double. */
export const NUMBER = /^-?\d{1,15}(\.\d{1,15})?$/;
const WHOLE = /^\d{1,15}$/;

/** The number in a text; undefined if the text is not a number. */
export const numberOf = (text: string): number | undefined => (NUMBER.test(text) ? Number(text) : undefined);

const has = (entity: EntityType, field: string): boolean => Object.hasOwn(FIELDS[entity], field);

/** The field of a condition. For counts of records with a value, also that value. */
export function fieldOf(condition: Condition): { readonly field: string; readonly wanted: string | undefined } {
  const { entity_type, condition_field: whole } = condition;
  const at = whole.indexOf('=');
  if (!isCount(condition.condition_operator) || has(entity_type, whole) || at < 0)
    return { field: whole, wanted: undefined };
  return { field: whole.slice(0, at).trim(), wanted: whole.slice(at + 1).trim() };
}

export const kindOf = (condition: Condition): FieldKind =>
  FIELDS[condition.entity_type][fieldOf(condition).field] ?? 'none';

export interface Problem {
  readonly field: 'condition_field' | 'condition_value' | 'cooldown_per';
  readonly reason: string;
}

const listed = (entity: EntityType, kinds: readonly FieldKind[]): string =>
  Object.entries(FIELDS[entity])
    .filter(([, kind]) => kinds.includes(kind))
    .map(([name]) => name)
    .join(', ');

/** Why a condition cannot be evaluated with this cooldown; undefined when it can. */
export function problemOf(condition: Condition, cooldownPer: CooldownPer = 'rule'): Problem | undefined {
  const { entity_type, condition_operator: operator, condition_value: value } = condition;
  const { field } = fieldOf(condition);
  const kind = kindOf(condition);
  const refuse = (at: Problem['field'], reason: string): Problem => ({ field: at, reason });
  if (!has(entity_type, field)) {
    const form = isCount(operator) ? ', alone or as field=value' : '';
    const known = Object.keys(FIELDS[entity_type]).join(', ');
    return refuse('condition_field', `must be one of ${known}${form}, for entity_type ${entity_type}`);
  }
  if (isCount(operator) && !WHOLE.test(value.trim()))
    return refuse('condition_value', `must be a whole number, 0 or more, for ${operator}`);
  if ((operator === 'greater_than' || operator === 'less_than') && numberOf(value.trim()) === undefined)
    return refuse('condition_value', `must be a number for ${operator}`);
  if (operator === 'age_minutes_above') {
    // Clients may use the age condition with the status of any record; without an age, nothing matches.
    if (kind !== 'time' && field !== 'status')
      return refuse('condition_field', `must be a time for ${operator}: ${listed(entity_type, ['time'])}`);
    if (!WHOLE.test(value.trim()) || Number(value) > MAX_MINUTES)
      return refuse('condition_value', `must be a whole number of minutes, 0 to ${MAX_MINUTES}, for ${operator}`);
  }
  if (operator === 'contains' && kind === 'amount')
    return refuse('condition_field', `must be a text for contains: ${listed(entity_type, ['text'])}`);
  if (isCount(operator) && cooldownPer === 'record')
    return refuse('cooldown_per', `must be rule for ${operator}, which is about all records at once`);
  return undefined;
}

/** A hundred years. */
const MAX_MINUTES = 52_560_000;

// --- Evaluation ------------------------------------------------------------------------------------------------------

/** The part of a record that a condition uses. */
export interface Seen {
  /** Value of the condition's field. */
  readonly value: string | number | null;
  /** An agent that is not offline, a session that is not terminated; true for other records. */
  readonly live: boolean;
  /** When an activity happened, Unix seconds; 0 for other records. */
  readonly at: number;
}

/** When a record matches, Unix seconds: after `after`, and before `before`. */
export interface Span {
  readonly after: number;
  readonly before: number;
}

/**
 * Whether records that are not live count, too: a count includes all records, and a rule that names a status must see
 * the records with that status. An agent that goes silent is set offline, which must not hide its age.
 */
export const seesAll = (condition: Condition): boolean =>
  isCount(condition.condition_operator) ||
  (condition.entity_type === 'agent' && condition.condition_operator === 'age_minutes_above') ||
  (condition.condition_field === 'status' && ['equals', 'contains'].includes(condition.condition_operator));

const isSet = (value: string | number | null): value is string | number => value !== null && value !== '';

/** Whether a value matches, apart from conditions on time. `spanOf` compares ages. */
function matches(condition: Condition, value: string | number | null): boolean {
  const { condition_operator: operator, condition_value: given } = condition;
  if (kindOf(condition) === 'none' || value === null) return false;
  const number = typeof value === 'number' ? value : numberOf(value);
  switch (operator) {
    case 'equals':
      return String(value) === given;
    case 'not_equals':
      return String(value) !== given;
    case 'greater_than':
      return number !== undefined && number > Number(given);
    case 'less_than':
      return number !== undefined && number < Number(given);
    case 'contains':
      return folded(String(value)).includes(folded(given));
    case 'age_minutes_above':
      return typeof value === 'number' && kindOf(condition) === 'time';
    default: {
      const { wanted } = fieldOf(condition);
      return wanted === undefined ? isSet(value) : String(value) === wanted;
    }
  }
}

/** When a record matches if it does not change; undefined: never. */
export function spanOf(condition: Condition, { value, live, at }: Seen): Span | undefined {
  if (!live && !seesAll(condition)) return undefined;
  if (!matches(condition, value)) return undefined;
  const isActivity = condition.entity_type === 'activity';
  // An activity counts from the second of its time on.
  const born = isActivity ? at - 1 : Number.NEGATIVE_INFINITY;
  const before = isActivity ? at + ACTIVITY_WINDOW : Number.POSITIVE_INFINITY;
  if (condition.condition_operator !== 'age_minutes_above') return { after: born, before };
  return { after: Math.max(born, Number(value) + Number(condition.condition_value) * MINUTE), before };
}

/** How many records must be found to decide, and whether the condition is then met or not. */
export function thresholdOf(condition: Condition): { readonly least: number; readonly met: boolean } {
  const { condition_operator: operator, condition_value: value } = condition;
  if (operator === 'count_above') return { least: Number(value) + 1, met: true };
  // Below 3 means: 3 are not found.
  if (operator === 'count_below') return { least: Number(value), met: false };
  return { least: 1, met: true };
}

/** Whether this number of matching records meets the condition. */
export function isMet(condition: Condition, found: number): boolean {
  const { least, met } = thresholdOf(condition);
  return found >= least === met;
}

/** Whether each record is reported by one trigger only: activities, which happen once. Counts cover the whole last hour. */
export const reportsOnce = ({ entity_type, condition_operator }: Condition): boolean =>
  entity_type === 'activity' && !isCount(condition_operator);

/** Whether each record for which a rule triggers has a cooldown of its own. Activities happen once and need none. */
export const coolsRecords = ({ entity_type, cooldown_per }: Condition & Pick<Cooldown, 'cooldown_per'>): boolean =>
  cooldown_per === 'record' && entity_type !== 'activity';

/** Minutes in which a rule as a whole is quiet after a trigger; 0: it never is. */
export const ruleCooldown = ({ cooldown_per, cooldown_minutes }: Cooldown): number =>
  cooldown_per === 'record' ? 0 : cooldown_minutes;

/** Whether a rule that triggered at that time is still in its cooldown. Unix seconds. */
export const inCooldown = (cooldownMinutes: number, lastTriggeredAt: number | null, now: number): boolean =>
  // A trigger more than a minute ahead is from before the clock was set back.
  lastTriggeredAt !== null && lastTriggeredAt <= now + MINUTE && now - lastTriggeredAt < cooldownMinutes * MINUTE;

// --- Replay ----------------------------------------------------------------------------------------------------------

/** A time in which a record matches: from `from` until before `until`, Unix seconds. `at`: when an activity happened. */
export interface Presence {
  readonly record: string;
  readonly from: number;
  readonly until: number;
  readonly at: number;
}

/** When a record with this state, from one time until before another, matches; undefined: never. */
export function intervalOf(
  condition: Condition,
  record: string,
  seen: Seen,
  from: number,
  until: number,
): Presence | undefined {
  const span = spanOf(condition, seen);
  if (!span) return undefined;
  const presence = { record, from: Math.max(from, span.after + 1), until: Math.min(until, span.before), at: seen.at };
  return presence.from < presence.until ? presence : undefined;
}

/** The times at which a rule is evaluated: from `first` to `last`, Unix seconds. */
export interface Moments {
  /** Number of records that always match. */
  readonly always: number;
  readonly first: number;
  readonly last: number;
  readonly everySeconds: number;
  /** Maximum number of steps. */
  readonly steps?: number;
}

export interface Replayed {
  /** Number of evaluations. */
  readonly evaluated: number;
  /** The times at which the rule triggers. */
  readonly triggers: readonly number[];
  /** The last time of which this is true, Unix seconds: earlier than requested if there was too much to do. */
  readonly until: number;
}

/** Evaluates a rule at each of these times, as if it had never triggered before. */
export function replayed(rule: Condition & Cooldown, presences: readonly Presence[], moments: Moments): Replayed {
  return coolsRecords(rule) ? replayedByRecord(rule, presences, moments) : replayedAsWhole(rule, presences, moments);
}

/** Cooldowns of records in one replay: each is a step. */
const MAX_STEPS = 2_000_000;

/** Each record triggers by itself. A step per record and cooldown, not per evaluation. */
function replayedByRecord(
  { cooldown_minutes }: Cooldown,
  presences: readonly Presence[],
  { always, first, last, everySeconds, steps: most = MAX_STEPS }: Moments,
): Replayed {
  const momentFrom = (time: number): number =>
    Math.max(first, first + Math.ceil((time - first) / everySeconds) * everySeconds);
  const due = new Map<number, Presence[]>();
  const plan = (presence: Presence, from: number): void => {
    const moment = momentFrom(from);
    if (moment >= presence.until || moment > last) return;
    const there = due.get(moment);
    if (there) there.push(presence);
    else due.set(moment, [presence]);
  };
  if (always > 0) plan({ record: '', from: first, until: Number.POSITIVE_INFINITY, at: 0 }, first);
  for (const presence of presences) plan(presence, presence.from);
  const quietUntil = new Map<string, number>();
  const triggers: number[] = [];
  let evaluated = 0;
  let steps = 0;
  for (let now = first; now <= last; now += everySeconds) {
    const here = due.get(now) ?? [];
    due.delete(now);
    steps += here.length;
    if (steps > most) return { evaluated, triggers, until: now - everySeconds };
    evaluated++;
    let isTrigger = false;
    for (const presence of here) {
      const quiet = quietUntil.get(presence.record) ?? 0;
      if (quiet <= now) {
        isTrigger = true;
        quietUntil.set(presence.record, now + cooldown_minutes * MINUTE);
      }
      plan(presence, quietUntil.get(presence.record) ?? now);
    }
    if (isTrigger) triggers.push(now);
  }
  return { evaluated, triggers, until: last };
}

function replayedAsWhole(
  condition: Condition & Cooldown,
  presences: readonly Presence[],
  { always, first, last, everySeconds }: Moments,
): Replayed {
  const begins = [...presences].sort((a, b) => a.from - b.from);
  const ends = presences.map(({ until }) => until).sort((a, b) => a - b);
  const onlyNews = reportsOnce(condition);
  const triggers: number[] = [];
  let evaluated = 0;
  let begun = 0;
  let ended = 0;
  /** Time of the newest matching activity. */
  let newest = Number.NEGATIVE_INFINITY;
  /** Of those that were reported. */
  let reportedTo = Number.NEGATIVE_INFINITY;
  let lastTriggeredAt: number | null = null;
  for (let now = first; now <= last; now += everySeconds) {
    evaluated++;
    for (let next = begins[begun]; next && next.from <= now; next = begins[++begun]) newest = Math.max(newest, next.at);
    while ((ends[ended] ?? Number.POSITIVE_INFINITY) <= now) ended++;
    if (inCooldown(ruleCooldown(condition), lastTriggeredAt, now)) continue;
    const found = onlyNews ? Number(newest > Math.max(now - ACTIVITY_WINDOW, reportedTo)) : always + begun - ended;
    if (!isMet(condition, found)) continue;
    triggers.push(now);
    lastTriggeredAt = now;
    reportedTo = newest;
  }
  return { evaluated, triggers, until: last };
}
