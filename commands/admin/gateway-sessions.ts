/**
 * Sessions at the primary gateway. Signalbox keeps no copy of them: lists come from the gateway, and actions on a
 * session are sent to it.
 */
import { AppError, notFound } from '../../shared/errors.ts';
import type { EventOf } from '../../shared/events/define.ts';
import { gatewaySessionControlled } from '../../shared/events/sessions.ts';
import {
  GatewayError,
  type GatewayRequest,
  type GatewayResponse,
  type GatewaySession,
  type Gateways,
} from '../../shared/ports/admin/gateways.ts';
import { masked } from '../../shared/secrets.ts';
import { frontOf, isObject } from '../../shared/storable.ts';
import { within } from '../../shared/waiting.ts';
import type { CommandContext, Commands } from '../handler.ts';
import { gatewayAgreed, gatewayRefusal, type KnownGateway, primaryGateway, sessionPath } from './gateways.ts';

// --- Lists ------------------------------------------------------------------------------------------------------------

/** If the gateway takes longer, a list of sessions is returned without its sessions, milliseconds. */
const LISTED_WITHIN_MS = 2_000;
/** How long a response of the gateway is cached, or that it did not respond, milliseconds. */
const KEPT_MS = 5_000;
/** Sessions of a gateway that are looked at. Lists show fewer, but whose a session is concerns the old ones, too. */
const MAX_SESSIONS = 2_000;
/** Maximum number of characters in a text of a listed session. */
const MAX_TEXT = 200;
const USUAL_CONTEXT = 35_000;
/** The last time that a Date can hold, Unix milliseconds. */
const MAX_TIME = 8_640_000_000_000_000;

const textOf = (value: unknown): string | undefined => {
  const text = typeof value === 'string' ? value.trim() : '';
  return text === '' ? undefined : frontOf(text, MAX_TEXT);
};
const countOf = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined;

function sessionOf(one: unknown): GatewaySession | undefined {
  if (!isObject(one)) return undefined;
  const { key } = one;
  // A truncated key would name another session.
  if (typeof key !== 'string' || key === '' || key.length > MAX_TEXT || !sessionPath(key)) return undefined;
  const agent = textOf(one.agent) ?? textOf(/^agent:([^:]+)/.exec(key)?.[1]) ?? 'unknown';
  const levels = { thinking: one.thinkingLevel, verbose: one.verboseLevel, reasoning: one.reasoningLevel };
  const settings = Object.entries(levels).flatMap(([name, level]) => {
    const text = textOf(level);
    return text === undefined ? [] : [[name, text] as const];
  });
  const updatedAt = countOf(one.updatedAt) ?? 0;
  return {
    id: textOf(one.sessionId) ?? `${agent}:${key}`,
    key,
    agent,
    kind: textOf(one.chatType) ?? 'unknown',
    model: textOf(one.model) ?? 'unknown',
    channel: textOf(one.channel) ?? 'unknown',
    label: textOf(one.label) ?? null,
    settings: Object.fromEntries(settings),
    usedTokens: countOf(one.totalTokens) ?? 0,
    contextTokens: countOf(one.contextTokens) || USUAL_CONTEXT,
    updatedAt: updatedAt > MAX_TIME ? 0 : updatedAt,
  };
}

/** The sessions in a gateway's response, without duplicates, last updated first; invalid entries are left out. */
export function sessionsIn({ status, body }: GatewayResponse): readonly GatewaySession[] {
  const sessions = isObject(body) ? body.sessions : undefined;
  if (status !== 200 || !Array.isArray(sessions)) return [];
  const found = new Map<string, GatewaySession>();
  for (const one of sessions.flatMap((each) => sessionOf(each) ?? []).sort((a, b) => b.updatedAt - a.updatedAt)) {
    if (found.size < MAX_SESSIONS && !found.has(one.id)) found.set(one.id, one);
  }
  return [...found.values()];
}

