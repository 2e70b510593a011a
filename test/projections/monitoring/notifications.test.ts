import { expect } from 'chai';
import { notificationsProjection } from '../../../projections/monitoring/notifications.ts';
import { agentStatusChanged } from '../../../shared/events/agents/agents.ts';
import { seconds } from '../../../shared/time.ts';
import { eventsOf, rowsAfter, timeOf } from '../../support/kit.ts';

const offline = (cause: 'sweep' | 'update') =>
  agentStatusChanged.draft({
    agentId: 7,
    name: 'ada',
    from: 'idle',
    to: 'offline',
    cause,
    lastActivity: null,
    seen: false,
    announced: false,
  });

describe('projection notifications', () => {
  it('has an unread row for each event that somebody is told of', () => {
    const { notifications } = rowsAfter(notificationsProjection, eventsOf([offline('sweep')], { workspace: 2 }));
    expect(notifications).to.deep.equal([
      {
        workspace_id: 2,
        id: 1,
        recipient: 'system',
        type: 'heartbeat',
        title: 'Agent offline: ada',
        message: 'Agent ada gave no sign of life and was set offline (it was idle).',
        source_type: 'agent',
        source_id: 7,
        read_at: null,
        delivered_at: null,
        created_at: seconds(timeOf(1)),
        position: 1,
      },
    ]);
  });
  it('has none for the others', () => {
    expect(rowsAfter(notificationsProjection, eventsOf([offline('update')])).notifications).to.deep.equal([]);
  });
});
