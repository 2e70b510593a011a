/**
 * Gateways of the deployment: added, changed, removed, probed. They are few, so they share one stream: it alone ensures
 * that names are unique and that one gateway is primary.
 */
import { isIP } from 'node:net';
import { ADMINS_ADDRESSES } from '../../shared/addresses.ts';
import type { GatewayChangesBody, NewGatewayBody } from '../../shared/contract/admin/gateways.ts';
import { AppError, conflict, invalid, notFound } from '../../shared/errors.ts';
import {
  type GatewayChange,
  gatewayAdded,
  gatewayChanged,
  gatewayRemoved,
  gatewaysProbed,
} from '../../shared/events/admin/gateways.ts';
import type { EventDraft } from '../../shared/events/define.ts';
import { DEFAULT_TENANT, type Origin } from '../../shared/events/metadata.ts';
import { sent } from '../../shared/fields.ts';
import {
  GatewayError,
  type GatewayHealth,
  type GatewayResponse,
  type Gateways,
} from '../../shared/ports/admin/gateways.ts';
import { maskedText } from '../../shared/secret-texts.ts';
import { MASK } from '../../shared/secrets.ts';
import { frontOf, isStorableText } from '../../shared/storable.ts';
import type { Deliver } from '../chat.ts';
import { defineDecider, on } from '../decider.ts';
import type { CommandContext, Commands, Executed } from '../handler.ts';
import { reserveId } from '../record-ids.ts';

export interface KnownGateway {
  readonly id: number;
  readonly name: string;
  readonly url: string;
  /** It was given without a scheme. */
  readonly bare: boolean;
  readonly token: string | null;
  readonly is_primary: boolean;
}

export interface GatewaysState {
  readonly gateways: readonly KnownGateway[];
}

export const GATEWAYS_STREAM = 'gateways';
const PROBES_STREAM = 'gateway-probes';
/** Maximum number of gateways, because every probe calls each of them. */
export const MAX_GATEWAYS = 50;
/** Gateways that are called concurrently. */
const AT_ONCE = 25;

export const gatewaysDecider = defineDecider<GatewaysState>({
  kind: 'list of gateways',
  initial: { gateways: [] },
  folds: [
    on(gatewayAdded, ({ gateways }, { data }) => {
      const { gateway_id: id, name, url, bare, token, is_primary } = data;
      return { gateways: [...gateways, { id, name, url, bare, token, is_primary }] };
    }),
    on(gatewayChanged, ({ gateways }, { data }) => ({
      gateways: gateways.map((one) =>
        one.id === data.gateway_id
          ? {
              ...one,
              name: data.name ?? one.name,
              url: data.url ?? one.url,
              bare: data.bare ?? one.bare,
              token: data.token_set === undefined ? one.token : (data.token ?? null),
              is_primary: data.is_primary ?? one.is_primary,
            }
          : one,
      ),
    })),
    on(gatewayRemoved, ({ gateways }, { data }) => ({ gateways: gateways.filter(({ id }) => id !== data.gateway_id) })),
  ],
});

// --- Addresses --------------------------------------------------------------------------------------------------------

export interface Address {
  /** Without query, fragment, credentials, trailing slashes, and the default port of its scheme. */
  readonly url: string;
  /** It was given without a scheme. */
  readonly bare: boolean;
  /** From the query of the URL. */
  readonly token: string | undefined;
}

/** The port that forms fill in by default, so next to a URL it is ignored. */
const USUAL_PORT = 18_789;

/**
 * The address in a body, where `url` and `host` may be a URL or a host; undefined when there is none. A port in the
 * address takes precedence over `port`.
 *
 * @throws AppError 400
 */
