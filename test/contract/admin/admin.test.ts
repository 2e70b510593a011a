/** The group through HTTP, on one service: starting one for each concern would take longer than the tests. */
import { startTestService, type TestService } from '../../support/service.ts';
import { describeExport } from './export.ts';

describe('admin', () => {
  let base: TestService;
  before(async () => {
    base = await startTestService();
  });
  after(() => base?.close());

  describeExport(() => base);
});
