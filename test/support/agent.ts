/** One agent, ada, and what happens to it, for tests of decisions. */
import { agentDecider } from '../../commands/agents/agents.ts';
import { NEW_AGENT, type Registration } from '../../commands/agents/registration.ts';
import { agentDeleted, agentDetailsChanged, agentStatusChanged } from '../../shared/events/agents/agents.ts';
import { agentRegistered } from '../../shared/events/agents/registration.ts';
import { givenFor, sample } from './kit.ts';

export const ada = { agent_id: 7, name: 'ada' };

export const registration: Registration = {
  ...NEW_AGENT,
  name: 'ada',
  role: 'coder',
  session_key: 'key-1',
  soul_content: 'soul',
  config: { model: 'm' },
  via: 'operator',
};

export const registered = agentRegistered.draft({ agent_id: 7, ...registration });
export const deleted = agentDeleted.draft({ ...ada, role: 'coder', remove_workspace: false });

export const given = givenFor(agentDecider);

export const status = (to: string, more: object = {}) =>
  sample(agentStatusChanged, { ...ada, from: 'offline', to, cause: 'update', ...more });

export const details = (changes: object, more: object = {}) =>
  agentDetailsChanged.draft({ ...ada, changes, via: 'id', write_to_gateway: false, status: null, ...more });
