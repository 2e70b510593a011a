/** The queue of webhooks under several workers: one claims, no work is lost, a lost claim changes nothing. */
import { expect } from 'chai';
import { createWebhookQueue, createWebhookRecords } from '../../../../infra/stores/webhooks/queue.ts';
import type {
  Claim,
  NewDelivery,
  Resume,
  WebhookQueue,
  WebhookRecords,
} from '../../../../shared/ports/webhooks/queue.ts';
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
  createdAt: 1_000,
  ...fields,
});
const NONE = new Map<number, number>();
const to = (position: number, resume: Resume = 'retry') => ({ position, resume });

describe('webhook queue', () => {
  let queue: WebhookQueue;
  let records: WebhookRecords;
  const world = fixture(testDatabase);
  before(async () => {
    queue = createWebhookQueue(world.database.pool, 60_000);
    records = createWebhookRecords(world.database.pool);
  });
  beforeEach(() => world.database.pool.query('DELETE FROM service.webhooks'));

  const claimed = async (wanted: ReadonlyMap<number, number> = NONE): Promise<Claim> =>
    (await queue.claim(wanted)) ?? expect.fail('nothing to claim');

  /** The claim of a webhook for which the log has been read up to 10, and which the event at 12 concerns. */
  async function claimedNew(): Promise<Claim> {
    await records.begin(1, 1, 10);
    return claimed(new Map([[1, 12]]));
  }
  const waitOf = async () => (await queue.next(NONE)).waitMs;

  it('has no work for a new webhook; once an event concerns it, it is claimed once', async () => {
    await records.begin(1, 1, 10);
    await records.begin(1, 1, 99);
    expect(await queue.claim(NONE)).to.equal(undefined);
    expect(await queue.claim(new Map([[1, 10]])), 'it has received that').to.equal(undefined);
    const wanted = new Map([
      [1, 13],
      [2, 13],
    ]);
    expect(await queue.next(wanted)).to.deep.equal({ waitMs: 0, wanted: new Set([1]) });
    const claims = await Promise.all([queue.claim(wanted), queue.claim(wanted), queue.claim(wanted)]);
    expect(claims.filter(Boolean)).to.have.length(1);
    expect(claims.find(Boolean)).to.include({ webhook: 1, workspace: 1, position: 10, wanted: 13, failures: 0 });
    expect((await queue.next(wanted)).wanted, 'another worker has it').to.deep.equal(new Set());
  });

  it('does not lose events that arrive during a delivery', async () => {
    const claim = await claimedNew();
    expect(await queue.claim(new Map([[1, 14]])), 'it is claimed').to.equal(undefined);
    await queue.release(claim, to(12));
    const next = await claimed(new Map([[1, 14]]));
    expect(next).to.include({ position: 12, wanted: 14 });
    await queue.release(next, to(14));
    expect(await queue.claim(new Map([[1, 14]]))).to.equal(undefined);
    expect(await waitOf()).to.equal(undefined);
  });

  it('returns an unfinished webhook to every worker, after those that have waited longer', async () => {
    await records.begin(1, 1, 10);
    await records.begin(1, 2, 10);
    const wanted = new Map([
      [1, 12],
      [2, 12],
    ]);
    const first = await claimed(wanted);
    await queue.release(first, to(11, 'now'));
    const second = await claimed(wanted);
    expect(second.webhook).not.to.equal(first.webhook);
    expect(await claimed(), 'without any notification').to.include({
      webhook: first.webhook,
      position: 11,
      wanted: 12,
    });
  });

  it('gives the claim of a dead worker to the next one, and ignores later changes by the first', async () => {
    const brief = createWebhookQueue(world.database.pool, 50);
    await records.begin(1, 1, 10);
    const lost = (await brief.claim(new Map([[1, 12]]))) ?? expect.fail('nothing to claim');
    expect(await brief.renew(lost)).to.equal(true);
    expect(await waitOf(), 'when the lease ends').to.be.within(0, 50);
    const taken = await until('another worker has it', () => queue.claim(NONE));
    expect(taken).to.include({ position: 10, wanted: 12 });
    expect(await queue.renew(lost)).to.equal(false);
    expect(await queue.record(lost, { delivery: delivery(), retryInMs: null, position: 12 })).to.equal(undefined);
    await queue.release(lost, to(12));
    await queue.forget(lost);
    expect((await records.list(1, { webhook: 1, limit: 10, offset: 0 })).total).to.equal(0);
    expect(await queue.record(taken, { delivery: delivery(), retryInMs: null, position: undefined })).to.equal(1);
    await queue.release(taken, to(10, 'now'));
    expect(await claimed()).to.include({ position: 10, failures: 1, waiting: 0 });
  });

  it('replaces the waiting attempt by its retry, and counts failures from the last reset', async () => {
    const claim = await claimedNew();
    const outcome = { delivery: delivery(), retryInMs: 0, position: 12 };
    expect(await queue.record(claim, outcome)).to.equal(1);
    await records.reset(1, 1);
    const later = { delivery: delivery({ messageId: 'm2' }), retryInMs: 60_000, position: undefined };
    expect(await queue.record(claim, later), 'reset during the attempt').to.equal(1);
    expect(await queue.delivered(claim, ['m1', 'm3'])).to.deep.equal(new Set(['m1']));
    const [due, ...others] = await queue.due(claim, 10);
    expect(others, 'not due yet').to.deep.equal([]);
    const again = delivery({ attempt: 1, parentId: due?.id ?? 0, statusCode: 200 });
    expect(await queue.record(claim, { delivery: again, retryInMs: null, position: undefined })).to.equal(0);
    expect(await queue.due(claim, 10)).to.deep.equal([]);
    await queue.release(claim, to(12));
    expect(await waitOf(), 'the other retry').to.be.within(50_000, 60_000);
    expect((await records.states(1)).get(1)).to.deep.equal({
      lastFiredAt: 1_000,
      lastStatus: 200,
      failures: 0,
      total: 3,
      successful: 1,
      failed: 2,
    });
  });

  it('returns a webhook when a retry is due, unless retries are suspended', async () => {
    const claim = await claimedNew();
    await queue.record(claim, { delivery: delivery(), retryInMs: 0, position: 12 });
    await queue.release(claim, to(12));
    expect(await waitOf()).to.equal(0);
    const next = await claimed();
    expect(next.waiting).to.equal(1);
    await queue.release(next, to(12, 'event'));
    expect(await queue.claim(NONE)).to.equal(undefined);
    expect(await waitOf()).to.equal(undefined);
    expect(await queue.recall()).to.equal(1);
    await queue.release(await claimed(), to(12, 'event'));
    // One that is enabled again is claimed, and finds what waited.
    expect(await queue.due(await claimed(new Map([[1, 15]])), 10)).to.have.length(1);
  });

  it('cancels the waiting attempt if a manual attempt succeeds', async () => {
    const claim = await claimedNew();
    await queue.record(claim, { delivery: delivery(), retryInMs: 0, position: 12 });
    const [due] = await queue.due(claim, 10);
    await records.record(delivery({ attempt: 1, parentId: due?.id ?? 0, statusCode: 503 }), 0);
    expect(await queue.due(claim, 10), 'it has not arrived').to.have.length(1);
    await records.record(delivery({ attempt: 1, parentId: due?.id ?? 0, statusCode: 204 }), 0);
    expect(await queue.due(claim, 10)).to.deep.equal([]);
    expect((await records.states(1)).get(1)?.failures, 'attempts by hand do not count').to.equal(1);
  });

  it('records an attempt without its response if personal texts were erased during the attempt', async () => {
    await records.begin(1, 1, 10);
    const erasures = await records.erasures(1, 1);
    const quoting = delivery({ responseBody: 'hello Mara' });
    const before = await records.record(quoting, erasures);
    await world.database.pool.query('UPDATE service.webhooks SET erasures = erasures + 1');
    const after = await records.record(quoting, erasures);
    const bodyOf = async (id = 0) => (await records.find(1, id))?.responseBody;
    expect([await bodyOf(before), await bodyOf(after)]).to.deep.equal(['hello Mara', null]);
  });

  it('neither records nor removes deliveries of a deleted webhook or another workspace', async () => {
    await records.begin(1, 1, 10);
    expect(await records.record(delivery({ workspace: 2 }), 0)).to.equal(undefined);
    const id = await records.record(delivery(), 0);
    expect(await records.find(2, id ?? 0)).to.equal(undefined);
    await records.remove(2, 1);
    expect((await records.find(1, id ?? 0))?.messageId).to.equal('m1');
    await records.remove(1, 1);
    expect(await records.find(1, id ?? 0)).to.equal(undefined);
    expect(await records.record(delivery(), 0)).to.equal(undefined);
  });

  it('starts unknown webhooks at the end of the log, not at its beginning', async () => {
    await records.begin(1, 1, 10);
    const both = [
      { workspace: 1, id: 1 },
      { workspace: 1, id: 2 },
    ];
    await queue.register(both, 50, false);
    const wanted = new Map([
      [1, 51],
      [2, 51],
    ]);
    const claims = [await claimed(wanted), await claimed(wanted)].sort((a, b) => a.webhook - b.webhook);
    expect(claims.map(({ position }) => position)).to.deep.equal([10, 50]);
  });

  it('ends claims of a dead process at once if there is only one process', async () => {
    const left = await claimedNew();
    await queue.register([], 20, false);
    expect(await queue.claim(NONE), 'another worker may still have it').to.equal(undefined);
    await queue.register([], 20, true);
    expect((await claimed()).webhook).to.equal(left.webhook);
    expect(await queue.renew(left)).to.equal(false);
  });

  it('removes old deliveries, except those with a pending retry', async () => {
    const claim = await claimedNew();
    await records.record(delivery(), 0);
    await queue.record(claim, { delivery: delivery(), retryInMs: 5_000, position: undefined });
    await records.record(delivery({ createdAt: 2_000 }), 0);
    await queue.purge(2_000);
    const { deliveries } = await records.list(1, { webhook: undefined, limit: 10, offset: 0 });
    expect(deliveries.map(({ createdAt, nextRetryAt }) => [createdAt, nextRetryAt !== null])).to.deep.equal([
      [2_000, false],
      [1_000, true],
    ]);
  });
});
