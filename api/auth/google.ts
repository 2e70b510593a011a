/**
 * Google ID tokens: verified here, with Google's published keys (https://developers.google.com/identity/openid-connect/openid-connect).
 *
 * The audience is always checked: without a client id of our own any site's token would open the door, so sign-in
 * with Google is off then.
 */
import { createRemoteJWKSet, errors, type JWTVerifyGetKey, jwtVerify } from 'jose';
import { z } from 'zod';
import type { GoogleProfile } from '../../commands/auth/google.ts';
import { lineOfText } from '../../shared/contract/common.ts';
import { AppError, invalid } from '../../shared/errors.ts';
import { cleanDisplayName, textFault } from '../../shared/names.ts';
import type { Services } from '../services.ts';

const FETCH_TIMEOUT_MS = 5_000;
/** No new fetch of the keys so soon after the last one, however many unknown key ids come along. */
const COOL_DOWN_MS = 30_000;
const MAX_AGE_MS = 3_600_000;
const CLOCK_TOLERANCE_S = 10;

type Settings = Pick<Services['settings'], 'googleClientId' | 'googleKeysUrl' | 'googleIssuers'>;

const keySets = new Map<string, JWTVerifyGetKey>();

function keysAt(url: string): JWTVerifyGetKey {
  let keys = keySets.get(url);
  if (!keys) {
    keys = createRemoteJWKSet(new URL(url), {
      timeoutDuration: FETCH_TIMEOUT_MS,
      cooldownDuration: COOL_DOWN_MS,
      cacheMaxAge: MAX_AGE_MS,
    });
    keySets.set(url, keys);
  }
  return keys;
}

/** What we take from a token. `email_verified` is a text in some of them. */
const claims = z.object({
  sub: lineOfText(1, 255),
  email: lineOfText(3, 320).refine((value) => textFault(value) === undefined),
  email_verified: z.union([z.literal(true), z.literal('true')]),
  name: z.string().max(200).transform(cleanDisplayName).nullable().catch(null).default(null),
  picture: lineOfText(1, 2_048).nullable().catch(null).default(null),
});

/** @throws AppError 400 when the token is not good, or cannot be verified now */
export async function verifyGoogleToken(token: string, settings: Settings): Promise<GoogleProfile> {
  const { googleClientId, googleKeysUrl, googleIssuers } = settings;
  if (!googleClientId) {
    throw invalid('Sign-in with Google is not set up on this deployment; an operator sets GOOGLE_CLIENT_ID.');
  }
  let payload: unknown;
  try {
    ({ payload } = await jwtVerify(token, keysAt(googleKeysUrl), {
      audience: googleClientId,
      issuer: [...googleIssuers],
      algorithms: ['RS256'],
      requiredClaims: ['exp', 'iat', 'sub'],
      clockTolerance: CLOCK_TOLERANCE_S,
    }));
  } catch (error) {
    throw refusalOf(error);
  }
  const parsed = claims.safeParse(payload);
  if (!parsed.success) {
    throw invalid('The Google account has no verified e-mail address, or its token lacks one; use another account.');
  }
  const { sub, email, name, picture } = parsed.data;
  return { sub, email: email.toLowerCase(), name, picture };
}

function refusalOf(error: unknown): AppError {
  if (error instanceof errors.JWTExpired) return invalid('The Google token has expired; sign in with Google again.');
  if (error instanceof errors.JOSEError && !isAboutKeys(error)) {
    return invalid('The Google token is not valid for this deployment; sign in with Google again.');
  }
  return new AppError(400, 'The token cannot be verified: the keys of Google cannot be fetched. Try again later.', {
    code: 'GOOGLE_UNREACHABLE',
    cause: error,
  });
}

/** The key set could not be fetched, or was none; its generic errors carry no code of their own. */
const isAboutKeys = (error: errors.JOSEError): boolean =>
  error instanceof errors.JWKSTimeout || error instanceof errors.JWKSInvalid || error.code === 'ERR_JOSE_GENERIC';
