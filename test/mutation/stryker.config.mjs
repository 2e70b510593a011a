/**
 * Mutation testing of one room: `ROOM=projections npm run mutate`. Each small fault is put into the code by itself, and
 * the room's tests have to notice it; those that nothing noticed are listed at the end.
 *
 * `FILES` and `TESTS` narrow both down. The sources are compiled once, with all faults in them, of which one at a time is switched on.
 */
const ROOMS = {
  commands: { mutate: 'commands/**/*.ts', tests: 'dist/test/commands' },
  projections: { mutate: 'projections/**/*.ts', tests: 'dist/test/projections' },
  queries: { mutate: 'queries/**/*.ts', tests: 'dist/test/queries' },
  projector: {
    mutate: 'infra/{read-models,following}/**/*.ts',
    tests: 'dist/test/infra',
    like: '^(projector|rebuild|batch|reader|follow|read-model)',
  },
};
/** Tests that measure time fail for other reasons than a fault when several run at once. */
const TIMING = 'milliseconds|seconds|in time|times as long|faster|latency|without delay';
/** One store is enough: PostgreSQL, because a database of it is made in a fraction of a second. */
const OTHER_STORES = 'on PGlite|on an event store';

const { ROOM = 'projections', FILES, TESTS, WORKERS = '2' } = process.env;
const room = ROOMS[ROOM];
if (!room) throw new Error(`ROOM must be one of ${Object.keys(ROOMS).join(', ')}`);
if (ROOM !== 'projections' && !process.env.TEST_DATABASE_URL)
  throw new Error('TEST_DATABASE_URL must name a PostgreSQL server: tests on a store run there');
// Workers take it from the environment: the runner is no part of Stryker, and has no options in its schema.
process.env.TESTS_IN = room.tests;
process.env.TESTS_LIKE = TESTS ?? room.like ?? '';
process.env.TESTS_LAST = '[.]store[.]|/(projector|rebuild)[.]';
process.env.TESTS_NOT = `${TIMING}|${OTHER_STORES}`;
process.env.TEST_STACK = 'postgres';
process.env.TEST_PATIENCE_MS = '5000';

export default {
  testRunner: 'mocha-here',
  plugins: ['./test/mutation/mocha-runner.mjs'],
  buildCommand: 'npm run build',
  // Not at commas inside braces.
  mutate: FILES?.split(/,(?![^{]*\})/) ?? [room.mutate],
  ignorePatterns: ['dist', 'data', 'docs'],
  // Stryker would read it by the API of TypeScript, which TypeScript 7 does not have.
  tsconfigFile: 'none.json',
  checkers: [],
  coverageAnalysis: 'perTest',
  // Faults in what runs while a module is loaded need a process each; STATIC=1 has them too.
  ignoreStatic: process.env.STATIC !== '1',
  concurrency: Number(WORKERS),
  tempDirName: `.stryker-tmp/${ROOM}`,
  timeoutMS: 20_000,
  reporters: ['clear-text', 'json', 'progress-append-only'],
  clearTextReporter: { allowColor: false, reportTests: false },
  jsonReporter: { fileName: `.stryker-tmp/${ROOM}.json` },
};
