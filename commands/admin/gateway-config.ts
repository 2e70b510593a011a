/**
 * The gateway's configuration document: changed as a whole, by paths, or by writing an agent to it; and sent to the
 * primary gateway.
 */

import { gatewayActionBody } from '../../shared/contract/admin/gateway-config.ts';
import { documentText, type GatewayDocument, hashOf } from '../../shared/contract/admin/gateway-document.ts';
import { AppError, conflict, EventUnreadableError, forbidden, invalid } from '../../shared/errors.ts';
import { gatewayActionRequested, gatewayConfigChanged } from '../../shared/events/admin/gateway-config.ts';
import type { EventDraft, EventOf } from '../../shared/events/define.ts';
import { GatewayError, type GatewayRequest, type Gateways } from '../../shared/ports/admin/gateways.ts';
import { type SecretName, secretNamesIn } from '../../shared/secret-names.ts';
import { masked, restored } from '../../shared/secrets.ts';
import { isObject, storageProblem } from '../../shared/storable.ts';
import type { Decider } from '../decider.ts';
import type { CommandContext, Commands, Executed } from '../handler.ts';
import {
  DOCUMENT_BOUNDS,
  PROTECTED_PATHS,
  touchesProtected,
  valueAt,
  withAgent,
  withEntry,
  withoutAgent,
  withValue,
} from './gateway-document.ts';
import { gatewayAgreed, gatewayOf, gatewayRefusal } from './gateways.ts';

export interface GatewayConfigState {
  /** null: none is stored. */
  readonly document: GatewayDocument | null;
}

export const gatewayConfigDecider: Decider<GatewayConfigState> = {
  kind: 'gateway configuration',
  initial: { document: null },
  evolve(state, { type, data }) {
    if (type !== gatewayConfigChanged.type) return state;
    return { document: (data as EventOf<typeof gatewayConfigChanged>['data']).document };
  },
};

export const gatewayConfigStream = (workspace: number): string => `gateway_config-${workspace}`;

/** @throws AppError 400 or 413 if the changed document would be too deep or too large */
function changed(
  document: GatewayDocument,
  more: Partial<Omit<EventOf<typeof gatewayConfigChanged>['data'], 'document'>>,
): EventDraft[] {
  const problem = storageProblem(document, DOCUMENT_BOUNDS);
  if (problem) {
    const where = problem.path.length > 0 ? ` (${problem.path.join('.')})` : '';
    throw new AppError(
      problem.kind === 'size' ? 413 : 400,
      `The gateway configuration ${problem.reason}${where}; it was not changed.`,
    );
  }
  return [
    gatewayConfigChanged.draft({
      document,
      cause: 'update',
      updated_keys: [],
      agent_name: null,
      template: null,
      fields: [],
      ...more,
    }),
  ];
}

function checkHash(state: GatewayConfigState, hash: string | undefined): void {
  if (hash !== undefined && hash !== hashOf(documentText(state.document))) {
    throw conflict('The gateway configuration was modified since you read it; read it again and repeat the change.', {
      code: 'CONFLICT',
    });
  }
}

const nothingStored = () =>
  new AppError(404, 'No gateway configuration is stored; PUT the whole document first, as one JSON object.');

const protectedPath = (path: string) =>
  forbidden(`${path} is protected: the gateway's own credentials are not changed through this service.`);

/**
 * Replaces the document. Secrets that are sent back masked stay unchanged. Protected paths keep their values; only the
 * first document may set them.
 *
 * @throws AppError 403 for a different value at a protected path; 409 for an outdated hash
 */
export function decideReplace(state: GatewayConfigState, next: GatewayDocument, hash?: string): EventDraft[] {
  checkHash(state, hash);
  const { document: stored } = state;
  let document = restored(next, stored, 'config') as GatewayDocument;
  if (stored === null) return changed(document, { updated_keys: ['*'] });
  for (const path of PROTECTED_PATHS) {
    const kept = valueAt(stored, path);
    const given = valueAt(document, path);
    if (given === undefined) {
      if (kept !== undefined) document = withValue(document, path, kept);
    } else if (JSON.stringify(given) !== JSON.stringify(kept)) throw protectedPath(path);
  }
  return changed(document, { updated_keys: ['*'] });
}

