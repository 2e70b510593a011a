/** Agents that have fallen silent. */
import { expect } from 'chai';
import { decideSilence } from '../../../../commands/schedules/agents/liveness.ts';
import { deleted, given, registered, status } from '../../../support/agent.ts';
import { timeOf } from '../../../support/kit.ts';

describe('agent: liveness', () => {
  const late = timeOf(2) + 1;

  it('sets an inactive agent offline', () => {
    expect(decideSilence(given(registered, status('busy')).state, late)[0]?.data).to.deep.include({
      from: 'busy',
      to: 'offline',
      cause: 'sweep',
      seen: false,
    });
  });

  it('ignores deleted or unknown agents and those that are offline or have just reported', () => {
    given(registered, status('busy')).when(decideSilence, timeOf(2)).then();
    given(registered).when(decideSilence, late).then();
    given(registered, status('busy'), deleted).when(decideSilence, Number.MAX_SAFE_INTEGER).then();
    given().when(decideSilence, late).then();
  });
});
