/**
 * Recognises credentials in text, so that a message that carries one raises a `secret_exposure` security event. Pure:
 * it reports how many and of which types, but never returns or quotes a credential, because the result is stored and
 * shown.
 */
import { eachSecret, SECRET_TYPES } from '../../shared/secret-texts.ts';

export type SecretReport = {
  /** Number of credentials found; one that matches several patterns counts once. */
  count: number;
  /** Their types, each once, in the order of the table. */
  types: string[];
};

/** Length in UTF-16 units of the part that is searched. */
export const SEARCHED_LENGTH = 200_000;

/** Credentials in the first 200,000 characters of `text`. Never throws. */
export function findSecrets(text: string): SecretReport {
  let count = 0;
  const found = new Set<string>();
  eachSecret(text.slice(0, SEARCHED_LENGTH), (type) => {
    count += 1;
    found.add(type);
  });
  return { count, types: SECRET_TYPES.filter((type) => found.has(type)) };
}