/**
 * Sets values at dotted paths.
 *
 * @throws AppError 400 when the first segment of a path is not in the document; 403 for protected paths; 404 when no
 *   document is stored; 409 for an outdated hash
 */
export function decideUpdates(
  state: GatewayConfigState,
  updates: Readonly<Record<string, unknown>>,
  hash?: string,
): EventDraft[] {
  for (const [path, value] of Object.entries(updates)) if (touchesProtected(path, value)) throw protectedPath(path);
  checkHash(state, hash);
  if (state.document === null) throw nothingStored();
  let { document } = state;
  for (const [path, value] of Object.entries(updates)) {
    const [root = ''] = path.split('.');
    if (!Object.hasOwn(document, root)) {
      throw invalid(`"${root}" is not a key of the gateway configuration; to add it, PUT the whole document.`);
    }
    const name = secretNameOf(document, path);
    document = withValue(document, path, restored(value, valueAt(document, path), `updates.${path}`, name));
  }
  return changed(document, { updated_keys: Object.keys(updates) });
}

/** The kind of secret at a dotted path, according to the names on the path. */
function secretNameOf(document: unknown, path: string): SecretName | undefined {
  let name: SecretName | undefined;
  let value: unknown = document;
  for (const key of path.split('.')) {
    name = secretNamesIn(name, isObject(value) ? value : {})(key);
    value = valueAt(value, key);
  }
  return name;
}

/** Runs a change. @returns what the caller may see of the result */
export async function changeGatewayConfig(
  commands: Commands,
  context: CommandContext,
  decide: (state: GatewayConfigState) => readonly EventDraft[],
): Promise<{ readonly hash: string }> {
  const { events } = await writeToGateway(commands, context, decide);
  const document = events.reduce(
    (state, event) => gatewayConfigDecider.evolve(state, { at: event.meta.at, ...event }),
    gatewayConfigDecider.initial,
  ).document;
  return { hash: hashOf(documentText(document)) };
}

/** The stored document; null when there is none. @throws AppError 422 when it cannot be read */
export async function gatewayDocument(commands: Commands, workspace: number): Promise<GatewayDocument | null> {
  try {
    return (await commands.load(gatewayConfigDecider, gatewayConfigStream(workspace))).state.document;
  } catch (error) {
    if (!(error instanceof EventUnreadableError)) throw error;
    throw new AppError(
      422,
      `The stored gateway configuration cannot be read: ${error.message}. Store it again with PUT.`,
      {
        cause: error,
      },
    );
  }
}

export const noGatewayConfig = () =>
  conflict('No gateway configuration is stored; PUT one to /api/gateway-config first.', {
    code: 'GATEWAY_NOT_CONFIGURED',
  });

export interface AgentEntry {
  readonly name: string;
  /** The agent's current name, if the name changes. */
  readonly before?: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly template?: string | null;
  readonly fields?: readonly string[];
}

/** Writes an agent to the document. @throws AppError 409 when none is stored */
export function decideWriteAgent(
  state: GatewayConfigState,
  cause: 'agent-created' | 'agent-updated',
  agent: AgentEntry,
): EventDraft[] {
  if (state.document === null) throw noGatewayConfig();
  const { name, template = null, fields = [] } = agent;
  return changed(withAgent(state.document, agent), { cause, agent_name: name, template, fields: [...fields] });
}

/** Restores an agent's previous entry; undefined: there was none. */
export function decidePutBack(
  state: GatewayConfigState,
  name: string,
  entry: GatewayDocument | undefined,
): EventDraft[] {
  if (state.document === null) return [];
  return changed(withEntry(state.document, name, entry), { cause: 'agent-updated', agent_name: name });
}

