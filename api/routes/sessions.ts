/**
 * Sessions: those that command-line tools register, controlled through the stream; those at the primary gateway; and
 * how clients display sessions.
 */
import { controlSession, reportSession, setSessionPref } from '../../commands/sessions.ts';
import { primaryVersion } from '../../queries/admin/gateways.ts';
import { settingValues } from '../../queries/admin/settings.ts';
import { agentNames, agentsNamed, findAgent } from '../../queries/agents/agents.ts';
import {
  cliSession,
  cliSessionAfter,
  listCliSessions,
  listSessions,
  sessionPrefAfter,
  sessionPrefs,
} from '../../queries/sessions.ts';
import { slug } from '../../shared/contract/admin/gateway-document.ts';
import * as contract from '../../shared/contract/sessions.ts';
import { invalidField, unavailable } from '../../shared/errors.ts';
import type { Identity } from '../../shared/identity.ts';
import { DAY, seconds } from '../../shared/time.ts';
import { isBoundKey } from '../auth/agent-keys.ts';
import { type Agents, type Call, defineCachedRoute, defineRoute, type Route } from '../http/route.ts';
import type { Services } from '../services.ts';

const listCli = defineRoute({
  method: 'get',
  path: '/api/claude/sessions',
  summary: 'Sessions of command-line tools, last reported first',
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'refused', past: 'all', prompts: 'none' },
  shared: 'claude/sessions',
  query: contract.cliSessionsQuery,
  responses: { 200: { description: 'A page of sessions, and numbers of all', schema: contract.cliSessionsResponse } },
  respond: ({ query, identity, services }) =>
    listCliSessions(services.reads, identity.workspace, query, seconds(services.now())),
});

/** The agent of a registered session, if the workspace has it; undefined if no tool has registered the session. */
async function agentOfRegistered({ reads, now }: Services, { workspace }: Identity, sessionId: string) {
  const session = await cliSession(reads, workspace, sessionId, seconds(now()));
  return session && agentsNamed(reads, workspace, session.agent_name === null ? [] : [session.agent_name]);
}

type Whose = Pick<Call<unknown, unknown, unknown, 'operator'>, 'services' | 'identity' | 'isOfDeployment'>;

/** The name that the primary gateway has for the agent of a session; undefined: none. @throws AppError 503 */
async function agentAtGateway({ services, isOfDeployment }: Whose, session: string): Promise<string | undefined> {
  const version = (await isOfDeployment()) ? await primaryVersion(services.reads) : undefined;
  const live = version === undefined ? [] : await services.gatewaySessions.list(version);
  if (!live) {
    throw unavailable(
      'The gateway does not respond, so it is unknown which agent this session belongs to. Try again later.',
      { code: 'GATEWAY_UNAVAILABLE' },
    );
  }
  const agent = live.find(({ id, key }) => id === session || key === session)?.agent;
  return agent === 'unknown' ? undefined : agent;
}

/**
 * The agents to which a session belongs: those for which a tool has registered it, and the one that its key or the gateway
 * names, because a tool may register any free id. Undefined: none is known.
 *
 * @param names of agents that gateways may know under a simplified name
 */
export async function ownersOfSession(whose: Whose, session: string, names: readonly (string | null)[]) {
  const registered = await agentOfRegistered(whose.services, whose.identity, session);
  const named = namedInKey(session) ?? (await agentAtGateway(whose, session));
  if (named === undefined) return registered;
  return [...(registered ?? []), ...(await agentsMeant(whose, named, names))];
}

/** The simplified name of the agent in a session key of a gateway. */
const namedInKey = (session: string): string | undefined => /^agent:([^:]+)/.exec(session)?.[1];

/**
 * The agents that gateways know by this simplified name. If the workspace has none, it is that of one of the names.
 *
 * @param names of agents that may be created only now
 */
async function agentsMeant({ services, identity }: Whose, named: string, names: readonly (string | null)[]) {
  const present = (await agentNames(services.reads, identity.workspace)).filter((name) => slug(name) === named);
  const meant = present.length > 0 ? present : [names.find((name) => name !== null && slug(name) === named) ?? named];
  return meant.map((name) => ({ name }));
}

/** The agents of any session. One of which no owner is known belongs to the caller's agent if that has it as session key. */
async function agentsOfSession(whose: Whose, session: string): Promise<Agents> {
  const { services, identity } = whose;
  const owners = await ownersOfSession(whose, session, [identity.agentName]);
  if (owners) return owners;
  const name = identity.agentName ?? '';
  const own = await findAgent(services.reads, identity.workspace, { name });
  return own?.session_key === session ? { name } : 'unknown';
}

