/**
 * Runs mocha inside Stryker's worker: files are loaded once, and run again for each fault that is switched on. Stryker's
 * own runner does not know mocha 12.
 */
import { readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import Mocha from 'mocha';

/** Where instrumented code looks for the fault that is switched on, and leaves which faults a test has reached. */
globalThis.__stryker__ ??= {};
const shared = globalThis.__stryker__;
const { TESTS_IN = '', TESTS_LIKE = '', TESTS_NOT = '' } = process.env;
/** What the tests of the service need once per run; a worker is one run, however many faults it looks at. */
const FIXTURES = resolve('dist/test/support/template.js');

/** Mocha asks for a reporter; results are taken from the run itself. */
class Silent {}

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

class MochaRunner {
  #mocha;
  #fixtures;

  capabilities() {
    return { reloadEnvironment: false };
  }

  async #load() {
    if (this.#mocha) return;
    this.#fixtures = await import(FIXTURES);
    await this.#fixtures.mochaGlobalSetup();
    const mocha = new Mocha({ timeout: 0, reporter: Silent });
    mocha.cleanReferencesAfterRun(false);
    for (const name of readdirSync(TESTS_IN, { recursive: true })) {
      if (name.endsWith('.test.js') && new RegExp(TESTS_LIKE).test(name)) mocha.addFile(resolve(join(TESTS_IN, name)));
    }
    await mocha.loadFilesAsync();
    mocha.suite.beforeEach(function () {
      shared.currentTestId = this.currentTest?.fullTitle();
    });
    this.#mocha = mocha;
  }

  /** Runs the tests with these titles, all by default. Gives one result per test, and those that failed. */
  async #run(titles, bail) {
    await this.#load();
    const not = TESTS_NOT === '' ? '' : `(?!.*(?:${TESTS_NOT}))`;
    this.#mocha.grep(new RegExp(`^${not}(${titles ? titles.map(escaped).join('|') : '.*'})$`, 's'));
    this.#mocha.suite.bail(bail);
    const tests = [];
    await new Promise((done) => {
      const runner = this.#mocha.run(done);
      const took = ({ duration = 0 }) => duration;
      runner.on('pass', (test) =>
        tests.push({ id: test.fullTitle(), name: test.fullTitle(), status: 0, timeSpentMs: took(test) }),
      );
      runner.on('fail', (test, { message }) =>
        tests.push({
          id: test.fullTitle(),
          name: test.fullTitle(),
          status: 1,
          timeSpentMs: took(test),
          failureMessage: String(message),
        }),
      );
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

  async mutantRun({ activeMutant, testFilter, hitLimit }) {
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
