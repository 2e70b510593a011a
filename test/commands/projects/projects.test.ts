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
const named = (agentName: string, agentId?: number) => ({
  agent_name: agentName,
  ...(agentId !== undefined && { agent_id: agentId }),
});
const left = (...members: ReturnType<typeof member>[]) =>
  projectAgentsUnassigned.draft({ ...about, agents: members.map(({ role: _, ...one }) => one) });
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
    const before = given(created, assigned(member('ada', 'lead'), member('bob', 'member', 6)));
    const update = { color: '#000', archived: true, assignedAgents: [named('cyd'), named('ada')] };
    before
      .when(decideUpdate, update, [11, 12])
      .then(
        projectUpdated.draft({ ...about, changes: { color: '#000' } }),
        archived,
        left(member('bob', 'member', 6)),
        assigned(member('cyd', 'member', 11)),
      );
    before.when(decideUpdate, { assignedAgents: [] }).then(left(member('ada'), member('bob', 'member', 6)));
    before.when(decideUpdate, { assignedAgents: [named('bob'), named('ada')] }, [1, 2]).then();
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
      .then(left(member('ada')), begun);
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
      before.when(decideAssign, 1, named('ada'), 'member').thenRefuses(404);
      before.when(decideUnassign, named('ada')).thenRefuses(404);
    }
  });
});

describe('project agent decisions', () => {
  it('an agent is assigned once and keeps its first role', () => {
    given(created)
      .when(decideAssign, 5, named('ada'), 'lead')
      .then(assigned(member('ada', 'lead')));
    given(created, assigned(member('ada', 'lead')))
      .when(decideAssign, 6, named('ada'), 'member')
      .then();
  });
  it('an agent that is not a member cannot be removed', () => {
    given(created).when(decideUnassign, named('ada')).then();
    given(created, assigned(member('ada')))
      .when(decideUnassign, named('ada'))
      .then(left(member('ada')));
  });
  it('an agent is a member by its id, and by its name only if no agent had it at the assignment', () => {
    const ada = { ...member('ada'), agent_id: 9 };
    const members = given(created, assigned(ada, member('bob', 'member', 6)));
    // The former `ada`, renamed.
    members.when(decideAssign, 7, named('eve', 9), 'member').then();
    members.when(decideUnassign, named('eve', 9)).then(left(ada));
    members.when(decideUnassign, named('ada', 10)).then();
    members.when(decideUnassign, named('ada')).then();
    const namesake = { ...member('ada', 'member', 7), agent_id: 10 };
    members.when(decideAssign, 7, named('ada', 10), 'member').then(assigned(namesake));
    const replaced = { assignedAgents: [named('ada', 10), named('bob', 11)] };
    members.when(decideUpdate, replaced, [7, 8]).then(left(ada), assigned(namesake));
  });
  it('the number of agents in a project is limited', () => {
    const full = assigned(...Array.from({ length: MAX_MEMBERS }, (_, n) => member(`agent ${n}`, 'member', n + 1)));
    given(created, full).when(decideAssign, 5, named('one more'), 'member').thenRefuses(400);
    given(created, full).when(decideAssign, 5, named('agent 1'), 'member').then();
  });
});
