/** The rows of webhooks. */
import { expect } from 'chai';
import { webhooksProjection } from '../../../projections/webhooks/webhooks.ts';
import {
  webhookCreated,
  webhookDeleted,
  webhookTripped,
  webhookUpdated,
} from '../../../shared/events/webhooks/webhooks.ts';
import { eventsOf, rowsAfter, timeOf } from '../../support/kit.ts';

const created = webhookCreated.draft({
  webhook_id: 1,
  name: 'ops',
  url: 'https://a',
  secret: `${'0'.repeat(60)}abcd`,
  events: ['*'],
  format: 'json',
});
const rows = (...drafts: Parameters<typeof eventsOf>[0]) => rowsAfter(webhooksProjection, eventsOf(drafts)).webhooks;
const secondsOf = (n: number) => Math.floor(timeOf(n) / 1_000);

describe('webhooks: rows', () => {
  it('a new webhook has a row with only the end of its secret', () => {
    expect(rows(created)).to.deep.equal([
      {
        workspace_id: 1,
        id: 1,
        name: 'ops',
        url: 'https://a',
        secret_end: 'abcd',
        events: ['*'],
        format: 'json',
        enabled: true,
        created_by: 'admin',
        created_at: secondsOf(1),
        updated_at: secondsOf(1),
        position: 1,
      },
    ]);
  });

  it('an update sets the given fields', () => {
    const changed = webhookUpdated.draft({
      webhook_id: 1,
      name: 'new',
      secret: null,
      events: ['a'],
      format: 'cloudevents',
      enabled: false,
    });
    expect(rows(created, changed)[0]).to.deep.include({
      name: 'new',
      url: 'https://a',
      secret_end: null,
      events: ['a'],
      format: 'cloudevents',
      enabled: false,
    });
    const [touched] = rows(created, webhookUpdated.draft({ webhook_id: 1 }));
    expect(touched).to.deep.include({ name: 'ops', secret_end: 'abcd', enabled: true, updated_at: secondsOf(2) });
  });

  it('too many failures disable a webhook, and deleting removes it', () => {
    const tripped = webhookTripped.draft({ webhook_id: 1, reason: 'failures', failures: 5 });
    expect(rows(created, tripped)[0]).to.include({ enabled: false, updated_at: secondsOf(2) });
    expect(rows(created, tripped, webhookDeleted.draft({ webhook_id: 1 }))).to.deep.equal([]);
    expect(rows(tripped, webhookUpdated.draft({ webhook_id: 1 })), 'none comes into being').to.deep.equal([]);
  });
});
