/** Lookups of credentials: shared by concurrent requests until a credential changes. */
import { expect } from 'chai';
import { createIdentify } from '../../api/auth/identify.ts';
import type { RequestContext } from '../../api/http/context.ts';
import type { KeyRecord } from '../../shared/ports/credentials.ts';
import { gate } from '../support/memory-world.ts';
import { until } from '../support/until.ts';

describe('identification of callers', () => {
  it('shares a lookup between concurrent requests, but not with requests that came after a credential changed', async () => {
    let stamp = 'before';
    const open = gate();
    let lookups = 0;
    const none = { totalHits: 0, resetTime: undefined };
    const identify = createIdentify({
      settings: { proxyAuthTrustedIps: [] },
      reads: { at: () => ({}) },
      credentials: {
        async findKey(): Promise<KeyRecord | undefined> {
          lookups++;
          await open.wait();
          return undefined;
        },
      },
      freshness: { credentials: async () => stamp },
      securityEvents: { apiKeyRefused: () => undefined },
      limitStore: () => ({ get: async () => none, increment: async () => none }),
      now: Date.now,
    } as unknown as Parameters<typeof createIdentify>[0]);
    const req = { headers: { 'x-api-key': 'a-key-that-is-looked-up' }, cookies: {} };
    const ask = () => identify({ req, ip: '192.0.2.1', startedAt: performance.now() } as unknown as RequestContext);
    const requests = [ask(), ask()];
    await open.reached;
    stamp = 'after';
    requests.push(ask());
    await until('the credential is looked up again', () => lookups > 1);
    open.open();
    expect(await Promise.all(requests)).to.deep.equal([null, null, null]);
    expect(lookups, 'one before the change, and one after it').to.equal(2);
  });
});
