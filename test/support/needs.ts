/** Suites and tests that need a server or a program are skipped if it is missing, all with the same notice. */
import { noteSkipped } from './template.ts';

/** The stand-in takes its place in every suite but those of the adapter. */
const HAS_STAND_IN = 'TEST_EVENTSTORE_URL';

/**
 * Skips the suite (called from a hook) or the test that calls it, with a notice, unless `there`. With TEST_SKIPS=fail it
 * fails instead.
 */
export function needs(what: string, there: unknown, context: Mocha.Context): asserts there {
  if (there) return;
  const { test } = context;
  const skipped = test && 'type' in test && test.type === 'hook' ? test.parent : test;
  if (process.env.TEST_SKIPS === 'fail' && what !== HAS_STAND_IN)
    throw new Error(`TEST_SKIPS=fail, and this needs ${what}`);
  console.log(`      skipped without ${what}: ${skipped?.fullTitle()}`);
  noteSkipped(what, skipped && 'total' in skipped ? skipped.total() : 1);
  context.skip();
}

type Server = 'TEST_DATABASE_URL' | 'TEST_REDIS_URL' | 'TEST_EVENTSTORE_URL';

/** The same for the server whose address an environment variable gives. Gives the address. */
export function needsServer(variable: Server, context: Mocha.Context): string {
  const url = process.env[variable];
  needs(variable, url, context);
  return url;
}

/** A suite that is skipped without the server whose address an environment variable gives. */
export const describeWith = (variable: Server, title: string, suite: (this: Mocha.Suite) => void): void => {
  describe(title, function () {
    before(function () {
      needsServer(variable, this);
    });
    suite.call(this);
  });
};
