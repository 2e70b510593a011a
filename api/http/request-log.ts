/** One line in the log and one measurement for each request, when its response has been sent or broken off. */
import type { RequestHandler } from 'express';
import type { Logger } from 'pino';
import { Histogram, type Registry } from 'prom-client';
import { idsOf } from '../../shared/ports/tracing.ts';
import type { RequestContext } from './context.ts';
import { pathOf } from './tracing.ts';

export function logRequests({ log, metrics }: { readonly log: Logger; readonly metrics: Registry }): RequestHandler {
  // No field of these lines can hold a secret, and searching for secrets took longer than the rest of a line.
  const lines = log.child({}, { redact: [] });
  const durations = new Histogram({
    name: 'signalbox_http_request_seconds',
    help: 'Duration of HTTP requests by route, method and status',
    labelNames: ['method', 'route', 'status'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers: [metrics],
  });

  function finished({ req, res, route, startedAt, id, ip, identity, traceparent }: RequestContext): void {
    const ms = performance.now() - startedAt;
    durations.observe({ method: req.method, route, status: String(res.statusCode) }, ms / 1_000);
    lines.info(
      {
        requestId: id,
        method: req.method,
        url: pathOf(req.originalUrl),
        route,
        status: res.statusCode,
        ms: Math.round(ms * 10) / 10,
        ip,
        caller: identity?.username,
        ...(traceparent !== undefined && idsOf(traceparent)),
      },
      'request',
    );
  }

  return ({ context }, res, next) => {
    res.once('close', () => finished(context));
    // A write after the end emits an error, for example when an event arrives while streams are being closed.
    res.on('error', (error) => log.debug({ err: error, requestId: context.id }, 'could not write a response'));
    next();
  };
}
