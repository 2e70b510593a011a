/**
 * The egress proxy for URLs of the operator: HTTPS_PROXY, HTTP_PROXY and NO_PROXY, in capitals or small letters, as
 * curl and Go read them. The host itself is reached directly.
 */
import type { Agent } from 'node:http';
import { HttpProxyAgent } from 'http-proxy-agent';
import { HttpsProxyAgent } from 'https-proxy-agent';
import ipaddr from 'ipaddr.js';
import { hostOf, parseNetwork } from '../../shared/addresses.ts';

type Env = Readonly<Record<string, string | undefined>>;

const variable = (env: Env, name: string): string => env[name.toLowerCase()]?.trim() || env[name]?.trim() || '';

/** @param entry of NO_PROXY: `*`, a name with or without its first dot or `*.`, an address, or a network; or with a port */
function excludes(entry: string, host: string, port: string): boolean {
  if (entry === '*') return true;
  const network = parseNetwork(entry.replace(/^\[|\]$/g, ''));
  if (network) {
    if (!ipaddr.isValid(host)) return false;
    const address = ipaddr.process(host);
    return address.kind() === network[0].kind() && address.match(network as never);
  }
  const [, name = entry, only] = /^(.*):(\d+)$/.exec(entry) ?? [];
  if (only !== undefined && only !== port) return false;
  const domain = name.replace(/^\*?\.|^\[|\]$/g, '').toLowerCase();
  return domain !== '' && (host === domain || host.endsWith(`.${domain}`));
}

/** URL of the proxy for a request; undefined: none. */
export function proxyOf(target: URL, env: Env = process.env): string | undefined {
  const isTls = target.protocol === 'https:';
  const host = hostOf(target);
  const proxy = variable(env, isTls ? 'HTTPS_PROXY' : 'HTTP_PROXY');
  const isHere = /^(localhost|.*\.localhost|127\.[\d.]+|::1)$/.test(host);
  if (proxy === '' || isHere) return undefined;
  const port = target.port || (isTls ? '443' : '80');
  const entries = variable(env, 'NO_PROXY').split(/[\s,]+/);
  if (entries.some((entry) => entry !== '' && excludes(entry, host, port))) return undefined;
  return proxy.includes('://') ? proxy : `http://${proxy}`;
}

/** The agent of a request through the proxy; undefined: none. It keeps no connection. */
export function proxyAgentOf(target: URL): Agent | undefined {
  const proxy = proxyOf(target);
  if (proxy === undefined) return undefined;
  return target.protocol === 'https:' ? new HttpsProxyAgent(proxy) : new HttpProxyAgent(proxy);
}
