/** Framework adapters: what they pass on of their agents. */
import type { z } from 'zod';
import { type AdapterReport, recordAdapterReport } from '../../../commands/agents/adapters.ts';
import { assignmentsFor } from '../../../queries/tasks/tasks.ts';
import {
  ADAPTERS,
  adapterBody,
  adapterPayloads,
  adapterPostAnswer,
  adaptersAnswer,
} from '../../../shared/contract/agents/adapters.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { nested } from '../nested.ts';

const list = defineRoute({
  method: 'get',
  path: '/api/adapters',
  tag: 'Agents',
  summary: 'Frameworks that can report through an adapter',
  access: 'viewer',
  refuses: [403],
  responses: { 200: { description: 'Their names', schema: adaptersAnswer } },
  handle: () => ({ body: { adapters: ADAPTERS } }),
});

const report = defineRoute({
  method: 'post',
  path: '/api/adapters',
  tag: 'Agents',
  summary: 'Pass on what an agent of a framework did, or ask for its assignments',
  description: 'Reports are recorded and shown on the stream; they change no agent and no task.',
  access: 'operator',
  limit: 'agent-heartbeat',
  body: adapterBody,
  responses: {
    200: { description: 'Recorded, or the assignments', schema: adapterPostAnswer },
  },
  async handle({ body, identity, services, command }) {
    const { framework, action, payload = {} } = body;
    if (action === 'assignments') {
      const { agentId } = parsePayload(action, payload);
      return { body: { assignments: await assignmentsFor(services.reads, identity.workspace, agentId), framework } };
    }
    const parsed = parsePayload(action, payload);
    const told: AdapterReport = { framework, action, agentId: parsed.agentId, payload: parsed };
    await recordAdapterReport(services.commands, command, told);
    return { body: { ok: true, action, framework } };
  },
});

/** @throws ZodError with paths that begin with `payload` */
function parsePayload<A extends keyof typeof adapterPayloads>(
  action: A,
  payload: unknown,
): z.output<(typeof adapterPayloads)[A]> {
  return nested('payload', () => adapterPayloads[action].parse(payload) as z.output<(typeof adapterPayloads)[A]>);
}

export const adapterRoutes: readonly Route[] = [list, report];
