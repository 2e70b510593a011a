/** The fields of forms, and what the values of a form mean to the API. */
import { SignalboxError } from '../../client/index.ts';

export interface Field {
  readonly name: string;
  readonly label: string;
  readonly type?: 'text' | 'password' | 'number' | 'email' | 'url' | 'area' | 'json' | 'check';
  readonly value?: string | number | boolean | null;
  readonly options?: readonly (string | readonly [value: string, text: string])[];
  readonly required?: boolean;
  readonly hint?: string;
  readonly min?: number;
  /** Autocomplete value for the browser. */
  readonly complete?: 'username' | 'current-password';
}

/** A field of a form that changes a record. One that can be emptied says what the API takes for that. */
export type ChangeField = Field &
  ({ readonly required: true } | { readonly emptied: '' | null } | { readonly type: 'password' });

export type Values = Record<string, unknown>;

/** What a form contains: `FormData`, in a browser. */
interface Filled {
  get(name: string): unknown;
}

/** A value as an input shows it. */
export const shownValue = ({ value }: Field): string => (value === null || value === undefined ? '' : String(value));

const textIn = (data: Filled, name: string): string => {
  const text = data.get(name);
  return typeof text === 'string' ? text : '';
};

/** @throws SignalboxError for text that is not the JSON that it should be */
function readValue({ name, type, label }: Field, data: Filled): unknown {
  if (type === 'check') return data.get(name) !== null;
  const text = textIn(data, name);
  if (text === '') return undefined;
  if (type === 'number') return Number(text);
  if (type !== 'json') return type === 'password' ? text : text.trim();
  try {
    return JSON.parse(text);
  } catch {
    throw new SignalboxError(`${label} is not valid JSON.`, { status: 0 });
  }
}

/** The values of a form for a new record. Fields that are empty are absent. */
export const valuesOf = (fields: readonly Field[], data: Filled): Values =>
  Object.fromEntries(fields.map((field) => [field.name, readValue(field, data)]));

/** Text areas have one line end, whatever the record has. */
const lines = (text: string): string => text.replace(/\r\n?/g, '\n');

function isChanged(field: Field, data: Filled): boolean {
  if (field.type === 'check') return (data.get(field.name) !== null) !== (field.value === true);
  return lines(textIn(data, field.name)) !== lines(shownValue(field));
}

export interface Changes {
  /** Only those that differ from the record. */
  readonly values: Values;
  /** Labels of the changed fields. */
  readonly labels: readonly string[];
}

/** What a form changes in a record; a field that was emptied has the value that the API takes for that. */
export function changesOf(fields: readonly ChangeField[], data: Filled): Changes {
  const changed = fields.filter((field) => isChanged(field, data));
  return {
    labels: changed.map(({ label }) => label),
    values: Object.fromEntries(
      changed.map((field) => [field.name, readValue(field, data) ?? ('emptied' in field ? field.emptied : undefined)]),
    ),
  };
}

/** The result of a form that changes a record, in words. */
export const changedText = (labels: readonly string[]): string =>
  labels.length === 0 ? 'Nothing was changed.' : `Saved: ${labels.join(', ')}.`;
