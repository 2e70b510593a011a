/**
 * Allowed addresses of requests on behalf of users: public ones, and those that the operator has allowed.
 *
 * A name is checked when it is configured, so that a mistake is reported at once; but the address that it resolves to
 * at each connection is what counts (`infra/outgoing`).
 */
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

type Address = ipaddr.IPv4 | ipaddr.IPv6;
type Network = [Address, number];

/** Names that only exist within a host or a network. */
const LOCAL_NAMES = ['localhost'];
const LOCAL_ENDINGS = ['.localhost', '.local', '.internal'];

/**
 * Addresses at which clouds give a machine its own credentials and configuration. Refused even within an allowed
 * network, because no receiver is there. 168.63.129.16 (Azure) is a public address; 169.254.170.2 and .23 (AWS) serve
 * containers.
 */
const METADATA_NAMES = ['metadata', 'metadata.goog', 'metadata.google.internal', 'metadata.internal', 'instance-data'];
const METADATA_ADDRESSES = new Set(
  [
    ...['169.254.169.254', '169.254.170.2', '169.254.170.23', '168.63.129.16', '100.100.100.200', '192.0.0.192'],
    ...['fd00:ec2::254', 'fd00:ec2::23', 'fd20:ce::254'],
  ].map((address) => ipaddr.parse(address).toNormalizedString()),
);

export interface AddressRule {
  /** @param address an IP address without brackets */
  allows(address: string): boolean;
  /** Why no request to this URL is allowed; undefined if it is, as far as can be known without a lookup. */
  fault(url: string): string | undefined;
}

/** A network in CIDR notation, or a single address; undefined when it is neither. */
export function parseNetwork(text: string): Network | undefined {
  if (ipaddr.isValidCIDR(text)) return ipaddr.parseCIDR(text);
  if (isIP(text) === 0) return undefined;
  const address = ipaddr.parse(text);
  return [address, address.kind() === 'ipv4' ? 32 : 128];
}

/** The address that is really reached: an IPv4 address may be written as an IPv6 one. */
function addressOf(text: string): Address | undefined {
  return isIP(text) === 0 ? undefined : ipaddr.process(text);
}

/** @param host a name, or an IP address without brackets */
function isMetadata(host: string): boolean {
  const address = addressOf(host);
  return address ? METADATA_ADDRESSES.has(address.toNormalizedString()) : METADATA_NAMES.includes(host);
}

const isPublic = (address: Address): boolean =>
  address.range() === 'unicast' &&
  // Global unicast, 2000::/3; the rest of IPv6 is not assigned.
  (address.kind() === 'ipv4' || ((address as ipaddr.IPv6).parts[0] ?? 0) >> 13 === 1);

/** @param allowed networks that are allowed although they are not public, as returned by `parseNetwork` */
export function createAddressRule(allowed: readonly string[]): AddressRule {
  const networks = allowed.map(parseNetwork).filter((network) => network !== undefined);
  const allows = (text: string): boolean => {
    const address = addressOf(text);
    if (!address || isMetadata(text)) return false;
    return (
      isPublic(address) ||
      networks.some(([network, bits]) => network.kind() === address.kind() && address.match(network as never, bits))
    );
  };
  return {
    allows,
    fault(text) {
      const url = URL.canParse(text) ? new URL(text) : undefined;
      if (!url) return 'must be an absolute URL, such as https://example.org/hook';
      if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'must start with https:// or http://';
      const host = hostOf(url);
      if (isMetadata(host)) return `must not point to ${host}, which serves the metadata of a machine in a cloud`;
      if (isIP(host) !== 0) {
        return allows(host) ? undefined : `must not point to ${host}, which is not a public address`;
      }
      // With allowed networks, such a name may resolve to an address in one of them.
      const local = LOCAL_NAMES.includes(host) || LOCAL_ENDINGS.some((ending) => host.endsWith(ending));
      if (local && networks.length === 0) return `must not point to ${host}, which is not a public name`;
      return undefined;
    },
  };
}

/** The host of a URL as it is looked up: without brackets and without the dot of a fully qualified name. */
export const hostOf = (url: URL): string => url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
