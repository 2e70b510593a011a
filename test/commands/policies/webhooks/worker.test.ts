/** The loop of one worker: the log, the queue and the receiver are in memory. */
import { expect } from 'chai';
import { createLogCache } from '../../../../commands/policies/webhooks/log-cache.ts';
import { createSubscribers } from '../../../../commands/policies/webhooks/subscribers.ts';
import { startWebhookWorker } from '../../../../commands/policies/webhooks/worker.ts';
import { agentWoken } from '../../../../shared/events/agents/heartbeat.ts';
import type { EventDraft } from '../../../../shared/events/define.ts';
import { webhookCreated } from '../../../../shared/events/webhooks/webhooks.ts';
import type { LoggedEvent } from '../../../../shared/ports/event-log.ts';
import type { Outgoing, OutgoingResult } from '../../../../shared/ports/outgoing.ts';
import type { Claim, Outcome, Wanted, WebhookQueue } from '../../../../shared/ports/webhooks/queue.ts';
import { eventsOf, NAMES } from '../../../support/kit.ts';
import { until } from '../../../support/until.ts';

const ATTEMPTS = 5;
const hook = (id: number) =>
  webhookCreated.draft({
    webhook_id: id,
    name: 'hook',
    url: `https://example.org/${id}`,
    secret: null,
    events: ['activity.agent_status_change'],
    format: 'json',
  });
const woken = (count: number) =>
  Array.from({ length: count }, (_, at) =>
    agentWoken.draft({ agent_id: at + 1, name: `agent ${at}`, reason: null, last_activity: 'Woken by hand' }),
  );
const responded = (status: number, retryAfter: string | null = null): OutgoingResult => ({
  status,
  body: '',
  error: null,
  durationMs: 1,
  retryAfter,
});

interface Row {
  position: number;
  seen: number;
  failures: number;
  waiting: number;
  resume: 'now' | 'retry' | 'event' | 'claimed';
  claimedAt: number;
}

/** A queue as `infra/stores/webhooks/queue.ts` has it, without leases that end. */
function memoryQueue(ids: readonly number[]) {
  const recorded: Outcome[] = [];
  const released: { readonly webhook: number; readonly position: number; readonly resume: string }[] = [];
  const rows = new Map<number, Row>(
    ids.map((id) => [id, { position: 0, seen: 0, failures: 0, waiting: 0, resume: 'event', claimedAt: 0 }]),
  );
  let turns = 0;
  const rowOf = ({ webhook }: Claim) => rows.get(webhook) as Row;
  const hasWork = (wanted: Wanted, [id, row]: [number, Row]) =>
    row.resume !== 'claimed' && (row.resume === 'now' || (wanted.get(id) ?? 0) > row.seen);
  const queue: WebhookQueue = {
    register: async () => undefined,
    async claim(wanted) {
      const [found] = [...rows].filter((one) => hasWork(wanted, one)).sort(([, a], [, b]) => a.claimedAt - b.claimedAt);
      if (!found) return undefined;
      const [webhook, row] = found;
      row.seen = Math.max(row.seen, wanted.get(webhook) ?? 0);
      row.resume = 'claimed';
      row.claimedAt = ++turns;
      return { ...row, workspace: 1, webhook, lease: 'a', wanted: row.seen };
    },
    next: async (wanted) => ({
      waitMs: [...rows].some((one) => hasWork(wanted, one)) ? 0 : undefined,
      wanted: new Set([...rows].filter((one) => hasWork(wanted, one)).map(([id]) => id)),
    }),
    renew: async () => true,
    due: async () => [],
    delivered: async () => new Set(),
    async record(claim, outcome) {
      const row = rowOf(claim);
      recorded.push(outcome);
      const { statusCode } = outcome.delivery;
      row.failures = statusCode === 200 ? 0 : row.failures + 1;
      if (outcome.retryInMs !== null) row.waiting++;
      return row.failures;
    },
    async release(claim, { position, resume }) {
      Object.assign(rowOf(claim), { position, resume });
      released.push({ webhook: claim.webhook, position, resume });
    },
    recall: async () => 0,
    forget: async () => undefined,
    purge: async () => undefined,
  };
  return { queue, recorded, released };
}

/** Webhooks with so many events after them. */
function worldOf(ids: readonly number[], count: number, post: Outgoing['post']) {
  const log = eventsOf([...ids.map(hook), ...woken(count)]) as unknown as LoggedEvent[];
  const { queue, recorded, released } = memoryQueue(ids);
  const store = {
    log: {
      async *readStream(stream: string) {
        const id = Number(stream.split('-').at(-1));
        yield log.filter(({ type, data }) => type === webhookCreated.type && data.webhook_id === id);
      },
      async *readAll({ from = 0 } = {}) {
        const page = log.filter(({ position }) => position > from);
        if (page.length > 0) yield page;
      },
    } as never,
    decode: async (event: LoggedEvent) => event as never,
  };
  const logCache = createLogCache(store.log);
  const executed: EventDraft[] = [];
  const worker = startWebhookWorker({
    commands: {
      execute: async (_decider: unknown, _stream: string, _context: unknown, decide: (state: object) => EventDraft[]) =>
        executed.push(...decide({ id: 1, name: 'hook', enabled: true })),
    } as never,
    adminsOf: async () => ['ann'],
    store,
    names: NAMES,
    queue,
    log: logCache,
    subscribers: createSubscribers({
      log: logCache,
      decode: store.decode,
      queue,
      current: async () => ({
        position: log.length,
        webhooks: ids.map((id) => ({ workspace: 1, id, events: ['activity.agent_status_change'] })),
      }),
      stride: 1,
      alone: true,
    }),
    outgoing: { post },
    schedule: { attempts: ATTEMPTS, delaysMs: [30_000] },
    retries: async () => true,
    keptMs: 1_000,
    skipped: (error) => expect.fail(String(error)),
    outage: { failed: (error) => expect.fail(String(error)), worked: () => undefined },
    now: () => 1_000,
    random: () => 0.5,
  });
  return { worker, recorded, released, log, executed };
}