export function addressOf({
  url: given,
  host,
  port,
}: Pick<NewGatewayBody, 'url' | 'host' | 'port'>): Address | undefined {
  const field = given === undefined ? 'host' : 'url';
  const text = (given ?? host)?.trim();
  if (text === undefined) {
    if (port !== undefined) throw invalid('host: send it together with port, or send url');
    return undefined;
  }
  const bare = !/^[a-z][a-z0-9+.-]*:\/\//i.test(text);
  const whole = bare ? `http://${isIP(text) === 6 ? `[${text}]` : text}` : text;
  const url = URL.canParse(whole) ? new URL(whole) : undefined;
  if (!url || !['http:', 'https:', 'ws:', 'wss:'].includes(url.protocol) || url.hostname === '')
    throw invalid(`${field}: must be an address such as https://gateway.example.org:18789`);
  const fault = ADMINS_ADDRESSES.fault(url.href);
  if (fault !== undefined) throw invalid(`${field}: ${fault}`);
  if (url.username !== '' || url.password !== '')
    throw invalid(`${field}: must not hold a name or a password; send the token as token`);
  // `https://gate:443` names its port, but `URL` omits it.
  const named = url.port !== '' || /^[^/?#]*:\d+(?:[/?#]|$)/.test(whole.slice(whole.indexOf('//') + 2));
  if (port !== undefined && !named && (bare || port !== USUAL_PORT)) url.port = String(port);
  return { url: withoutQuery(url), bare, token: url.searchParams.get('token') || undefined };
}

const withoutQuery = ({ protocol, host, pathname }: URL): string =>
  `${protocol}//${host}${pathname}`.replace(/\/+$/, '');

// --- Decisions --------------------------------------------------------------------------------------------------------

function refuseTaken({ gateways }: GatewaysState, name: string, id?: number): void {
  if (gateways.some((one) => one.name === name && one.id !== id))
    throw conflict(`There is a gateway called ${name} already; choose another name.`, { code: 'NAME_TAKEN' });
}

/** At most one gateway is primary. */
const demoted = ({ gateways }: GatewaysState, id: number): EventDraft[] =>
  gateways
    .filter((one) => one.is_primary && one.id !== id)
    .map((one) => gatewayChanged.draft({ gateway_id: one.id, is_primary: false }));

/** @throws AppError 409 */
export function decideAdd(state: GatewaysState, gateway: KnownGateway): EventDraft[] {
  refuseTaken(state, gateway.name);
  if (state.gateways.length >= MAX_GATEWAYS)
    throw conflict(`There are ${MAX_GATEWAYS} gateways already, which is the limit; remove one first.`);
  const { id, name, url, bare, token, is_primary } = gateway;
  const added = gatewayAdded.draft({ gateway_id: id, name, url, bare, token, is_primary });
  return [...(is_primary ? demoted(state, id) : []), added];
}

/** @throws AppError 404, 409 */
export function decideChange(state: GatewaysState, id: number, changes: GatewayChange): EventDraft[] {
  if (!state.gateways.some((one) => one.id === id)) throw notFound('Gateway');
  if (changes.name !== undefined) refuseTaken(state, changes.name, id);
  return [
    ...(changes.is_primary ? demoted(state, id) : []),
    gatewayChanged.draft({
      gateway_id: id,
      ...changes,
      ...(changes.token !== undefined && { token_set: changes.token !== null }),
    }),
  ];
}

/** No event for an unknown gateway. @throws AppError 400 for the primary one */
export function decideRemove({ gateways }: GatewaysState, id: number): EventDraft[] {
  const known = gateways.find((one) => one.id === id);
  if (!known) return [];
  if (known.is_primary) throw invalid('The primary gateway cannot be removed; make another one primary first.');
  return [gatewayRemoved.draft({ gateway_id: id, name: known.name })];
}

// --- Commands ---------------------------------------------------------------------------------------------------------

/** Adds a gateway. @returns its id @throws AppError 400, 409 */
export async function addGateway(
  commands: Commands,
  context: CommandContext,
  body: NewGatewayBody,
): Promise<{ readonly id: number; readonly executed: Executed }> {
  const address = addressOf(body);
  if (!address) throw invalid('url: is missing; send the address of the gateway');
  if (body.token === MASK) throw invalid(`token: ${MASK} stands for a hidden value; send the token itself`);
  const id = await reserveId(commands, context, 'gateway', (one) => `gateway-${one}`);
  const gateway = {
    id,
    name: body.name,
    url: address.url,
    bare: address.bare,
    token: address.token ?? (body.token || null),
    is_primary: body.is_primary,
  };
  const decide = (state: GatewaysState) => decideAdd(state, gateway);
  return { id, executed: await commands.execute(gatewaysDecider, GATEWAYS_STREAM, context, decide) };
}

/**
 * The address after a change: a host without a port keeps the stored port; a port alone keeps the rest.
 *
 * @throws AppError 400
 */
function changedAddress(
  { url, host, port }: Pick<GatewayChangesBody, 'url' | 'host' | 'port'>,
  stored: Pick<KnownGateway, 'url' | 'bare'>,
): Address | undefined {
  const before = new URL(stored.url);
  if (url === undefined && host === undefined && port !== undefined) {
    before.port = String(port);
    return { url: withoutQuery(before), bare: stored.bare, token: undefined };
  }
  const given = addressOf({ url, host, port });
  if (!given?.bare || port !== undefined || before.port === '') return given;
  return addressOf({ url, host, port: Number(before.port) });
}

/** The fields that a body changes. @param stored the current address @throws AppError 400 */
export function changesOf(
  { id: _, url, host, port, token: given, agents, ...fields }: GatewayChangesBody,
  stored: Pick<KnownGateway, 'url' | 'bare'>,
): GatewayChange {
  const address = changedAddress({ url, host, port }, stored);
  const token = address?.token ?? given;
  const changes: GatewayChange = sent({
    ...fields,
    url: address?.url,
    bare: address?.bare,
    ...(token !== undefined && token !== MASK && { token: token || null }),
  });
  if (Object.keys(changes).length === 0 && token !== MASK && agents === undefined)
    throw invalid('There is nothing to change: send at least one field besides id.');
  return changes;
}

/** @throws AppError 400, 404, 409 */
export async function changeGateway(
  commands: Commands,
  context: CommandContext,
  body: GatewayChangesBody,
): Promise<Executed> {
  return commands.execute(gatewaysDecider, GATEWAYS_STREAM, context, (state) => {
    const known = state.gateways.find(({ id }) => id === body.id);
    // Errors in the body are reported first.
    const changes = changesOf(body, known ?? { url: 'http://unknown', bare: false });
    if (!known) throw notFound('Gateway');
    return Object.keys(changes).length === 0 ? [] : decideChange(state, body.id, changes);
  });
}

/** @returns whether the gateway existed @throws AppError 400 for the primary one */
export async function removeGateway(commands: Commands, context: CommandContext, id: number): Promise<boolean> {
  const { events } = await commands.execute(gatewaysDecider, GATEWAYS_STREAM, context, (state) =>
    decideRemove(state, id),
  );
  return events.length > 0;
}

/** One gateway with its token. @throws AppError 404 */
export async function knownGateway(commands: Commands, id: number): Promise<KnownGateway> {
  const { state } = await commands.load(gatewaysDecider, GATEWAYS_STREAM);
  const known = state.gateways.find((one) => one.id === id);
  if (!known) throw notFound('Gateway');
  return known;
}

/** The primary gateway with its token; undefined: there is none. */
export async function primaryGateway(commands: Pick<Commands, 'load'>): Promise<KnownGateway | undefined> {
  const { state } = await commands.load(gatewaysDecider, GATEWAYS_STREAM);
  return state.gateways.find((one) => one.is_primary);
}

/** The primary gateway, for callers of the default tenant only, because gateways belong to the deployment. */
export const gatewayOf = async (commands: Commands, { tenant }: Pick<Origin, 'tenant'>) =>
  tenant === DEFAULT_TENANT ? primaryGateway(commands) : undefined;

/** Maximum number of characters of a gateway's reason for a refusal. */
const MAX_REASON = 500;

/** Text of a refusal: status and message of the gateway. */
export function gatewayRefusal({ status, body }: GatewayResponse): string {
  const said = (body as { readonly error?: unknown } | null | undefined)?.error;
  return `The gateway responded with status ${status}${typeof said === 'string' ? `: ${frontOf(maskedText(said), MAX_REASON)}` : ''}`;
}

/** Whether a gateway carried out a request: a 2xx without `"ok": false`. */
export const gatewayAgreed = ({ status, body }: GatewayResponse): boolean =>
  status >= 200 && status < 300 && (body as { readonly ok?: unknown } | null | undefined)?.ok !== false;

/** Path of a session at the gateway; undefined for `.` and `..`, which mean another path. */
export const sessionPath = (session: string): string | undefined =>
  session === '.' || session === '..' ? undefined : `/api/sessions/${encodeURIComponent(session)}`;

/** Maximum number of characters in a run's id. */
const MAX_RUN = 200;

/**
 * Delivers messages to live sessions: through the primary gateway, and waits for its response. Undefined: there is no
 * gateway, or the caller belongs to another tenant than the deployment's.
 *
 * @param attachments for the session alone: they are not part of the stored message
 */
export async function sessionDelivery(
  commands: Commands,
  gateways: Pick<Gateways, 'call'>,
  origin: Pick<Origin, 'tenant'>,
  attachments: readonly object[] = [],
): Promise<Deliver | undefined> {
  const gateway = await gatewayOf(commands, origin);
  if (!gateway) return undefined;
  return async (session, { workspace, id, from, to, content, conversation }) => {
    const path = sessionPath(session);
    if (path === undefined) return undefined;
    // The key is the same for every attempt: a gateway that already has the message repeats its first response.
    const key = `chat-message-${workspace}-${id}`;
    const body = {
      message_id: id,
      from,
      to,
      content,
      conversation,
      idempotency_key: key,
      ...(attachments.length > 0 && { attachments }),
    };
    try {
      const response = await gateways.call(gateway, { method: 'POST', path: `${path}/messages`, body });
      if (response.status < 200 || response.status >= 300) return undefined;
      const { runId, run_id } = (response.body ?? {}) as { readonly runId?: unknown; readonly run_id?: unknown };
      const run = runId ?? run_id;
      return { run_id: typeof run === 'string' && isStorableText(run) ? frontOf(run, MAX_RUN) : null };
    } catch (error) {
      if (error instanceof GatewayError) return undefined;
      throw error;
    }
  };
}

export interface Probed extends GatewayHealth {
  readonly id: number;
  readonly name: string;
}

/** Probes all gateways, or one, and records the results. @throws AppError 404 for an unknown one */
export async function probeGateways(
  commands: Commands,
  context: CommandContext,
  gateways: Pick<Gateways, 'probe'>,
  id?: number,
): Promise<readonly Probed[]> {
  const { state } = await commands.load(gatewaysDecider, GATEWAYS_STREAM);
  const asked = state.gateways.filter((one) => id === undefined || one.id === id);
  if (asked.length === 0) {
    if (id !== undefined) throw new AppError(404, 'Gateway not found');
    return [];
  }
  const found: Probed[] = [];
  for (let from = 0; from < asked.length; from += AT_ONCE) {
    const some = asked.slice(from, from + AT_ONCE);
    found.push(
      ...(await Promise.all(
        some.map(async (one) => ({ id: one.id, name: one.name, ...(await gateways.probe(one.url)) })),
      )),
    );
  }
  const probe = await commands.counters.take('gateway-probe');
  const results = found.map(({ id: gatewayId, name, status, latency, error }) => ({
    gateway_id: gatewayId,
    name,
    status,
    latency,
    error,
  }));
  await commands.record(PROBES_STREAM, context, [gatewaysProbed.draft({ probe, results })]);
  return found;
}
