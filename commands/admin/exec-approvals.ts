/** Commands that agents may run: the allow-list, and decisions that are sent to the primary gateway. */
import { type Allowlist, allowlistHash } from '../../shared/contract/admin/exec-approvals.ts';
import { AppError, conflict, type ErrorStatus } from '../../shared/errors.ts';
import {
  type EXEC_DECISIONS,
  execAllowlistChanged,
  execApprovalAnswered,
  execApprovalDecided,
} from '../../shared/events/admin/exec-approvals.ts';
import type { EventDraft, EventOf } from '../../shared/events/define.ts';
import { GatewayError, type Gateways } from '../../shared/ports/admin/gateways.ts';
import { isObject } from '../../shared/storable.ts';
import { defineDecider, on } from '../decider.ts';
import type { CommandContext, Commands } from '../handler.ts';
import { gatewayRefusal, primaryGateway } from './gateways.ts';

export interface AllowlistState {
  readonly agents: Allowlist;
}

const STREAM = 'exec-approvals';
const PATH = '/api/exec-approvals';
/** Maximum number of characters in all patterns together. */
export const MAX_ALLOWLIST = 500_000;

export const allowlistDecider = defineDecider<AllowlistState>({
  kind: 'list of allowed commands',
  initial: { agents: {} },
  snapshotVersion: 1,
  sizeOf: ({ agents }) => JSON.stringify(agents).length,
  folds: [on(execAllowlistChanged, ({ agents }, { data }) => ({ agents: withPatterns(agents, data.agents) }))],
});

function withPatterns(
  agents: Allowlist,
  changes: readonly { readonly agent: string; readonly patterns: readonly string[] }[],
): Allowlist {
  const next = new Map(Object.entries(agents));
  for (const { agent, patterns } of changes) {
    if (patterns.length === 0) next.delete(agent);
    else next.set(agent, patterns);
  }
  return Object.fromEntries(next);
}

const same = (one: readonly string[] = [], other: readonly string[] = []): boolean =>
  one.length === other.length && one.every((text, index) => text === other[index]);

/** @throws AppError 409 for an outdated hash, 413 when the patterns would be too large */
export function decideAllowlist({ agents }: AllowlistState, changes: Allowlist, hash?: string): EventDraft[] {
  if (hash !== undefined && hash !== allowlistHash(agents)) {
    throw conflict(
      'The list of allowed commands was modified since you read it; read it again and repeat the change.',
      {
        code: 'CONFLICT',
      },
    );
  }
  const changed = Object.entries(changes)
    .filter(([agent, patterns]) => !same(Object.hasOwn(agents, agent) ? agents[agent] : [], patterns))
    .map(([agent, patterns]) => ({ agent, patterns: [...patterns] }));
  if (changed.length === 0) return [];
  if (JSON.stringify(withPatterns(agents, changed)).length > MAX_ALLOWLIST)
    throw new AppError(413, `The list of allowed commands would have more than ${MAX_ALLOWLIST} characters.`);
  return [execAllowlistChanged.draft({ agents: changed })];
}

/** Replaces the patterns of these agents. @returns the hash of the stored patterns @throws AppError 409, 413 */
export async function changeAllowlist(
  commands: Commands,
  context: CommandContext,
  changes: Allowlist,
  hash: string | undefined,
): Promise<string> {
  let after: Allowlist = {};
  await commands.execute(allowlistDecider, STREAM, context, (state) => {
    const drafts = decideAllowlist(state, changes, hash);
    after = drafts.reduce((all, { data }) => withPatterns(all, (data as { agents: [] }).agents), state.agents);
    return drafts;
  });
  return allowlistHash(after);
}

/** Pending approvals at the primary gateway; none when there is no gateway or it does not respond. */
export async function waitingApprovals(
  commands: Commands,
  gateways: Pick<Gateways, 'call'>,
): Promise<readonly Record<string, unknown>[]> {
  const gateway = await primaryGateway(commands);
  if (!gateway) return [];
  try {
    const { status, body } = await gateways.call(gateway, { method: 'GET', path: PATH });
    const { approvals } = (body ?? {}) as { readonly approvals?: unknown };
    if (status !== 200 || !Array.isArray(approvals)) return [];
    return approvals.filter(isObject);
  } catch (error) {
    if (error instanceof GatewayError) return [];
    throw error;
  }
}

type Outcome = EventOf<typeof execApprovalAnswered>['data']['outcome'];

/** Statuses of refusals by the gateway that are passed on to the caller. */
const REFUSALS: readonly number[] = [400, 404, 409, 422] satisfies ErrorStatus[];

/**
 * Records a decision, sends it to the primary gateway, and records the outcome: a decision without an outcome was
 * interrupted. Without a gateway, nothing is recorded.
 *
 * @returns the gateway's response
 * @throws AppError 502, 504; the gateway's refusal
 */
export async function decideApproval(
  commands: Commands,
  context: CommandContext,
  gateways: Pick<Gateways, 'call'>,
  decision: {
    readonly id: string;
    readonly action: (typeof EXEC_DECISIONS)[number];
    readonly reason?: string | undefined;
  },
): Promise<Record<string, unknown>> {
  const gateway = await primaryGateway(commands);
  if (!gateway) {
    throw new AppError(502, 'There is no primary gateway to send the decision to; add one with POST /api/gateways.', {
      code: 'GATEWAY_NOT_CONFIGURED',
    });
  }
  const { id: approvalId, action, reason = null } = decision;
  const about = { approval_id: approvalId, decision: action, gateway_id: gateway.id, gateway_name: gateway.name };
  const decided = await commands.record(STREAM, context, [
    execApprovalDecided.draft({ ...about, reason, taken: false }),
  ]);
  const decisionId = (decided.events[0] as EventOf<typeof execApprovalDecided>).meta.number;
  const answered = (outcome: Outcome, status: number | null) =>
    commands.record(STREAM, context, [
      execApprovalAnswered.draft({ ...about, decision_id: decisionId, outcome, status }),
    ]);

  const { status, body } = await gateways
    .call(gateway, { method: 'POST', path: PATH, body: decision })
    .catch(async (error: unknown) => {
      if (!(error instanceof GatewayError)) throw error;
      await answered('unanswered', null);
      throw new AppError(error.late ? 504 : 502, error.message, { cause: error });
    });
  const isTaken = status >= 200 && status < 300;
  await answered(isTaken ? 'taken' : 'refused', status);
  if (!isTaken)
    throw new AppError(REFUSALS.includes(status) ? (status as ErrorStatus) : 502, gatewayRefusal({ status, body }));
  return isObject(body) ? body : { ok: true };
}
