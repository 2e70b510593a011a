/**
 * A log as a busy deployment writes it: agents that register, report, change their state, talk and use tokens; people
 * who sign in; refusals. The same seed gives the same history.
 */
import { randomUUID } from 'node:crypto';
import type { EventStore } from '../../shared/event-store.ts';
import {
  agentDeleted,
  agentDetailsChanged,
  agentHidden,
  agentShown,
  agentStatusChanged,
} from '../../shared/events/agents/agents.ts';
import { agentHeartbeatReceived, agentWoken } from '../../shared/events/agents/heartbeat.ts';
import { agentKeyIssued, agentKeyRevoked } from '../../shared/events/agents/keys.ts';
import { livenessChecked } from '../../shared/events/agents/liveness.ts';
import { agentMemoryCleared, agentMemoryWritten } from '../../shared/events/agents/memory.ts';
import { agentMessageSent } from '../../shared/events/agents/messages.ts';
import { agentRegistered, agentReturned } from '../../shared/events/agents/registration.ts';
import { agentSoulChanged } from '../../shared/events/agents/souls.ts';
import { accessDenied, globalKeyUsed, rateLimitHit } from '../../shared/events/auth/security-events.ts';
import { signInFailed, signInStream, userSignedIn, userSignedOut } from '../../shared/events/auth/sign-in.ts';
import {
  userCreated,
  userDeleted,
  userPasswordChanged,
  userStream,
  userUpdated,
} from '../../shared/events/auth/users.ts';
import type { EventDraft } from '../../shared/events/define.ts';
import type { Actor, Origin } from '../../shared/events/metadata.ts';
import { tokensReported } from '../../shared/events/tokens/reports.ts';
import type { Expectation, NewEvent } from '../../shared/ports/event-log.ts';
import { randomFrom } from './load.ts';

export interface HistoryOptions {
  /** At least this many events; the last append may bring a few more. */
  readonly events: number;
  /** Agents at the beginning; default: one per 1,000 events, 100 at most. */
  readonly agents?: number;
  readonly seed?: number;
  /** Called before each append, for stores with a clock that can be set. */
  readonly tick?: () => void;
}

interface Agent {
  readonly id: number;
  readonly workspace: number;
  readonly name: string;
  status: string;
  memory: number;
  hidden: boolean;
  key: number;
}

interface User {
  readonly id: number;
  readonly username: string;
  signedIn: boolean;
}

const IN_FLIGHT = 500;
/** Streams without an owner, to which another history may have written. */
const SHARED = /^(security_events|liveness|sign_ins-unknown)/;
const WORDS = 'review the open task then report what blocks it and who should look next before the release'.split(' ');

