import { expect } from 'chai';
import { SignJWT } from 'jose';
import { createGoogleVerifier } from '../../../../infra/outgoing/auth/google.ts';
import { AppError } from '../../../../shared/errors.ts';
import type { VerifyGoogleToken } from '../../../../shared/ports/auth/google.ts';
import { fixture } from '../../../support/fixture.ts';
import { CLIENT_ID, ISSUER, startFakeGoogle } from '../../../support/google.ts';

describe('Google ID tokens', () => {
  let verify: VerifyGoogleToken;
  const google = fixture(startFakeGoogle);
  before(async () => {
    verify = createGoogleVerifier(settings());
  });

  const settings = () => ({
    googleClientId: CLIENT_ID,
    googleKeysUrl: google.url,
    googleIssuers: [ISSUER, 'accounts.google.com'],
  });
  const refused = async (token: string, other: object = {}): Promise<AppError> => {
    try {
      await (Object.keys(other).length === 0 ? verify : createGoogleVerifier({ ...settings(), ...other }))(token);
    } catch (error) {
      if (error instanceof AppError) return error;
      throw error;
    }
    throw new Error('was accepted');
  };

  it('return the account, with the address in lower case, if valid', async () => {
    expect(await verify(await google.token())).to.deep.equal({
      sub: 'sub-1',
      email: 'ann@example.com',
      name: 'Ann Lee',
      picture: 'https://example.com/ann.png',
    });
    expect(await verify(await google.token({ email_verified: 'true', name: undefined }))).to.include({
      name: null,
    });
    expect(await verify(await google.token({ iss: 'accounts.google.com' }))).to.include({
      sub: 'sub-1',
    });
  });

  const past = Math.floor(Date.now() / 1_000) - 3_600;
  for (const [what, claims] of Object.entries({
    'another audience': { aud: 'somebody-else' },
    'another issuer': { iss: 'https://evil.example' },
    'an address that is not verified': { email_verified: false },
    'no word on the address': { email_verified: undefined },
    'no address': { email: undefined },
    'no subject': { sub: undefined },
    'an address with a line break': { email: 'a@b.c\n' },
    expired: { exp: past },
    'no expiry': { exp: undefined },
  })) {
    it(`are rejected: ${what}`, async () => {
      expect((await refused(await google.token(claims))).status).to.equal(400);
    });
  }

  it('are rejected if signed by another key, with a secret, or not at all, or if not a token', async () => {
    expect((await refused(await google.token({}, { foreignKey: true }))).status).to.equal(400);
    const hmac = await new SignJWT({ email: 'a@b.c', email_verified: true, sub: 's' })
      .setProtectedHeader({ alg: 'HS256', kid: 'k1' })
      .setIssuer(ISSUER)
      .setAudience(CLIENT_ID)
      .setExpirationTime('5m')
      .setIssuedAt()
      .sign(new TextEncoder().encode('x'.repeat(32)));
    const none = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${hmac.split('.')[1]}.`;
    for (const token of [hmac, none, 'rubbish', 'a.b.c']) expect((await refused(token)).status, token).to.equal(400);
  });

  it('do not cause another key fetch for every unknown key id', async () => {
    await verify(await google.token());
    const before = google.fetches();
    const strange = (await google.token()).split('.');
    strange[0] = Buffer.from(JSON.stringify({ alg: 'RS256', kid: 'unknown' })).toString('base64url');
    for (let i = 0; i < 20; i++) await refused(strange.join('.'));
    expect(google.fetches() - before).to.be.at.most(1);
  });

  it('return an error if sign-in is off or the keys cannot be fetched', async () => {
    const off = await refused(await google.token(), { googleClientId: undefined });
    expect(off.message).to.include('GOOGLE_CLIENT_ID');
    const gone = await startFakeGoogle();
    await gone.close();
    const error = await refused(await google.token(), { googleKeysUrl: gone.url });
    expect([error.status, error.extras.code]).to.deep.equal([400, 'GOOGLE_UNREACHABLE']);
  });
});
