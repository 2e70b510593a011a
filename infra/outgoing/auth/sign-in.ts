/**
 * What differs when a sign-in through the OpenID Connect provider or one of its tokens is refused, as a sentence for the
 * operator. Only a provider that does not respond is a 503: waiting does not mend a wrong issuer, secret or clock.
 */
import { errors } from 'jose';
import type * as Client from 'openid-client';
import { AppError, unavailable } from '../../../shared/errors.ts';
import { storableText } from '../../../shared/storable.ts';
import { OutgoingError } from '../request.ts';
import { InvalidProfile } from './identity-claims.ts';

/** What the sentences name. */
export interface Expected {
  readonly issuer: string;
  readonly clientId: string;
  readonly audience: string | undefined;
}

/** Characters of a value from the provider. */
const QUOTED = 200;
/** Codes of `openid-client` and jose for a response that does not arrive. */
const LATE = new Set(['OAUTH_TIMEOUT', 'OAUTH_ABORT', 'ERR_JWKS_TIMEOUT']);

const quoted = (value: unknown): string =>
  value === undefined
    ? 'none'
    : `"${storableText(Array.isArray(value) ? value.join(', ') : String(value)).slice(0, QUOTED)}"`;
const misconfigured = (message: string, cause: unknown) =>
  new AppError(400, message, { code: 'OIDC_MISCONFIGURED', cause });

interface Caused {
  readonly code?: unknown;
  readonly cause?: unknown;
}

/** An error and its causes, the outermost first. */
function* causesOf(error: unknown): Generator<Caused> {
  for (let one = error; one instanceof Error; one = one.cause) yield one as Caused;
}

/** The network is at fault: undefined for every other error. */
function unreachable(error: unknown): AppError | undefined {
  for (const one of causesOf(error)) {
    const isNetwork = one instanceof OutgoingError && one.fault !== 'large';
    if (isNetwork || LATE.has(String(one.code)))
      return unavailable('The identity provider cannot be reached now; try again later.', {
        code: 'OIDC_UNREACHABLE',
        cause: error,
      });
  }
  return undefined;
}

/** Details that the library keeps about a comparison that failed. */
interface Compared {
  readonly claim?: string;
  readonly claims?: Readonly<Record<string, unknown>>;
  /** Unix seconds. */
  readonly now?: number;
  readonly body?: { readonly issuer?: unknown };
}
function comparedIn(error: unknown): Compared {
  for (const { cause } of causesOf(error))
    if (typeof cause === 'object' && cause !== null && !(cause instanceof Error) && !(cause instanceof Response))
      return cause as Compared;
  return {};
}

const timeOf = (seconds: unknown) =>
  typeof seconds === 'number' && Math.abs(seconds) < 8.64e12
    ? new Date(seconds * 1_000).toISOString()
    : 'an unknown time';

/** How the claims of a token differ from what is expected; undefined: not in one of these. @param now Unix seconds */
function differs(
  claim: string | undefined,
  claims: Readonly<Record<string, unknown>>,
  now: number,
  { issuer, audience }: { readonly issuer: string; readonly audience: string },
): string | undefined {
  const clock = `this server's clock says ${timeOf(now)}. If the token is new, set both clocks right`;
  switch (claim) {
    case 'iss':
      return `its issuer is ${quoted(claims.iss)}, and that of OIDC_ISSUER is ${quoted(issuer)}`;
    case 'aud':
    case 'azp':
      return `its audience is ${quoted(claims.aud)} (azp: ${quoted(claims.azp)}), and ${audience} is expected`;
    case 'exp':
      return `it expired at ${timeOf(claims.exp)}, and ${clock}`;
    case 'nbf':
    case 'iat':
      return `it is valid from ${timeOf(claims[claim])} on, and ${clock}`;
    default:
      return undefined;
  }
}

