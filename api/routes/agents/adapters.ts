/** Framework adapters, which report the actions of their agents. */
import { z } from 'zod';
import { type AdapterReport, recordAdapterReport } from '../../../commands/agents/adapters.ts';
import { findAgent } from '../../../queries/agents/agents.ts';
import { assignmentsFor } from '../../../queries/tasks/assignments.ts';
import * as contract from '../../../shared/contract/agents/adapters.ts';
import type { AgentRef } from '../../../shared/contract/agents/agents.ts';
import { isStorable } from '../../../shared/contract/storable.ts';
import { type Identity, taskViewOf } from '../../../shared/identity.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import type { Services } from '../../services.ts';

const list = defineRoute({
  method: 'get',
  path: '/api/adapters',
  noPast: 'the list is part of the program',
  summary: 'List the frameworks that have an adapter',
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'allowed', past: 'none', prompts: 'none' },
  refuses: [403],
  responses: { 200: { description: 'Names of the frameworks', schema: contract.adaptersResponse } },
  respond: () => ({ adapters: contract.ADAPTERS }),
});

const report = defineRoute({
  method: 'post',
  path: '/api/adapters',
  summary: 'Report what an agent of a framework did, or get its assignments',
  description:
    'Reports are recorded and sent to the stream; they change no agents or tasks. Assignments are tasks that wait for this agent or for any agent; a caller that speaks for an agent and is not an admin gets only those that it sees.',
  access: 'operator',
  rules: { agentKeys: 'own', strict: 'allowed', past: 'none', prompts: 'screened' },
  limit: 'agent-heartbeat',
  body: contract.adapterBody,
  agents: ({ body, identity, services }) => agentsMeant(services, identity, body.payload?.agentId),
  responses: {
    200: { description: 'The report was recorded, or the assignments', schema: contract.adapterPostResponse },
  },
  async respond({ body, identity, services, command }) {
    const { framework, action, payload = {} } = body;
    if (action === 'assignments') {
      const { agentId } = parsePayload(contract.adapterPayloads.assignments, payload);
      return { assignments: await assignmentsFor(services.reads, taskViewOf(identity), agentId), framework };
    }
    const parsed = parsePayload(contract.adapterPayloads[action], payload);
    const report: AdapterReport = { framework, action, agent_id: parsed.agentId, payload: parsed };
    await recordAdapterReport(services.commands, command, report);
    return { ok: true, action, framework };
  },
});

/** Agents of the workspace that an adapter's id may refer to. Other ids are known only to the framework. */
async function agentsMeant({ reads }: Services, { workspace }: Identity, agentId: unknown) {
  const said = String(agentId ?? '');
  if (!isStorable(said)) return [];
  const refs: AgentRef[] = [{ name: said }];
  if (/^\d{1,15}$/.test(said)) refs.push({ id: Number(said) });
  const found = await Promise.all(refs.map((ref) => findAgent(reads, workspace, ref)));
  return found.flatMap((agent) => (agent ? [{ id: agent.id }] : []));
}

/** @throws ZodError with paths that begin with `payload` */
const parsePayload = <T>(schema: z.ZodType<T>, payload: unknown) =>
  z.object({ payload: schema }).parse({ payload }).payload;

export const adapterRoutes: readonly Route[] = [list, report];