/** Appends the history to the log. @returns the number of events */
export async function writeHistory(store: EventStore, options: HistoryOptions): Promise<number> {
  const random = randomFrom(options.seed ?? 1);
  const below = (n: number) => Math.floor(random() * n);
  const pick = <T>(items: readonly T[]): T => items[below(items.length)] as T;
  const sentence = (words: number) => Array.from({ length: words }, () => pick(WORDS)).join(' ');
  const revisions = new Map<string, number>();
  const agents: Agent[] = [];
  const users: User[] = [];
  let ids = 0;
  let written = 0;
  let failure: unknown;
  const inFlight = new Set<Promise<unknown>>();

  async function append(stream: string, workspace: number, actor: Actor, drafts: readonly EventDraft[]): Promise<void> {
    options.tick?.();
    const requestId = randomUUID();
    const origin: Origin = {
      tenant: 1,
      workspace,
      actor,
      ip: actor.type === 'system' ? null : `10.1.${actor.id % 200}.${below(200)}`,
      userAgent:
        actor.type === 'user' ? 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36' : 'python-requests/2.32.3',
      requestId,
      correlationId: requestId,
      causationId: requestId,
    };
    const events: readonly NewEvent[] = await store.prepare(drafts, origin);
    const last = revisions.get(stream) ?? -1;
    const expected: Expectation = SHARED.test(stream) ? 'any' : last < 0 ? 'none' : last;
    revisions.set(stream, last + events.length);
    written += events.length;
    const sent: Promise<unknown> = store.append(stream, events, expected).then(
      () => inFlight.delete(sent),
      (error) => {
        failure ??= error;
      },
    );
    inFlight.add(sent);
    if (inFlight.size >= IN_FLIGHT) await Promise.all(inFlight);
    if (failure) throw failure;
  }

  const streamOf = (agent: Agent) => `agent-${agent.workspace}-${agent.id}`;
  const about = (agent: Agent) => ({ agent_id: agent.id, name: agent.name });
  const self = (agent: Agent): Actor => ({ type: 'agent', id: agent.id, name: agent.name });
  const byAgent = (agent: Agent, drafts: readonly EventDraft[]) =>
    append(streamOf(agent), agent.workspace, self(agent), drafts);
  const operator = (): Actor => {
    const user = pick(users);
    return { type: 'user', id: user.id, name: user.username };
  };
  const api: Actor = { type: 'api', id: 0, name: 'api' };

  async function register(): Promise<void> {
    const id = ++ids;
    const workspace = id % 10 === 0 ? 2 : 1;
    const agent = { id, workspace, name: `agent-${id}`, status: 'offline', memory: 0, hidden: false, key: 0 };
    agents.push(agent);
    await append(streamOf(agent), workspace, operator(), [
      agentRegistered.draft({
        ...about(agent),
        role: pick(['coder', 'reviewer', 'tester', 'writer']),
        status: 'offline',
        session_key: null,
        soul_content: `You are ${agent.name}. ${sentence(60)}`,
        config: { model: { primary: 'claude' }, tools: { allow: ['read', 'write'] } },
        template: null,
        runtime_type: null,
        source: 'manual',
        via: pick(['operator', 'self', 'sync'] as const),
        framework: null,
        capabilities: ['read', 'write'],
      }),
    ]);
  }

  async function addUser(): Promise<void> {
    const id = ++ids;
    const username = `user-${id}`;
    users.push({ id, username, signedIn: false });
    await append(userStream(id), 1, { type: 'system', id: 0, name: 'history' }, [
      userCreated.draft({
        user_id: id,
        username,
        display_name: `User Number ${id}`,
        email: `${username}@example.com`,
        avatar_url: null,
        role: pick(['viewer', 'operator', 'admin'] as const),
        provider: 'local',
        provider_id: null,
        is_approved: true,
        tenant: 1,
        workspace: 1,
        credential_id: randomUUID(),
        source: 'admin',
      }),
    ]);
  }

  const change = (agent: Agent, to: string, cause: 'update' | 'heartbeat' | 'wake' | 'sweep') => {
    const from = agent.status;
    agent.status = to;
    return agentStatusChanged.draft({
      ...about(agent),
      from,
      to,
      cause,
      last_activity: cause === 'update' ? sentence(6) : null,
      seen: cause !== 'sweep',
      announced: cause !== 'update',
    });
  };

  const acts: readonly (readonly [weight: number, act: () => Promise<void>])[] = [
    [
      42,
      () => {
        const agent = pick(agents);
        const work = below(4);
        const beat = agentHeartbeatReceived.draft({
          ...about(agent),
          last_activity: 'Heartbeat',
          connection_id: null,
          work_items_count: work,
          work_item_types: work > 0 ? ['tasks', 'mentions'].slice(0, work) : [],
        });
        return byAgent(agent, agent.status === 'idle' ? [beat] : [beat, change(agent, 'idle', 'heartbeat')]);
      },
    ],
    [13, () => byAgentIn(change, pick(['busy', 'busy', 'error']))],
    [
      13,
      () => {
        const agent = pick(agents);
        const report = () => ({
          agent_id: agent.id,
          agent_name: agent.name,
          session_id: `session-${below(1_000)}`,
          model: pick(['claude-large', 'claude-small']),
          input_tokens: below(20_000),
          output_tokens: below(3_000),
          cache_read_tokens: 0,
          cache_write_tokens: 0,
          task_id: below(3) === 0 ? null : 1 + below(5_000),
        });
        const stream = `agent_tokens-${agent.workspace}-${agent.id}`;
        const reports = Array.from({ length: 1 + below(3) }, () => ({
          ...report(),
          id: `report-${++ids}`,
          operation: 'chat_completion',
          duration: below(2) === 0 ? null : below(60_000),
          used_at: null,
          cost: below(1_000_000) / 1e9,
          price: 'own' as const,
        }));
        return append(stream, agent.workspace, self(agent), [tokensReported.draft({ page: null, reports })]);
      },
    ],
    [
      13,
      () => {
        const from = pick(agents);
        const to = pick(agents);
        return append(`agent_messages-${to.workspace}-${to.id}`, to.workspace, self(from), [
          agentMessageSent.draft({
            from_agent_id: null,
            message_id: ++ids,
            from: from.name,
            to: to.name,
            to_agent_id: to.id,
            content: sentence(8 + below(40)),
            message_type: 'text',
            secrets: below(200) === 0 ? { count: 1, types: ['github_token'] } : { count: 0, types: [] },
          }),
        ]);
      },
    ],
    [
      5,
      () => {
        const user = pick(users);
        const actor: Actor = { type: 'user', id: user.id, name: user.username };
        user.signedIn = !user.signedIn;
        const { id: userId, username } = user;
        return append(signInStream(user.id), 1, actor, [
          user.signedIn
            ? userSignedIn.draft({ user_id: userId, username, method: 'password' })
            : userSignedOut.draft({ user_id: userId, username }),
        ]);
      },
    ],
    [
      2,
      () =>
        append(signInStream(null), 1, { type: 'anonymous', id: 0, name: 'anonymous' }, [
          signInFailed.draft({ username: sentence(1), user_id: null, reason: 'user_not_found', month: '2026-03' }),
        ]),
    ],
    [
      3,
      () => {
        const agent = pick(agents);
        if (agent.memory > 2_000) {
          agent.memory = 0;
          return byAgent(agent, [agentMemoryCleared.draft(about(agent))]);
        }
        const text = `\n- ${sentence(20)}`;
        agent.memory += text.length;
        return byAgent(agent, [agentMemoryWritten.draft({ ...about(agent), text, append: true, size: agent.memory })]);
      },
    ],
    [
      2,
      () => {
        const agent = pick(agents);
        agent.status = 'idle';
        const reason = below(2) === 0 ? null : sentence(5);
        return append(streamOf(agent), agent.workspace, operator(), [
          agentWoken.draft({ ...about(agent), reason, last_activity: 'Woken' }),
        ]);
      },
    ],
    [
      1.5,
      () => {
        const agent = pick(agents);
        return append(streamOf(agent), agent.workspace, operator(), [
          agentDetailsChanged.draft({
            ...about(agent),
            changes: below(2) === 0 ? { role: pick(['coder', 'lead']) } : { config: { temperature: below(10) / 10 } },
            via: 'id',
            write_to_gateway: false,
            status: null,
          }),
        ]);
      },
    ],
    [
      0.5,
      () => {
        const agent = pick(agents);
        const soulContent = sentence(80);
        return byAgent(agent, [
          agentSoulChanged.draft({ ...about(agent), soul_content: soulContent, template: null, previous_length: 400 }),
        ]);
      },
    ],
    [
      0.5,
      () => {
        const agent = pick(agents);
        agent.hidden = !agent.hidden;
        const draft = agent.hidden ? agentHidden : agentShown;
        return append(streamOf(agent), agent.workspace, operator(), [draft.draft(about(agent))]);
      },
    ],
    [0.5, () => byAgentIn(change, 'offline')],
    [0.3, () => byAgentReturned()],
    [
      0.4,
      () => {
        const agent = pick(agents);
        const actor = operator();
        const issued = agent.key === 0;
        const keyId = issued ? ++ids : agent.key;
        agent.key = issued ? keyId : 0;
        const whose = { key_id: keyId, agent_id: agent.id, agent_name: agent.name };
        return append(`agent_keys-${agent.workspace}-${agent.id}`, agent.workspace, actor, [
          issued
            ? agentKeyIssued.draft({
                ...whose,
                name: 'main',
                prefix: 'sbx_1234',
                scopes: ['agent:self'],
                created_by: actor.name,
                expires_at: null,
              })
            : agentKeyRevoked.draft(whose),
        ]);
      },
    ],
    [
      2,
      () =>
        append('security_events-2026-03', 1, api, [
          pick([
            () => accessDenied.draft({ route: 'DELETE /api/agents/{id}', needed: 'admin' as const, count: 1 }),
            () => rateLimitHit.draft({ route: 'POST /api/auth/login', limit: 'login', count: 1 + below(20) }),
            () => globalKeyUsed.draft({ route: 'GET /api/agents', count: 1 }),
          ])(),
        ]),
    ],
    [
      0.3,
      () => {
        const user = pick(users);
        const { id: userId, username } = user;
        return append(userStream(userId), 1, operator(), [
          below(2) === 0
            ? userUpdated.draft({
                user_id: userId,
                username,
                display_name: sentence(2),
                password_changed: false,
                by: 'self',
              })
            : userPasswordChanged.draft({ user_id: userId, username, credential_id: randomUUID(), by: 'admin' }),
        ]);
      },
    ],
    [
      0.1,
      () =>
        append('liveness', 1, { type: 'system', id: 0, name: 'scheduler' }, [
          livenessChecked.draft({ marked_offline: ['agent-1'], count: 1 }),
        ]),
    ],
    [
      0.05,
      async () => {
        if (agents.length < 2) return;
        const [agent] = agents.splice(below(agents.length), 1) as [Agent];
        await append(streamOf(agent), agent.workspace, operator(), [
          agentDeleted.draft({ ...about(agent), role: 'coder', remove_workspace: false }),
        ]);
        await register();
      },
    ],
    [
      0.02,
      async () => {
        if (users.length < 2) return;
        const [user] = users.splice(below(users.length), 1) as [User];
        await append(userStream(user.id), 1, operator(), [
          userDeleted.draft({ user_id: user.id, username: user.username }),
        ]);
        await addUser();
      },
    ],
  ];
  function byAgentIn(make: typeof change, to: string): Promise<void> {
    const agent = pick(agents);
    return byAgent(agent, [make(agent, to, to === 'offline' ? 'sweep' : 'update')]);
  }
  function byAgentReturned(): Promise<void> {
    const agent = pick(agents);
    agent.status = 'idle';
    return byAgent(agent, [agentReturned.draft(about(agent))]);
  }

  const total = acts.reduce((sum, [weight]) => sum + weight, 0);
  const wanted = options.agents ?? Math.max(2, Math.min(100, Math.floor(options.events / 1_000)));
  // Ids of several histories in one log must not collide.
  ids = (options.seed ?? 1) * 10_000_000;
  for (let n = 0; n < Math.max(2, wanted / 5); n++) await addUser();
  for (let n = 0; n < wanted; n++) await register();
  while (written < options.events) {
    let choice = random() * total;
    const act = acts.find(([weight]) => {
      choice -= weight;
      return choice < 0;
    });
    await act?.[1]();
  }
  await Promise.all(inFlight);
  if (failure) throw failure;
  return written;
}
