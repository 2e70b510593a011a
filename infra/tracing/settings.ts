/**
 * The standard variables of OpenTelemetry (https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/)
 * that decide whether and how traces are sent. The packages read all others themselves.
 */
import { ConfigError } from '../../shared/errors.ts';

type Env = Readonly<Record<string, string | undefined>>;

export const PROTOCOLS = ['http/protobuf', 'http/json'] as const;
export type Protocol = (typeof PROTOCOLS)[number];

const SAMPLERS = ['always_on', 'always_off', 'traceidratio'].flatMap((name) => [name, `parentbased_${name}`]);

export interface TracingSettings {
  readonly protocol: Protocol;
  /** The URL of the collector, without a path of its own for traces. */
  readonly endpoint: URL;
}

/** An empty variable counts as unset. */
const settingOf = (env: Env, name: string): string | undefined => env[name]?.trim() || undefined;

/**
 * Undefined: traces are off.
 *
 * @param warn called with a sentence when traces are off although an endpoint is set
 * @throws ConfigError that names the variable
 */
export function tracingSettingsOf(
  env: Env,
  warn: (message: string) => void = () => undefined,
): TracingSettings | undefined {
  const value = (name: string) => settingOf(env, name);
  if (value('OTEL_SDK_DISABLED')?.toLowerCase() === 'true') return undefined;
  const endpoints = ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'OTEL_EXPORTER_OTLP_ENDPOINT'];
  const endpoint = endpoints.find((name) => value(name) !== undefined);
  const exporter = value('OTEL_TRACES_EXPORTER') ?? 'otlp';
  if (endpoint === undefined || exporter === 'none') return undefined;
  const problems = [];
  if (exporter !== 'otlp') problems.push(`OTEL_TRACES_EXPORTER: "${exporter}" must be otlp or none`);
  if (!/^https?:\/\//i.test(value(endpoint) ?? '') || !URL.canParse(value(endpoint) ?? ''))
    problems.push(`${endpoint}: must be a URL that starts with http:// or https://`);
  const protocolName = ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL'].find(value);
  const protocol = (protocolName && value(protocolName)) ?? PROTOCOLS[0];
  // A valid value of the standard, often set for all programs of a machine.
  const isGrpc = protocol === 'grpc';
  if (!isGrpc && !PROTOCOLS.includes(protocol as Protocol))
    problems.push(`${protocolName}: "${protocol}" must be ${PROTOCOLS.join(' or ')}`);
  const sampler = value('OTEL_TRACES_SAMPLER');
  if (sampler !== undefined && !SAMPLERS.includes(sampler))
    problems.push(`OTEL_TRACES_SAMPLER: "${sampler}" must be ${SAMPLERS.join(', ')}`);
  if (problems.length > 0) throw new ConfigError(problems.join('\n'));
  if (isGrpc) {
    warn(
      `traces are off: ${protocolName} is grpc, which this service does not speak. Set OTEL_EXPORTER_OTLP_TRACES_PROTOCOL to ${PROTOCOLS[0]}, and the endpoint to the collector's port for HTTP (usually 4318).`,
    );
    return undefined;
  }
  return { protocol: protocol as Protocol, endpoint: new URL(value(endpoint) as string) };
}
