/**
 * The OpenID Connect provider of the deployment (https://openid.net/specs/openid-connect-core-1_0.html), through
 * `openid-client`.
 *
 * Its addresses come from discovery, at the first use. If discovery fails, it is retried at most once in a few seconds.
 * The library is loaded at the first use as well.
 */
import { compactVerify, createRemoteJWKSet, customFetch, errors, type JWTVerifyGetKey, jwtVerify } from 'jose';
import type * as Client from 'openid-client';
import { AppError, invalid, unavailable } from '../../../shared/errors.ts';
import type { OidcProvider } from '../../../shared/ports/auth/oidc.ts';
import type { Config } from '../../config.ts';
import { boundedFetch } from '../request.ts';
import { InvalidProfile, profileOf as readProfile } from './identity-claims.ts';

type Settings = Pick<
  Config,
  'oidcIssuer' | 'oidcClientId' | 'oidcClientSecret' | 'oidcAudience' | 'oidcScopes' | 'oidcGroupsClaim'
>;

/** Time-out of each request to the provider, milliseconds. */
const TIMEOUT_MS = 5_000;
/** Bytes of each response. */
const MAX_BYTES = 1_000_000;
const bounded = boundedFetch({ who: 'The OpenID Connect provider', timeoutMs: TIMEOUT_MS, maxBytes: MAX_BYTES });
/** Minimum interval between two attempts at discovery, milliseconds. */
const COOL_DOWN_MS = 5_000;
/** Only public keys: with a shared secret, this service could issue tokens itself. */
const ALGORITHMS = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
];
/** Age at which the provider's document and keys are fetched again. */
const MAX_AGE_MS = 3_600_000;
export const CLOCK_TOLERANCE_S = 10;

interface Discovered {
  readonly client: typeof Client;
  readonly config: Client.Configuration;
  readonly issuer: string;
  readonly keys: JWTVerifyGetKey;
  readonly at: number;
}

/** The keys of a provider, fetched with `fetch` when they are needed. @param coolDownMs minimum interval between fetches */
export const remoteKeys = (url: string, fetch: ReturnType<typeof boundedFetch>, coolDownMs: number): JWTVerifyGetKey =>
  createRemoteJWKSet(new URL(url), {
    timeoutDuration: TIMEOUT_MS,
    cooldownDuration: coolDownMs,
    cacheMaxAge: MAX_AGE_MS,
    [customFetch]: fetch,
  });

/** Undefined when no provider is configured. */
export function createOidc(options: Settings, now: () => number = Date.now): OidcProvider | undefined {
  const { oidcIssuer, oidcClientId, oidcAudience, oidcScopes, oidcGroupsClaim } = options;
  if (oidcIssuer === undefined || oidcClientId === undefined) return undefined;
  let discovered: Promise<Discovered> | undefined;
  let known: Discovered | undefined;
  let failed: { readonly at: number; readonly error: unknown } | undefined;

  /** @throws AppError 503 */
  async function provider(): Promise<Discovered> {
    if (known && now() - known.at < MAX_AGE_MS) return known;
    if (failed && now() - failed.at < COOL_DOWN_MS) return known ?? refuse(failed.error);
    discovered ??= discover(oidcIssuer as string, oidcClientId as string, options, now())
      .then((found) => {
        failed = undefined;
        known = found;
        return found;
      })
      .catch((error: unknown) => {
        failed = { at: now(), error };
        // An outdated document is better than none.
        return known ?? refuse(error);
      })
      .finally(() => {
        discovered = undefined;
      });
    return discovered;
  }

  const profileOf = (issuer: string, claims: Readonly<Record<string, unknown>>) =>
    readProfile(issuer, claims, oidcGroupsClaim);

  return {
    acceptsTokens: oidcAudience !== undefined,

    async begin(redirectUri) {
      const { client, config } = await provider();
      const begun = {
        state: client.randomState(),
        nonce: client.randomNonce(),
        verifier: client.randomPKCECodeVerifier(),
      };
      const url = client.buildAuthorizationUrl(config, {
        redirect_uri: redirectUri,
        scope: oidcScopes,
        state: begun.state,
        nonce: begun.nonce,
        code_challenge: await client.calculatePKCECodeChallenge(begun.verifier),
        code_challenge_method: 'S256',
      });
      return { url: url.href, begun };
    },

    async finish({ code, state, iss }, redirectUri, { state: expectedState, nonce, verifier }) {
      const { client, config, issuer, keys } = await provider();
      const callback = new URL(redirectUri);
      callback.search = new URLSearchParams({ code, state, ...(iss !== undefined && { iss }) }).toString();
      try {
        const tokens = await client.authorizationCodeGrant(config, callback, {
          pkceCodeVerifier: verifier,
          expectedState,
          expectedNonce: nonce,
          idTokenExpected: true,
        });
        const claims = tokens.claims();
        if (!claims || tokens.id_token === undefined) throw invalid('The provider sent no ID token.');
        // The library trusts the connection, which may be plain HTTP here, or pass a proxy that reads it.
        await compactVerify(tokens.id_token, keys, { algorithms: ALGORITHMS });
        // Many providers return groups and addresses only from this endpoint.
        const more =
          config.serverMetadata().userinfo_endpoint === undefined
            ? {}
            : await client.fetchUserInfo(config, tokens.access_token, claims.sub);
        return profileOf(issuer, { ...more, ...claims });
      } catch (error) {
        throw refusalOf(error, client);
      }
    },

    async verify(token) {
      if (oidcAudience === undefined) return undefined;
      const { issuer, keys } = await provider();
      try {
        const { payload } = await jwtVerify(token, keys, {
          issuer,
          audience: oidcAudience,
          requiredClaims: ['exp', 'sub'],
          clockTolerance: CLOCK_TOLERANCE_S,
          algorithms: ALGORITHMS,
        });
        // A token for several audiences says for which client it was issued (RFC 9068, OpenID Connect Core 2).
        if (Array.isArray(payload.aud) && payload.aud.length > 1 && typeof payload.azp !== 'string') return undefined;
        return { profile: profileOf(issuer, payload), expiresAt: payload.exp as number };
      } catch (error) {
        if (error instanceof errors.JOSEError && !isAboutKeys(error)) return undefined;
        if (error instanceof InvalidProfile) return undefined;
        return refuse(error);
      }
    },
  };
}

