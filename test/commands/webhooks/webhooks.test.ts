/** Decisions about webhooks. */
import { expect } from 'chai';
import {
  decideChange,
  decideDelete,
  decideTrip,
  newSecret,
  secretsAt,
  webhookDecider,
} from '../../../commands/webhooks/webhooks.ts';
import {
  webhookCreated,
  webhookDeleted,
  webhookTripped,
  webhookUpdated,
} from '../../../shared/events/webhooks/webhooks.ts';
import { givenFor } from '../../support/kit.ts';

const FIELDS = { name: 'ops', url: 'https://a', secret: 's', events: ['*'], format: 'json' } as const;
const created = webhookCreated.draft({ webhook_id: 1, ...FIELDS, events: ['*'] });
const FIVE = { reason: 'failures', failures: 5 } as const;
const NOTHING = {
  name: undefined,
  url: undefined,
  events: undefined,
  format: undefined,
  enabled: undefined,
  secret: undefined,
};
const given = givenFor(webhookDecider);

describe('webhooks: decisions', () => {
  it('an update sets only the given fields, and records an event even if there are none', () => {
    const before = given(created);
    before
      .when(decideChange, { ...NOTHING, enabled: false })
      .then(webhookUpdated.draft({ webhook_id: 1, enabled: false }));
    before.when(decideChange, NOTHING).then(webhookUpdated.draft({ webhook_id: 1 }));
    const next = given(
      created,
      webhookUpdated.draft({ webhook_id: 1, name: 'b', secret: null, events: [], format: 'cloudevents' }),
    ).state;
    expect(next).to.deep.include({
      id: 1,
      name: 'b',
      url: 'https://a',
      secret: null,
      events: [],
      format: 'cloudevents',
      enabled: true,
    });
  });

  it('a deleted or unknown webhook cannot be updated or deleted', () => {
    for (const before of [given(), given(created, webhookDeleted.draft({ webhook_id: 1 }))]) {
      before.when(decideChange, NOTHING).thenRefuses(404);
      before.when(decideDelete).thenRefuses(404);
      before.when(decideTrip, FIVE, ['ann']).then();
    }
    given(created)
      .when(decideDelete)
      .then(webhookDeleted.draft({ webhook_id: 1 }));
  });

  it('a webhook trips once, and can be enabled again', () => {
    const trip = webhookTripped.draft({ webhook_id: 1, ...FIVE });
    given(created).when(decideTrip, FIVE, []).then(trip);
    given(created, trip).when(decideTrip, FIVE, ['ann']).then();
    expect(given(created, trip).state.enabled).to.equal(false);
    expect(given(created, trip, webhookUpdated.draft({ webhook_id: 1, enabled: true })).state.enabled).to.equal(true);
  });

  it('a webhook whose receiver is gone is disabled, and its admins are notified', () => {
    const gone = { reason: 'gone', failures: 1 } as const;
    const events = decideTrip(given(created).state, gone, ['ann', 'bob']);
    expect(events[0]).to.deep.equal(webhookTripped.draft({ webhook_id: 1, ...gone }));
    expect(events.slice(1).map(({ data }) => [data.recipient, data.type, data.source_id])).to.deep.equal([
      ['ann', 'webhook_disabled', 1],
      ['bob', 'webhook_disabled', 1],
    ]);
    expect(events[1]?.data.message).to.match(/410 Gone/);
  });

  it('a replaced secret signs beside the new one for a day', () => {
    const replace = (secret: string) => webhookUpdated.draft({ webhook_id: 1, secret });
    const { state } = given(created, replace('second'), webhookUpdated.draft({ webhook_id: 1, name: 'n' }));
    const until = state.formerSecrets[0]?.until as number;
    expect(secretsAt(state, until - 1)).to.deep.equal(['second', FIELDS.secret]);
    expect(secretsAt(state, until)).to.deep.equal(['second']);
    const often = given(created, ...['b', 'c', 'd', 'e', 'f'].map(replace)).state;
    expect(secretsAt(often, until - 1), 'a bounded number').to.deep.equal(['f', 'e', 'd', 'c']);
    const unsigned = given(webhookCreated.draft({ webhook_id: 1, ...FIELDS, events: [], secret: null })).state;
    expect(secretsAt(unsigned, 0)).to.deep.equal([]);
  });

  it('secrets are 64 hex digits, and each is different', () => {
    expect(newSecret())
      .to.match(/^[0-9a-f]{64}$/)
      .and.not.equal(newSecret());
  });
});
