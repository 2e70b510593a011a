/** Rows of the read model of tickets: the last number of each project. */
import { expect } from 'chai';
import { ticketsProjection } from '../../../projections/projects/tickets.ts';
import { taskMoved } from '../../../shared/events/tasks/tasks.ts';
import { seconds } from '../../../shared/time.ts';
import { type Draft, eventsOf, rowsAfter, timeOf } from '../../support/kit.ts';
import * as task from '../../support/tasks.ts';

describe('projection tickets', () => {
  const rows = (...drafts: readonly Draft[]) =>
    rowsAfter(ticketsProjection, eventsOf(drafts, { workspace: 3 })).tickets.map(({ project_id, last, updated_at }) => [
      project_id,
      last,
      updated_at,
    ]);
  const at = (n: number) => seconds(timeOf(n));
  const given = (ticketNo: number, projectId = 7) =>
    task.created({ project_id: projectId, project_ticket_no: ticketNo });

  it('are the highest numbers given to tasks, in any order of events', () => {
    expect(rows(given(2), given(1), given(9, 8))).to.deep.equal([
      [7, 2, at(2)],
      [8, 9, at(3)],
    ]);
  });

  it('change only if a task moves to another project', () => {
    expect(rows(given(1, 8), task.updated({ project_id: 7, project_ticket_no: 5 }, { project_id: 8 }))).to.deep.equal([
      [8, 1, at(1)],
      [7, 5, at(2)],
    ]);
    expect(
      rows(given(2), task.updated({ title: 'x', project_ticket_no: 2 }, { project_id: 7, project_ticket_no: 2 })),
    ).to.deep.equal([[7, 2, at(1)]]);
    const places = task.placed({ project_id: 8 }, { project_id: 7 });
    expect(rows(taskMoved.draft({ task_id: 7, title: 't', ...places, project_ticket_no: 4 }))).to.deep.equal([
      [7, 4, at(1)],
    ]);
  });
});
