import { expect } from 'chai';
import { decideChange, decideDelete, workflowDecider } from '../../commands/workflows.ts';
import { workflowCreated, workflowDeleted, workflowUpdated, workflowUsed } from '../../shared/events/workflows.ts';
import { refusalOf, stateAfter } from '../support/kit.ts';

const created = workflowCreated.draft({
  workflowId: 7,
  name: 'Scout',
  description: null,
  model: 'sonnet',
  taskPrompt: 'Look around.',
  timeoutSeconds: 60,
  agentRole: null,
  tags: [],
});
const there = stateAfter(workflowDecider, created);
const gone = stateAfter(workflowDecider, created, workflowDeleted.draft({ workflowId: 7 }));

describe('commands: workflows', () => {
  it('a change holds what is given, also null', () => {
    expect(decideChange(there, { name: 'New', agentRole: null, tags: undefined })).to.deep.equal([
      workflowUpdated.draft({ workflowId: 7, name: 'New', agentRole: null }),
    ]);
  });

  it('no change is a use', () => {
    expect(decideChange(there, { name: undefined })).to.deep.equal([workflowUsed.draft({ workflowId: 7 })]);
  });

  it('one that is gone, or never was, is neither changed nor deleted', () => {
    for (const state of [gone, workflowDecider.initial]) {
      for (const decide of [
        () => decideChange(state, { name: 'x' }),
        () => decideChange(state, {}),
        () => decideDelete(state),
      ])
        expect(refusalOf(decide).status).to.equal(404);
    }
    expect(decideDelete(there)).to.deep.equal([workflowDeleted.draft({ workflowId: 7 })]);
  });

  it('keeps nothing in memory of what a template says', () => {
    expect(there).to.deep.equal({ id: 7 });
  });
});
