/** Tokens and what they cost, through HTTP, on one service. */
import { startTasksWorld, type TasksWorld } from '../../support/worlds/tasks.ts';
import { describeExport } from './export.ts';
import { describePrices } from './prices.ts';
import { describeReports } from './reports.ts';
import { describeUsage } from './usage.ts';

describe('tokens', () => {
  let world: TasksWorld;
  before(async () => {
    world = await startTasksWorld();
  });
  after(() => world?.close());

  describeReports(() => world);
  describeUsage(() => world);
  describeExport(() => world);
  describePrices(() => world);
});
