/** Refuses changes that a page of another site makes with the session of its visitor. */
import type { RequestHandler } from 'express';
import { forbidden } from '../../shared/errors.ts';
import { keyOf } from '../auth/identify.ts';
import { tokensOf } from '../auth/sessions.ts';
import type { RequestContext } from './context.ts';
import { isCrossSite, isSafe } from './hosts.ts';

const CROSS_SITE =
  'CSRF check failed: the request comes from a page of another site, or its Origin header does not name the host and port of the request; a proxy must pass on the Host header as it is, with the port.';

/** @throws AppError 403 */
export function refuseForged(context: RequestContext): void {
  const keyOnly = keyOf(context) !== undefined && tokensOf(context).length === 0;
  if (isCrossSite(context, keyOnly)) throw forbidden(CROSS_SITE);
}

/** For methods that change something; a GET that does so is checked by its handler. */
export const checkSite: RequestHandler = (req, _res, next) => {
  if (!isSafe(req.method)) refuseForged(req.context);
  next();
};
