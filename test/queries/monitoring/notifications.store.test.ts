/** Notifications: how deliveries stand, and what commands look up. */
import { expect } from 'chai';
import { agentsProjection } from '../../../projections/agents/agents.ts';
import { usersProjection } from '../../../projections/auth/users.ts';
import { notificationsProjection } from '../../../projections/monitoring/notifications.ts';
import { deliveryState, notificationDirectory, notificationsOf } from '../../../queries/monitoring/notifications.ts';
import { userCreated } from '../../../shared/events/auth/users.ts';
import { notificationForwarded, notificationRaised } from '../../../shared/events/monitoring/notifications.ts';
import { ann } from '../../support/ann.ts';
import { sample } from '../../support/kit.ts';
import { agentRegisteredAs, readModels, secondsOf } from '../../support/rows.ts';

const raised = (recipient: string, title: string) =>
  sample(notificationRaised, { recipient, type: 'mention', title, message: 'so' });
const forwarded = (notificationId: number, recipient: string, title: string) =>
  sample(notificationForwarded, { notification_id: notificationId, recipient, notification_type: 'mention', title });

describe('notification queries', () => {
  const other = { workspace: 2 };
  const models = readModels([notificationsProjection, agentsProjection, usersProjection], () => [
    // The ids of notifications are the numbers of their events.
    [agentRegisteredAs(1, 'ada', { session_key: 'of another workspace' }), other],
    agentRegisteredAs(2, 'eve', { session_key: 'session-eve' }),
    raised('ada', 'first'),
    raised('eve', 'second'),
    raised('ada', 'third'),
    raised('eve', 'fourth'),
    raised('ada', 'fifth'),
    [raised('ada', 'elsewhere'), other],
    // In another order than that in which they were raised.
    forwarded(5, 'ada', 'third'),
    forwarded(3, 'ada', 'first'),
    forwarded(4, 'eve', 'second'),
    [forwarded(8, 'ada', 'elsewhere'), other],
  ]);

  it('return the latest deliveries by delivery time, regardless of their creation time', async () => {
    const { recent_deliveries, statistics } = await deliveryState(models.reads, 1, undefined, undefined);
    expect(recent_deliveries).to.deep.equal([
      { recipient: 'eve', type: 'mention', title: 'second', delivered_at: secondsOf(11), created_at: secondsOf(4) },
      { recipient: 'ada', type: 'mention', title: 'first', delivered_at: secondsOf(10), created_at: secondsOf(3) },
      { recipient: 'ada', type: 'mention', title: 'third', delivered_at: secondsOf(9), created_at: secondsOf(5) },
    ]);
    expect(statistics).to.deep.equal({ total: 5, delivered: 3, undelivered: 2, delivery_rate: 60 });
    const ada = await deliveryState(models.reads, 1, { name: 'ada' }, { name: 'ada' });
    expect(ada.recent_deliveries.map(({ title }) => title)).to.deep.equal(['first', 'third']);
    expect(ada.statistics).to.deep.equal({ total: 3, delivered: 2, undelivered: 1, delivery_rate: 67 });
    expect(ada.agents_with_pending).to.deep.equal([{ recipient: 'ada', session_key: null, pending_count: 1 }]);
  });

  it('return notifications by id from the own workspace, newest first', async () => {
    const names = { of: async () => new Map() } as never;
    const found = await notificationsOf(models.reads, 1, [3, 8, 5], names);
    expect(found.map(({ title }) => title)).to.deep.equal(['third', 'first']);
    const elsewhere = await notificationsOf(models.reads, 2, [3, 8, 5], names);
    expect(elsewhere.map(({ title }) => title)).to.deep.equal(['elsewhere']);
  });

  it('return pending recipients with the session of the same-named agent in their own workspace', async () => {
    const { agents_with_pending } = await deliveryState(models.reads, 1, undefined, undefined);
    expect(agents_with_pending).to.deep.equal([
      { recipient: 'ada', session_key: null, pending_count: 1 },
      { recipient: 'eve', session_key: 'session-eve', pending_count: 1 },
    ]);
    const pending = await notificationDirectory(models.reads).pending(1, undefined, 10);
    expect(pending.map(({ recipient, agent }) => [recipient, agent])).to.deep.equal([
      ['eve', { id: 2, session_key: 'session-eve' }],
      ['ada', null],
    ]);
  });

  it('find unread notifications by recipient, by id, or by both', async () => {
    const { unread } = notificationDirectory(models.reads);
    const sorted = async (...asked: Parameters<typeof unread>) => (await unread(...asked)).sort((a, b) => a - b);
    expect(await sorted(1, { recipient: { name: 'ada' } }, 10)).to.deep.equal([3, 5, 7]);
    const ids = [3, 4, 8, 99];
    expect(await sorted(1, { ids, recipient: undefined }, 10)).to.deep.equal([3, 4]);
    expect(await sorted(1, { ids, recipient: { name: 'ada' } }, 10)).to.deep.equal([3]);
    expect(await sorted(1, { ids: [], recipient: { name: 'ada' } }, 10)).to.deep.equal([]);
    expect(await sorted(2, { ids, recipient: undefined }, 10)).to.deep.equal([8]);
  });

  it('return recipients of the workspace first; one of the same name elsewhere does not count', async () => {
    const here = { workspace: 3 };
    const there = { workspace: 4 };
    const user = (userId: number, username: string, workspace: number) =>
      userCreated.draft({ ...ann, user_id: userId, username, workspace, credential_id: null });
    await models.tell(
      [user(1, 'zoe', 4), there],
      [agentRegisteredAs(3, 'kim'), there],
      [user(2, 'ann', 3), here],
      [agentRegisteredAs(4, 'lee'), here],
      ...['zoe', 'kim', 'ann', 'lee'].map((name) => [raised(name, name), here] as const),
    );
    const { pending } = notificationDirectory(models.reads);
    const recipients = async (limit: number) => (await pending(3, undefined, limit)).map(({ recipient }) => recipient);
    expect(await recipients(2)).to.deep.equal(['ann', 'lee']);
    expect(await recipients(9)).to.deep.equal(['ann', 'lee', 'zoe', 'kim']);
    const people = (await pending(3, undefined, 9)).filter(({ isPerson }) => isPerson);
    expect(people.map(({ recipient }) => recipient)).to.deep.equal(['ann']);
  });
});