const register = defineRoute({
  method: 'post',
  path: '/api/claude/sessions',
  summary: 'Register a session, or report where it is',
  description: 'It counts as active for 15 minutes after each report. Fields that a report omits stay unchanged.',
  access: 'operator',
  rules: { agentKeys: 'own', strict: 'refused', past: 'none', prompts: 'none' },
  limit: 'none',
  shared: 'claude/sessions',
  body: contract.cliSessionBody,
  async agents(call) {
    const { body, identity, services } = call;
    const name = body.agent_name?.trim();
    const present = (await agentOfRegistered(services, identity, body.session_id)) ?? [];
    const named = namedInKey(body.session_id);
    const inKey = named === undefined ? [] : await agentsMeant(call, named, [identity.agentName]);
    return [...(name ? [{ name }] : []), ...inKey, ...present];
  },
  responses: { 200: { description: 'Registered', schema: contract.registeredSessionResponse } },
  async respond({ body, identity, services, command }) {
    const { session_id } = body;
    const executed = await reportSession(services.commands, command, {
      session_id,
      agent_name: body.agent_name?.trim() || (isBoundKey(identity) ? identity.agentName : null),
      model: body.model?.trim() || null,
      project_slug: body.project_slug?.trim() || null,
      project_path: body.project_path || null,
      git_branch: body.git_branch || null,
      user_messages: body.user_messages ?? null,
      assistant_messages: body.assistant_messages ?? null,
      tool_uses: body.tool_uses ?? null,
      input_tokens: body.input_tokens ?? null,
      output_tokens: body.output_tokens ?? null,
      estimated_cost: body.estimated_cost ?? null,
    });
    const now = seconds(services.now());
    const session = await cliSessionAfter(services.records, identity.workspace, session_id, executed, now);
    return { ok: true, message: `Session ${session_id} is registered.`, session };
  },
});

/** Sessions at the primary gateway that are recent enough to be listed. @param now Unix seconds */
async function gatewaySessions({ reads, settings, gatewaySessions: at }: Services, hasGateways: boolean, now: number) {
  const version = hasGateways ? await primaryVersion(reads) : undefined;
  const live = (version === undefined ? undefined : await at.list(version)) ?? [];
  if (live.length === 0) return live;
  const name = 'retention.gateway_sessions_days';
  const days = Number((await settingValues(reads, settings, [name]))[name]);
  return days === 0 ? live : live.filter(({ updatedAt }) => updatedAt === 0 || updatedAt > (now - days * DAY) * 1_000);
}

const list = defineRoute({
  method: 'get',
  path: '/api/sessions',
  summary: 'Sessions of all kinds, last active first',
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'refused', past: 'all', prompts: 'none' },
  shared: 'sessions',
  description:
    'Sessions of tools and, for callers of the default tenant, those of the primary gateway, at most 5 seconds old. If the gateway does not respond within 2 seconds, its sessions are left out, as are those that it last updated longer ago than the setting `retention.gateway_sessions_days` allows. Responses about the past have the sessions of tools only.',
  responses: { 200: { description: 'At most 100 sessions', schema: contract.sessionsResponse } },
  async respond({ identity, services, isOfDeployment }) {
    const now = seconds(services.now());
    const isNow = services.reads.past === undefined;
    const live = isNow ? await gatewaySessions(services, await isOfDeployment(), now) : [];
    return { sessions: await listSessions(services.reads, identity.workspace, now, live) };
  },
});

/** The value that an action sets. @throws AppError 400 */
function settingOf(
  action: keyof typeof contract.SETTINGS | 'set-label',
  level: string | undefined,
  label: string | undefined,
) {
  if (action === 'set-label') {
    if (label === undefined || label.length > 100)
      throw invalidField('label', 'Label must be a text of at most 100 characters');
    return label;
  }
  const { name, levels } = contract.SETTINGS[action];
  if (level === undefined || !(levels as readonly string[]).includes(level))
    throw invalidField('level', `${name} level must be one of ${levels.join(', ')}`);
  return level;
}

