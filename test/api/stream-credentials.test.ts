/** Streams end with their credential: the watch of the hub, on credentials by hand. */
import { expect } from 'chai';
import type { Identity } from '../../shared/identity.ts';
import { type OpenStream, openStream } from '../support/stream.ts';
import { type HubServer, startHub } from '../support/stream-hub.ts';
import { until } from '../support/until.ts';

describe('stream credentials', () => {
  let base: HubServer;
  let now = 1_000_000;
  beforeEach(async () => {
    now = 1_000_000;
    base = await startHub({ now: () => now, watch: { everyMs: 5, uncheckedMs: 10_000 } });
  });
  afterEach(() => base.close());

  const open = (user: string): Promise<OpenStream> => openStream(base.url, { 'x-user': user });
  /** Two rounds have begun since. */
  const looked = async () => {
    const before = base.credentials.asked.length;
    base.credentials.stamp++;
    await until('they are looked at', () => base.credentials.asked.length > before);
    base.credentials.stamp++;
    await until('they are looked at again', () => base.credentials.asked.length > before + 1);
  };

  const ends: readonly (readonly [string, Partial<Identity> | undefined])[] = [
    ['ends', undefined],
    ['stands for a lower role', { role: 'viewer' }],
    ['stands for a higher role', { role: 'admin' }],
    ['stands for another workspace', { workspace: 2 }],
    ['stands for another tenant', { tenant: 2 }],
    ['stands for somebody else', { id: 77 }],
  ];
  for (const [what, change] of ends) {
    it(`a stream whose credential ${what} ends; the others stay open`, async () => {
      const streams = [await openStream(base.url, { 'x-user': '1', 'x-role': 'operator' }), await open('2')];
      await looked();
      expect(base.hub.clients).to.equal(2);
      base.credentials.changed.set('1', change);
      base.credentials.stamp++;
      await until('it ends', () => base.hub.clients === 1);
      await streams[0]?.until(() => (streams[0]?.comments.length ?? 0) > 0);
      expect(streams[0]?.comments[0]).to.match(/credential of this stream has ended or changed; connect again/);
      await looked();
      expect(base.hub.clients).to.equal(1);
      for (const stream of streams) stream.close();
    });
  }

  it('a changed name does not end a stream', async () => {
    const stream = await open('1');
    base.credentials.changed.set('1', { username: 'renamed', displayName: 'Renamed' });
    await looked();
    expect(base.hub.clients).to.equal(1);
    stream.close();
  });

  it('all streams share one look-up, and none takes place while nothing changes', async () => {
    const streams = await Promise.all(Array.from({ length: 10 }, (_, n) => open(`${n}`)));
    await looked();
    expect(base.credentials.asked.at(-1)).to.equal(10);
    const before = base.credentials.asked.length;
    let rounds = 0;
    const check = base.credentials;
    Object.defineProperty(check, 'stamp', {
      get() {
        rounds++;
        return 1_000;
      },
    });
    await until('rounds go by', () => rounds > 5);
    // One more: the stamp is another one now.
    expect(base.credentials.asked.length).to.equal(before + 1);
    for (const stream of streams) stream.close();
  });

  it('a stream ends if its credential ends while the stream is being opened', async () => {
    const first = await open('1');
    await looked();
    base.credentials.changed.set('2', undefined);
    // The stamp stands still from here on: the stream comes after the change.
    const late = await open('2');
    await until('it ends', () => base.hub.clients === 1);
    first.close();
    late.close();
  });

  it('a stream ends when its credential expires', async () => {
    base.credentials.expiresAt.set('1', now / 1_000 + 9);
    const streams = [await open('1'), await open('2')];
    await looked();
    now += 8_000;
    await looked();
    expect(base.hub.clients).to.equal(2);
    now += 1_000;
    await until('it ends', () => base.hub.clients === 1);
    await streams[0]?.until(() => (streams[0]?.comments.length ?? 0) > 0);
    expect(streams[0]?.comments[0]).to.match(/has expired/);
    for (const stream of streams) stream.close();
  });

  it('while credentials cannot be looked up, streams continue for a limited time', async () => {
    const stream = await open('1');
    await looked();
    base.credentials.broken = new Error('connect ECONNREFUSED');
    now += 9_000;
    base.credentials.broken = undefined;
    await looked();
    expect(base.hub.clients).to.equal(1);
    base.credentials.broken = new Error('connect ECONNREFUSED');
    now += 10_001;
    await until('it ends', () => base.hub.clients === 0);
    stream.close();
  });
});
