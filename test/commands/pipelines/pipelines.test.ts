import { expect } from 'chai';
import { decideChange, decideDelete, pipelineDecider } from '../../../commands/pipelines/pipelines.ts';
import {
  pipelineCreated,
  pipelineDeleted,
  pipelineUpdated,
  pipelineUsed,
} from '../../../shared/events/pipelines/pipelines.ts';
import { refusalOf, stateAfter } from '../../support/kit.ts';

const created = pipelineCreated.draft({ pipelineId: 3, name: 'Survey', description: null, steps: [] });
const there = stateAfter(pipelineDecider, created);
const gone = stateAfter(pipelineDecider, created, pipelineDeleted.draft({ pipelineId: 3 }));

describe('commands: pipelines', () => {
  it('a change holds what is given, also null', () => {
    expect(decideChange(there, { name: 'New', description: null, steps: undefined })).to.deep.equal([
      pipelineUpdated.draft({ pipelineId: 3, name: 'New', description: null }),
    ]);
  });

  it('no change is a use', () => {
    expect(decideChange(there, { name: undefined })).to.deep.equal([pipelineUsed.draft({ pipelineId: 3 })]);
  });

  it('one that is gone, or never was, is not changed, and deleted already', () => {
    for (const state of [gone, pipelineDecider.initial]) {
      expect(refusalOf(() => decideChange(state, { name: 'New' })).status).to.equal(404);
      expect(refusalOf(() => decideChange(state, {})).status).to.equal(404);
      expect(decideDelete(state)).to.deep.equal([]);
    }
    expect(decideDelete(there)).to.deep.equal([pipelineDeleted.draft({ pipelineId: 3 })]);
  });
});
