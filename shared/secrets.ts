/**
 * Secrets in JSON values from clients: found by name (`secret-names.ts`) and in texts (`secret-texts.ts`), masked for
 * display, and restored when a client sends the masked value back. Pure.
 */
import { isDeepStrictEqual } from 'node:util';
import { invalid } from './errors.ts';
import { labelsOf, MASK, optionOf, pairLabel, type SecretName, secretNameAt, secretNamesIn } from './secret-names.ts';
import { holdsMask, maskedText } from './secret-texts.ts';
import { isObject } from './storable.ts';

export { MASK } from './secret-names.ts';

/** A non-empty text under a secret's name, or a number under a strong one. */
const isSecret = (value: unknown, name: SecretName | undefined): boolean =>
  (typeof value === 'string' && value !== '' && name !== undefined) || (typeof value === 'number' && name === 'strong');

/**
 * More levels than a stored value may have, and few enough for a function that calls itself. Everything below is replaced
 * as a whole.
 */
const MAX_LEVELS = 150;

/**
 * A copy with every secret replaced. `whole`: the value itself is the secret; otherwise it is a text that contains a
 * credential.
 *
 * @param name kind of the value's own name
 * @param also further values to replace
 */
export function mapSecrets(
  value: unknown,
  replace: (secret: unknown, whole: boolean) => unknown,
  name?: SecretName,
  also: (value: unknown) => boolean = () => false,
  level = 0,
): unknown {
  if (isSecret(value, name) || also(value) || level > MAX_LEVELS) return replace(value, true);
  if (typeof value === 'string') return maskedText(value) === value ? value : replace(value, false);
  if (Array.isArray(value))
    return value.map((one, index) => mapSecrets(one, replace, secretNameAt(name, value, index), also, level + 1));
  if (!isObject(value)) return value;
  const nameOf = secretNamesIn(name, value);
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [key, mapSecrets(one, replace, nameOf(key), also, level + 1)]),
  );
}

/** A copy for callers who may not see secrets. `name`: kind of the value's own name. */
export const masked = (value: unknown, name?: SecretName): unknown =>
  mapSecrets(value, (secret, whole) => (whole ? MASK : maskedText(secret as string)), name);

/** A URL without the parts that are often secret: its path, its query and its credentials. */
export function hiddenUrl(url: string): string {
  if (!URL.canParse(url)) return MASK;
  const { protocol, host, pathname, search, username, password } = new URL(url);
  return pathname === '/' && search + username + password === '' ? url : `${protocol}//${host}/${MASK}`;
}

/** The config of an alert rule's action as shown to callers who may not see secrets. */
export function maskedConfig(config: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const shown = masked(config) as Record<string, unknown>;
  return typeof config.url === 'string' ? { ...shown, url: hiddenUrl(config.url) } : shown;
}

/**
 * `next` with its masks replaced by the secrets in `stored`, because clients read a value, edit it and send it back. A
 * mask is never stored in place of a secret.
 *
 * @param path of the value in the request, for error messages
 * @param name kind of the value's own name
 * @param before the same for the name under which `stored` was shown
 * @throws AppError 400 for a mask without a stored value
 */
export function restored(
  next: unknown,
  stored: unknown,
  path: string,
  name?: SecretName,
  before: SecretName | undefined = name,
): unknown {
  if (typeof next === 'string') return restoredText(next, stored, path, { name, before });
  if (Array.isArray(next)) {
    const list = Array.isArray(stored) ? stored : [];
    return next.map((one, index) => {
      const at = counterpart(one, index, next, list, before);
      const known = at === undefined ? undefined : secretNameAt(before, list, at);
      return restored(
        one,
        at === undefined ? undefined : list[at],
        `${path}.${index}`,
        secretNameAt(name, next, index),
        known,
      );
    });
  }
  if (!isObject(next)) return next;
  const object = isObject(stored) ? stored : {};
  const nameOf = secretNamesIn(name, next);
  const nameBefore = secretNamesIn(before, object);
  return Object.fromEntries(
    Object.entries(next).map(([key, one]) => {
      const known = Object.hasOwn(object, key) ? object[key] : undefined;
      return [key, restored(one, known, `${path}.${key}`, nameOf(key), nameBefore(key))];
    }),
  );
}

function restoredText(
  next: string,
  stored: unknown,
  path: string,
  { name, before }: { readonly name: SecretName | undefined; readonly before: SecretName | undefined },
): unknown {
  if (!next.includes(MASK) || next === stored) return next;
  const shown = masked(stored, before);
  // A secret is not restored under a name whose values are not masked.
  if (next === shown && (name !== undefined || before === undefined)) return stored;
  const hides = shown !== stored && typeof shown === 'string' && (shown !== MASK || before !== undefined);
  if (name !== undefined ? next !== MASK : !hides && !holdsMask(next)) return next;
  throw invalid(`${path}: ${MASK} stands for a hidden value, but none is stored here; send the value itself.`);
}

/** Distinguishes an entry of a list from the others, independent of its place. */
const markOf = (one: unknown): unknown => {
  if (Array.isArray(one)) return pairLabel(one);
  return isObject(one) ? (one.id ?? one.name ?? labelsOf(one)[0]) : undefined;
};

/**
 * Index of the entry of a stored list that corresponds to an entry of the new one: by id or name if it has one, or
 * after the same option, otherwise by index. If the list has become shorter, indexes have shifted, so it is the entry
 * that looks the same, if only one does.
 */
function counterpart(
  one: unknown,
  index: number,
  next: readonly unknown[],
  stored: readonly unknown[],
  name: SecretName | undefined,
): number | undefined {
  const found = (matches: (other: unknown, at: number) => boolean): number | undefined => {
    const at = stored.findIndex(matches);
    return at < 0 ? undefined : at;
  };
  const mark = markOf(one);
  if (mark !== undefined) return found((other) => markOf(other) === mark);
  const alike = (matches: (other: unknown, at: number) => boolean): number | undefined => {
    const [first, ...others] = stored.flatMap((other, at) => (matches(other, at) ? [at] : []));
    return others.every((at) => isDeepStrictEqual(stored[at], stored[first as number])) ? first : undefined;
  };
  const option = next[index - 1];
  if (optionOf(option) !== undefined && stored[index - 1] !== option)
    return alike((_, at) => at > 0 && stored[at - 1] === option);
  if (next.length >= stored.length || optionOf(option) !== undefined) return index;
  return alike((other, at) => isDeepStrictEqual(masked(other, secretNameAt(name, stored, at)), one));
}
