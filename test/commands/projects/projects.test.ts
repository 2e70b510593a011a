/** Decisions about projects, purely. */
import { expect } from 'chai';
import { decideAssign, decideUnassign, MAX_MEMBERS } from '../../../commands/projects/assignments.ts';
import {
  decideArchive,
  decideBeginDeletion,
  decideCreate,
  decideEndDeletion,
  decideUpdate,
  GENERAL,
  projectDecider,
} from '../../../commands/projects/projects.ts';
import { nameClaimVoided } from '../../../shared/events/claims.ts';
import { projectAgentsAssigned, projectAgentsUnassigned } from '../../../shared/events/projects/assignments.ts';
import {
  projectArchived,
  projectCreated,
  projectDeleted,
  projectDeletionBegun,
  projectRestored,
  projectUpdated,
} from '../../../shared/events/projects/projects.ts';
import { type Draft, refusalOf, stateAfter } from '../../support/kit.ts';

const about = { projectId: 7, name: 'API' };
const fields = { description: null, githubRepo: null, deadline: null, color: null };
const created = projectCreated.draft({ ...about, slug: 'api', ticketPrefix: 'API', ...fields });
const general = projectCreated.draft({ projectId: 1, ...GENERAL, ...fields });
const archived = projectArchived.draft(about);
const begun = projectDeletionBegun.draft(about);
const deleted = projectDeleted.draft({ ...about, slug: 'api', ticketPrefix: 'API' });
const member = (agentName: string, role = 'member', assignmentId = 5) => ({ assignmentId, agentName, role });
const assigned = (...agents: ReturnType<typeof member>[]) => projectAgentsAssigned.draft({ ...about, agents });

const given = (...drafts: readonly Draft[]) => stateAfter(projectDecider, ...drafts);
const statusOf = (decide: () => unknown) => refusalOf(decide).status;

describe('decisions about projects', () => {
  it('a project is created once, and not on a stream whose claim was given to another', () => {
    const { projectId, ...project } = created.data;
    expect(decideCreate(given(), projectId, project)).to.deep.equal([created]);
    expect(statusOf(() => decideCreate(given(created), projectId, project))).to.equal(409);
    const voided = nameClaimVoided.draft({ kind: 'project_slug', name: 'api' });
    expect(statusOf(() => decideCreate(given(voided), projectId, project))).to.equal(409);
  });

  it('what is set is an event; what is known to be so already is left out', () => {
    expect(decideUpdate(given(created), { name: 'API', ticketPrefix: 'API' })).to.deep.equal([]);
    const changes = { name: 'Web', ticketPrefix: 'WEB', description: null };
    expect(decideUpdate(given(created), changes)).to.deep.equal([projectUpdated.draft({ ...about, changes })]);
    const web = projectUpdated.draft({ ...about, changes });
    expect(decideUpdate(given(created, web), { name: 'Web', ticketPrefix: 'WEB' })).to.deep.equal([]);
  });

  it('one request may change fields, archive, and replace the agents, all in one append', () => {
    const state = given(created, assigned(member('ada', 'lead'), member('bob')));
    const update = { color: '#000', archived: true, assignedAgents: ['cyd', 'ada'] };
    expect(decideUpdate(state, update, [11, 12])).to.deep.equal([
      projectUpdated.draft({ ...about, changes: { color: '#000' } }),
      archived,
      projectAgentsUnassigned.draft({ ...about, agentNames: ['bob'] }),
      assigned(member('cyd', 'member', 11)),
    ]);
    expect(decideUpdate(state, { assignedAgents: [] })).to.deep.equal([
      projectAgentsUnassigned.draft({ ...about, agentNames: ['ada', 'bob'] }),
    ]);
    expect(decideUpdate(state, { assignedAgents: ['bob', 'ada'] }, [1, 2])).to.deep.equal([]);
  });

  it('a project is archived and active again, once each', () => {
    expect(decideArchive(given(created), true)).to.deep.equal([archived]);
    expect(decideArchive(given(created, archived), true)).to.deep.equal([]);
    expect(decideArchive(given(created), false)).to.deep.equal([]);
    expect(decideArchive(given(created, archived), false)).to.deep.equal([projectRestored.draft(about)]);
  });

  it('the general project is neither archived nor deleted, and changes otherwise', () => {
    const state = given(general);
    for (const decide of [
      () => decideArchive(state, true),
      () => decideUpdate(state, { archived: true }),
      () => decideBeginDeletion(state),
    ]) {
      expect(statusOf(decide)).to.equal(400);
    }
    expect(decideArchive(state, false)).to.deep.equal([]);
    expect(decideUpdate(state, { name: 'Inbox' })).to.have.length(1);
  });

  it('a deletion begins, can be gone on with, and ends once', () => {
    expect(decideBeginDeletion(given(created))).to.deep.equal([begun]);
    expect(decideBeginDeletion(given(created, archived, assigned(member('ada'))))).to.deep.equal([
      projectAgentsUnassigned.draft({ ...about, agentNames: ['ada'] }),
      begun,
    ]);
    expect(decideBeginDeletion(given(created, begun))).to.deep.equal([]);
    expect(statusOf(() => decideBeginDeletion(given(created, begun, deleted)))).to.equal(404);
    expect(decideEndDeletion(given(created, begun))).to.deep.equal([deleted]);
    expect(decideEndDeletion(given(created))).to.deep.equal([]);
    expect(decideEndDeletion(given(created, begun, deleted))).to.deep.equal([]);
  });

  it('what is not there, or is being deleted, is not found', () => {
    for (const state of [given(), given(created, begun), given(created, begun, deleted)]) {
      for (const decide of [
        () => decideUpdate(state, { name: 'x' }),
        () => decideArchive(state, true),
        () => decideAssign(state, 1, 'ada', 'member'),
        () => decideUnassign(state, 'ada'),
      ]) {
        expect(statusOf(decide)).to.equal(404);
      }
    }
  });
});

describe('decisions about agents of a project', () => {
  it('an agent is assigned once, and keeps the role of the first time', () => {
    expect(decideAssign(given(created), 5, 'ada', 'lead')).to.deep.equal([assigned(member('ada', 'lead'))]);
    expect(decideAssign(given(created, assigned(member('ada', 'lead'))), 6, 'ada', 'member')).to.deep.equal([]);
  });
  it('who is no member is not removed', () => {
    expect(decideUnassign(given(created), 'ada')).to.deep.equal([]);
    expect(decideUnassign(given(created, assigned(member('ada'))), 'ada')).to.deep.equal([
      projectAgentsUnassigned.draft({ ...about, agentNames: ['ada'] }),
    ]);
  });
  it('a project has no more than so many', () => {
    const full = assigned(...Array.from({ length: MAX_MEMBERS }, (_, n) => member(`agent ${n}`)));
    expect(statusOf(() => decideAssign(given(created, full), 5, 'one more', 'member'))).to.equal(400);
    expect(decideAssign(given(created, full), 5, 'agent 1', 'member')).to.deep.equal([]);
  });
});