async function discover(issuer: string, clientId: string, options: Settings, at: number): Promise<Discovered> {
  const client = await import('openid-client');
  const url = new URL(issuer);
  const secret = options.oidcClientSecret;
  const config = await client.discovery(url, clientId, secret, secret === undefined ? client.None() : undefined, {
    timeout: TIMEOUT_MS / 1_000,
    [client.customFetch]: bounded,
    // For a provider next to the service, or behind the same proxy.
    execute: url.protocol === 'http:' ? [client.allowInsecureRequests] : [],
  });
  const metadata = config.serverMetadata();
  if (metadata.jwks_uri === undefined) throw new Error('its discovery document has no jwks_uri');
  const keys = remoteKeys(metadata.jwks_uri, bounded, COOL_DOWN_MS);
  return { client, config, issuer: metadata.issuer, keys, at };
}

const UNREACHABLE = 'The identity provider cannot be reached now; try again later.';

function refuse(cause: unknown): never {
  throw unavailable(UNREACHABLE, { code: 'OIDC_UNREACHABLE', cause });
}

/** Codes of `openid-client` for a provider that does not respond, or responds incorrectly. */
const UNREACHABLE_CODES = new Set([
  'OAUTH_TIMEOUT',
  'OAUTH_ABORT',
  'OAUTH_RESPONSE_IS_NOT_CONFORM',
  'OAUTH_RESPONSE_IS_NOT_JSON',
]);

/** The error response for a failed sign-in. */
function refusalOf(error: unknown, client: typeof Client): unknown {
  const begin = 'begin the sign-in again';
  if (error instanceof client.ResponseBodyError || error instanceof client.AuthorizationResponseError) {
    // `invalid_client` and the like: the operator must act, not the user.
    const said = error.error_description ?? error.error;
    return invalid(`The identity provider refused the sign-in (${said.slice(0, 200)}); ${begin}.`);
  }
  if (error instanceof client.WWWAuthenticateChallengeError)
    return invalid(`The identity provider refused to describe the account; ${begin}.`);
  if (error instanceof InvalidProfile) return invalid(`The identity provider sent no usable account; ${begin}.`);
  if (error instanceof client.ClientError && error.code !== undefined && !UNREACHABLE_CODES.has(error.code))
    return invalid(`The response of the identity provider is not valid for this sign-in; ${begin}.`);
  if (error instanceof AppError) return error;
  if (error instanceof errors.JOSEError && !isAboutKeys(error))
    return invalid(
      `The signature of the ID token is not valid (${error.message}); ${begin}, or ask an operator whether OIDC_ISSUER is the provider that issued it.`,
    );
  return unavailable(UNREACHABLE, { code: 'OIDC_UNREACHABLE', cause: error });
}

/** The keys could not be fetched. For some of these errors jose has only a generic code. */
export const isAboutKeys = (error: errors.JOSEError): boolean =>
  error instanceof errors.JWKSTimeout || error instanceof errors.JWKSInvalid || error.code === 'ERR_JOSE_GENERIC';
