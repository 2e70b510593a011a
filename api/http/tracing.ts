/** Each request as a span. */
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { activeTracer, traceparentOf, withTraceparent } from '../../shared/ports/tracing.ts';
import { contextOf } from './context.ts';

/** The path without the query, which may contain secrets. */
const pathOf = (url: string | undefined): string => (url ?? '').split('?', 1)[0] ?? '';

/** Without a tracer, requests go straight to the handler. */
export const asSpans =
  (handle: RequestListener): RequestListener =>
  (req: IncomingMessage, res: ServerResponse) => {
    const tracer = activeTracer();
    if (!tracer) {
      handle(req, res as never);
      return;
    }
    const method = req.method ?? '';
    const span = tracer.start(method, {
      kind: 'server',
      parent: traceparentOf(req.headers.traceparent),
      attributes: { 'http.request.method': method, 'url.path': pathOf(req.url), 'url.scheme': 'http' },
    });
    res.once('close', () => {
      const { route, id } = contextOf(req);
      span.rename(`${method} ${route}`);
      span.set({ 'http.route': route, 'http.response.status_code': res.statusCode, 'signalbox.request_id': id });
      span.end(res.statusCode >= 500 ? new Error(`status ${res.statusCode}`) : undefined);
    });
    withTraceparent(span.traceparent, () => handle(req, res as never));
  };
