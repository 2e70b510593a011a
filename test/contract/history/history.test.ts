/** The group through HTTP, on one service: starting one for each concern would take longer than the tests. */
import { type AuthWorld, startAuthWorld } from '../../support/worlds/auth.ts';
import { describeEvents } from './events.ts';
import { describeProofs } from './proofs.ts';
import { describeTimeline } from './timeline.ts';

describe('history', function () {
  this.timeout(120_000);
  let world: AuthWorld;
  before(async () => {
    world = await startAuthWorld();
  });
  after(() => world?.close());

  describeEvents(() => world);
  describeProofs(() => world);
  describeTimeline(() => world);
});
