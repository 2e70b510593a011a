/** Makes each request to another service a span, and sends its context along. */
import { activeTracer, traced, traceHeaders } from '../../shared/ports/tracing.ts';

/** @param send receives the header that continues the trace */
export async function tracedRequest<T extends { readonly status: number }>(
  method: string,
  url: string,
  send: (headers: { readonly traceparent?: string }) => Promise<T>,
): Promise<T> {
  if (!activeTracer()) return send(traceHeaders(undefined));
  // Paths and queries of users' URLs may contain secrets.
  const { hostname, port, protocol } = new URL(url);
  const attributes = {
    'http.request.method': method,
    'server.address': hostname,
    'server.port': Number(port) || (protocol === 'https:' ? 443 : 80),
  };
  return traced(method, { kind: 'client', attributes }, async (span) => {
    const result = await send(traceHeaders(span));
    span?.set({ 'http.response.status_code': result.status });
    return result;
  });
}
