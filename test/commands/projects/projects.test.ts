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
import { givenFor } from '../../support/kit.ts';

const about = { project_id: 7, name: 'API' };
const fields = { description: null, github_repo: null, deadline: null, color: null };
const created = projectCreated.draft({ ...about, slug: 'api', ticket_prefix: 'API', ...fields });
const general = projectCreated.draft({ project_id: 1, ...GENERAL, ...fields });
const archived = projectArchived.draft(about);
const begun = projectDeletionBegun.draft(about);
const deleted = projectDeleted.draft({ ...about, slug: 'api', ticket_prefix: 'API' });
const member = (agentName: string, role = 'member', assignmentId = 5) => ({
  assignment_id: assignmentId,
  agent_name: agentName,
  role,
});
const assigned = (...agents: ReturnType<typeof member>[]) => projectAgentsAssigned.draft({ ...about, agents });

const given = givenFor(projectDecider);

describe('project decisions', () => {
  it('a project is created once, and not on a stream whose claim went to another', () => {
    const { project_id: projectId, ...project } = created.data;
    given().when(decideCreate, projectId, project).then(created);
    given(created).when(decideCreate, projectId, project).thenRefuses(409);
    const voided = nameClaimVoided.draft({ kind: 'project_slug', name: 'api' });
    given(voided).when(decideCreate, projectId, project).thenRefuses(409);
  });

  it('an update is an event, and known unchanged fields are omitted', () => {
    given(created).when(decideUpdate, { name: 'API', ticket_prefix: 'API' }).then();
    const changes = { name: 'Web', ticket_prefix: 'WEB', description: null };
    given(created)
      .when(decideUpdate, changes)
      .then(projectUpdated.draft({ ...about, changes }));
    const web = projectUpdated.draft({ ...about, changes });
    given(created, web).when(decideUpdate, { name: 'Web', ticket_prefix: 'WEB' }).then();
  });

  it('one update may change fields, archive the project and replace its agents, in one append', () => {
    const before = given(created, assigned(member('ada', 'lead'), member('bob')));
    const update = { color: '#000', archived: true, assignedAgents: ['cyd', 'ada'] };
    before
      .when(decideUpdate, update, [11, 12])
      .then(
        projectUpdated.draft({ ...about, changes: { color: '#000' } }),
        archived,
        projectAgentsUnassigned.draft({ ...about, agent_names: ['bob'] }),
        assigned(member('cyd', 'member', 11)),
      );
    before
      .when(decideUpdate, { assignedAgents: [] })
      .then(projectAgentsUnassigned.draft({ ...about, agent_names: ['ada', 'bob'] }));
    before.when(decideUpdate, { assignedAgents: ['bob', 'ada'] }, [1, 2]).then();
  });

  it('a project is archived once and reactivated once', () => {
    given(created).when(decideArchive, true).then(archived);
    given(created, archived).when(decideArchive, true).then();
    given(created).when(decideArchive, false).then();
    given(created, archived).when(decideArchive, false).then(projectRestored.draft(about));
  });

  it('the general project cannot be archived or deleted, but can be updated', () => {
    const before = given(general);
    before.when(decideArchive, true).thenRefuses(400);
    before.when(decideUpdate, { archived: true }).thenRefuses(400);
    before.when(decideBeginDeletion).thenRefuses(400);
    before.when(decideArchive, false).then();
    expect(decideUpdate(before.state, { name: 'Inbox' })).to.have.length(1);
  });

  it('a deletion starts once, can be resumed, and ends once', () => {
    given(created).when(decideBeginDeletion).then(begun);
    given(created, archived, assigned(member('ada')))
      .when(decideBeginDeletion)
      .then(projectAgentsUnassigned.draft({ ...about, agent_names: ['ada'] }), begun);
    given(created, begun).when(decideBeginDeletion).then();
    given(created, begun, deleted).when(decideBeginDeletion).thenRefuses(404);
    given(created, begun).when(decideEndDeletion).then(deleted);
    given(created).when(decideEndDeletion).then();
    given(created, begun, deleted).when(decideEndDeletion).then();
  });

  it('a project that is missing or being deleted is not found', () => {
    for (const before of [given(), given(created, begun), given(created, begun, deleted)]) {
      before.when(decideUpdate, { name: 'x' }).thenRefuses(404);
      before.when(decideArchive, true).thenRefuses(404);
      before.when(decideAssign, 1, 'ada', 'member').thenRefuses(404);
      before.when(decideUnassign, 'ada').thenRefuses(404);
    }
  });
});

describe('project agent decisions', () => {
  it('an agent is assigned once and keeps its first role', () => {
    given(created)
      .when(decideAssign, 5, 'ada', 'lead')
      .then(assigned(member('ada', 'lead')));
    given(created, assigned(member('ada', 'lead')))
      .when(decideAssign, 6, 'ada', 'member')
      .then();
  });
  it('an agent that is not a member cannot be removed', () => {
    given(created).when(decideUnassign, 'ada').then();
    given(created, assigned(member('ada')))
      .when(decideUnassign, 'ada')
      .then(projectAgentsUnassigned.draft({ ...about, agent_names: ['ada'] }));
  });
  it('the number of agents in a project is limited', () => {
    const full = assigned(...Array.from({ length: MAX_MEMBERS }, (_, n) => member(`agent ${n}`)));
    given(created, full).when(decideAssign, 5, 'one more', 'member').thenRefuses(400);
    given(created, full).when(decideAssign, 5, 'agent 1', 'member').then();
  });
});
