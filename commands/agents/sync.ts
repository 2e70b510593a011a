/** Import of agents from the gateway's configuration. */
import { isDeepStrictEqual } from 'node:util';
import { type GatewayAgent, readableAgents, withGatewayKeys } from '../../shared/contract/admin/gateway-document.ts';
import { AppError } from '../../shared/errors.ts';
import { agentsSynced } from '../../shared/events/agents/sync.ts';
import { gatewayDocument } from '../admin/gateway-config.ts';
import type { CommandContext, Commands } from '../handler.ts';
import { type Room, roomMade } from '../limits.ts';
import { agentConfigDecider, agentDecider, agentStream } from './agents.ts';
import { updateFromConfig } from './changes.ts';
import { bounded, configProblem } from './config.ts';
import { decideReturn, NEW_AGENT, type Registration, registerAgent } from './registration.ts';

/** The message when there is no stored configuration. */
export const NOTHING_STORED =
  'No gateway configuration is stored, so there is nothing to import; PUT one to /api/gateway-config first.';

export interface SyncResult {
  readonly message?: string;
  readonly synced: number;
  readonly created: number;
  readonly updated: number;
  readonly agents: readonly {
    /** Id of the entry in the document. */
    readonly id: string;
    readonly name: string;
    readonly action: 'created' | 'updated' | 'unchanged';
  }[];
}

const registrationOf = ({ name, role, config }: GatewayAgent): Registration => ({
  ...NEW_AGENT,
  name,
  role,
  config: { ...config },
  source: 'gateway',
  via: 'sync',
});

/**
 * Creates the missing agents of the stored document, and updates role and config of the existing ones from it. Every
 * step is idempotent, so an import that fails halfway can simply be repeated.
 *
 * @param idsOf ids of the agents with these names, by name
 * @throws AppError 409 when another request is taking one of the names, or the workspace has reached its limit of
 *   agents; 422 when the document cannot be read, or the config of one of its agents would be too large; then nothing
 *   is changed
 */
export async function syncAgents(
  commands: Commands,
  { origin }: CommandContext,
  room: Room,
  idsOf: (names: readonly string[]) => Promise<ReadonlyMap<string, number>>,
): Promise<SyncResult> {
  // Without the request's intents, because a repeated run takes other steps: part of the work is already done.
  const context: CommandContext = { origin };
  const document = await gatewayDocument(commands, origin.workspace);
  if (document === null) return { synced: 0, created: 0, updated: 0, agents: [], message: NOTHING_STORED };
  const wanted = readableAgents(document);
  const ids = await idsOf(wanted.map((agent) => agent.name));
  await checkConfigs(commands, origin.workspace, wanted, ids);
  const agents: SyncResult['agents'][number][] = [];
  const importAll = async () => {
    for (const agent of wanted) {
      const { id, name } = agent;
      const known = ids.get(name);
      if (known === undefined) {
        await registerAgent(commands, context, registrationOf(agent), roomMade);
        agents.push({ id, name, action: 'created' });
        continue;
      }
      const { events } = await updateFromConfig(commands, context, known, { via: 'sync' }, (config) => {
        const next = withGatewayKeys(config, agent.config);
        return { role: agent.role, ...(!isDeepStrictEqual(next, config) && { config: bounded(next) }) };
      });
      agents.push({ id, name, action: events.length > 0 ? 'updated' : 'unchanged' });
    }
  };
  const fresh = wanted.filter(({ name }) => !ids.has(name)).length;
  await (fresh === 0 ? importAll() : room(context, importAll, fresh));
  const count = (action: string) => agents.filter((agent) => agent.action === action).length;
  const result = { synced: agents.length, created: count('created'), updated: count('updated'), agents };
  if (result.created + result.updated > 0) {
    const names = agents.filter((agent) => agent.action !== 'unchanged').map((agent) => agent.name);
    await commands.record(`agent_sync-${origin.workspace}`, context, [
      agentsSynced.draft({ ...result, agents: names }),
    ]);
  }
  return result;
}

/**
 * Registers agents that a gateway names; for existing ones it records a sign of life. All of them become idle. Every
 * step is idempotent, so the call can be repeated.
 *
 * @param idsOf ids of the agents with these names, by name
 * @param first runs before the registrations, once there is known to be room for the agents
 * @returns the result of `first`, and the number of agents
 * @throws AppError 400, 409
 */
export async function registerNamed<T>(
  commands: Commands,
  { origin }: CommandContext,
  room: Room,
  told: readonly { readonly name: string; readonly role: string }[],
  idsOf: (names: readonly string[]) => Promise<ReadonlyMap<string, number>>,
  first: () => Promise<T>,
): Promise<readonly [result: T, registered: number]> {
  const context: CommandContext = { origin };
  const roles = new Map(told.map(({ name, role }) => [name, role]));
  const ids = await idsOf([...roles.keys()]);
  const registerAll = async () => {
    const result = await first();
    for (const [name, role] of roles) {
      const registration = registrationOf({ id: name, name, role, config: {} });
      const id = ids.get(name) ?? (await registerAgent(commands, context, registration, roomMade)).id;
      await commands.execute(agentDecider, agentStream(origin.workspace, id), context, decideReturn);
    }
    return [result, roles.size] as const;
  };
  const fresh = [...roles.keys()].filter((name) => !ids.has(name)).length;
  return fresh === 0 ? registerAll() : room(context, registerAll, fresh);
}

/** Called before the first change, so that an import is not left half done. @throws AppError 422 */
async function checkConfigs(
  commands: Commands,
  workspace: number,
  wanted: readonly GatewayAgent[],
  ids: ReadonlyMap<string, number>,
): Promise<void> {
  for (const { name, config } of wanted) {
    const known = ids.get(name);
    const present =
      known === undefined ? {} : (await commands.load(agentConfigDecider, agentStream(workspace, known))).state.config;
    const next = withGatewayKeys(present, config);
    const reason = isDeepStrictEqual(next, present) ? undefined : configProblem(next);
    if (reason === undefined) continue;
    throw new AppError(
      422,
      `The gateway configuration cannot be imported: the config of the agent "${name}" ${reason}; nothing was changed.`,
    );
  }
}
