/**
 * Traces over OTLP, with the packages of OpenTelemetry, which are loaded only when an endpoint is set.
 *
 * Spans wait in a bounded queue (OTEL_BSP_MAX_QUEUE_SIZE) and are sent in the background. While no collector responds,
 * further spans are dropped: nothing waits for it.
 */
import type { Agent } from 'node:http';
import { hostname } from 'node:os';
import * as api from '@opentelemetry/api';
import { OTLPTraceExporter as JsonExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { OTLPTraceExporter as ProtobufExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { type Attributes, type Span, type Tracer, useTracer } from '../../shared/ports/tracing.ts';
import { maskedAddresses } from '../../shared/secret-texts.ts';
import { within } from '../../shared/waiting.ts';
import type { Logger } from '../logging.ts';
import { VERSION } from '../version.ts';
import type { TracingSettings } from './settings.ts';

/** Shortest interval between two log lines about failed exports, milliseconds. */
const REPEAT_LOG_MS = 30_000;
/** Maximum number of characters of an error's message in a span. */
const MAX_MESSAGE = 300;

export interface Tracing {
  /** Sends the waiting spans within a time limit; then traces are off. Never throws. */
  close(timeoutMs: number): Promise<void>;
}

/** @param agentOf the agent of requests to a URL, if they go through a proxy */
export function startTracing(
  { protocol, endpoint }: TracingSettings,
  log: Logger,
  agentOf: (target: URL) => Agent | undefined,
): Tracing {
  let complainedAt = 0;
  const complain = (message: string, ...rest: unknown[]) => {
    if (Date.now() - complainedAt < REPEAT_LOG_MS) return;
    complainedAt = Date.now();
    log.warn({ reason: rest.map(String).join(' ') || undefined }, `traces: ${message}`);
  };
  const silent = () => undefined;
  api.diag.setLogger(
    { error: complain, warn: complain, info: silent, debug: silent, verbose: silent },
    { logLevel: api.DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  const resource = resourceFromAttributes({
    'service.name': 'signalbox',
    'service.version': VERSION,
    'service.instance.id': `${hostname()}:${process.pid}`,
    // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES take precedence.
  }).merge(detectResources({ detectors: [envDetector] }));
  const agent = agentOf(endpoint);
  const sending = agent && { httpAgentOptions: () => agent };
  const exporter = protocol === 'http/json' ? new JsonExporter(sending) : new ProtobufExporter(sending);
  const provider = new BasicTracerProvider({ resource, spanProcessors: [new BatchSpanProcessor(exporter)] });
  useTracer(tracerOf(provider.getTracer('signalbox', VERSION)));
  return {
    async close(timeoutMs) {
      useTracer(undefined);
      await within(Math.max(timeoutMs, 1), provider.shutdown(), 'the collector').catch((error: unknown) =>
        complain('the last spans were not sent', error),
      );
    },
  };
}

const KINDS = {
  internal: api.SpanKind.INTERNAL,
  server: api.SpanKind.SERVER,
  client: api.SpanKind.CLIENT,
  consumer: api.SpanKind.CONSUMER,
};

/** The port, implemented with the tracer of OpenTelemetry. */
function tracerOf(tracer: api.Tracer): Tracer {
  const contextOf = (traceparent: string) => ({
    traceId: traceparent.slice(3, 35),
    spanId: traceparent.slice(36, 52),
    traceFlags: Number.parseInt(traceparent.slice(53, 55), 16),
    isRemote: true,
  });
  return {
    start(name, { kind = 'internal', parent, links = [], attributes = {} }): Span {
      const context =
        parent === undefined ? api.ROOT_CONTEXT : api.trace.setSpanContext(api.ROOT_CONTEXT, contextOf(parent));
      const options = {
        kind: KINDS[kind],
        attributes,
        links: links.map((one) => ({ context: contextOf(one) })),
      };
      const span = tracer.startSpan(name, options, context);
      const { traceId, spanId, traceFlags } = span.spanContext();
      return {
        traceparent: `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`,
        rename: (other) => span.updateName(other),
        set: (more: Attributes) => span.setAttributes(more),
        end(error) {
          if (error !== undefined) {
            const message = maskedAddresses(error instanceof Error ? error.message : String(error)).slice(
              0,
              MAX_MESSAGE,
            );
            span.setStatus({ code: api.SpanStatusCode.ERROR, message });
            span.setAttribute('error.type', error instanceof Error ? error.name : 'error');
          }
          span.end();
        },
      };
    },
  };
}
