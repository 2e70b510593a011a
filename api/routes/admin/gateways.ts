/** Gateways of the deployment: stored, probed, connected to. */
import type { IncomingHttpHeaders } from 'node:http';
import {
  addGateway,
  changeGateway,
  type KnownGateway,
  knownGateway,
  probeGateways,
  removeGateway,
} from '../../../commands/admin/gateways.ts';
import { registerNamed } from '../../../commands/agents/sync.ts';
import { gatewayAfter, gatewayHistory, listGateways } from '../../../queries/admin/gateways.ts';
import { agentIds } from '../../../queries/agents/agents.ts';
import * as contract from '../../../shared/contract/admin/gateways.ts';
import { idBody } from '../../../shared/contract/common.ts';
import { reaches } from '../../../shared/identity.ts';
import { type Call, defineCachedRoute, defineRoute, type Route } from '../../http/route.ts';
import { agentRoom } from '../agents/agents.ts';

/** Changes a gateway, and registers the agents sent with the request. @returns the parts of the response for both */
async function withAgents<T>(
  { services, identity, command }: Pick<Call<unknown, unknown, unknown, 'admin'>, 'services' | 'identity' | 'command'>,
  agents: contract.NewGatewayBody['agents'],
  act: () => Promise<T>,
): Promise<readonly [result: T, agents: { readonly agents_registered?: number }]> {
  if (agents === undefined) return [await act(), {}];
  const idsOf = (names: readonly string[]) => agentIds(services.reads, identity.workspace, names);
  const some = agents.slice(0, contract.GATEWAY_AGENTS);
  const room = agentRoom(services);
  const [result, registered] = await registerNamed(services.commands, command, room, some, idsOf, act);
  return [result, { agents_registered: registered }];
}

const list = defineCachedRoute({
  method: 'get',
  path: '/api/gateways',
  summary: 'List gateways, the primary one first',
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'refused', past: 'all', prompts: 'none' },
  scope: 'deployment',
  responses: { 200: { description: 'Gateways; tokens are hidden', schema: contract.gatewaysResponse } },
  cache: { models: ['gateways'], scope: 'all', caller: [] },
  respond: async ({ services }) => ({ gateways: await listGateways(services.reads) }),
});

const add = defineRoute({
  method: 'post',
  path: '/api/gateways',
  summary: 'Add a gateway',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'refused', past: 'none', prompts: 'none' },
  scope: 'deployment',
  body: contract.newGatewayBody,
  responses: { 201: { description: 'The gateway', schema: contract.gatewayResponse } },
  async respond(call) {
    const { body, services, command } = call;
    const add = () => addGateway(services.commands, command, body);
    const [{ id, executed }, agents] = await withAgents(call, body.agents, add);
    return { gateway: await gatewayAfter(services.records, id, executed), ...agents };
  },
});

const change = defineRoute({
  method: 'put',
  path: '/api/gateways',
  summary: 'Change a gateway',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'refused', past: 'none', prompts: 'none' },
  scope: 'deployment',
  body: contract.gatewayChangesBody,
  refuses: [404, 409],
  responses: { 200: { description: 'The gateway as it is now', schema: contract.gatewayChangedResponse } },
  async respond(call) {
    const { body, services, command } = call;
    const change = () => changeGateway(services.commands, command, body);
    const [executed, agents] = await withAgents(call, body.agents, change);
    return { success: true, gateway: await gatewayAfter(services.records, body.id, executed), ...agents };
  },
});

const remove = defineRoute({
  method: 'delete',
  path: '/api/gateways',
  summary: 'Remove a gateway that is not the primary one',
  access: 'admin',
  rules: { agentKeys: 'admin', strict: 'refused', past: 'none', prompts: 'none' },
  scope: 'deployment',
  body: idBody,
  responses: { 200: { description: 'Whether there was one', schema: contract.gatewayDeletedResponse } },
  respond: async ({ body, services, command }) => ({
    success: true,
    deleted: await removeGateway(services.commands, command, body.id),
  }),
});

