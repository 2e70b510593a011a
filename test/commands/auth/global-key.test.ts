import { expect } from 'chai';
import {
  decideConfigure,
  decideRotate,
  globalKeyDecider,
  maskChosenKey,
  maskKey,
  newGlobalKey,
} from '../../../commands/auth/global-key.ts';
import { type Draft, stateAfter } from '../../support/kit.ts';

describe('global key decisions', () => {
  const keys = (...drafts: readonly Draft[]) => stateAfter(globalKeyDecider, ...drafts);
  const env = { keyId: 1, source: 'environment', masked: '****' } as const;

  it('the environment is noted once, and replaces a generated key', () => {
    expect(decideConfigure(keys(), env)).to.have.length(1);
    expect(decideConfigure(keys(...decideConfigure(keys(), env)), env)).to.have.length(0);
    const generated = keys(...decideConfigure(keys(), { keyId: 2, source: 'database', masked: 'm' }));
    expect(decideConfigure(generated, env)).to.have.length(1);
  });
  it('only one generated key is made', () => {
    const generated = keys(...decideConfigure(keys(), { keyId: 2, source: 'database', masked: 'm' }));
    expect(decideConfigure(generated, { keyId: 3, source: 'database', masked: 'n' })).to.have.length(0);
  });
  it('a rotated key wins over everything but the next rotation', () => {
    const rotation = decideRotate(keys(...decideConfigure(keys(), env)), { keyId: 4, masked: 'r' });
    expect(rotation[0]?.data).to.deep.equal({ keyId: 4, masked: 'r', oldSource: 'environment', oldMasked: '****' });
    const rotated = keys(...rotation);
    expect(decideConfigure(rotated, { ...env, keyId: 5 })).to.have.length(0);
    expect(decideRotate(rotated, { keyId: 6, masked: 's' })).to.have.length(1);
  });
  it('masks', () => {
    expect(maskKey('123456789')).to.equal('****');
    expect(maskKey('1234567890')).to.equal('1234-****-****-67890');
    expect(maskChosenKey('short-secret')).to.equal('****');
    expect(newGlobalKey()).to.match(/^mc_[0-9a-f]{48}$/);
  });
});
