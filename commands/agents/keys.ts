/**
 * API keys of agents. A key is issued and revoked on its agent's own stream, so it cannot outlive the agent. Its hash
 * is in the credential store, and is valid only if the log contains its id.
 */
import { randomBytes } from 'node:crypto';
import { conflict, isRefusal, notFound } from '../../shared/errors.ts';
import { agentKeyIssued, agentKeyRevoked } from '../../shared/events/agents/keys.ts';
import type { EventDraft, EventOf } from '../../shared/events/define.ts';
import type { Credentials } from '../../shared/ports/credentials.ts';
import { seconds } from '../../shared/time.ts';
import type { CommandContext, Commands } from '../handler.ts';
import { type AgentState, agentDecider, agentStream } from './agents.ts';

/** Number of characters of a key that stay readable, to distinguish keys. */
const PREFIX_LENGTH = 12;

const newAgentKey = (): string => `mca_${randomBytes(24).toString('hex')}`;

type AgentLike = Pick<AgentState, 'registered' | 'deleted' | 'name' | 'keys'>;

function present(state: AgentLike): void {
  if (!state.registered || state.deleted) throw notFound('Agent');
}

export type NewAgentKey = Omit<EventOf<typeof agentKeyIssued>['data'], 'agent_name'>;

/** The limit of valid keys per agent, and the current time, Unix seconds. */
interface KeyLimit {
  readonly most: number;
  readonly now: number;
}

/** @throws AppError 404; 409 when the agent has reached its limit of valid keys */
export function decideIssue(state: AgentLike, key: NewAgentKey, { most, now }: KeyLimit): readonly EventDraft[] {
  present(state);
  const valid = Object.values(state.keys).filter((expiresAt) => expiresAt === null || expiresAt > now);
  if (valid.length >= most)
    throw conflict(`An agent has at most ${most} valid keys; revoke some that are no longer needed.`);
  return [agentKeyIssued.draft({ ...key, agent_name: state.name })];
}

export function decideRevoke(state: AgentLike, agentId: number, keyId: number): readonly EventDraft[] {
  present(state);
  if (!Object.hasOwn(state.keys, keyId)) throw notFound('Active key');
  return [agentKeyRevoked.draft({ key_id: keyId, agent_id: agentId, agent_name: state.name })];
}

export interface IssuedKey {
  readonly id: number;
  /** To be shown once. */
  readonly apiKey: string;
  readonly prefix: string;
  /** Unix seconds. */
  readonly created_at: number;
}

/** Issues a key. @throws AppError 404; 409 when the agent has reached its limit of valid keys */
export async function issueAgentKey(
  commands: Commands,
  context: CommandContext,
  credentials: Credentials,
  request: {
    readonly workspace: number;
    readonly agent_id: number;
    readonly name: string;
    readonly scopes: readonly string[];
    /** Unix seconds; null: never. */
    readonly expiresAt: number | null;
  },
  limit: KeyLimit,
): Promise<IssuedKey> {
  const { workspace, agent_id, name, scopes, expiresAt } = request;
  let apiKey = newAgentKey();
  const prefix = apiKey.slice(0, PREFIX_LENGTH);
  const keyId = await commands.counters.take('agent_key');
  await credentials.addKey(apiKey, { kind: 'agent', keyId });
  const createdBy = context.origin.actor.name;
  const { events } = await commands
    .execute(agentDecider, agentStream(workspace, agent_id), context, (state) =>
      decideIssue(
        state,
        { key_id: keyId, agent_id, name, prefix, scopes: [...scopes], created_by: createdBy, expires_at: expiresAt },
        limit,
      ),
    )
    .catch(async (error) => {
      // Without its event the hash is worthless; but if the outcome is unknown, it must be kept.
      if (isRefusal(error)) await credentials.removeKey({ kind: 'agent', keyId });
      throw error;
    });
  const { data, meta } = events[0] as EventOf<typeof agentKeyIssued>;
  if (data.key_id !== keyId) {
    // The first run of this request issued the key, but the caller never received it: replace it with a key of the same
    // prefix.
    await credentials.removeKey({ kind: 'agent', keyId });
    await credentials.removeKey({ kind: 'agent', keyId: data.key_id });
    apiKey = data.prefix + randomBytes(20).toString('hex');
    await credentials.addKey(apiKey, { kind: 'agent', keyId: data.key_id });
  }
  return { id: data.key_id, apiKey, prefix: data.prefix, created_at: seconds(meta.at) };
}

/**
 * Revokes a key for good. Its hash stays, with the time of its last use, but the log makes it invalid.
 *
 * @returns the time, Unix seconds. @throws AppError 404
 */
export async function revokeAgentKey(
  commands: Commands,
  context: CommandContext,
  request: { readonly workspace: number; readonly agent_id: number; readonly keyId: number },
): Promise<number> {
  const { workspace, agent_id: agentId, keyId } = request;
  const { events } = await commands.execute(agentDecider, agentStream(workspace, agentId), context, (state) =>
    decideRevoke(state, agentId, keyId),
  );
  return seconds(events[0]?.meta.at ?? 0);
}
