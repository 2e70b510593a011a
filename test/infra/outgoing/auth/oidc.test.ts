/** How the provider is reached, and what an error says, against a real provider. */
import { expect } from 'chai';
import { pino } from 'pino';
import { readConfig } from '../../../../infra/config.ts';
import { createOidc } from '../../../../infra/outgoing/auth/oidc.ts';
import { discoveryFault } from '../../../../infra/outgoing/auth/sign-in.ts';
import { AppError } from '../../../../shared/errors.ts';
import { listen } from '../../../support/listen.ts';
import {
  AUDIENCE,
  OIDC_CLIENT,
  OIDC_SECRET,
  type ProviderOptions,
  startOidcProvider,
  type TestProvider,
} from '../../../support/oidc.ts';

const HOME = 'http://signalbox.example/';

describe('a response of the OpenID Connect provider that does not arrive', () => {
  it('is a 503, whichever library gave up waiting and wherever its code stands', () => {
    const issuer = 'https://id.example.com';
    const codes = ['OAUTH_TIMEOUT', 'OAUTH_ABORT', 'ERR_JWKS_TIMEOUT'];
    for (const code of codes) {
      const late = Object.assign(new Error('late'), { code });
      for (const error of [late, new Error('failed', { cause: late })]) {
        const { status, extras } = discoveryFault(error, { issuer });
        expect([status, extras.code], code).to.deep.equal([503, 'OIDC_UNREACHABLE']);
      }
    }
    const other = Object.assign(new Error('wrong'), { code: 'OAUTH_RESPONSE_IS_NOT_CONFORM' });
    expect(discoveryFault(other, { issuer }).extras.code).to.equal('OIDC_MISCONFIGURED');
  });
});

