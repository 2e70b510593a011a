/** Traces: a real service process that sends to a receiver of OTLP over HTTP. */
import { rm } from 'node:fs/promises';
import type { IncomingHttpHeaders } from 'node:http';
import { expect } from 'chai';
import { createLogger, traceIds } from '../../../infra/logging.ts';
import { tracingSettingsOf } from '../../../infra/tracing/settings.ts';
import { ConfigError } from '../../../shared/errors.ts';
import { traceparentOf, withTraceparent } from '../../../shared/ports/tracing.ts';
import { closing, fixture } from '../../support/fixture.ts';
import { listen } from '../../support/listen.ts';
import { startReceiver } from '../../support/receiver.ts';
import { startRunner } from '../../support/runner.ts';
import { call, startTestService } from '../../support/service.ts';
import { KEY, type ServiceProcess, startProcess } from '../../support/service-process.ts';
import { dataDirectory } from '../../support/template.ts';
import { until } from '../../support/until.ts';

interface Attribute {
  readonly key: string;
  readonly value: { readonly stringValue?: string; readonly intValue?: number | string };
}
interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly attributes: readonly Attribute[];
  readonly status: { readonly code?: number };
}
interface Sent {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** A collector: it keeps what it is sent. Spans are decoded from OTLP/JSON. */
async function startCollector() {
  const sent: Sent[] = [];
  const server = await listen((req, res) => {
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => {
      sent.push({ path: req.url ?? '', headers: req.headers, body: Buffer.concat(chunks) });
      res
        .writeHead(200, { 'content-type': req.headers['content-type'] })
        .end(req.headers['content-type'] === 'application/json' ? '{}' : '');
    });
  });
  const resources = () =>
    sent.flatMap(
      ({ body }) =>
        (
          JSON.parse(body.toString()) as {
            resourceSpans: readonly {
              readonly resource: { readonly attributes: readonly Attribute[] };
              readonly scopeSpans: readonly { readonly spans: readonly Span[] }[];
            }[];
          }
        ).resourceSpans,
    );
  return {
    url: server.url,
    sent,
    resources,
    spans: () => resources().flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans)),
    close: server.close,
  };
}

const attribute = ({ attributes }: { readonly attributes: readonly Attribute[] }, name: string) => {
  const value = attributes.find(({ key }) => key === name)?.value;
  return value?.stringValue ?? value?.intValue;
};

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const CALLER = '00f067aa0ba902b7';
const traceparent = `00-${TRACE}-${CALLER}-01`;
const headers = { 'x-api-key': KEY };