/** Why the provider's document cannot be used. */
export function discoveryFault(error: unknown, { issuer }: Pick<Expected, 'issuer'>): AppError {
  if (error instanceof AppError) return error;
  const away = unreachable(error);
  if (away) return away;
  const named = comparedIn(error).body?.issuer;
  if (named !== undefined)
    return misconfigured(
      `The identity provider calls itself ${quoted(named)}, but OIDC_ISSUER is ${quoted(issuer)}: set OIDC_ISSUER to the issuer exactly as the provider writes it.`,
      error,
    );
  const { status } = ([...causesOf(error)].map(({ cause }) => cause).find((cause) => cause instanceof Response) ??
    {}) as {
    readonly status?: number;
  };
  const what =
    status === undefined || status === 200 ? 'did not return a discovery document' : `responded with status ${status}`;
  return misconfigured(
    `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration ${what}: check OIDC_ISSUER, also its realm or tenant.`,
    error,
  );
}

const BEGIN = 'begin the sign-in again';

/** Why a sign-in fails. */
export function signInFault(error: unknown, client: typeof Client, expected: Expected): AppError {
  if (error instanceof AppError) return error;
  const away = unreachable(error);
  if (away) return away;
  const refused = (message: string) => new AppError(400, message, { cause: error });
  if (error instanceof client.ResponseBodyError || error instanceof client.AuthorizationResponseError) {
    const said = quoted(error.error_description ?? error.error);
    if (error.error === 'invalid_client' || error.error === 'unauthorized_client')
      return misconfigured(
        `The identity provider does not accept this client (${said}): check OIDC_CLIENT_ID, OIDC_CLIENT_SECRET and OIDC_CLIENT_AUTH.`,
        error,
      );
    return refused(`The identity provider refused the sign-in (${said}); ${BEGIN}.`);
  }
  if (error instanceof client.WWWAuthenticateChallengeError) {
    // The token endpoint asks for the client, the userinfo endpoint for the access token.
    if (!error.cause.some(({ scheme }) => /^(bearer|dpop)$/i.test(scheme)))
      return misconfigured(
        'The identity provider does not accept this client: check OIDC_CLIENT_ID, OIDC_CLIENT_SECRET and OIDC_CLIENT_AUTH.',
        error,
      );
    return refused(`The identity provider refused to describe the account; ${BEGIN}.`);
  }
  if (error instanceof InvalidProfile) return refused(`The identity provider sent no usable account; ${BEGIN}.`);
  const { claim, claims, now } = comparedIn(error);
  const how =
    claims &&
    differs(claim, claims, now ?? Date.now() / 1_000, {
      ...expected,
      audience: `OIDC_CLIENT_ID (${quoted(expected.clientId)})`,
    });
  if (how !== undefined) return misconfigured(`The ID token is not for this deployment: ${how}.`, error);
  const inner = [...causesOf(error)].at(-1) as Error;
  if (/signature|key/i.test(inner.message))
    return misconfigured(
      `The signature of the ID token is not valid (${quoted(inner.message)}): check whether OIDC_ISSUER is the provider that issued it, and whether it signs with a public key.`,
      error,
    );
  return refused(
    `The response of the identity provider is not valid for this sign-in (${quoted(inner.message)}); ${BEGIN}.`,
  );
}

/** Why an access token is not accepted. @throws AppError 503 or 400 if the keys of the provider cannot be read */
export function tokenFault(error: unknown, expected: Expected): string {
  if (error instanceof AppError) throw error;
  const away = unreachable(error);
  if (away) throw away;
  if (error instanceof InvalidProfile) return 'The access token has no usable subject.';
  if (error instanceof errors.JWTExpired || error instanceof errors.JWTClaimValidationFailed) {
    const audience = `OIDC_AUDIENCE (${quoted(expected.audience)})`;
    const how = differs(error.claim, error.payload, Date.now() / 1_000, { ...expected, audience });
    return `The access token is not valid here: ${how ?? error.message}.`;
  }
  if (error instanceof errors.JOSEError && !isAboutKeys(error))
    return `The access token is not valid here: ${error.message}.`;
  throw misconfigured('The keys of the identity provider cannot be read: check its jwks_uri.', error);
}

/** The keys could not be fetched. For some of these errors jose has only a generic code. */
export const isAboutKeys = (error: errors.JOSEError): boolean =>
  error instanceof errors.JWKSTimeout || error instanceof errors.JWKSInvalid || error.code === 'ERR_JOSE_GENERIC';
