import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import { listen } from './listen.ts';

export const CLIENT_ID = 'client-1.apps.example';
export const ISSUER = 'https://accounts.google.com';

export interface FakeGoogle {
  readonly url: string;
  /** How often the keys were asked for. */
  readonly fetches: () => number;
  /** A token as Google would sign it; `claims` replace or (undefined) remove. */
  token(claims?: Record<string, unknown>, options?: { readonly foreignKey?: boolean }): Promise<string>;
  close(): Promise<void>;
}

export async function startFakeGoogle(): Promise<FakeGoogle> {
  const own = await generateKeyPair('RS256', { extractable: true });
  const foreign = await generateKeyPair('RS256');
  const jwk = { ...(await exportJWK(own.publicKey)), kid: 'k1', alg: 'RS256', use: 'sig' };
  let fetches = 0;
  const server = await listen((_req, res) => {
    fetches++;
    res.setHeader('Content-Type', 'application/json');
    res.end(JSON.stringify({ keys: [jwk] }));
  });
  return {
    url: `${server.url}/certs`,
    fetches: () => fetches,
    token(claims = {}, { foreignKey = false } = {}) {
      const now = Math.floor(Date.now() / 1_000);
      const payload: JWTPayload = {
        iss: ISSUER,
        aud: CLIENT_ID,
        iat: now,
        exp: now + 600,
        sub: 'sub-1',
        email: 'Ann@Example.com',
        email_verified: true,
        name: 'Ann Lee',
        picture: 'https://example.com/ann.png',
        ...claims,
      };
      return new SignJWT(payload)
        .setProtectedHeader({ alg: 'RS256', kid: 'k1' })
        .sign(foreignKey ? foreign.privateKey : own.privateKey);
    },
    close: server.close,
  };
}
