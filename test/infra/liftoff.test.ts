/** When the program starts itself again with --liftoff-only. */
import { expect } from 'chai';
import { needsLiftoff } from '../../infra/liftoff.ts';

const MB = 2 ** 20;

describe('--liftoff-only', () => {
  it('is needed with the V8 of Node 24 and less than 1 GB', () => {
    expect(needsLiftoff('13.6.233.17-node.50', 1023 * MB, ['--enable-source-maps'])).to.equal(true);
  });
  it('is not needed with enough or unknown memory, with another V8, or once it is there', () => {
    expect(needsLiftoff('13.6.233.17-node.50', 1024 * MB, [])).to.equal(false);
    expect(needsLiftoff('13.6.233.17-node.50', 0, [])).to.equal(false);
    expect(needsLiftoff('14.6.1-node.1', 512 * MB, [])).to.equal(false);
    expect(needsLiftoff('11.3.244.8-node.33', 512 * MB, [])).to.equal(false);
    expect(needsLiftoff('13.6.233.17-node.50', 512 * MB, ['--liftoff-only'])).to.equal(false);
  });
});
