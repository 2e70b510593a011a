import { expect } from 'chai';
import { leasesProjection } from '../../../projections/agents/leases.ts';
import { heartbeatSummariesRemoved, heartbeatsReceived } from '../../../shared/events/agents/heartbeat.ts';
import { eventsOf, rowsAfter } from '../../support/kit.ts';

describe('projection leases', () => {
  const summary = (window: number, part: number, ...agents: [number, number, number, number][]) =>
    heartbeatsReceived.draft({ window, part, from: 1_000, to: 1_300, agents, connections: [] });

  it('has a row for each agent and window', () => {
    const events = eventsOf(
      [summary(5, 0, [1, 3, 0, 60], [2, 1, 7, 7]), summary(5, 1, [3, 1, 9, 9]), summary(6, 0, [1, 2, 0, 5])],
      {
        workspace: 4,
      },
    );
    const row = { workspace_id: 4, window_id: 5 };
    expect(rowsAfter(leasesProjection, events).windows).to.have.deep.members([
      { ...row, agent_id: 1, beats: 3, last_at: 1_060, position: 1 },
      { ...row, agent_id: 2, beats: 1, last_at: 1_007, position: 1 },
      { ...row, agent_id: 3, beats: 1, last_at: 1_009, position: 2 },
      { ...row, window_id: 6, agent_id: 1, beats: 2, last_at: 1_005, position: 3 },
    ]);
  });

  it('has no rows that were removed', () => {
    const removed = heartbeatSummariesRemoved.draft({ agents: [{ agent_id: 1, windows: [5, 6] }] });
    const events = eventsOf([summary(5, 0, [1, 1, 0, 0], [2, 1, 0, 0]), summary(7, 0, [1, 1, 0, 0]), removed]);
    expect(
      rowsAfter(leasesProjection, events).windows.map((row) => [row.agent_id, row.window_id]),
    ).to.have.deep.members([
      [2, 5],
      [1, 7],
    ]);
    expect(leasesProjection.weigh?.(removed)).to.equal(2);
  });

  it('counts an event as heavy as its agents', () => {
    expect(leasesProjection.weigh?.(summary(5, 0, [1, 1, 0, 0], [2, 1, 0, 0]))).to.equal(2);
  });
});