const health = defineRoute({
  method: 'post',
  path: '/api/gateways/health',
  summary: 'Probe the gateways',
  description:
    'Calls `/health` of each gateway and records the result: 2xx is `online`, another status `error`, no response within 5 s `offline`.',
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'refused', past: 'none', prompts: 'none' },
  shared: 'gateways',
  scope: 'deployment',
  body: contract.gatewayHealthBody,
  bodyOptional: true,
  refuses: [404],
  responses: { 200: { description: 'What was found', schema: contract.gatewayHealthResponse } },
  async respond({ body, services, command }) {
    const found = await probeGateways(services.commands, command, services.gateways, body.gateway_id);
    const results = found.map(({ id, name, status, latency, version, error }) => ({
      id,
      name,
      status,
      latency,
      agents: [],
      sessions_count: 0,
      gateway_version: version,
      ...(error !== null && { error }),
    }));
    return { results, probed_at: services.now() };
  },
});

const history = defineCachedRoute({
  method: 'get',
  path: '/api/gateways/health/history',
  summary: 'The last 100 probes, by gateway',
  access: 'viewer',
  rules: { agentKeys: 'any', strict: 'refused', past: 'all', prompts: 'none' },
  shared: 'gateways',
  scope: 'deployment',
  responses: { 200: { description: 'Newest first', schema: contract.gatewayHistoryResponse } },
  cache: { models: ['gateways'], scope: 'all', caller: [] },
  respond: async ({ services }) => ({ history: await gatewayHistory(services.reads) }),
});

const isLoopback = (host: string): boolean =>
  host === 'localhost' || host.endsWith('.localhost') || /^127\./.test(host) || host === '[::1]';

/** Whether a host name is reachable only from the server's machine, or from a container beside it. */
const isOurs = (host: string): boolean =>
  isLoopback(host) || /\.(docker|containers)\.internal$/.test(host) || /^172\.(1[6-9]|2\d|3[01])\.\d+\.\d+$/.test(host);

/** The host that the browser shows, and whether it uses TLS: from the proxy, or the first header that names a page. */
function browserOf(headers: IncomingHttpHeaders, secure: boolean): { readonly host: string; readonly secure: boolean } {
  for (const one of [headers.origin, headers.referer]) {
    if (one === undefined || !URL.canParse(one)) continue;
    const url = new URL(one);
    if (url.hostname !== '') return { host: url.hostname, secure: secure || url.protocol === 'https:' };
  }
  const host = `http://${headers.host ?? 'localhost'}`;
  return { host: URL.canParse(host) ? new URL(host).hostname : 'localhost', secure };
}

/** The default port of gateways; a proxy that adds TLS uses the default port of its scheme. */
const USUAL_PORT = '18789';

/** The WebSocket address of a gateway for a browser. @param secure the request used TLS, at least up to a proxy */
export function webSocketUrl(
  { url: address, bare }: Pick<KnownGateway, 'url' | 'bare'>,
  headers: IncomingHttpHeaders,
  secure: boolean,
): string {
  const url = new URL(address);
  const port = url.port === '' ? '' : `:${url.port}`;
  const browser = browserOf(headers, secure);
  // A gateway on the server's own machine is on another machine for the browser.
  if (isOurs(url.hostname) && !isLoopback(browser.host))
    return `${browser.secure ? 'wss' : 'ws'}://${browser.host}${port}`;
  const path = /^\/sessions(\/|$)/.test(url.pathname) ? '' : url.pathname.replace(/\/+$/, '');
  const near = isLoopback(url.hostname) || url.hostname.endsWith('.local');
  if (bare && !near && browser.secure) return `wss://${url.hostname}${url.port === USUAL_PORT ? '' : port}${path}`;
  const scheme = url.protocol === 'wss:' || (url.protocol === 'https:' && !near) ? 'wss' : 'ws';
  return `${scheme}://${url.hostname}${port}${path}`;
}

const connect = defineRoute({
  method: 'post',
  path: '/api/gateways/connect',
  summary: 'Get what a browser needs to connect to a gateway',
  access: 'viewer',
  rules: { agentKeys: 'never', strict: 'refused', past: 'none', prompts: 'none' },
  limit: 'none',
  shared: 'gateways',
  scope: 'deployment',
  body: contract.gatewayConnectBody,
  refuses: [404],
  responses: { 200: { description: 'Address and token', schema: contract.gatewayConnectResponse } },
  async respond({ body, identity, services, context }) {
    const gateway = await knownGateway(services.commands, body.id);
    const { id, token } = gateway;
    const shown = reaches(identity.role, 'operator') ? (token ?? '') : '';
    const ws_url = webSocketUrl(gateway, context.req.headers, context.secure);
    return { id, ws_url, token: shown, token_set: shown !== '' };
  },
});

export const gatewayRoutes: readonly Route[] = [list, add, change, remove, health, history, connect];
