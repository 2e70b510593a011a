/**
 * IP addresses: their one spelling, networks of them, and the allowed addresses of requests on behalf of users: public
 * ones, and those that the operator has allowed.
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
  /** What its addresses are, after "does not resolve to". */
  readonly allowed: string;
  /** Why no request to this URL is allowed; undefined if it is, as far as can be known without a lookup. */
  fault(url: string): string | undefined;
}

/** An IPv4 address in IPv6 form (`::ffff:10.0.0.5`): this many bits come before it. */
const MAPPED_BITS = 96;

/** A network in CIDR notation, or a single address; undefined when it is neither. */
export function parseNetwork(text: string): Network | undefined {
  const [host = '', length] = text.split('/');
  if (isIP(host) === 0 || (length !== undefined && !ipaddr.isValidCIDR(text))) return undefined;
  const written = ipaddr.parse(host);
  const bits = length === undefined ? (written.kind() === 'ipv4' ? 32 : 128) : Number(length);
  const address = ipaddr.process(host);
  if (address.kind() === written.kind()) return [address, bits];
  return bits < MAPPED_BITS ? [written, bits] : [address, bits - MAPPED_BITS];
}

/** The address that is really reached: an IPv4 address may be written as an IPv6 one. */
function addressOf(text: string): Address | undefined {
  return isIP(text) === 0 ? undefined : ipaddr.process(text.replace(/%.*$/, ''));
}

/**
 * The one spelling of an address (RFC 5952; IPv4 as such), so that equal addresses are equal texts. Gateways add a port
 * (`203.0.113.8:4711`, `[2001:db8::1]:4711`), and systems a zone (`fe80::1%eth0`): both are left out.
 *
 * @returns undefined when it is no address
 */
export function plainAddress(text: string): string | undefined {
  const [, bracketed, dotted] = /^\[([^\]]*)\](?::\d+)?$|^([\d.]+):\d+$/.exec(text.trim()) ?? [];
  return addressOf(bracketed ?? dotted ?? text.trim())?.toString();
}

/** Whether an address is in one of the networks. */
export type Networks = (address: string) => boolean;

const contains = ([network, bits]: Network, address: Address): boolean =>
  network.kind() === address.kind() && address.match(network as never, bits);

/** @param texts networks and addresses, as `parseNetwork` reads them */
export function networksOf(texts: readonly string[]): Networks {
  const networks = texts.map(parseNetwork).filter((network) => network !== undefined);
  return (text) => {
    const address = networks.length === 0 ? undefined : addressOf(text);
    return address !== undefined && networks.some((network) => contains(network, address));
  };
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
  const isAllowed = networksOf(allowed);
  const allows = (text: string): boolean => {
    const address = addressOf(text);
    return address !== undefined && !isMetadata(text) && (isPublic(address) || isAllowed(text));
  };
  return {
    allowed: 'a public address',
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
      if (local && allowed.length === 0) return `must not point to ${host}, which is not a public name`;
      return undefined;
    },
  };
}

/**
 * For addresses that admins configure, such as those of gateways: private networks and this machine are allowed, but no
 * link-local address, where clouds serve credentials and no service of an operator is reached.
 */
export const ADMINS_ADDRESSES: AddressRule = {
  allowed: 'an address that gateways may have',
  allows(text) {
    const address = addressOf(text);
    return address !== undefined && address.range() !== 'linkLocal' && !isMetadata(text);
  },
  fault(text) {
    const host = URL.canParse(text) ? hostOf(new URL(text)) : '';
    if (isMetadata(host)) return `must not point to ${host}, which serves the metadata of a machine in a cloud`;
    return isIP(host) === 0 || this.allows(host)
      ? undefined
      : `must not point to ${host}, which is a link-local address`;
  },
};

/** The host of a URL as it is looked up: without brackets and without the dot of a fully qualified name. */
export const hostOf = (url: URL): string => url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
