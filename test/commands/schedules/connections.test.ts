/** Connections that have fallen silent. */
import { expect } from 'chai';
import { decideStale } from '../../../commands/connections.ts';
import { agentHeartbeatReceived } from '../../../shared/events/agents/heartbeat.ts';
import { connectionClosed, connectionOpened } from '../../../shared/events/connections.ts';
import { ada, deleted, given, registered, status } from '../../support/agent.ts';
import { sample, timeOf } from '../../support/kit.ts';

describe('stale connections', () => {
  const connectionId = '00000000-0000-4000-8000-000000000001';
  const opened = sample(connectionOpened, { ...ada, id: 1, connection_id: connectionId, tool_name: 'cli' });
  const closed = connectionClosed.draft({ ...ada, connection_id: connectionId, cause: 'request' });
  const beat = sample(agentHeartbeatReceived, { ...ada, last_activity: 'x' });

  it('are ended, and their agents go offline', () => {
    const drafts = decideStale(given(registered, status('busy'), opened).state, timeOf(3) + 1);
    expect(drafts.map(({ type }) => type)).to.deep.equal(['ConnectionClosed', 'AgentStatusChanged']);
    expect(drafts[0]?.data).to.include({ connection_id: connectionId, cause: 'stale' });
    expect(drafts[1]?.data).to.include({ from: 'busy', to: 'offline', cause: 'sweep' });
  });

  it('do not affect agents that are already offline or have given another sign of life', () => {
    expect(decideStale(given(registered, opened).state, timeOf(2) + 1)).to.have.length(1);
    expect(decideStale(given(registered, opened, beat).state, timeOf(2) + 1)).to.have.length(1);
    expect(decideStale(given(registered, opened, beat).state, timeOf(3) + 1)).to.have.length(2);
  });

  it('do not include recently seen or ended ones, or those of deleted agents', () => {
    given(registered, opened).when(decideStale, timeOf(2)).then();
    for (const drafts of [[registered], [registered, opened, closed], [registered, opened, deleted], []])
      given(...drafts)
        .when(decideStale, Number.MAX_SAFE_INTEGER)
        .then();
  });
});
