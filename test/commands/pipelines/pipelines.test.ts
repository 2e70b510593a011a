import { decideChange, decideDelete, pipelineDecider } from '../../../commands/pipelines/pipelines.ts';
import {
  pipelineCreated,
  pipelineDeleted,
  pipelineUpdated,
  pipelineUsed,
} from '../../../shared/events/pipelines/pipelines.ts';
import { givenFor } from '../../support/kit.ts';

const given = givenFor(pipelineDecider);
const created = pipelineCreated.draft({ pipeline_id: 3, name: 'Survey', description: null, steps: [] });
const there = given(created);
const gone = given(created, pipelineDeleted.draft({ pipeline_id: 3 }));

describe('commands: pipelines', () => {
  it('a change holds what is given, also null', () => {
    there
      .when(decideChange, { name: 'New', description: null, steps: undefined })
      .then(pipelineUpdated.draft({ pipeline_id: 3, name: 'New', description: null }));
  });

  it('no change is a use', () => {
    there.when(decideChange, { name: undefined }).then(pipelineUsed.draft({ pipeline_id: 3 }));
  });

  it('one that is gone, or never was, is not changed, and deleted already', () => {
    for (const before of [gone, given()]) {
      before.when(decideChange, { name: 'New' }).thenRefuses(404);
      before.when(decideChange, {}).thenRefuses(404);
      before.when(decideDelete).then();
    }
    there.when(decideDelete).then(pipelineDeleted.draft({ pipeline_id: 3 }));
  });
});