const set = defineRoute({
  method: 'post',
  path: '/api/sessions',
  summary: 'Set the label of a session, or its thinking, verbosity and reasoning level',
  description:
    'The tool of a registered session is notified on the stream (`session.control`). For other sessions, the primary gateway is called: 404 if it does not know the session, 500 if it refuses or does not respond within 5 seconds.',
  access: 'operator',
  rules: { agentKeys: 'own', strict: 'refused', past: 'none', prompts: 'none' },
  shared: 'sessions',
  query: contract.sessionActionQuery,
  body: contract.sessionActionBody,
  agents: (call) => agentsOfSession(call, call.body.sessionKey),
  refuses: [404, 500],
  responses: { 200: { description: 'Set', schema: contract.sessionActionResponse } },
  async respond({ query, body, services, command }) {
    const action = query.action ?? body.action;
    if (action === undefined)
      throw invalidField('action', `Invalid action: must be one of ${contract.SET_ACTIONS.join(', ')}`);
    const { sessionKey } = body;
    const value = settingOf(action, body.level, body.label);
    const { commands, gateways } = services;
    const result = await controlSession(commands, command, gateways, { session: sessionKey, action, value });
    return { success: true, action, sessionKey, result: result ?? { requested: true, value } };
  },
});

const remove = defineRoute({
  method: 'delete',
  path: '/api/sessions',
  summary: 'Delete a session from the lists',
  description:
    'The tool of a registered session is notified on the stream (`session.control`); a later report registers it again. Other sessions are deleted by the primary gateway: 404 if it does not know the session, 500 if it refuses or does not respond within 5 seconds.',
  access: 'operator',
  rules: { agentKeys: 'own', strict: 'refused', past: 'none', prompts: 'none' },
  shared: 'sessions',
  body: contract.sessionKeyBody,
  agents: (call) => agentsOfSession(call, call.body.sessionKey),
  refuses: [404, 500],
  responses: { 200: { description: 'Deleted', schema: contract.sessionDeletedResponse } },
  async respond({ body: { sessionKey }, services, command }) {
    const asked = { session: sessionKey, action: 'delete', value: null } as const;
    const result = await controlSession(services.commands, command, services.gateways, asked);
    return { success: true, sessionKey, result: result ?? { deleted: true } };
  },
});

const control = defineRoute({
  method: 'post',
  path: '/api/sessions/{id}/control',
  summary: 'Pause, resume or end a session',
  description:
    'The tool of a registered session is notified on the stream (`session.control`); a terminated session is no longer active. For other sessions, the primary gateway is called: 404 if it does not know the session, 500 if it refuses or does not respond within 5 seconds.',
  access: 'operator',
  rules: { agentKeys: 'own', strict: 'refused', past: 'none', prompts: 'none' },
  shared: 'sessions',
  params: contract.controlParams,
  agents: (call) => agentsOfSession(call, call.params.id),
  body: contract.controlBody,
  refuses: [404, 500],
  responses: { 200: { description: 'Asked for', schema: contract.controlResponse } },
  async respond({ params, body, services, command }) {
    const action = body.action === 'kill' ? 'terminate' : body.action;
    const asked = { session: params.id, action, value: null };
    const result = await controlSession(services.commands, command, services.gateways, asked);
    return { success: true, action: body.action, session: params.id, result: result ?? { requested: true } };
  },
});

const prefs = defineCachedRoute({
  method: 'get',
  path: '/api/chat/session-prefs',
  summary: 'Display names and colors of sessions',
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'refused', past: 'all', prompts: 'none' },
  shared: 'session-prefs',
  responses: { 200: { description: 'By session', schema: contract.sessionPrefsResponse } },
  cache: { models: ['sessions'] },
  respond: async ({ identity, services }) => ({ prefs: await sessionPrefs(services.reads, identity.workspace) }),
});

const setPref = defineRoute({
  method: 'patch',
  path: '/api/chat/session-prefs',
  summary: 'Set the display name and color of a session',
  access: 'operator',
  rules: { agentKeys: 'any', strict: 'refused', past: 'none', prompts: 'none' },
  limit: 'none',
  shared: 'session-prefs',
  body: contract.sessionPrefBody,
  responses: { 200: { description: 'As it is now', schema: contract.sessionPrefResponse } },
  async respond({ body, identity, services, command }) {
    const { key, name, color } = body;
    const executed = await setSessionPref(services.commands, command, {
      key,
      ...(name !== undefined && { name: name?.trim() || null }),
      ...(color !== undefined && { color: color || null }),
    });
    const pref = await sessionPrefAfter(services.records, identity.workspace, key, executed);
    return { ok: true, ...(pref && { pref }) };
  },
});

export const sessionRoutes: readonly Route[] = [listCli, register, list, set, remove, control, prefs, setPref];
