/** The project: the state of its stream, and the decisions about its record. `changes.ts` runs them. */
import { conflict, invalid, notFound } from '../../shared/errors.ts';
import type { EventDraft, EventOf } from '../../shared/events/define.ts';
import { projectAgentsAssigned, projectAgentsUnassigned } from '../../shared/events/projects/assignments.ts';
import {
  projectArchived,
  projectCreated,
  projectDeleted,
  projectDeletionBegun,
  projectRestored,
  projectUpdated,
} from '../../shared/events/projects/projects.ts';
import { defineDecider, on } from '../decider.ts';
import { giveUpName, type NameOwnerState, nameKey, namingFolds } from '../naming.ts';

export interface ProjectState extends NameOwnerState {
  readonly life: 'none' | 'active' | 'archived' | 'deleting' | 'deleted';
  /** 0 until created. */
  readonly id: number;
  readonly name: string;
  readonly slug: string;
  readonly prefix: string;
  /** By id of the assignment. */
  readonly agents: ReadonlyMap<number, Member>;
}

/** An agent of a project. The id is the reference; without one, the name is: no agent had it when it was assigned. */
export interface Member {
  readonly agent_name: string;
  readonly agent_id?: number | undefined;
}

/** Whether a member of a project is this agent. */
export const isMember = (one: Member, agent: Member): boolean =>
  one.agent_id === undefined ? one.agent_name === agent.agent_name : one.agent_id === agent.agent_id;

const initial: ProjectState = {
  life: 'none',
  id: 0,
  name: '',
  slug: '',
  prefix: '',
  agents: new Map(),
  givenUpNames: {},
};

/** Kinds of the unique names of projects (`names.ts`). */
export const PROJECT_SLUG = 'project_slug';
export const TICKET_PREFIX = 'ticket_prefix';

export const projectStream = (workspace: number, id: number): string => `project-${workspace}-${id}`;

export const projectDecider = defineDecider<ProjectState>({
  kind: 'project',
  initial,
  folds: [
    on(projectCreated, (_, { data }) => ({
      ...initial,
      life: 'active',
      id: data.project_id,
      name: data.name,
      slug: data.slug,
      prefix: data.ticket_prefix,
    })),
    on(projectUpdated, (state, { data: { changes }, at }) => ({
      ...state,
      name: changes.name ?? state.name,
      prefix: changes.ticket_prefix ?? state.prefix,
      givenUpNames:
        changes.ticket_prefix === undefined || changes.ticket_prefix === state.prefix
          ? state.givenUpNames
          : giveUpName(state.givenUpNames, nameKey(TICKET_PREFIX, state.prefix), at),
    })),
    on(projectArchived, (state) => ({ ...state, life: 'archived' })),
    on(projectRestored, (state) => ({ ...state, life: 'active' })),
    on(projectDeletionBegun, (state) => ({ ...state, life: 'deleting' })),
    on(projectDeleted, (state) => ({ ...state, life: 'deleted', givenUpNames: {} })),
    on(projectAgentsAssigned, (state, { data }) => ({
      ...state,
      agents: new Map([
        ...state.agents,
        ...data.agents.map(({ assignment_id: id, role: _, ...one }) => [id, one] as const),
      ]),
    })),
    on(projectAgentsUnassigned, (state, { data }) => {
      const left = new Set(data.agents.map(({ assignment_id: id }) => id));
      return { ...state, agents: new Map([...state.agents].filter(([id]) => !left.has(id))) };
    }),
    ...namingFolds<ProjectState>(),
  ],
});

/** The project of tasks without another project. Every workspace has one; it cannot be archived or deleted. */
export const GENERAL = { name: 'General', slug: 'general', ticket_prefix: 'TASK' } as const;

/** The project of a state. @throws AppError 404 when it does not exist, or was deleted */
export function existing(state: ProjectState): { readonly project_id: number; readonly name: string } {
  if (state.life !== 'active' && state.life !== 'archived') throw notFound('Project');
  return { project_id: state.id, name: state.name };
}

export type NewProject = Omit<EventOf<typeof projectCreated>['data'], 'project_id'>;

