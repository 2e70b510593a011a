/** Decisions about webhooks. */
import { expect } from 'chai';
import {
  decideChange,
  decideDelete,
  decideTrip,
  newSecret,
  webhookDecider,
} from '../../../commands/webhooks/webhooks.ts';
import {
  webhookCreated,
  webhookDeleted,
  webhookTripped,
  webhookUpdated,
} from '../../../shared/events/webhooks/webhooks.ts';
import { givenFor } from '../../support/kit.ts';

const created = webhookCreated.draft({
  webhook_id: 1,
  name: 'ops',
  url: 'https://a',
  secret: 's',
  events: ['*'],
  format: 'json',
});
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
    expect(next).to.deep.equal({
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
      before.when(decideTrip, 5).then();
    }
    given(created)
      .when(decideDelete)
      .then(webhookDeleted.draft({ webhook_id: 1 }));
  });

  it('a webhook trips once, and can be enabled again', () => {
    const trip = webhookTripped.draft({ webhook_id: 1, failures: 5 });
    given(created).when(decideTrip, 5).then(trip);
    given(created, trip).when(decideTrip, 6).then();
    expect(given(created, trip).state.enabled).to.equal(false);
    expect(given(created, trip, webhookUpdated.draft({ webhook_id: 1, enabled: true })).state.enabled).to.equal(true);
  });

  it('secrets are 64 hex digits, and each is different', () => {
    expect(newSecret())
      .to.match(/^[0-9a-f]{64}$/)
      .and.not.equal(newSecret());
  });
});
