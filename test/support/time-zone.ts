/** For suites about buckets of UTC: code that asks for local time by mistake is found where that is another day. */
import { after, before } from 'mocha';

/** 13 hours ahead of UTC in November, so that most times of a day are of the next one there. */
const FAR = 'Pacific/Auckland';

/** Runs the tests of a suite far away from UTC. */
export function farFromUtc(): void {
  const zone = process.env.TZ;
  before(() => {
    process.env.TZ = FAR;
  });
  after(() => {
    if (zone === undefined) delete process.env.TZ;
    else process.env.TZ = zone;
  });
}
