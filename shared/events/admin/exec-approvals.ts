/** Commands that agents may run: patterns that are always allowed, and decisions on single ones. Stream: `exec-approvals`. */
import { z } from 'zod';
import { defineEvent } from '../define.ts';

export const EXEC_DECISIONS = ['approve', 'deny', 'always_allow'] as const;

export const execAllowlistChanged = defineEvent({
  type: 'ExecAllowlistChanged',
  version: 1,
  doc: 'The patterns of commands that some agents may run without asking were replaced; an empty list removes them. Agents that are not named keep theirs.',
  schema: z.object({ agents: z.array(z.object({ agent: z.string(), patterns: z.array(z.string()) })) }),
  audit: ({ data }) => ({
    action: 'exec_allowlist_update',
    detail: { agents: data.agents.map(({ agent, patterns }) => ({ agent, patterns: patterns.length })) },
  }),
});

export const execApprovalDecided = defineEvent({
  type: 'ExecApprovalDecided',
  version: 1,
  doc: 'Somebody decided whether a command may run, and the gateway that asked has taken the decision.',
  schema: z.object({
    approvalId: z.string(),
    decision: z.enum(EXEC_DECISIONS),
    reason: z.string().nullable(),
    gatewayId: z.int().positive(),
    gatewayName: z.string(),
  }),
  audit: ({ data }) => ({
    action: 'exec_approval_decided',
    target_type: 'gateway',
    target_id: data.gatewayId,
    detail: { approval_id: data.approvalId, decision: data.decision, reason: data.reason },
  }),
});

export const execApprovalEvents = [execAllowlistChanged, execApprovalDecided];
