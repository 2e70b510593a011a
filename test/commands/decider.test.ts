import { expect } from 'chai';
import { defineDecider, on } from '../../commands/decider.ts';
import { agentHidden, agentShown } from '../../shared/events/agents/agents.ts';
import { agentRegistered } from '../../shared/events/agents/registration.ts';

describe('deciders', () => {
  const visibility = defineDecider<readonly string[]>({
    kind: 'visibility',
    initial: [],
    folds: [on([agentHidden, agentShown], (state, { data, at }) => [...state, `${data.name} at ${at}`])],
  });

  it('fold the named events, with their data and time', () => {
    const data = { agent_id: 7, name: 'ada' };
    const hidden = visibility.evolve(visibility.initial, { type: agentHidden.type, data, at: 1 });
    expect(visibility.evolve(hidden, { type: agentShown.type, data, at: 2 })).to.deep.equal(['ada at 1', 'ada at 2']);
  });
  it('leave the state unchanged for other event types', () => {
    const state = ['as it was'];
    expect(visibility.evolve(state, { type: agentRegistered.type, data: {}, at: 1 })).to.equal(state);
  });
  it('may return null from a fold', () => {
    const decider = defineDecider<string | null>({ kind: 'note', initial: 'x', folds: [on(agentHidden, () => null)] });
    expect(decider.evolve('x', { type: agentHidden.type, data: {}, at: 1 })).to.equal(null);
  });
  it('have one fold per event type', () => {
    expect(() =>
      defineDecider<number>({
        kind: 'count',
        initial: 0,
        folds: [on(agentHidden, (n) => n + 1), on([agentShown, agentHidden], (n) => n - 1)],
      }),
    ).to.throw('count: two folds for the event type AgentHidden');
  });
});
