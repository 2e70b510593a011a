import { expect } from 'chai';
import { decideChange, decideDelete, workflowDecider } from '../../commands/workflows.ts';
import { workflowCreated, workflowDeleted, workflowUpdated, workflowUsed } from '../../shared/events/workflows.ts';
import { givenFor } from '../support/kit.ts';

const given = givenFor(workflowDecider);
const created = workflowCreated.draft({
  workflow_id: 7,
  name: 'Scout',
  description: null,
  model: 'sonnet',
  task_prompt: 'Look around.',
  timeout_seconds: 60,
  agent_role: null,
  tags: [],
});
const there = given(created);
const gone = given(created, workflowDeleted.draft({ workflow_id: 7 }));

describe('commands: workflows', () => {
  it('an update contains the given fields, including null', () => {
    there
      .when(decideChange, { name: 'New', agent_role: null, tags: undefined })
      .then(workflowUpdated.draft({ workflow_id: 7, name: 'New', agent_role: null }));
  });

  it('an update does not count as a use', () => {
    there.when(decideChange, { name: undefined }).then(workflowUsed.draft({ workflow_id: 7 }));
  });

  it('a deleted or unknown workflow cannot be updated or deleted', () => {
    for (const before of [gone, given()]) {
      before.when(decideChange, { name: 'x' }).thenRefuses(404);
      before.when(decideChange, {}).thenRefuses(404);
      before.when(decideDelete).thenRefuses(404);
    }
    there.when(decideDelete).then(workflowDeleted.draft({ workflow_id: 7 }));
    there.when(decideDelete, 'Pipeline 1 uses it.').thenRefuses(409);
    gone.when(decideDelete, 'Pipeline 1 uses it.').thenRefuses(404);
  });

  it('the state keeps no text of the template in memory', () => {
    expect(there.state).to.deep.equal({ id: 7 });
  });
});
