/** One agent, ada, and what happens to it, for tests of decisions. */
import { agentDecider } from '../../commands/agents/agents.ts';
import type { Registration } from '../../commands/agents/registration.ts';
import { agentDeleted, agentDetailsChanged, agentStatusChanged } from '../../shared/events/agents/agents.ts';
import { agentRegistered } from '../../shared/events/agents/registration.ts';
import { givenFor } from './kit.ts';

export const ada = { agentId: 7, name: 'ada' };

export const registration: Registration = {
  name: 'ada',
  role: 'coder',
  status: 'offline',
  sessionKey: 'key-1',
  soulContent: 'soul',
  config: { model: 'm' },
  template: null,
  runtimeType: null,
  source: 'manual',
  via: 'operator',
  framework: null,
  capabilities: [],
};

export const registered = agentRegistered.draft({ agentId: 7, ...registration });
export const deleted = agentDeleted.draft({ ...ada, role: 'coder', removeWorkspace: false });

export const given = givenFor(agentDecider);

export const status = (to: string, more: object = {}) =>
  agentStatusChanged.draft({
    ...ada,
    from: 'offline',
    to,
    cause: 'update',
    lastActivity: null,
    seen: false,
    announced: false,
    ...more,
  });

export const details = (changes: object, more: object = {}) =>
  agentDetailsChanged.draft({ ...ada, changes, via: 'id', writeToGateway: false, status: null, ...more });
