/**
 * Registration of agents: created by an operator, registered by themselves, or imported. Streams:
 * `agent-<workspace>-<id>`.
 */
import { z } from 'zod';
import { seconds } from '../../time.ts';
import { defineEvent } from '../define.ts';
import { aboutAgent, agentFields, config, configOwner } from './agents.ts';

/** Task counts of a new agent in its frame and in the response of POST. */
const NO_TASKS = { total: 0, assigned: 0, in_progress: 0, quality_review: 0, done: 0, completed: 0 };

export const agentRegistered = defineEvent({
  type: 'AgentRegistered',
  doc: 'An agent was created. `via`: by an operator, by itself, from the gateway configuration, or for a tool that connected.',
  schema: z.object({
    ...agentFields,
    role: z.string(),
    status: z.string(),
    session_key: z.string().nullable(),
    soul_content: z.string().nullable(),
    config,
    template: z.string().nullable(),
    runtime_type: z.string().nullable(),
    /** `source` of the record: manual, local, gateway. */
    source: z.string(),
    via: z.enum(['operator', 'self', 'sync', 'connect']),
    framework: z.string().nullable(),
    capabilities: z.array(z.string()),
  }),
  secrets: { fields: ['config'], owner: configOwner },
  self: ({ data }) => (data.via === 'self' ? data.agent_id : undefined),
  activity: ({ data }) => {
    if (data.via === 'sync') return undefined;
    if (data.via === 'connect') {
      return {
        type: 'agent_created',
        ...aboutAgent(data.agent_id),
        actor: 'system',
        description: `Created agent ${data.name} for a tool that connected`,
      };
    }
    return {
      type: 'agent_created',
      ...aboutAgent(data.agent_id),
      ...(data.via === 'self' && { actor: data.name }),
      description:
        data.via === 'self' ? `Agent ${data.name} registered itself` : `Created agent ${data.name} (${data.role})`,
      data:
        data.via === 'self'
          ? {
              name: data.name,
              role: data.role,
              ...(data.framework && { framework: data.framework }),
              capabilities: data.capabilities,
              self_registered: true,
            }
          : {
              name: data.name,
              role: data.role,
              status: data.status,
              ...(data.session_key && { session_key: data.session_key }),
              ...(data.template && { template: data.template }),
            },
    };
  },
  audit: ({ data }) =>
    data.via === 'self'
      ? {
          action: 'agent_self_register',
          target: ['agent', data.agent_id],
          detail: {
            name: data.name,
            role: data.role,
            ...(data.framework && { framework: data.framework }),
            self_registered: true,
          },
        }
      : {
          action: 'agent_created',
          target: ['agent', data.agent_id],
          detail: { name: data.name, role: data.role, via: data.via },
        },
  frames: ({ data, meta }) => {
    if (data.via === 'sync') return [];
    if (data.via === 'self' || data.via === 'connect')
      return [
        { type: 'agent.created', data: { id: data.agent_id, name: data.name, role: data.role, status: data.status } },
      ];
    return [
      {
        type: 'agent.created',
        data: {
          id: data.agent_id,
          name: data.name,
          role: data.role,
          session_key: data.session_key,
          soul_content: data.soul_content,
          status: data.status,
          last_seen: null,
          last_activity: null,
          created_at: seconds(meta.at),
          updated_at: seconds(meta.at),
          config: data.config,
          working_memory: '',
          source: data.source,
          hidden: 0,
          runtime_type: data.runtime_type,
          taskStats: NO_TASKS,
        },
        secrets: ['config'],
      },
    ];
  },
});

export const agentReturned = defineEvent({
  type: 'AgentReturned',
  doc: 'An existing agent registered again. It is now idle.',
  schema: z.object(agentFields),
});
