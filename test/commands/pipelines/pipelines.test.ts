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
  it('an update contains the given fields, including null', () => {
    there
      .when(decideChange, { name: 'New', description: null, steps: undefined })
      .then(pipelineUpdated.draft({ pipeline_id: 3, name: 'New', description: null }));
  });

  it('an update does not count as a use', () => {
    there.when(decideChange, { name: undefined }).then(pipelineUsed.draft({ pipeline_id: 3 }));
  });

  it('a deleted or unknown pipeline cannot be updated, and deleting it does nothing', () => {
    for (const before of [gone, given()]) {
      before.when(decideChange, { name: 'New' }).thenRefuses(404);
      before.when(decideChange, {}).thenRefuses(404);
      before.when(decideDelete).then();
    }
    there.when(decideDelete).then(pipelineDeleted.draft({ pipeline_id: 3 }));
  });
});
