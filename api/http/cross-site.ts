/** Refuses changes that a page of another site makes with the session of its visitor. */
import type { RequestHandler } from 'express';
import { forbidden } from '../../shared/errors.ts';
import { keyOf } from '../auth/identify.ts';
import { tokensOf } from '../auth/sessions.ts';
import type { RequestContext } from './context.ts';
import { isCrossSite, isSafe } from './hosts.ts';
import type { PublicUrl } from './public-url.ts';

const CROSS_SITE =
  'CSRF check failed: the request comes from a page of another site, or its Origin header does not name the host and port of the request; a proxy must pass on the Host header as it is, with the port, or PUBLIC_URL must be set.';

/** @throws AppError 403 */
export function refuseForged(context: RequestContext, settings: PublicUrl): void {
  const keyOnly = keyOf(context) !== undefined && tokensOf(context).length === 0;
  if (isCrossSite(context, settings, keyOnly)) throw forbidden(CROSS_SITE);
}

/** For methods that change something; a GET that does so is checked by its handler. */
export const checkSite =
  (settings: PublicUrl): RequestHandler =>
  (req, _res, next) => {
    if (!isSafe(req.method)) refuseForged(req.context, settings);
    next();
  };
