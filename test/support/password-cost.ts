/**
 * In the processes of test files, hashing and verifying a password costs less than 1 ms of CPU instead of 30: most tests
 * sign in, and few are about passwords. Processes of the service keep its parameters. mocha loads this file
 * (`.mocharc.json`).
 */
import argon2 from 'argon2';

const LEAST = { memoryCost: 64, timeCost: 1, parallelism: 1 };

const { hash, needsRehash } = argon2;
let cost: typeof LEAST | undefined = LEAST;

Object.assign(argon2, {
  hash: (password: string | Buffer, options: object) => hash(password, { ...options, ...cost }),
  needsRehash: (digest: string, options: object) => needsRehash(digest, { ...options, ...cost }),
});

/** The tests of the enclosing suite hash with the parameters of the service. */
export function withRealPasswordCost(): void {
  before(() => {
    cost = undefined;
  });
  after(() => {
    cost = LEAST;
  });
}
