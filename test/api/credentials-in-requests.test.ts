/** What a request brings and what an answer sets: keys, cookies, roles. */

import { expect } from 'chai';
import type { Request } from 'express';
import { keyOf } from '../../api/auth/identify.ts';
import { roleOf } from '../../api/auth/known.ts';
import { clearingCookies, sessionCookie, tokensOf } from '../../api/auth/sessions.ts';
import { newToken } from '../../commands/auth/sessions.ts';

const req = (headers: Record<string, string>, cookies: Record<string, unknown> = {}) => ({
  req: { headers, cookies } as unknown as Request,
});

describe('API keys in requests', () => {
  it('in x-api-key take precedence over Authorization', () => {
    expect(keyOf(req({ 'x-api-key': ' a ', authorization: 'Bearer b' }))).to.equal('a');
    expect(keyOf(req({ 'x-api-key': '', authorization: 'Bearer b' }))).to.equal('b');
  });
  it('are accepted under three schemes, in any letter case', () => {
    for (const scheme of ['Bearer', 'ApiKey', 'Token', 'bearer', 'APIKEY', 'tOkEn']) {
      expect(keyOf(req({ authorization: `${scheme} k1` }))).to.equal('k1');
    }
    for (const other of ['Basic abc', 'Bearer', 'Bearer ', 'k1', 'BearerX k1']) {
      expect(keyOf(req({ authorization: other })), other).to.equal(undefined);
    }
  });
  it('are ignored if they are not well formed', () => {
    expect(keyOf(req({}))).to.equal(undefined);
    expect(keyOf(req({ 'x-api-key': 'x'.repeat(2_000) }))).to.equal(undefined);
  });
  it('get their role from their scopes', () => {
    expect(roleOf(['agent:self', 'admin', 'viewer'])).to.equal('admin');
    expect(roleOf(['viewer', 'operator'])).to.equal('operator');
    expect(roleOf(['agent:heartbeat'])).to.equal('viewer');
    expect(roleOf([])).to.equal('viewer');
  });
});

describe('session cookies', () => {
  const token = newToken();
  const now = Date.UTC(2026, 0, 1);
  const secure = { cookieSecure: true };

  it('have a name that depends on the scheme and always carry every attribute', () => {
    expect(token).to.match(/^[0-9a-f]{64}$/);
    const attributes =
      'Path=/; Max-Age=604800; Expires=Thu, 08 Jan 2026 00:00:00 GMT; HttpOnly; Secure; SameSite=Strict';
    expect(sessionCookie({ secure: true }, token, now, secure)).to.equal(`__Host-mc-session=${token}; ${attributes}`);
    expect(sessionCookie({ secure: false }, token, now, secure)).to.equal(`mc-session=${token}; ${attributes}`);
  });
  it('apply to the path of the public URL only, under another name, because __Host- is for all paths', () => {
    const below = { cookieSecure: true, publicUrl: 'https://example.com/signalbox' };
    expect(sessionCookie({ secure: true }, token, now, below)).to.match(
      /^__Secure-mc-session=\w+; Path=\/signalbox; .*HttpOnly; Secure; SameSite=Strict$/,
    );
    const both = { ...req({}, { '__Secure-mc-session': token, '__Host-mc-session': newToken() }), secure: true };
    expect(tokensOf(both)[0]).to.equal(token);
    expect(clearingCookies(both, below).map((line) => line.split('; ').slice(0, 2).join())).to.have.members([
      '__Secure-mc-session=,Path=/signalbox',
      '__Host-mc-session=,Path=/',
    ]);
    const atRoot = { cookieSecure: true, publicUrl: 'https://example.com' };
    expect(sessionCookie({ secure: true }, token, now, atRoot)).to.match(/^__Host-mc-session=\w+; Path=\/;/);
  });
  it('omit the __Host- prefix without Secure, because browsers would reject it', () => {
    const line = sessionCookie({ secure: true }, token, now, { cookieSecure: false });
    expect(line).to.match(/^mc-session=/);
    expect(line).not.to.include('Secure');
    expect(line).to.include('HttpOnly').and.include('SameSite=Strict');
  });
  it('are cleared under every name in the request', () => {
    const none = { ...req({}), secure: false };
    expect(clearingCookies(none, secure)).to.have.length(1);
    expect(clearingCookies(none, secure)[0]).to.match(/^mc-session=; Path=\/; Max-Age=0;/);
    const both = { ...req({}, { '__Host-mc-session': token }), secure: false };
    expect(clearingCookies(both, secure).map((line) => line.split('=')[0])).to.have.members([
      'mc-session',
      '__Host-mc-session',
    ]);
  });
  it('are read under both names; an invalid token does not hide a valid one', () => {
    const other = newToken();
    expect(tokensOf(req({}, { '__Host-mc-session': token, 'mc-session': other }))).to.deep.equal([token, other]);
    expect(tokensOf(req({}, { '__Host-mc-session': '', 'mc-session': other }))).to.deep.equal([other]);
    expect(tokensOf(req({}, { '__Host-mc-session': { a: 1 }, 'mc-session': other }))).to.deep.equal([other]);
    expect(tokensOf(req({}))).to.deep.equal([]);
  });
});
