/** A real OpenID Connect provider on this machine (`oidc-provider`), with accounts, groups and clients of the tests. */
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import type { Configuration } from 'oidc-provider';
import { type Listening, listen } from './listen.ts';

export const OIDC_CLIENT = 'signalbox';
export const OIDC_SECRET = 'secret of the client';
/** A program with a client of its own. Its access tokens are JWTs for this audience. */
export const MACHINE = { client_id: 'build-server', client_secret: 'secret of the build server' };
export const AUDIENCE = 'https://signalbox.example/api';

type SigningKey = Awaited<ReturnType<typeof generateKeyPair>>['privateKey'];

const ALG = 'RS256';
const KID = 'the key of the tests';

export interface OidcAccount {
  readonly preferred_username?: string;
  readonly email?: string;
  readonly email_verified?: boolean;
  readonly name?: string;
  readonly groups?: unknown;
  /** Entra's sign that it did not send the groups. */
  readonly hasgroups?: boolean;
}

export interface TestProvider {
  readonly issuer: string;
  /** By subject. May be changed at any time. */
  readonly accounts: Map<string, OidcAccount>;
  /** Groups that the access tokens of a client have; undefined: no claim. */
  machineGroups: readonly string[] | undefined;
  /** Follows the address of a sign-in as a browser would, as `sub`. @returns what the browser comes back with */
  approve(url: string, sub: string): Promise<URLSearchParams>;
  /** Of the Authorization header of the last request for a token; empty: none. */
  readonly authScheme: string | undefined;
  /** Replaces the ID tokens of sign-ins. */
  idToken: ((issued: string) => string | Promise<string>) | undefined;
  /** A token with these claims, signed with the provider's key or with another one under the same id. */
  sign(claims: Readonly<Record<string, unknown>>, key?: SigningKey): Promise<string>;
  /** An access token of the machine's client, by the client credentials grant. */
  machineToken(): Promise<string>;
  /** Stops listening; `start` listens on the same port again. */
  stop(): Promise<void>;
  start(): Promise<unknown>;
}

export interface ProviderOptions {
  /** The methods that the metadata list; default: those of the library. */
  readonly listedAuth?: readonly string[];
  /** Puts all claims into the ID token as well. */
  readonly claimsInIdToken?: boolean;
  readonly userinfo?: 'plain' | 'signed' | 'failing';
}

