/** Each request as a span. */
import type { RequestHandler } from 'express';
import { activeTracer, withTraceparent } from '../../shared/ports/tracing.ts';
import type { Authorization } from './authorization.ts';

/** The path without the query, which may contain secrets. */
export const pathOf = (url: string): string => url.split('?', 1)[0] ?? '';

/**
 * What follows runs within the span. A caller's `traceparent` says whether its trace is sampled, so only that of a known
 * caller is continued; the span of another one begins a trace, which the configured sampler decides about, with a link.
 */
export const traceRequests =
  (authorization: Pick<Authorization, 'isKnown'>): RequestHandler =>
  async (req, res, next) => {
    const tracer = activeTracer();
    if (!tracer) {
      next();
      return;
    }
    const { method, context } = req;
    const sent = context.traceparent;
    const isContinued = sent !== undefined && (await authorization.isKnown(context));
    const span = tracer.start(method, {
      kind: 'server',
      parent: isContinued ? sent : undefined,
      links: sent === undefined || isContinued ? [] : [sent],
      attributes: { 'http.request.method': method, 'url.path': pathOf(req.url), 'url.scheme': 'http' },
    });
    context.traceparent = span.traceparent;
    res.once('close', () => {
      const { route, id } = context;
      span.rename(`${method} ${route}`);
      span.set({ 'http.route': route, 'http.response.status_code': res.statusCode, 'signalbox.request_id': id });
      span.end(res.statusCode >= 500 ? new Error(`status ${res.statusCode}`) : undefined);
    });
    withTraceparent(span.traceparent, () => next());
  };