export interface GatewaySessions {
  /**
   * Sessions at the primary gateway, last updated first; undefined when it does not respond, or with 5xx. Never rejects,
   * and takes about two seconds at most. Each version of the gateway is asked at most once in five seconds, however many callers there
   * are.
   *
   * @param version of the primary gateway: responses of an earlier version are not used
   */
  list(version: string): Promise<readonly GatewaySession[] | undefined>;
}

/** @param parts.now milliseconds of a monotonic clock */
export function createGatewaySessions(parts: {
  readonly commands: Pick<Commands, 'load'>;
  readonly gateways: Pick<Gateways, 'call'>;
  readonly now: () => number;
}): GatewaySessions {
  const { commands, gateways, now } = parts;

  async function ask(): Promise<readonly GatewaySession[]> {
    const gateway = await primaryGateway(commands);
    if (!gateway) return [];
    const response = await gateways.call(gateway, {
      method: 'GET',
      path: '/api/sessions',
      timeoutMs: LISTED_WITHIN_MS,
    });
    if (response.status >= 500) throw new Error(`the gateway responded with ${response.status}`);
    return sessionsIn(response);
  }

  interface Heard {
    readonly version: string;
    readonly sessions: Promise<readonly GatewaySession[] | undefined>;
    /** Infinity while the gateway is being asked. */
    until: number;
  }
  let heard: Heard | undefined;

  return {
    list(version) {
      if (heard?.version === version && now() < heard.until) return heard.sessions;
      const mine: Heard = {
        version,
        // Also catches an unreachable log, which holds the gateway's token: other sessions are listed nevertheless.
        sessions: within(LISTED_WITHIN_MS + 500, ask(), 'the gateway')
          .catch(() => undefined)
          .finally(() => {
            mine.until = now() + KEPT_MS;
          }),
        until: Number.POSITIVE_INFINITY,
      };
      heard = mine;
      return mine.sessions;
    },
  };
}

// --- Control ----------------------------------------------------------------------------------------------------------

type Action = EventOf<typeof gatewaySessionControlled>['data']['action'];

/** The gateway's name for the value that an action sets. */
const FIELDS: Readonly<Partial<Record<Action, string>>> = {
  'set-thinking': 'thinkingLevel',
  'set-verbose': 'verboseLevel',
  'set-reasoning': 'reasoningLevel',
  'set-label': 'label',
};

function requestOf(path: string, action: Action, value: string | null): GatewayRequest {
  const field = FIELDS[action];
  if (field !== undefined) return { method: 'PATCH', path, body: { [field]: value } };
  if (action === 'delete') return { method: 'DELETE', path };
  return { method: 'POST', path: `${path}/control`, body: { action } };
}

/**
 * Sends an action on a session to the gateway, and records it.
 *
 * @returns the gateway's response
 * @throws AppError 404 when the gateway does not know the session; 500 when it refuses or does not respond
 */
export async function controlAtGateway(
  commands: Commands,
  context: CommandContext,
  { gateway, gateways }: { readonly gateway: KnownGateway; readonly gateways: Pick<Gateways, 'call'> },
  { session, action, value }: { readonly session: string; readonly action: Action; readonly value: string | null },
): Promise<Record<string, unknown>> {
  const path = sessionPath(session);
  if (path === undefined) throw notFound('Session');
  const response = await gateways.call(gateway, requestOf(path, action, value)).catch((error: unknown) => {
    if (error instanceof GatewayError) throw new AppError(500, error.message, { cause: error });
    throw error;
  });
  if (response.status === 404) throw notFound('Session');
  if (!gatewayAgreed(response)) throw new AppError(500, gatewayRefusal(response));
  const { id: gatewayId, name: gatewayName } = gateway;
  await commands.record(`gateway_sessions-${context.origin.workspace}`, context, [
    gatewaySessionControlled.draft({
      gateway_id: gatewayId,
      gateway_name: gatewayName,
      session_id: session,
      action,
      value,
    }),
  ]);
  return isObject(response.body) ? (masked(response.body) as Record<string, unknown>) : {};
}