/** @param redirectUris where the provider may send browsers back to; read at its first request */
export async function startOidcProvider(
  redirectUris: () => readonly string[],
  { listedAuth, claimsInIdToken = false, userinfo = 'plain' }: ProviderOptions = {},
): Promise<TestProvider> {
  // Loaded here: on Node 20 it warns that it was made for a newer one.
  const { default: Provider } = await import('oidc-provider');
  const accounts = new Map<string, OidcAccount>();
  const { privateKey } = await generateKeyPair(ALG, { extractable: true });
  const jwk = { ...(await exportJWK(privateKey)), kid: KID, alg: ALG, use: 'sig' };
  let authScheme: string | undefined;
  let idToken: TestProvider['idToken'];
  let groups: readonly string[] | undefined = [];
  let listening: Listening | undefined;
  let handle: ReturnType<InstanceType<typeof Provider>['callback']> | undefined;
  const start = async () => {
    listening = await listen((req, res) => {
      handle ??= handlerOf(new Provider(issuer, configuration()));
      handle(req, res).catch(() => res.destroy());
    }, listening?.port);
    return listening.url;
  };
  const issuer = await start();
  const handlerOf = (provider: InstanceType<typeof Provider>) => {
    provider.use(async (ctx, next) => {
      if (ctx.path === '/token') authScheme = ctx.get('authorization').split(' ')[0];
      if (ctx.path === '/me' && userinfo === 'failing') {
        ctx.status = 500;
        return;
      }
      await next();
      const body = ctx.body as { id_token?: string } | undefined;
      if (ctx.path === '/token' && body?.id_token && idToken) body.id_token = await idToken(body.id_token);
    });
    return provider.callback();
  };
  const configuration = (): Configuration => ({
    jwks: { keys: [jwk] },
    conformIdTokenClaims: !claimsInIdToken,
    ...(listedAuth && { clientAuthMethods: [...listedAuth] as Configuration['clientAuthMethods'] }),
    clients: [
      {
        client_id: OIDC_CLIENT,
        client_secret: OIDC_SECRET,
        redirect_uris: [...redirectUris()],
        grant_types: ['authorization_code'],
        response_types: ['code'],
        // The provider accepts the secret in the header as well.
        token_endpoint_auth_method: 'client_secret_post',
        ...(userinfo === 'signed' && { userinfo_signed_response_alg: ALG }),
      },
      {
        ...MACHINE,
        redirect_uris: [],
        response_types: [],
        grant_types: ['client_credentials'],
        token_endpoint_auth_method: 'client_secret_post',
      },
    ],
    claims: {
      openid: ['sub'],
      profile: ['preferred_username', 'name', 'groups', 'hasgroups'],
      email: ['email', 'email_verified'],
    },
    findAccount: (_ctx, sub) => ({
      accountId: sub,
      claims: async () => ({ sub, ...accounts.get(sub) }),
    }),
    pkce: { required: () => true },
    cookies: { keys: ['a key of the tests'] },
    features: {
      jwtUserinfo: { enabled: true },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        // Access tokens of sign-ins are for the provider itself.
        defaultResource: () => [],
        useGrantedResource: () => true,
        getResourceServerInfo: () => ({
          audience: AUDIENCE,
          scope: '',
          accessTokenFormat: 'jwt',
          accessTokenTTL: 300,
        }),
      },
    },
    extraTokenClaims: (_ctx, token) =>
      token.kind === 'ClientCredentials' && groups ? { groups: [...groups] } : undefined,
  });

  return {
    issuer,
    accounts,
    get machineGroups() {
      return groups;
    },
    set machineGroups(value) {
      groups = value;
    },
    get authScheme() {
      return authScheme;
    },
    get idToken() {
      return idToken;
    },
    set idToken(value) {
      idToken = value;
    },
    sign: (claims, key = privateKey) => new SignJWT(claims).setProtectedHeader({ alg: ALG, kid: KID }).sign(key),
    approve: (url, sub) => approve(url, sub, issuer),
    async machineToken() {
      const response = await fetch(`${issuer}/token`, {
        method: 'POST',
        body: new URLSearchParams({ grant_type: 'client_credentials', resource: AUDIENCE, ...MACHINE }),
      });
      const { access_token: token } = (await response.json()) as { access_token?: string };
      if (token === undefined) throw new Error(`the provider gave no token: ${response.status}`);
      return token;
    },
    stop: async () => listening?.close(),
    start,
  };
}

/** Walks through the pages of the provider: the sign-in form, the consent, and back. */
async function approve(url: string, sub: string, issuer: string): Promise<URLSearchParams> {
  const jar = new Map<string, string>();
  let next = url;
  let form: Record<string, string> | undefined;
  for (let step = 0; step < 12; step++) {
    const response = await fetch(next, {
      redirect: 'manual',
      headers: { cookie: [...jar].map(([name, value]) => `${name}=${value}`).join('; ') },
      ...(form && { method: 'POST', body: new URLSearchParams(form) }),
    });
    for (const line of response.headers.getSetCookie()) {
      const [pair = ''] = line.split(';');
      const [name = '', ...value] = pair.split('=');
      if (value.join('=') === '') jar.delete(name);
      else jar.set(name, value.join('='));
    }
    const location = response.headers.get('location');
    if (location !== null) {
      const target = new URL(location, next);
      if (target.origin !== issuer) return target.searchParams;
      next = target.href;
      form = undefined;
      continue;
    }
    const page = await response.text();
    const action = /<form[^>]+action="([^"]+)"/.exec(page)?.[1];
    const prompt = /name="prompt" value="([^"]+)"/.exec(page)?.[1];
    if (action === undefined || prompt === undefined)
      throw new Error(`no form at ${next}: ${response.status} ${page.slice(0, 300)}`);
    next = new URL(action, next).href;
    form = prompt === 'login' ? { prompt, login: sub, password: 'any' } : { prompt };
  }
  throw new Error('the provider did not send the browser back');
}
