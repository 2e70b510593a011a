/**
 * Secrets in JSON values from clients: found by name (`secret-names.ts`) and in texts (`secret-texts.ts`), masked for
 * display, and restored when a client sends back what it was shown. Pure.
 */
import { isDeepStrictEqual } from 'node:util';
import { invalid } from './errors.ts';
import { type SecretName, secretNameInside } from './secret-names.ts';
import { holdsMask, MASK, maskedText } from './secret-texts.ts';

export { MASK } from './secret-texts.ts';

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A non-empty text under a secret's name, or a number under a strong one. */
const isSecret = (value: unknown, name: SecretName | undefined): boolean =>
  (typeof value === 'string' && value !== '' && name !== undefined) || (typeof value === 'number' && name === 'strong');

/**
 * Logs from before there were bounds contain values that are nested thousands of levels deep. Everything below this
 * level is replaced as a whole.
 */
const MAX_LEVELS = 150;

/**
 * A copy with every secret replaced. `whole`: the value itself is the secret; otherwise it is a text that contains a
 * credential.
 *
 * @param name what is known about the value's own name
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
  if (Array.isArray(value)) return value.map((one) => mapSecrets(one, replace, name, also, level + 1));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => [
      key,
      mapSecrets(one, replace, secretNameInside(name, key), also, level + 1),
    ]),
  );
}

/** A copy for callers who may not see secrets. `name`: what is known about the value's own name. */
export const masked = (value: unknown, name?: SecretName): unknown =>
  mapSecrets(value, (secret, whole) => (whole ? MASK : maskedText(secret as string)), name);

/**
 * `next` with its masks replaced by the secrets in `stored`, because clients read a value, edit it and send it back. A
 * mask is never stored in place of a secret.
 *
 * @param path of the value in the request, for error messages
 * @throws AppError 400 when a mask has no hidden value to stand for
 */
export function restored(next: unknown, stored: unknown, path: string, name?: SecretName): unknown {
  if (typeof next === 'string') return restoredText(next, stored, path, name);
  if (Array.isArray(next)) {
    const before = Array.isArray(stored) ? stored : [];
    return next.map((one, index) =>
      restored(one, counterpart(one, index, next, before, name), `${path}.${index}`, name),
    );
  }
  if (!isObject(next)) return next;
  const before = isObject(stored) ? stored : {};
  return Object.fromEntries(
    Object.entries(next).map(([key, one]) => [
      key,
      restored(
        one,
        Object.hasOwn(before, key) ? before[key] : undefined,
        `${path}.${key}`,
        secretNameInside(name, key),
      ),
    ]),
  );
}

function restoredText(next: string, stored: unknown, path: string, name: SecretName | undefined): unknown {
  if (!next.includes(MASK) || next === stored) return next;
  const shown = masked(stored, name);
  if (next === shown) return stored;
  const hides = shown !== stored && typeof shown === 'string' && shown !== MASK;
  if (name !== undefined ? next !== MASK : !hides && !holdsMask(next)) return next;
  throw invalid(`${path}: ${MASK} stands for a hidden value, but none is stored here; send the value itself.`);
}

/**
 * The entry of a stored list that corresponds to an entry of the new one: by id or name if it has one, otherwise by
 * index. If the list has become shorter, indexes have shifted, so it is the one that looks the same, if only one does.
 */
function counterpart(
  one: unknown,
  index: number,
  next: readonly unknown[],
  before: readonly unknown[],
  name: SecretName | undefined,
): unknown {
  const mark = isObject(one) ? (one.id ?? one.name) : undefined;
  if (mark !== undefined) return before.find((other) => isObject(other) && (other.id ?? other.name) === mark);
  if (next.length >= before.length) return before[index];
  const alike = before.filter((other) => isDeepStrictEqual(masked(other, name), one));
  return alike.length > 0 && alike.every((other) => isDeepStrictEqual(other, alike[0])) ? alike[0] : undefined;
}
