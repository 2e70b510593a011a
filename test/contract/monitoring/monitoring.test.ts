/** The group through HTTP, on one service: starting one for each concern would take longer than the tests. */
import { startTestService, type TestService } from '../../support/service.ts';
import { describeOutcomes } from '../tasks/outcomes.ts';
import { describeRegression } from '../tasks/regression.ts';
import { describeActivities } from './activities.ts';
import { describeAudit } from './audit.ts';
import { describeEvents } from './events.ts';
import { describeHealth } from './health.ts';
import { describeLogs } from './logs.ts';
import { describeNotifications } from './notifications.ts';
import { describeSearch } from './search.ts';
import { describeStandups } from './standups.ts';
import { describeStatus } from './status.ts';
import { describeWorkload } from './workload.ts';

describe('monitoring', () => {
  let base: TestService;
  before(async () => {
    base = await startTestService();
  });
  after(() => base?.close());

  // First, because it counts all activities of the service.
  describeActivities(() => base);
  describeAudit(() => base);
  describeNotifications(() => base);
  describeLogs(() => base);
  describeSearch(() => base);
  describeWorkload(() => base);
  describeStandups(() => base);
  describeOutcomes(() => base);
  describeRegression(() => base);
  describeEvents(() => base);
  describeHealth(() => base);
  describeStatus(() => base);
});