describe('traces', function () {
  this.timeout(300_000);
  const collector = fixture(startCollector);
  const webhook = fixture(startReceiver);
  const runner = fixture(startRunner);
  const directory = fixture(async () => {
    const path = await dataDirectory();
    return { path, remove: () => rm(path, { recursive: true, force: true }) };
  });
  let service: ServiceProcess | undefined;
  fixture(() => ({ close: () => service?.stop('SIGKILL') }));

  const start = async (env: Record<string, string>) => {
    service = await startProcess(directory.path, {
      WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8',
      RUNNER_URL: runner.url,
      ...env,
    });
    return service;
  };
  const stop = async () => {
    await service?.stop();
    service = undefined;
  };

  const addWebhook = async (base: { readonly url: string }) => {
    const hook = { name: 'all', url: `${webhook.url}/hook`, events: ['*'] };
    expect((await call(base, 'POST', '/api/webhooks', hook, headers)).status).to.be.below(300);
  };

  it('are stored with the event and continued by its webhooks even if tracing is off', async () => {
    await using base = closing(await startTestService({ API_KEY: KEY, WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8' }));
    await addWebhook(base);
    await call(base, 'POST', '/api/agents', { name: 'ann', role: 'researcher' }, { ...headers, traceparent });
    const of = (type: string) => call(base, 'GET', `/api/history/events?type=${type}`, undefined, headers);
    const [event] = (await of('AgentRegistered')).body.events;
    expect(event.meta.traceparent).to.equal(traceparent);
    await until('it is delivered', () => webhook.of('agent.created').length > 0 || webhook.requests.length > 0);
    expect(webhook.requests.map((one) => one.headers.traceparent)).to.include(traceparent);
    await call(
      base,
      'POST',
      '/api/agents',
      { name: 'bob', role: 'researcher' },
      { ...headers, traceparent: 'nonsense' },
    );
    expect((await of('AgentRegistered')).body.events.at(-1).meta).to.not.have.property('traceparent');
    expect(collector.sent).to.deep.equal([]);
  });

  it('cover a request as one tree in the caller’s trace: appends, projections, jobs and calls', async () => {
    const base = await start({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_EXPORTER_OTLP_HEADERS: 'x-tenant=ours',
      OTEL_SERVICE_NAME: 'boxes',
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment=test',
      OTEL_BSP_SCHEDULE_DELAY: '100',
    });
    webhook.requests.splice(0);
    await addWebhook(base);
    const made = async (path: string, body: object) =>
      (await call(base, 'POST', path, body, headers)).body as Readonly<Record<string, { readonly id: number }>>;
    const { template } = await made('/api/workflows', { name: 'survey', task_prompt: 'Survey.' });
    const step = { template_id: template?.id };
    const steps = [step, step];
    const { pipeline } = await made('/api/pipelines', { name: 'surveys', steps });
    // A batch continues the trace of its first event: the pipeline's own event is applied before the run begins.
    expect((await call(base, 'GET', '/api/pipelines', undefined, headers)).body.pipelines).to.have.length(1);
    const run = { action: 'start', pipeline_id: pipeline?.id };
    const started = await call(base, 'POST', '/api/pipelines/run', run, { ...headers, traceparent });
    expect(started.status, JSON.stringify(started.body)).to.be.within(200, 201);
    const mine = () => collector.spans().filter(({ traceId }) => traceId === TRACE);
    const named = (name: string | RegExp) =>
      mine().filter((span) => (typeof name === 'string' ? span.name === name : name.test(span.name)));
    const below = (parent: Span | undefined) => mine().filter(({ parentSpanId }) => parentSpanId === parent?.spanId);
    const requested = ['append', 'project pipelines', 'job pipeline-step'];
    const isSent = () => {
      const [request] = named('POST /api/pipelines/run');
      const [job] = named('job pipeline-step');
      const children = new Set(below(request).map(({ name }) => name));
      const delivered = named(/^webhook /).some((one) => below(one).length > 0);
      return (
        delivered && requested.every((one) => children.has(one)) && below(job).some(({ name }) => name === 'append')
      );
    };
    await until('all spans are sent', isSent, 60_000);

    const [request] = named('POST /api/pipelines/run');
    expect(request?.parentSpanId).to.equal(CALLER);
    expect(attribute(request as Span, 'http.response.status_code')).to.equal(started.status);
    expect(attribute(request as Span, 'signalbox.request_id')).to.equal(started.headers.get('x-request-id'));

    const [job] = named('job pipeline-step');
    const [toRunner] = below(job).filter(({ kind }) => kind === 3);
    expect(attribute(toRunner as Span, 'server.port')).to.equal(Number(new URL(runner.url).port));
    expect(runner.requests[0]?.headers.traceparent).to.equal(`00-${TRACE}-${toRunner?.spanId}-01`);

    const deliveries = named(/^webhook /);
    expect(deliveries.some(({ parentSpanId }) => parentSpanId === request?.spanId)).to.equal(true);
    const posts = deliveries.flatMap(below).map(({ spanId }) => `00-${TRACE}-${spanId}-01`);
    const received = webhook.requests.map((one) => one.headers.traceparent);
    expect(received).to.include.members(posts);

    const { body } = await call(base, 'GET', '/api/history/events?type=PipelineRunStarted', undefined, headers);
    const event = body.events.at(-1);
    expect(event.meta.traceparent).to.equal(`00-${TRACE}-${request?.spanId}-01`);
    const causes = await call(base, 'GET', `/api/history/causes/${event.id}`, undefined, headers);
    expect(causes.body.event.meta.traceparent).to.equal(event.meta.traceparent);

    expect(collector.sent[0]).to.include({ path: '/v1/traces' });
    expect(collector.sent[0]?.headers).to.include({ 'x-tenant': 'ours', 'content-type': 'application/json' });
    const [resource] = collector.resources();
    expect(resource?.resource && attribute(resource.resource, 'service.name')).to.equal('boxes');
    expect(resource?.resource && attribute(resource.resource, 'deployment.environment')).to.equal('test');
  });

  it('start with the request if it has none, and are not sampled if the caller does not sample', async () => {
    const base = service as ServiceProcess;
    const quiet = `00-${'ab'.repeat(16)}-${CALLER}-00`;
    await call(base, 'POST', '/api/agents', { name: 'cyd', role: 'researcher' }, { ...headers, traceparent: quiet });
    await call(base, 'POST', '/api/agents', { name: 'dan', role: 'researcher' }, headers);
    const { body } = await call(base, 'GET', '/api/history/events?type=AgentRegistered', undefined, headers);
    const [cyd, dan] = body.events.slice(-2).map(({ meta }: { meta: { traceparent: string } }) => meta.traceparent);
    expect(cyd).to.match(new RegExp(`^00-${'ab'.repeat(16)}-[0-9a-f]{16}-00$`));
    expect(dan).to.match(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
    // An anonymous caller decides nothing: its trace id and its flag are not taken over.
    const anonymous = `00-${'cd'.repeat(16)}-${CALLER}-00`;
    const health = await call(base, 'GET', '/api/health', undefined, { traceparent: anonymous });
    const refused = await call(base, 'GET', '/api/agents', undefined, { traceparent: anonymous, 'x-api-key': 'wrong' });
    expect([health.status, refused.status]).to.deep.equal([200, 401]);
    await stop();
    const ids = [health, refused].map((reply) => reply.headers.get('x-request-id'));
    const theirs = collector.spans().filter((span) => ids.includes(String(attribute(span, 'signalbox.request_id'))));
    expect(theirs).to.have.length(2);
    expect(theirs.map(({ traceId }) => traceId)).not.to.include('cd'.repeat(16));
    // What waited is sent at shutdown.
    const traces = new Set(collector.spans().map(({ traceId }) => traceId));
    expect(traces.has(dan.slice(3, 35))).to.equal(true);
    expect(traces.has('ab'.repeat(16))).to.equal(false);
  });

  it('use protobuf by default, go through the egress proxy, and delay nothing once that is gone', async () => {
    await using proxy = closing(await startCollector());
    const base = await start({
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector.example:4318',
      OTEL_BSP_SCHEDULE_DELAY: '50',
      OTEL_BSP_MAX_QUEUE_SIZE: '64',
      OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '16',
      HTTP_PROXY: proxy.url,
      LOG_LEVEL: 'silent',
    });
    await call(base, 'GET', '/api/agents', undefined, headers);
    await until('spans reach the proxy', () => proxy.sent.length > 0);
    expect(proxy.sent[0]?.path).to.equal('http://collector.example:4318/v1/traces');
    expect(proxy.sent[0]?.headers['content-type']).to.equal('application/x-protobuf');
    const bytes = Buffer.concat(proxy.sent.map(({ body }) => body)).toString('latin1');
    expect(bytes).to.include('service.name').and.include('GET /');

    await proxy.close();
    const statuses = await Promise.all(
      Array.from({ length: 200 }, async () => (await call(base, 'GET', '/api/agents', undefined, headers)).status),
    );
    expect(new Set(statuses)).to.deep.equal(new Set([200]));
    const exit = new Promise<number | null>((resolve) => base.child.once('exit', resolve));
    // In time, although the last spans cannot be sent.
    await stop();
    expect(await exit).to.equal(0);
  });
});

describe('trace settings', () => {
  const OTEL_EXPORTER_OTLP_ENDPOINT = 'http://collector:4318';
  it('turn traces off without an endpoint, if disabled, and with the exporter none', () => {
    expect(tracingSettingsOf({})).to.equal(undefined);
    expect(tracingSettingsOf({ OTEL_EXPORTER_OTLP_ENDPOINT: ' ' })).to.equal(undefined);
    expect(tracingSettingsOf({ OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_SDK_DISABLED: 'true' })).to.equal(undefined);
    expect(tracingSettingsOf({ OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_TRACES_EXPORTER: 'none' })).to.equal(undefined);
  });
  it('prefer the variables of traces to those of all signals', () => {
    expect(tracingSettingsOf({ OTEL_EXPORTER_OTLP_ENDPOINT })).to.deep.equal({
      protocol: 'http/protobuf',
      endpoint: new URL(OTEL_EXPORTER_OTLP_ENDPOINT),
    });
    const both = { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc', OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json' };
    expect(tracingSettingsOf({ OTEL_EXPORTER_OTLP_ENDPOINT, ...both })).to.have.property('protocol', 'http/json');
  });
  it('report an invalid value with the name of its variable', () => {
    const bad = {
      OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318',
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/xml',
      OTEL_TRACES_SAMPLER: 'sometimes',
      OTEL_TRACES_EXPORTER: 'zipkin',
    };
    const warned: string[] = [];
    const grpc = { OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' };
    expect(tracingSettingsOf(grpc, (message) => warned.push(message))).to.equal(undefined);
    expect(warned).to.have.length(1);
    expect(warned[0]).to.match(/OTEL_EXPORTER_OTLP_PROTOCOL is grpc.*http\/protobuf.*4318/);
    for (const name of Object.keys(bad)) expect(() => tracingSettingsOf(bad), name).to.throw(ConfigError, name);
  });
});

describe('trace context', () => {
  it('is taken only from valid headers', () => {
    expect(traceparentOf(traceparent)).to.equal(traceparent);
    for (const bad of [
      undefined,
      '',
      `01-${TRACE}-${CALLER}-01`,
      `00-${'0'.repeat(32)}-${CALLER}-01`,
      `00-${TRACE}-${'0'.repeat(16)}-01`,
      traceparent.toUpperCase(),
      `${traceparent}-x`,
    ])
      expect(traceparentOf(bad), String(bad)).to.equal(undefined);
  });
  it('adds its ids to log lines', async () => {
    const lines: string[] = [];
    const log = createLogger('silent', 'stderr', { take: (line) => lines.push(line) }, traceIds);
    log.warn('outside');
    await withTraceparent(traceparent, async () => {
      await Promise.resolve();
      log.child({ part: 'x' }).warn('inside');
    });
    const [outside, inside] = lines.map((line) => JSON.parse(line));
    expect(outside).to.not.have.any.keys('trace_id', 'span_id');
    expect(inside).to.include({ trace_id: TRACE, span_id: CALLER, part: 'x', msg: 'inside' });
  });
});