/** @throws AppError 409 if a claim of the stream was voided: the name now has another owner */
export function decideCreate(state: ProjectState, projectId: number, project: NewProject): EventDraft[] {
  if (state.life !== 'none' || Object.keys(state.givenUpNames).length > 0)
    throw conflict('The slug or the ticket prefix of this project was taken in the meantime; try again.');
  return [projectCreated.draft({ project_id: projectId, ...project })];
}

type Changes = EventOf<typeof projectUpdated>['data']['changes'];

/** Fields to set; absent means unchanged. */
export interface ProjectUpdate extends Changes {
  readonly archived?: boolean;
  /** All future members of the project. */
  readonly assignedAgents?: readonly Member[];
}

/** Role of agents without a given role. */
export const MEMBER = 'member';

/**
 * Sets fields. Values already known to be the same are left out.
 *
 * @param assignmentIds fresh ids, one for each of `assignedAgents`
 * @throws AppError 400 when it would archive the general project, 404
 */
export function decideUpdate(
  state: ProjectState,
  { archived, assignedAgents, ...fields }: ProjectUpdate,
  assignmentIds: readonly number[] = [],
): EventDraft[] {
  const project = existing(state);
  const known = { name: state.name, ticket_prefix: state.prefix };
  const changes = Object.fromEntries(
    Object.entries(fields).filter(
      ([field, value]) => value !== undefined && !(field in known && known[field as keyof typeof known] === value),
    ),
  );
  const drafts: EventDraft[] = [];
  if (Object.keys(changes).length > 0) drafts.push(projectUpdated.draft({ ...project, changes }));
  if (archived !== undefined) drafts.push(...decideArchive(state, archived));
  if (assignedAgents) drafts.push(...decideMembers(state, assignedAgents, assignmentIds));
  return drafts;
}

/**
 * No event when the project is already archived, or already active.
 *
 * @throws AppError 400 for the general project, 404
 */
export function decideArchive(state: ProjectState, archived: boolean): EventDraft[] {
  const project = existing(state);
  if (archived) refuseGeneral(state, 'archived');
  if ((state.life === 'archived') === archived) return [];
  return [(archived ? projectArchived : projectRestored).draft(project)];
}

function refuseGeneral({ slug }: ProjectState, done: string): void {
  if (slug === GENERAL.slug)
    throw invalid(`The general project cannot be ${done}: it holds the tasks without another project.`);
}

/** Turns off the sync of the project with its repository. No event for a deleted project. */
export const decideStopSync = (state: ProjectState): EventDraft[] =>
  state.life === 'active' || state.life === 'archived'
    ? [projectUpdated.draft({ ...existing(state), changes: { github_sync_enabled: false } })]
    : [];

/** Replaces the members: remaining members keep their role. */
function decideMembers(state: ProjectState, agents: readonly Member[], ids: readonly number[]): EventDraft[] {
  const project = existing(state);
  const present = [...state.agents.values()];
  const added = agents
    .map((agent, at) => ({ assignment_id: ids[at] ?? 0, ...agent, role: MEMBER }))
    .filter((agent) => !present.some((one) => isMember(one, agent)));
  return [
    ...decideLeave(state, (one) => !agents.some((agent) => isMember(one, agent))),
    ...(added.length > 0 ? [projectAgentsAssigned.draft({ ...project, agents: added })] : []),
  ];
}

/** Removes some members. No event when none of them leaves, or the project was deleted. */
export function decideLeave(state: ProjectState, leaves: (one: Member) => boolean): EventDraft[] {
  const agents = [...state.agents].flatMap(([id, one]) => (leaves(one) ? [{ assignment_id: id, ...one }] : []));
  return agents.length === 0 ? [] : [projectAgentsUnassigned.draft({ ...existing(state), agents })];
}

/** No event if the deletion has already begun: it is resumed. @throws AppError 400 for the general project, 404 */
export function decideBeginDeletion(state: ProjectState): EventDraft[] {
  if (state.life === 'deleting') return [];
  const project = existing(state);
  refuseGeneral(state, 'deleted');
  return [...decideMembers(state, [], []), projectDeletionBegun.draft(project)];
}

/** No event when the deletion has already ended. */
export function decideEndDeletion(state: ProjectState): EventDraft[] {
  if (state.life !== 'deleting') return [];
  const { id, name, slug, prefix } = state;
  return [projectDeleted.draft({ project_id: id, name, slug, ticket_prefix: prefix })];
}
