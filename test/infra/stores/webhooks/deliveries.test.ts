/** The queue of webhooks under several workers: one claims, nothing is forgotten, a lost claim changes nothing. */
import { expect } from 'chai';
import { createWebhookQueue, createWebhookRecords } from '../../../../infra/stores/webhooks/deliveries.ts';
import type { Claim, NewDelivery, WebhookQueue, WebhookRecords } from '../../../../shared/ports/webhooks/deliveries.ts';
import { fixture } from '../../../support/fixture.ts';
import { until } from '../../../support/until.ts';
import { testDatabase } from '../../../support/world.ts';

const delivery = (fields: Partial<NewDelivery> = {}): NewDelivery => ({
  workspace: 1,
  webhookId: 1,
  messageId: 'm1',
  eventType: 'test.ping',
  payload: '{}',
  statusCode: 500,
  responseBody: null,
  error: null,
  durationMs: 1,
  attempt: 0,
  parentId: null,
  nextRetryAt: null,
  createdAt: 1_000,
  ...fields,
});
const REST = { done: true, retries: true };

describe('webhook queue', () => {
  let queue: WebhookQueue;
  let records: WebhookRecords;
  const world = fixture(testDatabase);
  before(async () => {
    queue = createWebhookQueue(world.database.pool, 60_000);
    records = createWebhookRecords(world.database.pool);
  });
  beforeEach(() => world.database.pool.query('DELETE FROM service.webhooks'));

  const claimed = async (): Promise<Claim> => (await queue.claim()) ?? expect.fail('nothing to claim');

  /** The claim of a webhook for which the log has been read up to 10, and which is notified of 12. */
  async function claimedNew(): Promise<Claim> {
    await records.begin(1, 1, 10);
    await queue.wake([1], 12);
    return claimed();
  }

  it('has nothing to do for a new webhook; once notified, it is claimed once', async () => {
    await records.begin(1, 1, 10);
    await records.begin(1, 1, 99);
    expect(await queue.claim()).to.equal(undefined);
    expect(await queue.wake([1, 2], 12), 'one that slept').to.equal(1);
    expect(await queue.wake([1], 13), 'it is awake').to.equal(0);
    expect(await queue.wake([1], 12), 'older news').to.equal(0);
    const claims = await Promise.all([queue.claim(), queue.claim(), queue.claim()]);
    expect(claims.filter(Boolean)).to.have.length(1);
    expect(claims.find(Boolean)).to.include({ webhook: 1, workspace: 1, position: 10, wanted: 13, failures: 0 });
  });

  it('does not lose events that arrive during a delivery', async () => {
    const claim = await claimedNew();
    expect(await queue.wake([1], 14), 'whoever has it goes on').to.equal(0);
    await queue.release(claim, { ...REST, position: 12 });
    const next = await claimed();
    expect(next).to.include({ position: 12, wanted: 14 });
    await queue.release(next, { ...REST, position: 14 });
    expect(await queue.claim()).to.equal(undefined);
  });

  it('returns an unfinished webhook again, after those that have waited longer', async () => {
    await records.begin(1, 1, 10);
    await records.begin(1, 2, 10);
    await queue.wake([1, 2], 12);
    const first = await claimed();
    await queue.release(first, { position: 11, done: false, retries: true });
    const second = await claimed();
    expect(second.webhook).not.to.equal(first.webhook);
    expect(await claimed()).to.include({ webhook: first.webhook, position: 11 });
  });

  it('ends a lease that is not renewed, and ignores its later changes', async () => {
    const brief = createWebhookQueue(world.database.pool, 50);
    await records.begin(1, 1, 10);
    await queue.wake([1], 12);
    const lost = (await brief.claim()) ?? expect.fail('nothing to claim');
    expect(await brief.renew(lost)).to.equal(0);
    expect(await queue.next(), 'when the lease ends').to.be.closeTo(Date.now(), 5_000);
    const taken = await until('somebody else has it', () => queue.claim());
    expect(await queue.renew(lost)).to.equal(undefined);
    expect(await queue.settle(lost, { delivery: delivery(), failures: 9, position: 12 })).to.equal(false);
    await queue.release(lost, { ...REST, position: 12 });
    await queue.forget(lost);
    expect((await records.list(1, { webhook: 1, limit: 10, offset: 0 })).total).to.equal(0);
    expect(await queue.settle(taken, { delivery: delivery(), failures: 1, position: undefined })).to.equal(true);
    await queue.release(taken, { position: 10, done: false, retries: true });
    expect(await claimed()).to.include({ position: 10, failures: 1, waiting: 0 });
  });

  it('replaces the waiting attempt by its retry', async () => {
    const claim = await claimedNew();
    await queue.settle(claim, { delivery: delivery({ nextRetryAt: 5_000 }), failures: 1, position: 12 });
    expect(await queue.pending(claim)).to.equal(1);
    expect(await queue.renew(claim)).to.equal(1);
    await records.reset(1, 1);
    expect(await queue.renew(claim), 'somebody has reset it meanwhile').to.equal(0);
    expect(await queue.told(claim, ['m1', 'm2'])).to.deep.equal(new Set(['m1']));
    expect(await queue.due(claim, 4_999, 10)).to.deep.equal([]);
    const [due] = await queue.due(claim, 5_000, 10);
    const again = delivery({ attempt: 1, parentId: due?.id ?? 0, statusCode: 200 });
    await queue.settle(claim, { delivery: again, failures: 0, position: undefined });
    expect(await queue.pending(claim)).to.equal(0);
    await queue.release(claim, { ...REST, position: 12 });
    expect(await queue.next()).to.equal(undefined);
    expect((await records.states(1)).get(1)).to.deep.equal({
      lastFiredAt: 1_000,
      lastStatus: 200,
      failures: 0,
      total: 2,
      successful: 1,
      failed: 1,
    });
  });

  it('returns a webhook when a retry is due, unless retries are suspended', async () => {
    const claim = await claimedNew();
    await queue.settle(claim, { delivery: delivery({ nextRetryAt: 5_000 }), failures: 1, position: 12 });
    await queue.release(claim, { ...REST, position: 12 });
    expect(await queue.next()).to.equal(5_000);
    const next = await claimed();
    expect(next.waiting).to.equal(1);
    await queue.release(next, { position: 12, done: true, retries: false });
    expect(await queue.claim()).to.equal(undefined);
    expect(await queue.recall()).to.equal(1);
    await queue.release(await claimed(), { position: 12, done: true, retries: false });
    // One that is enabled again is woken, and finds what waited.
    await queue.wake([1], 15);
    expect(await queue.due(await claimed(), 5_000, 10)).to.have.length(1);
  });

  it('cancels the waiting attempt if a manual attempt succeeds', async () => {
    const claim = await claimedNew();
    await queue.settle(claim, { delivery: delivery({ nextRetryAt: 5_000 }), failures: 1, position: 12 });
    const [due] = await queue.due(claim, 5_000, 10);
    await records.record(delivery({ attempt: 1, parentId: due?.id ?? 0, statusCode: 503 }));
    expect(await queue.pending(claim), 'it has not arrived').to.equal(1);
    await records.record(delivery({ attempt: 1, parentId: due?.id ?? 0, statusCode: 204 }));
    expect(await queue.pending(claim)).to.equal(0);
    expect((await records.states(1)).get(1)?.failures, 'attempts by hand do not count').to.equal(1);
  });

  it('neither records nor removes deliveries of a deleted webhook or another workspace', async () => {
    await records.begin(1, 1, 10);
    expect(await records.record(delivery({ workspace: 2 }))).to.equal(undefined);
    const id = await records.record(delivery());
    expect(await records.find(2, id ?? 0)).to.equal(undefined);
    await records.remove(2, 1);
    expect((await records.find(1, id ?? 0))?.messageId).to.equal('m1');
    await records.remove(1, 1);
    expect(await records.find(1, id ?? 0)).to.equal(undefined);
    expect(await records.record(delivery())).to.equal(undefined);
  });

  it('starts unknown webhooks at the end of the log, not at its beginning', async () => {
    await records.begin(1, 1, 10);
    await queue.resume(
      [
        { workspace: 1, id: 1 },
        { workspace: 1, id: 2 },
      ],
      50,
      false,
    );
    const claims = [await claimed(), await claimed()].sort((a, b) => a.webhook - b.webhook);
    expect(claims.map(({ position, wanted }) => [position, wanted])).to.deep.equal([
      [10, 50],
      [50, 50],
    ]);
  });

  it('ends claims of a dead process at once if there is only one process', async () => {
    const left = await claimedNew();
    await queue.resume([], 20, false);
    expect(await queue.claim(), 'somebody may still have it').to.equal(undefined);
    await queue.resume([], 20, true);
    expect((await claimed()).webhook).to.equal(left.webhook);
    expect(await queue.renew(left)).to.equal(undefined);
  });

  it('removes old deliveries, except those with a pending retry', async () => {
    await records.begin(1, 1, 10);
    for (const nextRetryAt of [null, 5_000]) await records.record(delivery({ nextRetryAt }));
    await records.record(delivery({ createdAt: 2_000 }));
    await queue.purge(2_000);
    const { deliveries } = await records.list(1, { webhook: undefined, limit: 10, offset: 0 });
    expect(deliveries.map(({ createdAt, nextRetryAt }) => [createdAt, nextRetryAt])).to.deep.equal([
      [2_000, null],
      [1_000, 5_000],
    ]);
  });
});
