/** Hashes of passwords, with the parameters of the service. */
import argon2 from 'argon2';
import { expect } from 'chai';
import { createPasswords } from '../../../infra/credentials/passwords.ts';
import { withRealPasswordCost } from '../../support/password-cost.ts';

describe('passwords', () => {
  withRealPasswordCost();
  const passwords = createPasswords();

  it('are hashed with the parameters that OWASP recommends, each with a salt of its own', async () => {
    const [one, two] = [await passwords.hash('correct horse'), await passwords.hash('correct horse')];
    for (const hash of [one, two]) expect(hash).to.match(/^\$argon2id\$v=19\$m=19456,(t=2,p=1|p=1,t=2)\$/);
    expect(one).not.to.equal(two);
    expect(await passwords.verify(one, 'correct horse')).to.equal(true);
    expect(await passwords.verify(one, 'Correct horse')).to.equal(false);
    expect(await passwords.verify(undefined, 'correct horse')).to.equal(false);
  });

  it('have an outdated hash if it was made with other parameters', async () => {
    const weak = { type: argon2.argon2id, memoryCost: 8_192, timeCost: 2, parallelism: 1 } as const;
    expect(passwords.outdated(await argon2.hash('x', weak))).to.equal(true);
    expect(passwords.outdated(await passwords.hash('x'))).to.equal(false);
  });
});
