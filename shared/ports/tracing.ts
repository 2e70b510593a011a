/**
 * The port for traces (https://www.w3.org/TR/trace-context/, `infra/tracing/`). A trace context is a `traceparent`: a
 * request brings it, events record it, and the effects of these events continue it.
 *
 * Without a tracer, work runs unchanged. A caller's `traceparent` is passed on nevertheless.
 */
import { AsyncLocalStorage } from 'node:async_hooks';

export type Attributes = Readonly<Record<string, string | number | boolean>>;

export interface SpanOptions {
  readonly kind?: 'internal' | 'server' | 'client' | 'consumer';
  /** The `traceparent` that the span continues; undefined: it begins a trace. Default: that of the surrounding work. */
  readonly parent?: string | undefined;
  /** Further traces to which it belongs, as `traceparent`s. */
  readonly links?: readonly string[];
  readonly attributes?: Attributes;
}

/** Work that has begun. */
export interface Span {
  /** For the effects of this work. */
  readonly traceparent: string;
  rename(name: string): void;
  set(attributes: Attributes): void;
  /** Call once. @param error why the work failed; undefined: it succeeded */
  end(error?: unknown): void;
}

export interface Tracer {
  start(name: string, options: SpanOptions): Span;
}

/** Version 00 with ids that are not zero. */
const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/** The header of a request or of a stored event, if it is valid. */
export const traceparentOf = (value: unknown): string | undefined =>
  typeof value === 'string' && TRACEPARENT.test(value) ? value : undefined;

/** The ids in a `traceparent`, under their names in log lines. */
export const idsOf = (traceparent: string): { readonly trace_id: string; readonly span_id: string } => ({
  trace_id: traceparent.slice(3, 35),
  span_id: traceparent.slice(36, 52),
});

let tracer: Tracer | undefined;
/** Has no cost until work runs in it. */
const current = new AsyncLocalStorage<string | undefined>();

/** Sets the tracer of the process; undefined: none. */
export function useTracer(used: Tracer | undefined): void {
  tracer = used;
}

/** Undefined: traces are off. */
export const activeTracer = (): Tracer | undefined => tracer;

/** The context of the current work. */
export const currentTraceparent = (): string | undefined => current.getStore();

/** Runs work in a context. */
export const withTraceparent = <T>(traceparent: string | undefined, work: () => T): T => current.run(traceparent, work);

/** Runs work as a span. Without a tracer: in the context of `parent`, if that is given. */
export function traced<T>(name: string, options: SpanOptions, work: (span?: Span) => Promise<T>): Promise<T> {
  if (!tracer) return options.parent === undefined ? work() : current.run(options.parent, work);
  const parent = 'parent' in options ? options.parent : current.getStore();
  const span = tracer.start(name, { ...options, parent });
  return current.run(span.traceparent, async () => {
    try {
      const result = await work(span);
      span.end();
      return result;
    } catch (error) {
      span.end(error);
      throw error;
    }
  });
}

/** Headers for a request to another service that continue the trace of the current work. */
export function traceHeaders(span: Span | undefined): { readonly traceparent?: string } {
  const traceparent = span?.traceparent ?? current.getStore();
  return traceparent === undefined ? {} : { traceparent };
}
