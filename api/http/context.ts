/** The context of one HTTP request: what is known about the request and its caller. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Request, Response } from 'express';
import { type Networks, plainAddress } from '../../shared/addresses.ts';
import type { Channel, Origin } from '../../shared/events/metadata.ts';
import { DEFAULT_TENANT, DEFAULT_WORKSPACE } from '../../shared/events/metadata.ts';
import { ANONYMOUS, actorOf, type Identity } from '../../shared/identity.ts';
import { newId } from '../../shared/ids.ts';
import { traceparentOf } from '../../shared/ports/tracing.ts';
import type { HeldCredential } from '../auth/known.ts';
import type { ApiSettings } from '../settings.ts';

declare global {
  namespace Express {
    interface Request {
      /** Set by the first middleware, for every handler. */
      context: RequestContext;
    }
  }
}

export interface RequestContext {
  readonly req: Request;
  readonly res: Response;
  /** UUID, sent as X-Request-Id and recorded in every event that the request causes. */
  readonly id: string;
  /** `performance.now()` at arrival, milliseconds. */
  readonly startedAt: number;
  /** Address of the client, in the spelling of `plainAddress`. */
  readonly ip: string;
  /** Address of the connection. */
  readonly peer: string;
  /** The connection comes from a proxy in MC_TRUSTED_PROXIES, whose forwarded addresses and hosts count. */
  readonly trusted: boolean;
  readonly secure: boolean;
  /** Trace context: that of this request's span, otherwise the caller's. */
  traceparent: string | undefined;
  /** Set for a call within a request (`inside.ts`). */
  readonly via?: Channel;
  /** The client of this response is cut off after this long without progress, milliseconds. */
  readonly stallMs: number;
  /** Pattern of the matched route, for metrics and logs. */
  route: string;
  /** Undefined until looked up; null without a valid credential. */
  identity: Identity | null | undefined;
  /** The credential that gave `identity`. */
  credential: HeldCredential | undefined;
  /** The route whose checks the caller has passed (`authorization.ts`). */
  authorized: object | undefined;
}

/** @param isProxy whether an address is in MC_TRUSTED_PROXIES */
export function beginContext(
  req: Request,
  res: Response,
  settings: Pick<ApiSettings, 'responseStallMs'>,
  isProxy: Networks,
): RequestContext {
  const peer = peerOf(req);
  const trusted = isProxy(peer);
  const context: RequestContext = {
    req,
    res,
    id: newId(),
    startedAt: performance.now(),
    ip: trusted ? forwardedIp(req, peer, isProxy) : peer,
    peer,
    trusted,
    secure: 'encrypted' in req.socket || forwardedProto(req.headers) === 'https',
    traceparent: traceparentOf(req.headers.traceparent),
    stallMs: settings.responseStallMs,
    route: 'unmatched',
    identity: undefined,
    credential: undefined,
    authorized: undefined,
  };
  req.context = context;
  return context;
}

/** The context of a call within a request: the same caller, address and id. */
export function innerContext(outer: RequestContext, req: Request, res: Response, via: Channel): RequestContext {
  const context: RequestContext = { ...outer, req, res, via, startedAt: performance.now(), authorized: undefined };
  req.context = context;
  return context;
}

/** Without an address, as on a Unix socket, all connections are one peer. */
const peerOf = (req: IncomingMessage) => plainAddress(req.socket.remoteAddress ?? '') ?? 'unknown';

/**
 * The client's address on a connection from a trusted proxy: the right-most one in X-Forwarded-For that is not a trusted
 * proxy, else X-Real-IP. Text that is no address counts as the peer; otherwise a client could choose what rate limits and
 * the audit trail see.
 */
function forwardedIp({ headers }: IncomingMessage, peer: string, isProxy: Networks): string {
  const hops = String(headers['x-forwarded-for'] ?? '').split(',');
  for (const hop of hops.filter((text) => text.trim() !== '').reverse()) {
    const address = plainAddress(hop);
    if (address === undefined) return peer;
    if (!isProxy(address)) return address;
  }
  return plainAddress(String(headers['x-real-ip'] ?? '')) ?? peer;
}

/** The scheme that the client used, in lower case, as the first proxy on the way names it; undefined: none does. */
function forwardedProto({ 'x-forwarded-proto': proto, forwarded = '' }: IncomingHttpHeaders): string | undefined {
  const [first = ''] = String(proto ?? '').split(',', 1);
  if (first.trim() !== '') return first.trim().toLowerCase();
  return /^[^,]*?(?:^|;)\s*proto="?([a-z]+)/i.exec(forwarded)?.[1]?.toLowerCase();
}

/**
 * The origin recorded in the events that this request causes.
 *
 * @param agent id of the agent that a caller without a key of its own speaks for
 */
export function originOf(context: RequestContext, agent?: number): Origin {
  const { identity } = context;
  return {
    tenant: identity?.tenant ?? DEFAULT_TENANT,
    workspace: identity?.workspace ?? DEFAULT_WORKSPACE,
    actor: identity ? actorOf(identity) : ANONYMOUS,
    ...(agent !== undefined && { agent }),
    ...(context.via && { via: context.via }),
    ip: context.ip,
    userAgent: context.req.headers['user-agent']?.slice(0, 512) ?? null,
    requestId: context.id,
    correlationId: context.id,
    causationId: context.id,
    ...(context.traceparent !== undefined && { traceparent: context.traceparent }),
  };
}
