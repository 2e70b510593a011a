/** Each request as a span. */
import type { RequestHandler } from 'express';
import { activeTracer, traceparentOf, withTraceparent } from '../../shared/ports/tracing.ts';

/** The path without the query, which may contain secrets. */
export const pathOf = (url: string): string => url.split('?', 1)[0] ?? '';

/** The first middleware: what follows runs within the span. */
export const traceRequests: RequestHandler = (req, res, next) => {
  const tracer = activeTracer();
  if (!tracer) {
    next();
    return;
  }
  const { method } = req;
  const span = tracer.start(method, {
    kind: 'server',
    parent: traceparentOf(req.headers.traceparent),
    attributes: { 'http.request.method': method, 'url.path': pathOf(req.url), 'url.scheme': 'http' },
  });
  res.once('close', () => {
    const { route, id } = req.context;
    span.rename(`${method} ${route}`);
    span.set({ 'http.route': route, 'http.response.status_code': res.statusCode, 'signalbox.request_id': id });
    span.end(res.statusCode >= 500 ? new Error(`status ${res.statusCode}`) : undefined);
  });
  withTraceparent(span.traceparent, () => next());
};
