/**
 * Error messages for refused input: the end of a sentence that begins with the field's name. Schemas with a message of
 * their own keep it.
 */
import { z } from 'zod';

const KINDS: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  object: 'an object',
  record: 'an object',
  array: 'a list',
  null: 'null',
};

/** Maximum number of values in a message; a longer list is truncated. */
const LISTED = 12;

function listOf(values: readonly unknown[]): string {
  const shown = values.slice(0, LISTED).map((value) => (value === '' ? 'an empty string' : String(value)));
  return [...shown, ...(values.length > LISTED ? ['…'] : [])].join(', ');
}

/** @param limit such as `at most`; the unit of `size` depends on `origin` */
function sizeText(origin: string, limit: string, size: number | bigint): string {
  const counted = (one: string, several: string) => `must have ${limit} ${size} ${Number(size) === 1 ? one : several}`;
  if (origin === 'string') return counted('character', 'characters');
  if (origin === 'array' || origin === 'set') return counted('entry', 'entries');
  return origin === 'object' || origin === 'map' ? counted('field', 'fields') : `must be ${limit} ${size}`;
}

/** The error of the intended alternative: the one whose type matched. If none did, lists all alternatives. */
function unionText(branches: readonly (readonly { readonly code: string; readonly message: string }[])[]): string {
  const firsts = branches.flatMap(([first]) => (first ? [first] : []));
  const meant = firsts.find(({ code }) => code !== 'invalid_type' && code !== 'invalid_value');
  if (meant) return meant.message;
  const all = [...new Set(firsts.map(({ message }) => message.replace(/^must be /, '')))];
  // An alternative may contain a list itself, such as `true or false`.
  const forms = all.join(', ').replaceAll(' or ', ', ').split(', ');
  const last = forms.pop() ?? '';
  return `must be ${all.length === 1 ? all[0] : `${forms.join(', ')} or ${last}`}`;
}

function messageOf(issue: Parameters<z.core.$ZodErrorMap>[0]): string | undefined {
  switch (issue.code) {
    case 'invalid_type':
      return issue.input === undefined ? 'is required' : `must be ${KINDS[issue.expected] ?? issue.expected}`;
    case 'invalid_key':
      return `the name ${issue.issues[0]?.message}`;
    case 'invalid_value':
      return issue.values.length === 1 ? `must be ${listOf(issue.values)}` : `must be one of ${listOf(issue.values)}`;
    case 'too_big':
      return sizeText(issue.origin, issue.inclusive === false ? 'less than' : 'at most', issue.maximum);
    case 'too_small':
      if (issue.origin === 'string' && issue.minimum === 1) return 'must not be empty';
      return sizeText(issue.origin, issue.inclusive === false ? 'more than' : 'at least', issue.minimum);
    case 'unrecognized_keys':
      return `must not have the field${issue.keys.length === 1 ? '' : 's'} ${listOf(issue.keys.map((key) => key.slice(0, 60)))}`;
    case 'invalid_union':
      return issue.input === undefined ? 'is required' : unionText(issue.errors);
    default:
      return undefined;
  }
}

z.config({ customError: messageOf });
