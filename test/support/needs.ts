/** Suites and tests that need a server or a program are skipped if it is missing, all with the same notice. */

/** Skips the suite (called from a hook) or the test that calls it, with a notice, unless `there`. */
export function needs(what: string, there: unknown, context: Mocha.Context): asserts there {
  if (there) return;
  const { test } = context;
  const skipped = test && 'type' in test && test.type === 'hook' ? test.parent : test;
  console.log(`      skipped without ${what}: ${skipped?.fullTitle()}`);
  context.skip();
}

/** The same for the server whose address an environment variable gives. Gives the address. */
export function needsServer(
  variable: 'TEST_DATABASE_URL' | 'TEST_REDIS_URL' | 'TEST_EVENTSTORE_URL',
  context: Mocha.Context,
): string {
  const url = process.env[variable];
  needs(variable, url, context);
  return url;
}