/** Removes an agent from the document; no event when it is not in it. */
export function decideRemoveAgent(state: GatewayConfigState, name: string): EventDraft[] {
  if (state.document === null) return [];
  const next = withoutAgent(state.document, name);
  return next === state.document ? [] : changed(next, { cause: 'agent-deleted', agent_name: name });
}

/** Runs one of the decisions above. */
export function writeToGateway(
  commands: Commands,
  context: CommandContext,
  decide: (state: GatewayConfigState) => readonly EventDraft[],
): Promise<Executed> {
  return commands.execute(gatewayConfigDecider, gatewayConfigStream(context.origin.workspace), context, decide);
}

// --- The gateway ------------------------------------------------------------------------------------------------------

type GatewayAction = EventOf<typeof gatewayActionRequested>['data']['action'];

const noGateway = (action: string) =>
  new AppError(
    502,
    `No gateway is connected, so action=${action} is not available; leave it out to use the stored document.`,
  );

/** The JSON schema of the configuration, as the primary gateway has it. @throws AppError 502 */
export async function gatewaySchema(
  commands: Commands,
  { origin }: CommandContext,
  gateways: Pick<Gateways, 'call'>,
): Promise<Record<string, unknown>> {
  const gateway = await gatewayOf(commands, origin);
  if (!gateway) throw noGateway('schema');
  const response = await gateways.call(gateway, { method: 'GET', path: '/api/config/schema' }).catch(unreachable);
  if (!gatewayAgreed(response)) throw new AppError(502, gatewayRefusal(response));
  if (!isObject(response.body)) throw new AppError(502, 'The gateway returned something other than a JSON object.');
  return response.body;
}

/**
 * Sends the stored document to the primary gateway, or asks the gateway to update itself. The outcome is recorded in
 * every case, because a gateway that does not respond may have done it.
 *
 * @param body the body of the request: at most the hash that the stored document must have
 * @returns the gateway's response, with secrets masked
 * @throws AppError 404 when no document is stored; 409 for an outdated hash; 502 when there is no gateway, or it
 *   refuses or does not respond; ZodError for a body with any other field
 */
export async function handToGateway(
  commands: Commands,
  context: CommandContext,
  gateways: Pick<Gateways, 'call'>,
  action: GatewayAction,
  body: GatewayDocument,
): Promise<Record<string, unknown>> {
  const { workspace } = context.origin;
  const gateway = await gatewayOf(commands, context.origin);
  if (!gateway) throw noGateway(action);
  const { hash } = gatewayActionBody.parse(body);
  const document = action === 'apply' || hash !== undefined ? await gatewayDocument(commands, workspace) : null;
  checkHash({ document }, hash);
  const request = action === 'apply' ? applying(document) : UPDATING;
  const requested = (status: number | null) =>
    commands.record(`gateway_config_actions-${workspace}`, context, [
      gatewayActionRequested.draft({ action, gateway_id: gateway.id, gateway_name: gateway.name, status }),
    ]);
  const response = await gateways.call(gateway, request).catch(async (error: unknown) => {
    if (error instanceof GatewayError) await requested(null);
    return unreachable(error);
  });
  await requested(response.status);
  if (!gatewayAgreed(response)) throw new AppError(502, gatewayRefusal(response));
  return isObject(response.body) ? (masked(response.body) as Record<string, unknown>) : {};
}

const UPDATING: GatewayRequest = { method: 'POST', path: '/api/system/update', body: {} };

/** @throws AppError 404 when no document is stored */
function applying(config: GatewayDocument | null): GatewayRequest {
  if (config === null) throw nothingStored();
  const hash = hashOf(documentText(config));
  return { method: 'POST', path: '/api/config/apply', body: { config, hash } };
}

/** @throws AppError 502 when the gateway did not respond; other errors unchanged */
function unreachable(error: unknown): never {
  if (error instanceof GatewayError) throw new AppError(502, error.message, { cause: error });
  throw error;
}
