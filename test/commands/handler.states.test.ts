/** States of streams between commands. */
import { expect } from 'chai';
import { agentDecider, agentStream } from '../../commands/agents/agents.ts';
import { createStates } from '../../commands/states.ts';
import { eventsOf, registeredAgent } from '../support/kit.ts';

describe('states of streams', () => {
  it('of as many agents as a workspace may have are kept between their heartbeats', async () => {
    const [registered] = eventsOf([registeredAgent({ agent_id: 1, name: 'ada' })]);
    let reads = 0;
    const states = createStates(
      {
        readStream: async () => {
          reads++;
          return registered ? [registered] : [];
        },
      },
      undefined,
    );
    for (let round = 0; round < 2; round++)
      for (let id = 1; id <= 10_000; id++) await states.recent(agentDecider, agentStream(1, id));
    expect(reads).to.equal(10_000);
  });
});
