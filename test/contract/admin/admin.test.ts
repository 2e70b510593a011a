/** The group through HTTP, on one service: starting one for each concern would take longer than the tests. */
import { type AuthWorld, startAuthWorld } from '../../support/worlds/auth.ts';
import { describeReleases, startFeed } from '../releases.ts';
import { describeBackup } from './backup.ts';
import { describeCleanup } from './cleanup.ts';
import { describeCron } from './cron.ts';
import { describeExport } from './export.ts';
import { describeGateways } from './gateways.ts';
import { describeScheduler } from './scheduler.ts';
import { describeSettings } from './settings.ts';

describe('admin', function () {
  this.timeout(120_000);
  let feed: Awaited<ReturnType<typeof startFeed>>;
  let world: AuthWorld;
  before(async () => {
    feed = await startFeed();
    world = await startAuthWorld({ MC_RETAIN_ACTIVITIES_DAYS: '12', RELEASES_URL: feed.url });
  });
  after(async () => {
    await world?.close();
    feed?.server.close();
  });

  // Before the export, which makes thousands of events: a backup would hold them, too.
  describeBackup(() => world);
  describeExport(() => world);
  // Before those that change settings: it counts the changes.
  describeSettings(() => world);
  describeScheduler(() => world);
  describeGateways(() => world);
  describeCron(() => world);
  describeReleases(() => world);
  // Last, because it removes the activities of the service.
  describeCleanup(() => world);
});
