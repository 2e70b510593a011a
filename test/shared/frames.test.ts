/** Frames as they are sent: what a task shows of its project is looked up at the position of the event. */
import { expect } from 'chai';
import type { DomainEvent, EventDefinition } from '../../shared/events/define.ts';
import { type FrameNames, framesOf, shownFrames } from '../../shared/events/monitoring/frames.ts';
import { taskStatusChanged, taskUpdated } from '../../shared/events/tasks/changes.ts';
import { taskCreated, taskMoved } from '../../shared/events/tasks/tasks.ts';
import type { ReadAt } from '../../shared/ports/read-models.ts';
import { type Draft, eventsOf, NAMES } from '../support/kit.ts';
import { created, placed, statusSet, updated } from '../support/tasks.ts';

const moved = taskMoved.draft({ task_id: 7, title: 't', ...placed({}, { project_id: 2 }), project_ticket_no: 8 });

async function shownOf(definition: object, draft: Draft, projects: FrameNames['projects'] = NAMES.projects) {
  const [event] = eventsOf([draft]) as [DomainEvent];
  const frames = framesOf(definition as EventDefinition, event);
  return { event, data: (await shownFrames(frames, event, { ...NAMES, projects }))[0]?.data };
}

describe('task frames', () => {
  it('contain the name and prefix of the project for a whole task and a moved task', async () => {
    const general = { project_name: 'Project 1', project_prefix: 'P1', ticket_ref: 'P1-003' };
    expect((await shownOf(taskCreated, created())).data).to.include(general);
    expect((await shownOf(taskUpdated, updated({ title: 'x' }))).data).to.include(general);
    expect((await shownOf(taskMoved, moved)).data).to.include({
      ...{ project_id: 2, project_ticket_no: 8 },
      ...{ project_name: 'Project 2', project_prefix: 'P2', ticket_ref: 'P2-008' },
    });
  });

  it('look names up once the read model shows their event, and only for tasks with a ticket', async () => {
    const asked: [number, ReadAt][] = [];
    const projects: FrameNames['projects'] = {
      async at(workspace, at) {
        asked.push([workspace, at]);
        return async () => undefined;
      },
    };
    const { event, data } = await shownOf(taskMoved, moved, projects);
    expect(asked.map(([workspace, at]) => [workspace, at.position])).to.deep.equal([[1, event.position]]);
    expect(data).to.include({ project_name: null, project_prefix: null }).and.not.have.property('ticket_ref');
    await shownOf(taskStatusChanged, statusSet('inbox', 'review'), projects);
    expect(asked).to.have.length(1);
  });
});
