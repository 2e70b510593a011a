/**
 * Verifies Google ID tokens against Google's published keys (https://developers.google.com/identity/openid-connect/openid-connect).
 *
 * The audience is always checked. Without a client id of our own, a token issued to any site would be accepted, so
 * sign-in with Google is then off.
 */
import { errors, type JWTVerifyGetKey, jwtVerify } from 'jose';
import { z } from 'zod';
import { AppError, invalid } from '../../../shared/errors.ts';
import type { GoogleProfile, VerifyGoogleToken } from '../../../shared/ports/auth/google.ts';
import type { Config } from '../../config.ts';
import { boundedFetch } from '../request.ts';
import { ACCOUNT, EMAIL } from './identity-claims.ts';
import { CLOCK_TOLERANCE_S, remoteKeys } from './oidc.ts';
import { isAboutKeys } from './sign-in.ts';

const FETCH_TIMEOUT_MS = 5_000;
/** Maximum number of bytes in the key set. */
const MAX_KEYS = 100_000;
/** Minimum interval between fetches of the keys, however many unknown key ids arrive. */
const COOL_DOWN_MS = 30_000;

type Settings = Pick<Config, 'googleClientId' | 'googleKeysUrl' | 'googleIssuers'>;

/** The claims we use. Some tokens carry `email_verified` as a string. */
const claims = z.object({ ...ACCOUNT, email: EMAIL, email_verified: z.union([z.literal(true), z.literal('true')]) });

/** Makes the function that verifies tokens; it caches Google's keys. */
export function createGoogleVerifier({ googleClientId, googleKeysUrl, googleIssuers }: Settings): VerifyGoogleToken {
  if (!googleClientId) {
    return async () => {
      throw invalid(
        'Sign-in with Google is not configured on this deployment; ask an operator to set GOOGLE_CLIENT_ID.',
      );
    };
  }
  const fetch = boundedFetch({ who: 'Google', timeoutMs: FETCH_TIMEOUT_MS, maxBytes: MAX_KEYS });
  const keys = remoteKeys(googleKeysUrl, fetch, COOL_DOWN_MS);
  return (token) => verify(token, keys, { audience: googleClientId, issuer: [...googleIssuers] });
}

async function verify(
  token: string,
  keys: JWTVerifyGetKey,
  expected: { readonly audience: string; readonly issuer: string[] },
): Promise<GoogleProfile> {
  let payload: unknown;
  try {
    ({ payload } = await jwtVerify(token, keys, {
      ...expected,
      algorithms: ['RS256'],
      requiredClaims: ['exp', 'iat', 'sub'],
      clockTolerance: CLOCK_TOLERANCE_S,
    }));
  } catch (error) {
    throw refusalOf(error);
  }
  const parsed = claims.safeParse(payload);
  if (!parsed.success) {
    throw invalid('The Google token has no verified e-mail address; use an account that has one.');
  }
  const { sub, email, name, picture } = parsed.data;
  return { sub, email: email.toLowerCase(), name, picture };
}

function refusalOf(error: unknown): AppError {
  if (error instanceof errors.JWTExpired) return invalid('The Google token has expired; sign in with Google again.');
  if (error instanceof errors.JOSEError && !isAboutKeys(error)) {
    return invalid('The Google token is not valid for this deployment; sign in with Google again.');
  }
  return new AppError(400, "The token cannot be verified because Google's keys cannot be fetched; try again later.", {
    code: 'GOOGLE_UNREACHABLE',
    cause: error,
  });
}
