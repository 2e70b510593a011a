/** Framework adapters, which report what their agents do. */
import type { z } from 'zod';
import { type AdapterReport, recordAdapterReport } from '../../../commands/agents/adapters.ts';
import { assignmentsFor } from '../../../queries/tasks/assignments.ts';
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
  summary: 'List the frameworks that have an adapter',
  access: 'viewer',
  refuses: [403],
  responses: { 200: { description: 'Names of the frameworks', schema: adaptersAnswer } },
  handle: () => ({ body: { adapters: ADAPTERS } }),
});

const report = defineRoute({
  method: 'post',
  path: '/api/adapters',
  tag: 'Agents',
  summary: 'Report what an agent of a framework did, or get its assignments',
  description: 'Reports are recorded and sent to the stream; they change no agents or tasks.',
  access: 'operator',
  limit: 'agent-heartbeat',
  body: adapterBody,
  responses: {
    200: { description: 'The report was recorded, or the assignments', schema: adapterPostAnswer },
  },
  async handle({ body, identity, services, command }) {
    const { framework, action, payload = {} } = body;
    if (action === 'assignments') {
      const { agentId } = parsePayload(action, payload);
      return { body: { assignments: await assignmentsFor(services.reads, identity.workspace, agentId), framework } };
    }
    const parsed = parsePayload(action, payload);
    const report: AdapterReport = { framework, action, agentId: parsed.agentId, payload: parsed };
    await recordAdapterReport(services.commands, command, report);
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
