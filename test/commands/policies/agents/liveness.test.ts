/** Agents that have fallen silent. */
import { expect } from 'chai';
import { decideSilence } from '../../../../commands/policies/agents/liveness.ts';
import { deleted, given, registered, status } from '../../../support/agent.ts';
import { timeOf } from '../../../support/kit.ts';

describe('agent: liveness', () => {
  const late = timeOf(2) + 1;

  it('sets a silent agent offline', () => {
    expect(decideSilence(given(registered, status('busy')), late)[0]?.data).to.deep.include({
      from: 'busy',
      to: 'offline',
      cause: 'sweep',
      seen: false,
    });
  });

  it('ignores agents that have just reported, are offline, were deleted or never existed', () => {
    expect(decideSilence(given(registered, status('busy')), timeOf(2))).to.deep.equal([]);
    expect(decideSilence(given(registered), late)).to.deep.equal([]);
    expect(decideSilence(given(registered, status('busy'), deleted), Number.MAX_SAFE_INTEGER)).to.deep.equal([]);
    expect(decideSilence(given(), late)).to.deep.equal([]);
  });
});
