/** The context of one HTTP request: what is known about the request and its caller. */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Request, Response } from 'express';
import type { Channel, Origin } from '../../shared/events/metadata.ts';
import { DEFAULT_TENANT, DEFAULT_WORKSPACE } from '../../shared/events/metadata.ts';
import { ANONYMOUS, actorOf, type Identity } from '../../shared/identity.ts';
import { currentTraceparent, traceparentOf } from '../../shared/ports/tracing.ts';
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
  readonly ip: string;
  /** The connection comes from a proxy in MC_TRUSTED_PROXIES, whose forwarded addresses and hosts count. */
  readonly trusted: boolean;
  readonly secure: boolean;
  /** Trace context: that of this request's span, otherwise the caller's. */
  readonly traceparent: string | undefined;
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

export function beginContext(req: Request, res: Response, settings: ApiSettings): RequestContext {
  const context: RequestContext = {
    req,
    res,
    id: randomUUID(),
    startedAt: performance.now(),
    ip: clientIp(req, settings.trustedProxies),
    trusted: settings.trustedProxies.includes(peerOf(req)),
    secure: req.headers['x-forwarded-proto'] === 'https' || 'encrypted' in req.socket,
    traceparent: currentTraceparent() ?? traceparentOf(req.headers.traceparent),
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

const plain = (address: string) => address.replace(/^::ffff:/, '').trim();
const peerOf = (req: IncomingMessage) => plain(req.socket.remoteAddress ?? 'unknown');

/**
 * The caller's address. Headers are trusted only on connections from a trusted proxy. Then it is the right-most address
 * in X-Forwarded-For that is not a trusted proxy, else X-Real-IP. Otherwise any caller could choose the address that rate
 * limits and the audit trail see.
 */
export function clientIp(req: IncomingMessage, trustedProxies: readonly string[]): string {
  const peer = peerOf(req);
  if (!trustedProxies.includes(peer)) return peer;
  const forwarded = String(req.headers['x-forwarded-for'] ?? '')
    .split(',')
    .map(plain)
    .filter(Boolean);
  const hop = forwarded.findLast((address) => !trustedProxies.includes(address));
  const real = req.headers['x-real-ip'];
  return (hop ?? (typeof real === 'string' && real !== '' ? plain(real) : peer)).slice(0, 64);
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
