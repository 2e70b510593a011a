/** Older events of users: their names were display names. */
import { expect } from 'chai';
import { upcast } from '../../shared/events/upcasters.ts';

const ann = { actor: { type: 'user', id: 7, name: 'ann' } } as const;
const scout = { actor: { type: 'agent', id: 3, name: 'agent:scout' } } as const;

describe('older versions of events', () => {
  it('of a task, a comment and a broadcast name users by their usernames', () => {
    for (const [type, field] of [
      ['TaskCommented', 'author'],
      ['TaskBroadcast', 'author'],
      ['TaskAssigned', 'by'],
    ] as const) {
      expect(upcast(type, { [field]: 'Ann Lee', n: 1 }, ann, 1, 2)).to.deep.equal({ [field]: 'ann', n: 1 });
      expect(upcast(type, { [field]: 'scout', n: 1 }, scout, 1, 2)).to.deep.equal({ [field]: 'scout', n: 1 });
    }
    for (const source of ['api', 'github']) {
      const created = upcast('TaskCreated', { source, task: { title: 't', createdBy: 'Ann Lee' } }, ann, 1, 2);
      expect(created).to.deep.equal({ source, task: { title: 't', createdBy: 'ann' } });
    }
    const spawned = { source: 'recurrence', task: { createdBy: 'scheduler' } };
    expect(upcast('TaskCreated', spawned, ann, 1, 2)).to.deep.equal(spawned);
  });

  it('of a task that moved to another project name both projects', () => {
    const was = { projectId: 1, projectName: 'General' };
    const is = { projectId: 2, projectName: 'Doors' };
    const moved = { before: was, task: is };
    const names = { from: 'General', to: 'Doors' };
    expect(upcast('TaskUpdated', moved, ann, 1, 3)).to.deep.equal({ ...moved, moved: names });
    // A change after the project was renamed had the names from before and after it.
    const renamed = { before: was, task: { ...was, projectName: 'All' } };
    expect(upcast('TaskUpdated', renamed, ann, 2, 3)).to.deep.equal(renamed);
  });

  it('of a subscription whose names were erased have none', () => {
    expect(upcast('TaskSubscribed', { names: '[erased]' }, ann, 1, 2)).to.deep.equal({ names: [] });
    expect(upcast('TaskSubscribed', { names: ['ann'] }, ann, 1, 2)).to.deep.equal({ names: ['ann'] });
  });

  it('of a message and a notification stay as they were', () => {
    const message = { from: 'coordinator', to: 'scout' };
    expect(upcast('ChatMessageSent', message, ann, 1, 2)).to.deep.equal(message);
    const raised = { recipient: 'ann', title: 'New comment', message: 'Ann Lee commented' };
    expect(upcast('NotificationRaised', raised, ann, 1, 2)).to.deep.equal({ ...raised, by: null });
  });
});
