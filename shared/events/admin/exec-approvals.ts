/** Commands that agents may run: the allow-list, and decisions on single commands. Stream: `exec-approvals`. */
import { z } from 'zod';
import { defineEvent } from '../define.ts';

export const EXEC_DECISIONS = ['approve', 'deny', 'always_allow'] as const;

export const execAllowlistChanged = defineEvent({
  type: 'ExecAllowlistChanged',
  doc: 'The command patterns that agents may run without approval were replaced; an empty list removes them. Agents that are not named keep theirs.',
  schema: z.object({ agents: z.array(z.object({ agent: z.string(), patterns: z.array(z.string()) })) }),
  audit: ({ data }) => ({
    action: 'exec_allowlist_update',
    detail: { agents: data.agents.map(({ agent, patterns }) => ({ agent, patterns: patterns.length })) },
  }),
});

const decisionFields = {
  approval_id: z.string(),
  decision: z.enum(EXEC_DECISIONS),
  gateway_id: z.int().positive(),
  gateway_name: z.string(),
};

export const execApprovalDecided = defineEvent({
  type: 'ExecApprovalDecided',
  doc: 'A caller decided whether a command may run. The decision is then sent to the gateway; ExecApprovalAnswered records the outcome.',
  schema: z.object({
    ...decisionFields,
    reason: z.string().nullable(),
    /** True for events of version 1, which were written after the gateway had accepted the decision. */
    taken: z.boolean(),
  }),
  audit: ({ data }) => ({
    action: 'exec_approval_decided',
    target: ['gateway', data.gateway_id],
    detail: { approval_id: data.approval_id, decision: data.decision, reason: data.reason },
  }),
});

export const execApprovalAnswered = defineEvent({
  type: 'ExecApprovalAnswered',
  doc: 'The outcome of sending a decision to the gateway. Without this event, sending was interrupted, and it is unknown whether the gateway received the decision.',
  schema: z.object({
    ...decisionFields,
    /** Number of the event of the decision, which is also the id of its audit entry. */
    decision_id: z.int().positive(),
    /** `unanswered`: the gateway was unreachable, or did not respond in time; it may have the decision. */
    outcome: z.enum(['taken', 'refused', 'unanswered']),
    /** HTTP status of the response. */
    status: z.int().nullable(),
  }),
  audit: ({ data }) => ({
    action: 'exec_approval_answered',
    target: ['gateway', data.gateway_id],
    detail: {
      decision_id: data.decision_id,
      approval_id: data.approval_id,
      decision: data.decision,
      outcome: data.outcome,
      status: data.status,
    },
  }),
});
