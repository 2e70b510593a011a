import { expect } from 'chai';
import { workflowsProjection } from '../../projections/workflows.ts';
import { workflowCreated, workflowDeleted, workflowUpdated, workflowUsed } from '../../shared/events/workflows.ts';
import { seconds } from '../../shared/time.ts';
import { type Draft, eventsOf, rowsAfter, timeOf } from '../support/kit.ts';

const created = workflowCreated.draft({
  workflow_id: 7,
  name: 'Scout',
  description: 'looks',
  model: 'sonnet',
  task_prompt: 'Look around.',
  timeout_seconds: 60,
  agent_role: 'coder',
  tags: ['a'],
});
const rowAfter = (...drafts: Draft[]) => rowsAfter(workflowsProjection, eventsOf([created, ...drafts])).workflows[0];

describe('projection: workflows', () => {
  it('a new template has no uses', () => {
    expect(rowAfter()).to.deep.equal({
      workspace_id: 1,
      id: 7,
      name: 'Scout',
      description: 'looks',
      model: 'sonnet',
      task_prompt: 'Look around.',
      timeout_seconds: 60,
      agent_role: 'coder',
      tags: ['a'],
      created_by: 'admin',
      created_at: seconds(timeOf(1)),
      updated_at: seconds(timeOf(1)),
      last_used_at: null,
      use_count: 0,
      position: 1,
    });
  });

  it('an update sets the given fields, including null', () => {
    const before = rowAfter();
    const at = { updated_at: seconds(timeOf(2)), position: 2 };
    const update = (fields: object) => rowAfter(workflowUpdated.draft({ workflow_id: 7, ...fields }));
    expect(update({ name: 'New' })).to.deep.equal({ ...before, ...at, name: 'New' });
    expect(update({ description: null, agent_role: null, tags: [] })).to.deep.equal({
      ...before,
      ...at,
      description: null,
      agent_role: null,
      tags: [],
    });
    expect(update({ model: 'opus', task_prompt: 'p', timeout_seconds: 10 })).to.deep.equal({
      ...before,
      ...at,
      model: 'opus',
      task_prompt: 'p',
      timeout_seconds: 10,
    });
  });

  it('counts uses', () => {
    const used = workflowUsed.draft({ workflow_id: 7 });
    expect(rowAfter(used, used)).to.deep.include({
      use_count: 2,
      last_used_at: seconds(timeOf(3)),
      updated_at: seconds(timeOf(3)),
    });
  });

  it('a deleted template has no row', () => {
    expect(rowAfter(workflowDeleted.draft({ workflow_id: 7 }))).to.equal(undefined);
  });
});
