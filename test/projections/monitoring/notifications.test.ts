import { expect } from 'chai';
import { notificationsProjection } from '../../../projections/monitoring/notifications.ts';
import { agentStatusChanged } from '../../../shared/events/agents/agents.ts';
import {
  notificationForwarded,
  notificationRaised,
  notificationsDeleted,
  notificationsDelivered,
  notificationsRead,
} from '../../../shared/events/monitoring/notifications.ts';
import { seconds } from '../../../shared/time.ts';
import { eventsOf, rowsAfter, sample, timeOf } from '../../support/kit.ts';

const offline = (cause: 'sweep' | 'update') =>
  sample(agentStatusChanged, { agent_id: 7, name: 'ada', from: 'idle', to: 'offline', cause });

describe('projection notifications', () => {
  it('has an unread row for each event with a notification', () => {
    const { notifications } = rowsAfter(notificationsProjection, eventsOf([offline('sweep')], { workspace: 2 }));
    expect(notifications).to.deep.equal([
      {
        workspace_id: 2,
        tenant_id: 1,
        id: 1,
        recipient: 'system',
        owner: null,
        type: 'heartbeat',
        title: 'Agent offline: ada',
        message: 'Agent ada gave no sign of life and was set offline (it was idle).',
        by_key: null,
        by_name: null,
        source_type: 'agent',
        source_id: 7,
        read_at: null,
        delivered_at: null,
        created_at: seconds(timeOf(1)),
        position: 1,
      },
    ]);
  });
  const raised = (recipient: string) =>
    sample(notificationRaised, { recipient, type: 'mention', title: 't', message: 'm' });
  const forwarded = (notificationId: number) =>
    sample(notificationForwarded, {
      notification_id: notificationId,
      recipient: 'ada',
      notification_type: 'mention',
      title: 't',
    });
  it('sets read and delivered once, and ignores later events about a deleted notification', () => {
    const { notifications, notification_totals } = rowsAfter(
      notificationsProjection,
      eventsOf([
        ...[raised('ada'), raised('ada'), raised('eve'), raised('eve')],
        notificationsRead.draft({ notification_ids: [1, 2, 99] }),
        notificationsRead.draft({ notification_ids: [2, 3] }),
        notificationsDelivered.draft({ recipient: 'ada', notification_ids: [1] }),
        forwarded(1),
        forwarded(2),
        notificationsDeleted.draft({ notification_ids: [4], cause: 'request' }),
        notificationsRead.draft({ notification_ids: [4] }),
      ]),
    );
    const at = (n: number) => seconds(timeOf(n));
    expect(notifications.map(({ id, read_at, delivered_at }) => [id, read_at, delivered_at])).to.deep.equal([
      [1, at(5), at(7)],
      [2, at(5), at(9)],
      [3, at(6), null],
    ]);
    expect(notification_totals).to.deep.equal([{ workspace_id: 1, total: 3, unread: 0, delivered: 2, position: 10 }]);
  });
  it('does not change rows of another workspace', () => {
    const events = [
      ...eventsOf([raised('ada')]),
      ...eventsOf([raised('ada'), notificationsRead.draft({ notification_ids: [1] })], { workspace: 2 }).slice(1),
    ];
    const { notifications, notification_totals } = rowsAfter(notificationsProjection, events);
    expect(notifications.map(({ read_at }) => read_at)).to.deep.equal([null]);
    expect(notification_totals).to.deep.equal([{ workspace_id: 1, total: 1, unread: 1, delivered: 0, position: 1 }]);
  });
  it('has no rows for other events', () => {
    expect(rowsAfter(notificationsProjection, eventsOf([offline('update')])).notifications).to.deep.equal([]);
  });
});
