/** Reports of framework adapters about their agents. Streams: `adapter-<workspace>-<framework>`. */
import { z } from 'zod';
import { defineEvent } from '../define.ts';

export const adapterReported = defineEvent({
  type: 'AdapterReported',
  doc: 'A framework adapter (crewai, langgraph, …) reported an action of one of its agents. No record changes.',
  schema: z.object({
    framework: z.string(),
    action: z.enum(['register', 'heartbeat', 'report', 'disconnect']),
    agent_id: z.string(),
    payload: z.record(z.string(), z.unknown()),
  }),
  secrets: { fields: ['payload'], owner: ({ framework }, { workspace }) => `adapter:${workspace}:${framework}` },
  frames: ({ data }) => {
    const { framework, agent_id: agentId, payload } = data;
    if (data.action === 'register') {
      const { metadata, name: agentName } = payload as { metadata?: Record<string, unknown>; name?: unknown };
      return [
        {
          type: 'agent.created',
          data: { ...metadata, id: agentId, name: agentName, framework, status: 'online' },
          secrets: Object.keys(metadata ?? {}),
        },
      ];
    }
    if (data.action === 'report') {
      const { taskId, progress, status, output } = payload;
      return [
        {
          type: 'task.updated',
          data: { id: taskId, agentId, progress, status, output: output ?? null, framework },
          secrets: ['output'],
        },
      ];
    }
    if (data.action === 'heartbeat') {
      return [
        {
          type: 'agent.status_changed',
          data: { id: agentId, status: payload.status, metrics: payload.metrics ?? {}, framework },
          secrets: ['metrics'],
        },
      ];
    }
    return [{ type: 'agent.status_changed', data: { id: agentId, status: 'offline', framework } }];
  },
});