describe('webhook worker', () => {
  it('stops sending after five failed attempts in a row', async () => {
    const { worker, recorded, released } = worldOf([1], 15, async () => responded(503));
    await until('the rest waits for a retry', () => released.at(-1)?.resume === 'retry');
    await worker.close(1_000);
    expect(recorded).to.have.length(5);
    expect(recorded.every(({ retryInMs }) => retryInMs === 30_000)).to.equal(true);
    expect(released.at(-1), 'the others wait in the log').to.include({ position: 6 });
  });

  it('continues below five failed attempts in a row, in batches', async () => {
    const statuses = [503, 503, 503, 503, 200, 503, 503, 503, 503];
    let sent = 0;
    const { worker, recorded, released } = worldOf([1], 45, async () => responded(statuses[sent++] ?? 200));
    await until('all are sent', () => released.at(-1)?.resume === 'retry');
    await worker.close(1_000);
    expect(recorded).to.have.length(45);
    expect(released.map(({ position }) => position)).to.deep.equal([21, 41, 46]);
  });

  it('waits as long as the receiver asks with Retry-After, if that is longer than the back-off', async () => {
    const asked = ['60', '1', 'Thu, 01 Jan 1970 00:01:01 GMT', '999999'];
    let sent = 0;
    const { worker, recorded } = worldOf([1], 4, async () => responded(429, asked[sent++]));
    await until('all are sent', () => recorded.length === 4);
    await worker.close(1_000);
    expect(recorded.map(({ retryInMs }) => retryInMs)).to.deep.equal([60_000, 30_000, 60_000, 86_400_000]);
  });

  it('disables a webhook at once when its receiver responds with 410', async () => {
    const { worker, recorded, released, executed } = worldOf([1], 4, async () => responded(410));
    await until('it is released', () => released.length === 1);
    await worker.close(1_000);
    expect(recorded).to.have.length(1);
    expect(released[0]).to.deep.equal({ webhook: 1, position: 2, resume: 'event' });
    expect(executed.map(({ type }) => type)).to.deep.equal(['WebhookTripped', 'NotificationRaised']);
    expect(executed[0]?.data).to.deep.equal({ webhook_id: 1, reason: 'gone', failures: 1 });
  });

  it('gives each webhook its turn, however much another one has to receive', async () => {
    const urls: string[] = [];
    const { worker } = worldOf([1, 2], 100, async ({ url }) => {
      urls.push(url);
      return responded(200);
    });
    await until('all are sent', () => urls.length === 200);
    await worker.close(1_000);
    const half = urls.slice(0, 100).filter((url) => url.endsWith('/2')).length;
    expect(half).to.be.within(25, 75);
  });

  it('delivers to others while a receiver hangs', async () => {
    const urls: string[] = [];
    const { worker } = worldOf([1, 2], 30, ({ url }, signal) => {
      if (url.endsWith('/1'))
        return new Promise((_resolve, reject) => {
          signal?.addEventListener('abort', () => reject(signal.reason));
        });
      urls.push(url);
      return Promise.resolve(responded(200));
    });
    await until('the other has all', () => urls.length === 30);
    await worker.close(0);
  });

  it('completes a started attempt when it is closed, and starts no other', async () => {
    let finish = (_result: OutgoingResult) => {};
    let posts = 0;
    const { worker, recorded, released } = worldOf([1], 10, () => {
      posts++;
      return new Promise((resolve) => {
        finish = resolve;
      });
    });
    await until('the first message is on its way', () => posts === 1);
    const closed = worker.close(60_000);
    finish(responded(200));
    await closed;
    expect(posts).to.equal(1);
    expect(recorded).to.have.length(1);
    expect(released).to.deep.equal([{ webhook: 1, position: 2, resume: 'now' }]);
  });

  it('aborts a started attempt at the end of the shutdown time-out, and leaves its message to other workers', async () => {
    let posts = 0;
    const { worker, recorded, released } = worldOf([1], 10, (_request, signal) => {
      posts++;
      return new Promise((_resolve, reject) => {
        signal?.addEventListener('abort', () => reject(signal.reason));
      });
    });
    await until('the first message is on its way', () => posts === 1);
    await worker.close(0);
    expect(recorded).to.deep.equal([]);
    expect(released).to.deep.equal([{ webhook: 1, position: 0, resume: 'now' }]);
  });

  it('sends new events when it is notified of them', async () => {
    const ids: string[] = [];
    const { worker, log } = worldOf([1], 1, async ({ headers }) => {
      ids.push(headers['webhook-id'] as string);
      return responded(200);
    });
    await until('the first is sent', () => ids.length === 1);
    const more = eventsOf([hook(1), ...woken(3)]).slice(2) as unknown as LoggedEvent[];
    log.push(...more);
    worker.notify(log.length, more);
    await until('the others are sent', () => ids.length === 3);
    expect(new Set(ids).size).to.equal(3);
    await worker.close(1_000);
  });
});
