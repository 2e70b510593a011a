/** What the claims of a token or of the userinfo endpoint say about an account. */
import { z } from 'zod';
import { lineOfText } from '../../../shared/contract/common.ts';
import { cleanDisplayName, textFault } from '../../../shared/names.ts';
import type { AccountGroups, OidcProfile } from '../../../shared/ports/auth/oidc.ts';

type Claims = Readonly<Record<string, unknown>>;

export class InvalidProfile extends Error {}

/** The claim, or null if it is missing or invalid. */
const orNull = <T extends z.ZodType>(claim: T) => claim.nullable().catch(null).default(null);
const name = orNull(lineOfText(1, 320));
/** Claims about an account, as Google and other providers send them. */
export const ACCOUNT = {
  sub: lineOfText(1, 255),
  name: orNull(
    z
      .string()
      .max(200)
      .transform((text) => cleanDisplayName(text)),
  ),
  picture: orNull(lineOfText(1, 2_048)),
};
export const EMAIL = lineOfText(3, 320).refine((value) => textFault(value) === undefined);
const CLAIMS = z.object({
  ...ACCOUNT,
  preferred_username: name,
  client_id: name,
  azp: name,
  email: orNull(EMAIL),
  email_verified: z.unknown().optional(),
});

/** @param groupsClaim a name, which may contain dots, or a path such as `realm_access.roles`. @throws InvalidProfile */
export function profileOf(issuer: string, claims: Claims, groupsClaim: string): OidcProfile {
  const parsed = CLAIMS.safeParse(claims);
  if (!parsed.success) throw new InvalidProfile('the token has no usable subject');
  const { sub, email, email_verified: verified, picture, preferred_username, client_id, azp } = parsed.data;
  const isVerified = email !== null && (verified === true || verified === 'true');
  return {
    account: `${issuer}#${sub}`,
    names: [preferred_username, isVerified ? email : null, client_id, azp, sub].filter((one) => one !== null),
    displayName: parsed.data.name,
    email: isVerified ? email.toLowerCase() : null,
    picture,
    groups: groupsOf(claims, groupsClaim),
  };
}

const isObject = (value: unknown): value is Claims =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** @param claim see `profileOf` */
export function groupsOf(claims: Claims, claim: string): AccountGroups {
  // A path never leads to a property that every object has, such as `constructor`.
  const found = Object.hasOwn(claims, claim)
    ? claims[claim]
    : claim
        .split('.')
        .reduce<unknown>(
          (value, key) => (isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined),
          claims,
        );
  if (found !== undefined && found !== null) {
    const known = namesIn(found);
    return known ? { known } : { unknown: 'unreadable' };
  }
  return { unknown: isOverage(claims, claim) ? 'overage' : 'absent' };
}

/** A list of names, of objects with a name, a text with commas, or a map by name. Undefined if it is none of these. */
function namesIn(claim: unknown): readonly string[] | undefined {
  if (typeof claim === 'string') return named(claim.split(',').map((name) => name.trim()));
  if (isObject(claim)) return named(Object.keys(claim).filter((name) => claim[name] !== null && claim[name] !== false));
  if (!Array.isArray(claim)) return undefined;
  const names = claim.map((one) => (isObject(one) ? one.name : one)).filter((one) => typeof one === 'string');
  // To read a list of something else as an empty one would take the role away.
  return names.length === 0 && claim.length > 0 ? undefined : named(names);
}

/** As they are: at some providers, users may make a group whose name differs in a blank only. */
const named = (names: readonly string[]) => names.filter((name) => name !== '');

/**
 * Whether the provider sent a reference in place of the claim: OpenID Connect Core 5.6.2, and
 * https://learn.microsoft.com/entra/identity-platform/access-token-claims-reference (groups overage claim).
 */
function isOverage(claims: Claims, claim: string): boolean {
  const { _claim_names: references, hasgroups } = claims;
  if (claim === 'groups' && (hasgroups === true || hasgroups === 'true')) return true;
  return isObject(references) && [claim, claim.split('.')[0] ?? ''].some((name) => Object.hasOwn(references, name));
}
