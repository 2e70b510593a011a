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
import { refusalOf, stateAfter } from '../../support/kit.ts';

const created = webhookCreated.draft({ webhookId: 1, name: 'ops', url: 'https://a', secret: 's', events: ['*'] });
const NOTHING = { name: undefined, url: undefined, events: undefined, enabled: undefined, secret: undefined };
const given = (...drafts: Parameters<typeof stateAfter>[1][]) => stateAfter(webhookDecider, ...drafts);

describe('webhooks: decisions', () => {
  it('only what is sent is set; with nothing, there is still an event', () => {
    const state = given(created);
    expect(decideChange(state, { ...NOTHING, enabled: false })).to.deep.equal([
      webhookUpdated.draft({ webhookId: 1, enabled: false }),
    ]);
    expect(decideChange(state, NOTHING)).to.deep.equal([webhookUpdated.draft({ webhookId: 1 })]);
    const next = given(created, webhookUpdated.draft({ webhookId: 1, name: 'b', secret: null, events: [] }));
    expect(next).to.deep.equal({ id: 1, name: 'b', url: 'https://a', secret: null, events: [], enabled: true });
  });

  it('one that is gone, or never was, can be neither changed nor deleted', () => {
    for (const state of [given(), given(created, webhookDeleted.draft({ webhookId: 1 }))]) {
      expect(refusalOf(() => decideChange(state, NOTHING)).status).to.equal(404);
      expect(refusalOf(() => decideDelete(state)).status).to.equal(404);
      expect(decideTrip(state, 5)).to.deep.equal([]);
    }
    expect(decideDelete(given(created))).to.deep.equal([webhookDeleted.draft({ webhookId: 1 })]);
  });

  it('it trips once, and can be enabled again', () => {
    const trip = webhookTripped.draft({ webhookId: 1, failures: 5 });
    expect(decideTrip(given(created), 5)).to.deep.equal([trip]);
    expect(decideTrip(given(created, trip), 6)).to.deep.equal([]);
    expect(given(created, trip).enabled).to.equal(false);
    expect(given(created, trip, webhookUpdated.draft({ webhookId: 1, enabled: true })).enabled).to.equal(true);
  });

  it('secrets are 64 hex digits, another each time', () => {
    expect(newSecret())
      .to.match(/^[0-9a-f]{64}$/)
      .and.not.equal(newSecret());
  });
});
