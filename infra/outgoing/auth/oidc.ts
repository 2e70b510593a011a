/**
 * The OpenID Connect provider of the deployment (https://openid.net/specs/openid-connect-core-1_0.html), through
 * `openid-client`.
 *
 * Its addresses come from discovery, at the first use. If discovery fails, it is retried at most once in a few seconds.
 * The library is loaded at the first use as well.
 */
import { createRemoteJWKSet, customFetch, type JWTVerifyGetKey, jwtVerify } from 'jose';
import type * as Client from 'openid-client';
import type { Logger } from 'pino';
import { type AppError, invalid } from '../../../shared/errors.ts';
import type { OidcProvider } from '../../../shared/ports/auth/oidc.ts';
import { CLIENT_AUTH, type Config } from '../../config.ts';
import { boundedFetch, OutgoingError } from '../request.ts';
import { groupsOf, profileOf as readProfile } from './identity-claims.ts';
import { discoveryFault, signInFault, tokenFault } from './sign-in.ts';

type Settings = Pick<
  Config,
  | 'oidcIssuer'
  | 'oidcClientId'
  | 'oidcClientSecret'
  | 'oidcClientAuth'
  | 'oidcAudience'
  | 'oidcScopes'
  | 'oidcGroupsClaim'
>;

/** Time-out of each request to the provider, milliseconds. */
const TIMEOUT_MS = 5_000;
/** Bytes of each response. */
const MAX_BYTES = 1_000_000;
const WHO = 'The OpenID Connect provider';
const fetched = boundedFetch({ who: WHO, timeoutMs: TIMEOUT_MS, maxBytes: MAX_BYTES });
/** A provider that is overloaded or restarts counts as unreachable, whichever of its addresses says so. */
const bounded: typeof fetched = async (...of) => {
  const response = await fetched(...of);
  if (response.status < 500 && response.status !== 429) return response;
  throw new OutgoingError('offline', `${WHO} responded with status ${response.status}.`);
};
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
export function createOidc(
  options: Settings,
  log: Pick<Logger, 'warn'>,
  now: () => number = Date.now,
): OidcProvider | undefined {
  const { oidcIssuer, oidcClientId, oidcAudience, oidcScopes, oidcGroupsClaim } = options;
  if (oidcIssuer === undefined || oidcClientId === undefined) return undefined;
  const expected = { issuer: oidcIssuer, clientId: oidcClientId, audience: oidcAudience };
  let discovered: Promise<Discovered> | undefined;
  let known: Discovered | undefined;
  let failed: { readonly at: number; readonly error: AppError } | undefined;

  /** @throws AppError 400 for a wrong setting, 503 */
  async function provider(): Promise<Discovered> {
    if (known && now() - known.at < MAX_AGE_MS) return known;
    if (failed && now() - failed.at < COOL_DOWN_MS) return known ?? refuse(failed.error);
    discovered ??= discover(expected.issuer, expected.clientId, options, now())
      .then((found) => {
        failed = undefined;
        known = found;
        return found;
      })
      .catch((error: unknown) => {
        failed = { at: now(), error: discoveryFault(error, expected) };
        // An outdated document is better than none.
        return known ?? refuse(failed.error);
      })
      .finally(() => {
        discovered = undefined;
      });
    return discovered;
  }

  const profileOf = (issuer: string, claims: Readonly<Record<string, unknown>>) =>
    readProfile(issuer, claims, oidcGroupsClaim);

  /**
   * Claims of the userinfo endpoint, from which many providers return groups and addresses. It is not called if the ID
   * token has everything, and its failure does not matter if the ID token has the groups.
   */
  async function claimsBeside(
    claims: Client.IDToken,
    accessToken: string,
    { client, config }: Pick<Discovered, 'client' | 'config'>,
  ): Promise<Readonly<Record<string, unknown>>> {
    const hasGroups = 'known' in groupsOf(claims, oidcGroupsClaim);
    const isWhole = hasGroups && ['preferred_username', 'name', 'email'].every((name) => claims[name] !== undefined);
    if (isWhole || config.serverMetadata().userinfo_endpoint === undefined) return {};
    try {
      return await client.fetchUserInfo(config, accessToken, claims.sub);
    } catch (error) {
      const fault = signInFault(error, client, expected);
      if (!hasGroups) throw fault;
      log.warn({ err: fault }, 'the userinfo endpoint of the identity provider failed: only the ID token is used');
      return {};
    }
  }

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
      const { client, config, issuer } = await provider();
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
        if (!claims) throw invalid('The provider sent no ID token.');
        const more = await claimsBeside(claims, tokens.access_token, { client, config });
        return profileOf(issuer, { ...more, ...claims });
      } catch (error) {
        throw signInFault(error, client, expected);
      }
    },

    async verify(token) {
      if (oidcAudience === undefined) return { fault: 'Access tokens are not accepted: OIDC_AUDIENCE is not set.' };
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
        const { aud, azp } = payload;
        if (Array.isArray(aud) && aud.length > 1 && (typeof azp !== 'string' || azp === ''))
          return { fault: 'The access token is for several audiences and does not name its client (azp).' };
        return { profile: profileOf(issuer, payload), expiresAt: payload.exp as number };
      } catch (error) {
        return { fault: tokenFault(error, expected) };
      }
    },
  };
}

/** Only public clients have no secret. Without a list in the provider's metadata, it is Basic (OpenID Connect Discovery 3). */
function authenticationOf(
  client: typeof Client,
  { oidcClientSecret: secret, oidcClientAuth: chosen }: Settings,
  supported: readonly string[] = ['client_secret_basic'],
): Client.ClientAuth {
  if (secret === undefined) return client.None();
  const method = chosen ?? CLIENT_AUTH.find((one) => supported.includes(one)) ?? 'client_secret_basic';
  const methods = {
    client_secret_basic: client.ClientSecretBasic,
    client_secret_post: client.ClientSecretPost,
    client_secret_jwt: client.ClientSecretJwt,
  };
  return methods[method](secret);
}

async function discover(issuer: string, clientId: string, options: Settings, at: number): Promise<Discovered> {
  const client = await import('openid-client');
  const url = new URL(issuer);
  // For a provider next to the service, or behind the same proxy.
  const extensions = url.protocol === 'http:' ? [client.allowInsecureRequests] : [];
  const found = await client.discovery(url, clientId, undefined, client.None(), {
    timeout: TIMEOUT_MS / 1_000,
    [client.customFetch]: bounded,
    execute: extensions,
  });
  const metadata = found.serverMetadata();
  if (metadata.jwks_uri === undefined) throw new Error('its discovery document has no jwks_uri');
  const authentication = authenticationOf(client, options, metadata.token_endpoint_auth_methods_supported);
  const config = new client.Configuration(metadata, clientId, undefined, authentication);
  config[client.customFetch] = bounded;
  config.timeout = TIMEOUT_MS / 1_000;
  // The library trusts the connection otherwise, which may be plain HTTP here, or pass a proxy that reads it.
  for (const extend of [...extensions, client.enableNonRepudiationChecks]) extend(config);
  const keys = remoteKeys(metadata.jwks_uri, bounded, COOL_DOWN_MS);
  return { client, config, issuer: metadata.issuer, keys, at };
}

function refuse(error: AppError): never {
  throw error;
}
