/** Deliveries of one worker for one webhook: the log, the queue and the receiver are in memory. */
import { expect } from 'chai';
import { createDeliveries } from '../../../../commands/policies/webhooks/deliveries.ts';
import { agentWoken } from '../../../../shared/events/agents/heartbeat.ts';
import { webhookCreated } from '../../../../shared/events/webhooks/webhooks.ts';
import type { LoggedEvent } from '../../../../shared/ports/event-log.ts';
import type { Claim, Outcome, WebhookQueue } from '../../../../shared/ports/webhooks/deliveries.ts';
import { eventsOf, NAMES } from '../../../support/kit.ts';

const ATTEMPTS = 5;
const HOOK = {
  webhook_id: 1,
  name: 'hook',
  url: 'https://example.org/hook',
  secret: null,
  events: ['activity.agent_status_change'],
  format: 'json' as const,
};

/** A webhook that has so many events before it, and a receiver that answers each request with the next of these. */
function worldOf(count: number, answers: readonly number[]) {
  const woken = Array.from({ length: count }, (_, at) =>
    agentWoken.draft({ agent_id: at + 1, name: `agent ${at}`, reason: null, last_activity: 'Woken by hand' }),
  );
  const log = eventsOf([webhookCreated.draft(HOOK), ...woken]) as unknown as readonly LoggedEvent[];
  const settled: Outcome[] = [];
  const released: { readonly position: number; readonly done: boolean }[] = [];
  let claim: Claim | undefined = {
    ...{ workspace: 1, webhook: 1, lease: 'a', failures: 0, waiting: 0 },
    ...{ position: 1, wanted: log.length },
  };
  let failures = 0;
  const queue: Partial<WebhookQueue> = {
    async claim() {
      const taken = claim;
      claim = undefined;
      return taken;
    },
    next: async () => undefined,
    renew: async () => failures,
    due: async () => [],
    pending: async () => settled.filter(({ delivery }) => delivery.nextRetryAt !== null).length,
    told: async () => new Set(),
    async settle(_claim, outcome) {
      settled.push(outcome);
      failures = outcome.failures;
      return true;
    },
    async release(_claim, to) {
      released.push(to);
    },
  };
  const deliver = createDeliveries({
    commands: {} as never,
    store: {
      log: {
        async *readStream() {
          yield log.slice(0, 1);
        },
        async *readAll({ from = 0 } = {}) {
          const page = log.filter(({ position }) => position > from);
          if (page.length > 0) yield page;
        },
      } as never,
      decode: (event: LoggedEvent) => event as never,
    },
    names: NAMES,
    queue: queue as WebhookQueue,
    outgoing: {
      post: async () => ({ status: answers[settled.length] ?? 200, body: '', error: null, durationMs: 1 }),
    },
    schedule: { attempts: ATTEMPTS, delaysMs: [30_000] },
    retries: async () => true,
    again: async () => undefined,
    skipped: (error) => expect.fail(String(error)),
    now: () => 1_000,
    random: () => 0.5,
  });
  return { deliver: () => deliver(new AbortController().signal), settled, released };
}

describe('webhooks: a batch of messages', () => {
  it('stops sending after five failed attempts in a row', async () => {
    const { deliver, settled, released } = worldOf(
      15,
      Array.from({ length: 15 }, () => 503),
    );
    await deliver();
    expect(settled.map(({ failures }) => failures)).to.deep.equal([1, 2, 3, 4, 5]);
    expect(released, 'the others wait in the log').to.deep.equal([{ position: 6, done: true, retries: true }]);
  });

  it('continues below five failed attempts in a row', async () => {
    const { deliver, settled, released } = worldOf(15, [503, 503, 503, 503, 200, 503, 503, 503, 503]);
    await deliver();
    expect(settled).to.have.length(15);
    expect(released).to.deep.equal([{ position: 16, done: true, retries: true }]);
  });
});