describe('the OpenID Connect provider', () => {
  const undo: (() => unknown)[] = [];
  afterEach(async () => {
    for (const one of undo.splice(0)) await one();
  });

  async function started(options: ProviderOptions = {}): Promise<TestProvider> {
    const provider = await startOidcProvider(() => [HOME], options);
    undo.push(() => provider.stop());
    provider.accounts.set('sub-ann', {
      preferred_username: 'ann',
      name: 'Ann',
      email: 'a@example.com',
      groups: ['ops'],
    });
    return provider;
  }
  const oidcOf = (env: Record<string, string>) => {
    const settings = { OIDC_CLIENT_ID: OIDC_CLIENT, OIDC_CLIENT_SECRET: OIDC_SECRET, OIDC_ROLES: '*=viewer', ...env };
    const oidc = createOidc(readConfig(settings), pino({ level: 'silent' }));
    if (!oidc) throw new Error('no provider is configured');
    return oidc;
  };
  async function signIn(provider: TestProvider, env: Record<string, string> = {}) {
    const oidc = oidcOf({ OIDC_ISSUER: provider.issuer, ...env });
    const { url, begun } = await oidc.begin(HOME);
    const back = await provider.approve(url, 'sub-ann');
    return oidc.finish({ code: back.get('code') ?? '', state: begun.state, iss: back.get('iss') ?? '' }, HOME, begun);
  }
  async function errorOf(promise: Promise<unknown>) {
    try {
      await promise;
    } catch (error) {
      if (error instanceof AppError) return { status: error.status, code: error.extras.code, message: error.message };
      throw error;
    }
    throw new Error('it was not refused');
  }

  it('receives the client’s credentials by the method in its metadata, or in OIDC_CLIENT_AUTH', async () => {
    const usual = await started();
    expect(await signIn(usual)).to.deep.include({ displayName: 'Ann', groups: { known: ['ops'] } });
    expect(usual.authScheme).to.equal('Basic');
    await signIn(usual, { OIDC_CLIENT_AUTH: 'client_secret_post' });
    expect(usual.authScheme, 'in the body').to.equal('');
    const listed = await started({ listedAuth: ['client_secret_post', 'none'] });
    await signIn(listed);
    expect(listed.authScheme, 'in the body').to.equal('');
    const wrong = await errorOf(signIn(usual, { OIDC_CLIENT_SECRET: 'another secret' }));
    expect(wrong).to.include({ status: 400, code: 'OIDC_MISCONFIGURED' });
    expect(wrong.message).to.include('OIDC_CLIENT_SECRET and OIDC_CLIENT_AUTH');
  });

  it('need not describe the account if the ID token has the groups, and otherwise has to', async () => {
    const failing = { userinfo: 'failing' } as const;
    expect(await signIn(await started({ ...failing, claimsInIdToken: true }))).to.deep.include({
      groups: { known: ['ops'] },
    });
    expect(await errorOf(signIn(await started(failing)))).to.include({ status: 503, code: 'OIDC_UNREACHABLE' });
    expect(await signIn(await started({ userinfo: 'signed' }))).to.deep.include({ groups: { known: ['ops'] } });
  });

  it('is unreachable only if the network or the provider is at fault', async () => {
    const provider = await started();
    await provider.stop();
    expect(await errorOf(oidcOf({ OIDC_ISSUER: provider.issuer }).begin(HOME))).to.include({
      status: 503,
      code: 'OIDC_UNREACHABLE',
    });
    const busy = await listen((_, res) => res.writeHead(502).end());
    undo.push(() => busy.close());
    expect(await errorOf(oidcOf({ OIDC_ISSUER: busy.url }).begin(HOME))).to.include({ status: 503 });
  });

  it('names the issuer or realm that differs', async () => {
    const provider = await started();
    const realm = await errorOf(oidcOf({ OIDC_ISSUER: `${provider.issuer}/realms/mian` }).begin(HOME));
    expect(realm).to.include({ status: 400, code: 'OIDC_MISCONFIGURED' });
    expect(realm.message).to.include(
      `${provider.issuer}/realms/mian/.well-known/openid-configuration responded with status 404`,
    );
    const other = await listen((_, res) => {
      res.setHeader('content-type', 'application/json');
      res.end(JSON.stringify({ issuer: 'https://id.example.com/realms/main' }));
    });
    undo.push(() => other.close());
    const issuer = await errorOf(oidcOf({ OIDC_ISSUER: other.url }).begin(HOME));
    expect(issuer).to.include({ status: 400, code: 'OIDC_MISCONFIGURED' });
    expect(issuer.message).to.include('calls itself "https://id.example.com/realms/main"').and.to.include(other.url);
  });

  it('names the claim of an ID token that differs', async () => {
    const provider = await started();
    const changed = (changes: object) => {
      provider.idToken = (token) => {
        const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
        return provider.sign({ ...claims, ...changes });
      };
      return errorOf(signIn(provider));
    };
    const clock = await changed({ iat: 1_700_000_000, exp: 1_700_000_060 });
    expect(clock).to.include({ status: 400, code: 'OIDC_MISCONFIGURED' });
    expect(clock.message).to.match(/expired at 2023-11-14T22:14:20.000Z, and this server's clock says 20/);
    expect((await changed({ aud: 'someone-else' })).message)
      .to.include('audience is "someone-else"')
      .and.to.include('OIDC_CLIENT_ID');
    expect((await changed({ iss: 'https://id.example.com' })).message).to.include('issuer is "https://id.example.com"');
    expect((await changed({ nonce: 'other' })).message, 'secrets of the sign-in').not.to.match(/other|undefined/);
  });

  it('names what differs in an access token', async () => {
    const provider = await started();
    const oidc = oidcOf({ OIDC_ISSUER: provider.issuer, OIDC_AUDIENCE: AUDIENCE });
    const now = Math.floor(Date.now() / 1_000);
    const claims = { iss: provider.issuer, sub: 'sub-ann', aud: AUDIENCE, iat: now, exp: now + 60 };
    const faultOf = async (changes: object) => {
      const verified = await oidc.verify(await provider.sign({ ...claims, ...changes }));
      return 'fault' in verified ? verified.fault : undefined;
    };
    expect(await faultOf({})).to.equal(undefined);
    expect(await faultOf({ aud: 'account' }))
      .to.include('"account"')
      .and.to.include(`OIDC_AUDIENCE ("${AUDIENCE}")`);
    expect(await faultOf({ iss: 'https://other.example' })).to.include('"https://other.example"');
    expect(await faultOf({ exp: now - 3_600 }))
      .to.include('it expired at')
      .and.to.include('clock');
    expect(await faultOf({ nbf: now + 3_600 })).to.include('it is valid from');
  });
});
