/** Which webhooks new events concern. */
import { expect } from 'chai';
import { createLogCache } from '../../../../commands/policies/webhooks/log-cache.ts';
import { createSubscribers } from '../../../../commands/policies/webhooks/subscribers.ts';
import { settingsUpdated } from '../../../../shared/events/admin/settings.ts';
import { agentWoken } from '../../../../shared/events/agents/heartbeat.ts';
import { webhookCreated, webhookDeleted } from '../../../../shared/events/webhooks/webhooks.ts';
import type { LoggedEvent } from '../../../../shared/ports/event-log.ts';
import { eventsOf } from '../../../support/kit.ts';

const STATUS = 'activity.agent_status_change';
const created = (id: number, events: string[]) =>
  webhookCreated.draft({ webhook_id: id, name: 'w', url: 'https://a.example', secret: null, events, format: 'json' });
const woken = agentWoken.draft({ agent_id: 1, name: 'ann', reason: null, last_activity: 'Woken by hand' });

/** Subscribers of a log whose first events are there when the worker starts. */
async function startedWith(
  known: readonly { readonly id: number; readonly events: string[] }[],
  drafts: Parameters<typeof eventsOf>[0],
  workspace = 1,
) {
  const log = eventsOf(drafts, { workspace }) as unknown as LoggedEvent[];
  const calls: string[] = [];
  const subscribers = createSubscribers({
    log: createLogCache({
      async *readAll({ from = 0 } = {}) {
        const page = log.filter(({ position }) => position > from);
        if (page.length > 0) yield page;
      },
    }),
    decode: async (event) => event as never,
    queue: {
      async register(webhooks) {
        calls.push(`register ${webhooks.map(({ id }) => id)}`);
      },
      recall: async () => calls.push('recall'),
    },
    current: async () => ({ position: 0, webhooks: known.map((one) => ({ workspace: 1, ...one })) }),
    stride: 1,
    alone: false,
  });
  while (await subscribers.examine());
  return { wanted: () => Object.fromEntries(subscribers.wanted), calls, subscribers };
}

describe('subscribers of webhooks', () => {
  it('are those of the workspace that chose the type of the event, or all types', async () => {
    const known = [
      { id: 1, events: [STATUS] },
      { id: 2, events: ['*'] },
      { id: 3, events: ['activity.task_created'] },
    ];
    const { wanted } = await startedWith(known, [woken, woken]);
    expect(wanted(), 'at the start every webhook is looked at').to.deep.equal({ 1: 2, 2: 2, 3: 0 });
    const other = await startedWith(known, [woken], 2);
    expect(other.wanted()).to.deep.equal({ 1: 0, 2: 0, 3: 0 });
  });

  it('are registered when they are created, and looked at when they are deleted', async () => {
    const { wanted, calls, subscribers } = await startedWith(
      [],
      [created(7, [STATUS]), webhookDeleted.draft({ webhook_id: 7 }), woken],
    );
    expect(calls).to.deep.equal(['register ', 'register 7']);
    expect(wanted(), 'its row is removed').to.deep.equal({ 7: 3 });
    expect(subscribers.mayConcern({ type: woken.type, meta: { workspace: 1 } as never })).to.equal(false);
  });

  it('of rare events move up from time to time, so that they never read the whole log', async () => {
    const known = [{ id: 3, events: ['activity.task_created'] }];
    const near = await startedWith(known, Array(5_000).fill(woken));
    expect(near.wanted()).to.deep.equal({ 3: 0 });
    const far = await startedWith(known, Array(5_001).fill(woken));
    expect(far.wanted()).to.deep.equal({ 3: 5_001 });
  });

  it('are no longer wanted when another worker has looked at them, unless newer events concern them', async () => {
    const { wanted, subscribers } = await startedWith([{ id: 1, events: ['*'] }], [woken, woken]);
    subscribers.seen(new Map([[1, 1]]));
    expect(wanted()).to.deep.equal({ 1: 2 });
    subscribers.seen(new Map([[1, 2]]));
    expect(wanted()).to.deep.equal({});
  });

  it('get their held-back retries when a setting changes', async () => {
    const changed = settingsUpdated.draft({
      changes: [{ name: 'webhooks.retry_enabled', old: 'false', value: 'true' }],
    });
    const { calls } = await startedWith([], [changed]);
    expect(calls).to.deep.equal(['register ', 'recall']);
  });
});
