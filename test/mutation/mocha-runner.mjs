/**
 * Runs mocha inside Stryker's worker: files are loaded once, and run again for each fault that is switched on. Stryker's
 * own runner does not know mocha 12.
 *
 * `before` and `after` are called again for each fault, so that no fault meets what another has left behind. A suite on
 * a store gets an empty database of PostgreSQL each time, which takes a fraction of a second.
 */
import { readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import Mocha from 'mocha';

/** Where instrumented code looks for the fault that is switched on, and leaves which faults a test has reached. */
globalThis.__stryker__ ??= {};
const shared = globalThis.__stryker__;
const { TESTS_IN = '', TESTS_LIKE = '', TESTS_LAST = '', TESTS_NOT = '' } = process.env;
/** What the tests of the service need once per run; a worker is one run, however many faults it looks at. */
const FIXTURES = 'dist/test/support/template.js';
/** A test that has not ended by then has noticed the fault: it waits for something that does not come. */
const PATIENCE_MS = 15_000;

/** Mocha asks for a reporter; results are taken from the run itself. */
class Silent {}

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
/** Files of tests, those that need a store last: most faults have been noticed before. */
const costly = (file) => Number(new RegExp(TESTS_LAST).test(file));
const byCost = (one, other) => costly(one) - costly(other);

function everySuite(suite, visit) {
  visit(suite);
  for (const inner of suite.suites) everySuite(inner, visit);
}

class MochaRunner {
  #mocha;
  #fixtures;

  capabilities() {
    return { reloadEnvironment: false };
  }

  async #load() {
    if (this.#mocha) return;
    this.#fixtures = await import(resolve(FIXTURES));
    await this.#fixtures.mochaGlobalSetup();
    const mocha = new Mocha({ reporter: Silent });
    mocha.cleanReferencesAfterRun(false);
    const files = TESTS_IN.split(',').flatMap((folder) =>
      readdirSync(folder, { recursive: true })
        .filter((name) => name.endsWith('.test.js') && new RegExp(TESTS_LIKE).test(name))
        .map((name) => resolve(join(folder, name))),
    );
    for (const file of files.sort(byCost)) mocha.addFile(file);
    await mocha.loadFilesAsync();
    mocha.suite.beforeEach(function () {
      shared.currentTestId = this.currentTest?.fullTitle();
    });
    everySuite(mocha.suite, ({ tests, _beforeAll, _beforeEach, _afterEach, _afterAll }) => {
      for (const one of [tests, _beforeAll, _beforeEach, _afterEach, _afterAll].flat()) one.timeout(PATIENCE_MS);
    });
    this.#mocha = mocha;
  }

  /** Runs the tests with these titles, all by default. Gives one result per test, and those that failed. */
  async #run(titles, bail) {
    await this.#load();
    const not = TESTS_NOT === '' ? '' : `(?!.*(?:${TESTS_NOT}))`;
    const wanted = new RegExp(`^${not}(?:${titles ? titles.map(escaped).join('|') : '.*'})$`, 's');
    this.#mocha.grep(wanted);
    everySuite(this.#mocha.suite, (suite) => suite.bail(bail));
    const firstOf = (suite) => {
      let first;
      suite.eachTest((test) => {
        if (wanted.test(test.fullTitle())) first ??= test.fullTitle();
      });
      return first;
    };
    const tests = [];
    await new Promise((done) => {
      const runner = this.#mocha.run(done);
      const result = (id, test, more) => ({ id, name: id, timeSpentMs: test.duration ?? 0, ...more });
      // What a hook reaches is reached for the first test of its suite, and noticed by it when the hook fails.
      runner.on('suite', (suite) => {
        shared.currentTestId = firstOf(suite);
      });
      runner.on('pass', (test) => tests.push(result(test.fullTitle(), test, { status: 0 })));
      runner.on('fail', (test, { message }) => {
        const id = test.type === 'hook' ? (firstOf(test.parent) ?? test.fullTitle()) : test.fullTitle();
        tests.push(result(id, test, { status: 1, failureMessage: `${test.title}: ${message}` }));
      });
    });
    return { tests, failed: tests.filter(({ status }) => status === 1) };
  }

  async dispose() {
    await this.#fixtures?.mochaGlobalTeardown();
  }

  async dryRun() {
    const { tests } = await this.#run();
    shared.currentTestId = undefined;
    return { status: 'complete', tests, mutantCoverage: shared.mutantCoverage };
  }

  async mutantRun({ activeMutant, mutantActivation, testFilter, hitLimit }) {
    // A fault in what runs while modules are loaded is on from then on; any other would keep the tests from being loaded.
    shared.activeMutant = mutantActivation === 'static' ? activeMutant.id : undefined;
    await this.#load();
    shared.activeMutant = activeMutant.id;
    shared.hitCount = hitLimit ? 0 : undefined;
    shared.hitLimit = hitLimit;
    const { tests, failed } = await this.#run(testFilter, true);
    if (failed.length === 0) return { status: 'survived', nrOfTests: tests.length };
    const [{ failureMessage }] = failed;
    return { status: 'killed', killedBy: failed.map(({ id }) => id), failureMessage, nrOfTests: tests.length };
  }
}

export const strykerPlugins = [{ kind: 'TestRunner', name: 'mocha-here', injectableClass: MochaRunner }];
