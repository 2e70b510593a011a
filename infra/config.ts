/**
 * All configuration, read once from the environment, typed and checked. On a bad value the service exits with a message
 * that names the variable, the value and what is allowed.
 */
import { createPrivateKey } from 'node:crypto';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { bech32 } from '@scure/base';
import { z } from 'zod';
import '../shared/messages.ts';
import { parseNetwork } from '../shared/addresses.ts';
import { REPOSITORY } from '../shared/contract/github/issues.ts';
import { isTimeZone } from '../shared/cron.ts';
import { ConfigError } from '../shared/errors.ts';
import { ROLES } from '../shared/identity.ts';
import type { GroupRule } from '../shared/ports/auth/oidc.ts';
import { isOrigin } from '../shared/ports/history/proofs.ts';
import { LOG_LEVELS } from './logging.ts';

export const PROCESS_ROLES = ['all', 'api', 'projector', 'worker'] as const;
export type ProcessRole = (typeof PROCESS_ROLES)[number];

const TRUE = ['1', 'true', 'yes', 'on'];
const FALSE = ['0', 'false', 'no', 'off', ''];

const text = z.string();
const flag = z
  .string()
  .transform((value) => value.trim().toLowerCase())
  .refine((value) => [...TRUE, ...FALSE].includes(value), 'must be 1, true, yes, on, 0, false, no or off')
  .transform((value) => TRUE.includes(value));
const integer = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d+$/, `must be a whole number from ${min} to ${max}`)
    .transform(Number)
    .refine((value) => value >= min && value <= max, `must be a whole number from ${min} to ${max}`);
/** A share of a whole: 0 to 1. */
const share = z
  .string()
  .regex(/^(0|1|0?\.\d+|0\.|1\.0*)$/, 'must be a number from 0 to 1')
  .transform(Number);
const list = z.string().transform((value) =>
  value
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== ''),
);
/** Pauses in seconds. */
const pauses = list
  .refine(
    (values) => values.length > 0 && values.every((value) => /^\d{1,6}(\.\d{1,3})?$/.test(value)),
    'must be seconds with commas in between, as in 30,300',
  )
  .transform((values): readonly number[] => values.map(Number));
/** How a client may authenticate at an identity provider, in the order in which one is chosen. */
export const CLIENT_AUTH = ['client_secret_basic', 'client_secret_post', 'client_secret_jwt'] as const;
/** `group=role` or `group=role@workspace`; groups may contain any character except commas. */
const GROUP_RULE = /^(.+)=(viewer|operator|admin)(?:@([a-z0-9][a-z0-9_-]*))?$/;
const GROUP_RULES =
  'must be group=role or group=role@workspace with commas in between, as in ops=operator,acme=viewer@acme,*=viewer, or JSON, as in {"a,b": "admin", "*": "viewer"}';
/** The members of a JSON object of texts as `group=role`; undefined if it is none. */
function membersOf(json: string): string[] | undefined {
  try {
    return Object.entries(z.record(z.string(), text).parse(JSON.parse(json))).map((pair) => pair.join('='));
  } catch {
    return undefined;
  }
}
const groupRules = text.transform((value, context): readonly GroupRule[] => {
  const isJson = value.trim().startsWith('{');
  const rules = (isJson ? (membersOf(value) ?? ['']) : list.parse(value)).map((rule) => GROUP_RULE.exec(rule));
  const problem = (message: string) => context.addIssue({ code: 'custom', message });
  if (!rules.every((rule) => rule !== null)) problem(GROUP_RULES);
  // The first rule that fits counts, and JavaScript puts such members first (ECMA-262, OrdinaryOwnPropertyKeys).
  else if (isJson && rules.length > 1 && rules.some(([, group = '']) => /^(0|[1-9]\d*)$/.test(group)))
    problem('must not be JSON if the name of a group is a number, because the order would be lost; use group=role');
  else
    return rules.map(([, group = '', role, workspace = null]) => ({
      group,
      role: role as GroupRule['role'],
      workspace,
    }));
  return z.NEVER;
});
const networks = list.refine(
  (values) => values.every((value) => parseNetwork(value) !== undefined),
  'must be networks or addresses with commas in between, as in 10.0.0.0/8,::1',
);
/** Exact hosts, subdomains and prefixes, as `hostAllowed` compares them. */
const HOST_PATTERN =
  /^([\w-]+(\.[\w-]+)*\.?(:\d+)?|\*\.[\w-]+(\.[\w-]+)*|[\w-]+(\.[\w-]+)*\.\*|\[[0-9a-f:.]+\](:\d+)?)$/i;
const hosts = list.refine(
  (values) => values.every((value) => HOST_PATTERN.test(value) || isIP(value) !== 0),
  'must be hosts with commas in between, as in example.com,*.example.com,100.*',
);
const url = (schemes: readonly string[]) =>
  z.string().refine(
    (value) => {
      const scheme = /^([a-z+]+):\/\//i.exec(value)?.[1]?.toLowerCase();
      return scheme !== undefined && schemes.includes(scheme);
    },
    `must be a URL that starts with ${schemes.map((scheme) => `${scheme}://`).join(' or ')}`,
  );

/** The variables of the egress proxy (`infra/outgoing/proxy.ts`), which may be in small letters. */
const PROXIES = ['HTTPS_PROXY', 'HTTP_PROXY'].flatMap((name) => [name, name.toLowerCase()]);
/** A URL, or a host with its port. */
const isProxy = (value: string): boolean =>
  /^https?:\/\/[^/]/i.test(value)
    ? URL.canParse(value)
    : /^[^/]+:\d+\/?$/.test(value) && URL.canParse(`http://${value}`);

const httpUrl = url(['https', 'http']);
/** Messages and logs show URLs, so a secret has a setting of its own. */
const withoutUser = (secret: string) =>
  httpUrl.refine((value) => !/^[a-z]+:\/\/[^/]*@/i.test(value), `must not hold a name or a password; use ${secret}`);
/** Paths of plain characters, because the path becomes part of pages and cookies and is compared with requests. */
const publicUrl = text
  .refine(
    (value) => /^https?:\/\/[^/@?#\\]+(\/[\w~-][\w.~-]*)*\/?$/i.test(value) && URL.canParse(value),
    'must be http:// or https:// with a host and a path of letters, digits, -, _, . and ~, as in https://example.com/signalbox',
  )
  .transform((value) => {
    const { origin, pathname } = new URL(value);
    return origin + pathname.replace(/\/$/, '');
  });
const token = text.regex(/^[\x21-\x7e]+$/, 'must be printable ASCII without blanks');
const days = integer(0, 3_650);

/**
 * Exactly one dot, at the end, so that no prefix is the beginning of another. EventStoreDB's own categories end at a
 * hyphen.
 */
export const STREAM_PREFIX = /^[A-Za-z0-9_]+\.$/;

/** Public keys of age: bech32, with a checksum. */
const publicKeys = list
  .refine(
    (values) => values.every((value) => value.startsWith('age1') && bech32.decodeUnsafe(value, false) !== undefined),
    'must be public keys of age, which begin with age1, with commas in between; age-keygen makes a pair of keys',
  )
  .transform((values): readonly string[] => values);

function isSigningKey(pem: string): boolean {
  try {
    return createPrivateKey(pem).asymmetricKeyType === 'ed25519';
  } catch {
    return false;
  }
}

/** In characters; shorter keys could be guessed. */
const MIN_API_KEY = 16;

interface Setting<T> {
  readonly env: string;
  readonly parse: z.ZodType<T, string>;
  readonly fallback: T;
  readonly doc: string;
}
const setting = <T>(env: string, parse: z.ZodType<T, string>, fallback: T) => ({
  doc: (doc: string): Setting<T> => ({ env, parse, fallback, doc }),
});
const optional = <T>(env: string, parse: z.ZodType<T, string>) => setting<T | undefined>(env, parse, undefined);

/** The single list of settings; a test checks the README's table against it. */
export const SETTINGS = {
  port: setting('PORT', integer(0, 65_535), 3000).doc('TCP port; 0 picks a free one'),
  host: setting('HOST', text, '127.0.0.1').doc('address to listen on'),
  dataDir: setting('DATA_DIR', text.min(1), './data').doc('directory of the embedded database'),
  archiveDir: optional('ARCHIVE_DIR', text.min(1)).doc(
    'directory of the bundles that signalbox archive writes; all processes read it; unset: archive in DATA_DIR',
  ),
  databaseUrl: optional('DATABASE_URL', url(['postgres', 'postgresql'])).doc(
    'PostgreSQL 15 or newer; unset: the embedded database',
  ),
  eventStoreUrl: optional(
    'EVENTSTORE_URL',
    url(['esdb', 'esdb+discover', 'kurrentdb', 'kurrentdb+discover', 'kdb']),
  ).doc('EventStoreDB or KurrentDB for the event log; needs DATABASE_URL'),
  eventStorePrefix: optional(
    'EVENTSTORE_STREAM_PREFIX',
    z.string().regex(STREAM_PREFIX, 'must be letters, digits and _, and end with a dot, as in acme.'),
  ).doc('prefix of all stream names, such as acme. (for several deployments on one event store server)'),
  backupPublicKeys: setting('BACKUP_PUBLIC_KEY', publicKeys, []).doc(
    'public keys of age for which backups are encrypted, with commas in between; unset: a key generated at the first backup',
  ),
  logSigningKey: optional(
    'LOG_SIGNING_KEY',
    // In files of variables, line feeds are often written as \n.
    text
      .transform((value) => value.replaceAll('\\n', '\n'))
      .refine(
        isSigningKey,
        'must be an Ed25519 private key as PKCS#8 PEM, as openssl genpkey -algorithm ed25519 writes it',
      ),
  ).doc(
    'Ed25519 key that signs checkpoints of the log, PKCS#8 PEM; unset: generated at the first start and stored with the credentials',
  ),
  logOrigin: optional(
    'LOG_ORIGIN',
    text.refine(
      (value) => value.length <= 200 && isOrigin(value),
      'must be a name without blanks and +, at most 200 characters, such as example.com/log',
    ),
  ).doc('name of the log in its checkpoints, such as example.com/log; unset: generated at the first start'),
  redisUrl: optional('REDIS_URL', url(['redis', 'rediss'])).doc(
    'Redis for rate limits and jobs shared by several processes',
  ),
  logLevel: setting('LOG_LEVEL', z.enum(LOG_LEVELS), 'info').doc('trace, debug, info, warn, error, fatal or silent'),
  poolSize: setting('DATABASE_POOL', integer(2, 500), 10).doc('database connections per process'),
  statementTimeoutMs: setting('DATABASE_TIMEOUT_MS', integer(100, 600_000), 15_000).doc(
    'time-out of one database statement, milliseconds',
  ),
  appendTimeoutMs: setting('APPEND_TIMEOUT_MS', integer(100, 120_000), 10_000).doc(
    'how long an append is retried while the event log is unavailable, milliseconds',
  ),
  visibleTimeoutMs: setting('VISIBLE_TIMEOUT_MS', integer(100, 120_000), 10_000).doc(
    'how long a read waits for read models, milliseconds',
  ),
  readyMaxLagMs: setting('READY_MAX_LAG_MS', integer(100, 3_600_000), 10_000).doc(
    'read model lag from which /health/ready fails, milliseconds',
  ),
  startTimeoutMs: setting('START_TIMEOUT_MS', integer(1_000, 3_600_000), 120_000).doc(
    'how long startup waits for the stores, milliseconds',
  ),
  shutdownTimeoutMs: setting('SHUTDOWN_TIMEOUT_MS', integer(0, 600_000), 15_000).doc(
    'how long shutdown waits for requests in flight, milliseconds',
  ),
  authUser: setting('AUTH_USER', text.min(1), 'admin').doc('name of the first admin'),
  authPass: optional('AUTH_PASS', text).doc('password of the first admin; unset: generated and shown once'),
  authPassBase64: optional('AUTH_PASS_B64', text).doc(
    'password of the first admin in base64; takes precedence over AUTH_PASS',
  ),
  apiKey: optional(
    'API_KEY',
    text
      .trim()
      .refine(
        (key) => key.length >= MIN_API_KEY,
        `must have at least ${MIN_API_KEY} characters; use a random key, for example from openssl rand -hex 24`,
      ),
  ).doc('global API key, at least 16 characters; unset: generated and shown once if none exists'),
  googleClientId: optional('GOOGLE_CLIENT_ID', text).doc('audience of Google ID tokens; unset: Google sign-in is off'),
  googleKeysUrl: setting('GOOGLE_KEYS_URL', httpUrl, 'https://www.googleapis.com/oauth2/v3/certs').doc(
    'URL of the keys that sign ID tokens',
  ),
  googleIssuers: setting('GOOGLE_ISSUERS', list, ['https://accounts.google.com', 'accounts.google.com']).doc(
    'accepted issuers of ID tokens',
  ),
  oidcIssuer: optional('OIDC_ISSUER', httpUrl).doc(
    'OpenID Connect provider, as its discovery document names it; needs OIDC_CLIENT_ID and OIDC_ROLES; unset: off',
  ),
  oidcClientId: optional('OIDC_CLIENT_ID', text).doc('client id of this deployment there'),
  oidcClientSecret: optional('OIDC_CLIENT_SECRET', text).doc(
    'secret of that client; unset: a public client, with PKCE alone',
  ),
  oidcClientAuth: optional('OIDC_CLIENT_AUTH', z.enum(CLIENT_AUTH)).doc(
    'how the client authenticates: client_secret_basic, client_secret_post or client_secret_jwt; unset: the first of them that the provider lists',
  ),
  oidcName: setting('OIDC_NAME', text.min(1).max(60), 'single sign-on').doc('name of the provider on the sign-in page'),
  oidcScopes: setting('OIDC_SCOPES', text.regex(/(^| )openid( |$)/, 'must contain openid'), 'openid profile email').doc(
    'scopes that are requested, with blanks in between',
  ),
  oidcGroupsClaim: setting('OIDC_GROUPS_CLAIM', text.min(1), 'groups').doc(
    'claim that lists the groups of an account, or a path to it such as realm_access.roles',
  ),
  oidcRoles: setting<readonly GroupRule[]>('OIDC_ROLES', groupRules, []).doc(
    'roles of groups, as in admins=admin,acme=operator@acme,*=viewer: the first entry that fits counts, and @ names a workspace by its slug; JSON for groups with commas: {"a,b": "admin"}',
  ),
  oidcAudience: optional('OIDC_AUDIENCE', text).doc(
    'audience of access tokens of the provider that programs may send; unset: such tokens are refused',
  ),
  publicUrl: optional('PUBLIC_URL', publicUrl).doc(
    'URL under which clients reach the service, such as https://example.com/signalbox, with the path if a proxy serves the service below one; unset: what a request names',
  ),
  responseStallMs: setting('RESPONSE_STALL_MS', integer(100, 3_600_000), 60_000).doc(
    'after this long without progress, a client that does not read its response is cut off, milliseconds',
  ),
  disableRateLimit: setting('MC_DISABLE_RATE_LIMIT', flag, false).doc(
    'turns rate limits off, except those that stop guessing and misuse of passwords, users, keys, approvals and backups',
  ),
  trustedProxies: setting<readonly string[]>('MC_TRUSTED_PROXIES', networks, []).doc(
    'addresses and networks, such as 10.0.0.0/8, whose X-Forwarded-For, X-Real-IP and forwarded hosts (X-Forwarded-Host, Forwarded) are trusted',
  ),
  allowAnyHost: setting('MC_ALLOW_ANY_HOST', flag, false).doc('accepts every Host header'),
  allowedHosts: setting<readonly string[]>('MC_ALLOWED_HOSTS', hosts, []).doc(
    'accepted hosts: exact, *.example.com or 100.*; empty: every host, except for /api/setup',
  ),
  cookieSecure: setting('MC_COOKIE_SECURE', flag, true).doc('the Secure attribute of the session cookie'),
  enableHsts: setting('MC_ENABLE_HSTS', flag, false).doc('sends Strict-Transport-Security'),
  proxyAuthHeader: optional(
    'MC_PROXY_AUTH_HEADER',
    text.regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, 'must be the name of one header, such as X-Auth-User'),
  ).doc('header in which a trusted proxy names the user'),
  proxyAuthDefaultRole: optional('MC_PROXY_AUTH_DEFAULT_ROLE', z.enum(ROLES)).doc(
    'role of new users named by the proxy; unset: none are created',
  ),
  proxyAuthTrustedIps: setting<readonly string[]>('MC_PROXY_AUTH_TRUSTED_IPS', networks, []).doc(
    'addresses and networks whose proxy header is trusted; empty: none',
  ),
  agentTimeoutMinutes: setting('MC_AGENT_TIMEOUT_MINUTES', integer(0, 10_080), 10).doc(
    'minutes without a sign of life after which an agent is set offline; 0: never',
  ),
  connectionTimeoutMinutes: setting('MC_CONNECTION_TIMEOUT_MINUTES', integer(0, 10_080), 5).doc(
    'minutes without a heartbeat after which the connection of a tool is closed; 0: never',
  ),
  coordinatorAgent: setting('MC_COORDINATOR_AGENT', text.trim().min(1).max(100), 'coordinator').doc(
    'name that operators may use to speak for the coordinator in chat',
  ),
  subscribedProviders: setting<readonly string[]>(
    'SUBSCRIBED_PROVIDERS',
    list.transform((names) => names.map((name) => name.toLowerCase())),
    [],
  ).doc('model providers paid by subscription, such as anthropic,openai; their tokens cost nothing'),
  runnerUrl: optional('RUNNER_URL', withoutUser('RUNNER_TOKEN')).doc(
    'URL of the agent runner, which receives pipeline steps, assigned tasks and results to review; unset: nothing is sent',
  ),
  runnerToken: optional('RUNNER_TOKEN', token).doc('bearer token for the agent runner'),
  runnerTimeoutMs: setting('RUNNER_TIMEOUT_MS', integer(100, 600_000), 15_000).doc(
    'time-out of a request to the agent runner, milliseconds',
  ),
  jobLockMs: setting('JOB_LOCK_MS', integer(1_000, 600_000), 30_000).doc(
    'job lease, milliseconds; after a crash another worker takes over within one to three leases',
  ),
  webhookAllowedNetworks: setting<readonly string[]>('WEBHOOK_ALLOWED_NETWORKS', networks, []).doc(
    'private networks that webhooks may call, such as 10.0.0.0/8',
  ),
  webhookMaxAttempts: setting('MC_WEBHOOK_MAX_RETRIES', integer(1, 20), 5).doc(
    'attempts per webhook delivery, including the first; the same number of failures in a row opens the circuit',
  ),
  webhookRetrySeconds: setting<readonly number[]>('WEBHOOK_RETRY_SECONDS', pauses, [30, 300, 1_800, 7_200, 28_800]).doc(
    'pauses after the first, second and later failed attempts, seconds; the last one is repeated',
  ),
  webhookTimeoutMs: setting('WEBHOOK_TIMEOUT_MS', integer(100, 60_000), 10_000).doc(
    'time-out of a webhook delivery, milliseconds',
  ),
  alertSeconds: setting(
    'ALERT_EVALUATION_SECONDS',
    integer(0, 86_400).refine((value) => value === 0 || value >= 10, 'must be 0 or at least 10'),
    60,
  ).doc('how often alert rules are evaluated, seconds; 0: only on request'),
  maxAgents: setting('MAX_AGENTS', integer(1, 1_000_000), 10_000).doc('maximum number of agents in a workspace'),
  maxAgentKeys: setting('MAX_AGENT_KEYS', integer(1, 10_000), 100).doc('maximum number of valid API keys of an agent'),
  maxConnections: setting('MAX_CONNECTIONS', integer(1, 1_000_000), 10_000).doc(
    'maximum number of tools connected to a workspace at the same time',
  ),
  maxRecurringTasks: setting('MAX_RECURRING_TASKS', integer(1, 100_000), 1_000).doc(
    'maximum number of recurring tasks in a workspace',
  ),
  staleTaskMinutes: setting('MC_STALE_TASK_MINUTES', integer(0, 10_080), 10).doc(
    'minutes without a change after which a task in progress returns to the queue if its agent is offline or unknown; 0: never',
  ),
  retainActivitiesDays: setting('MC_RETAIN_ACTIVITIES_DAYS', days, 90).doc(
    'default of the setting retention.activities_days: how long activities are kept, days; 0: forever',
  ),
  retainAuditDays: setting('MC_RETAIN_AUDIT_DAYS', days, 365).doc(
    'default of the setting retention.audit_log_days: how long audit entries are kept, days; 0: forever',
  ),
  retainHistoryDays: setting('MC_RETAIN_HISTORY_DAYS', days, 0).doc(
    'how far back reads with as_of may go, days; 0: to the beginning',
  ),
  retainLogsDays: setting('MC_RETAIN_LOGS_DAYS', days, 30).doc(
    'default of the setting retention.logs_days: how long log lines are kept, days; 0: forever',
  ),
  retainNotificationsDays: setting('MC_RETAIN_NOTIFICATIONS_DAYS', days, 60).doc(
    'default of the setting retention.notifications_days: how long notifications are kept, days; 0: forever',
  ),
  retainPipelineRunsDays: setting('MC_RETAIN_PIPELINE_RUNS_DAYS', days, 90).doc(
    'default of the setting retention.pipeline_runs_days: how long pipeline runs are kept, days; 0: forever',
  ),
  retainTokenUsageDays: setting('MC_RETAIN_TOKEN_USAGE_DAYS', days, 90).doc(
    'default of the setting retention.token_usage_days: how long token reports are kept, days; 0: forever',
  ),
  retainGatewaySessionsDays: setting('MC_RETAIN_GATEWAY_SESSIONS_DAYS', days, 90).doc(
    'default of the setting retention.gateway_sessions_days: how long after its last update a gateway session is listed, days; 0: forever',
  ),
  retainStreamDays: setting('MC_RETAIN_STREAM_DAYS', days, 30).doc(
    'default of the setting retention.stream_days: how far back callers other than admins can resume the event stream, days; 0: to its beginning',
  ),
  tenantHomeRoot: setting(
    'MC_TENANT_HOME_ROOT',
    text.regex(/^\/[\w./-]*[\w-]$/, 'must be an absolute path without a slash at its end, such as /home'),
    '/home',
  ).doc('parent directory of tenant directories, for provisioning jobs'),
  tenantWorkspaceDirname: setting(
    'MC_TENANT_WORKSPACE_DIRNAME',
    text.regex(/^[\w-][\w.-]*$/, 'must be the name of a directory'),
    'workspace',
  ).doc('name of the workspace directory inside the directory of a tenant'),
  defaultOwnerGateway: setting('MC_DEFAULT_OWNER_GATEWAY', text.trim().min(1).max(120), 'primary').doc(
    'default gateway of new tenants',
  ),
  releasesUrl: optional('RELEASES_URL', httpUrl).doc(
    'feed of the latest release, in the format of the GitHub API; unset: no check for releases',
  ),
  githubApiUrl: setting('GITHUB_API_URL', withoutUser('GITHUB_TOKEN'), 'https://api.github.com').doc(
    'REST API of GitHub, or of a GitHub Enterprise Server',
  ),
  githubToken: optional('GITHUB_TOKEN', token).doc(
    'GitHub token that may read and write issues; unset: GitHub is not connected',
  ),
  githubDefaultRepo: optional('GITHUB_DEFAULT_REPO', text.regex(REPOSITORY, 'must be owner/name')).doc(
    'default repository, as owner/name',
  ),
  githubSyncIntervalMs: setting('GITHUB_SYNC_INTERVAL_MS', integer(10_000, 86_400_000), 60_000).doc(
    'how often projects with github_sync_enabled are synchronised with their repositories, milliseconds',
  ),
  githubTimeoutMs: setting('GITHUB_TIMEOUT_MS', integer(100, 60_000), 10_000).doc(
    'time-out of a request to GitHub, milliseconds',
  ),
  timeZone: setting('TZ', z.string().refine(isTimeZone, 'must be an IANA time zone, such as Europe/Berlin'), 'UTC').doc(
    'time zone of recurring tasks, such as Europe/Berlin',
  ),
  workloadQueueDepthNormal: setting('MC_WORKLOAD_QUEUE_DEPTH_NORMAL', integer(0, 1_000_000), 20).doc(
    'normal number of pending tasks; only reported by /api/workload',
  ),
  workloadQueueDepthThrottle: setting('MC_WORKLOAD_QUEUE_DEPTH_THROTTLE', integer(0, 1_000_000), 50).doc(
    'number of pending tasks from which /api/workload recommends submitting more slowly',
  ),
  workloadQueueDepthShed: setting('MC_WORKLOAD_QUEUE_DEPTH_SHED', integer(0, 1_000_000), 100).doc(
    'number of pending tasks from which /api/workload recommends submitting critical work only',
  ),
  workloadBusyRatioThrottle: setting('MC_WORKLOAD_BUSY_RATIO_THROTTLE', share, 0.8).doc(
    'share of busy agents from which /api/workload recommends submitting more slowly',
  ),
  workloadBusyRatioShed: setting('MC_WORKLOAD_BUSY_RATIO_SHED', share, 0.95).doc(
    'share of busy agents from which /api/workload recommends submitting critical work only',
  ),
  workloadErrorRateThrottle: setting('MC_WORKLOAD_ERROR_RATE_THROTTLE', share, 0.1).doc(
    'share of errors among activities from which /api/workload recommends submitting more slowly',
  ),
  workloadErrorRateShed: setting('MC_WORKLOAD_ERROR_RATE_SHED', share, 0.25).doc(
    'share of errors among activities from which /api/workload recommends submitting critical work only',
  ),
  workloadRecentWindowSeconds: setting('MC_WORKLOAD_RECENT_WINDOW_SECONDS', integer(1, 86_400), 300).doc(
    'how far back /api/workload counts errors and new tasks, seconds',
  ),
} as const;

type ValueOf<S> = S extends Setting<infer T> ? T : never;
export type Config = { readonly [K in keyof typeof SETTINGS]: ValueOf<(typeof SETTINGS)[K]> };

/** The directory of the bundles of archived events. */
export const archiveDirOf = ({ archiveDir, dataDir }: Pick<Config, 'archiveDir' | 'dataDir'>): string =>
  archiveDir ?? join(dataDir, 'archive');

/** @throws ConfigError that lists every bad value */
export function readConfig(env: Readonly<Record<string, string | undefined>>): Config {
  const problems: string[] = [];
  // Without those that are not valid.
  const config: { -readonly [K in keyof Config]?: Config[K] } = {};
  for (const [name, one] of Object.entries(SETTINGS)) {
    const raw = env[one.env];
    // Compose files and shells leave variables empty rather than unset.
    if (raw === undefined || raw === '') {
      config[name as keyof Config] = one.fallback as never;
      continue;
    }
    const result = one.parse.safeParse(raw);
    if (result.success) config[name as keyof Config] = result.data as never;
    else {
      const shown = /(PASS|PASS_B64|KEY|URL|TOKEN|SECRET)$/.test(one.env) ? 'its value' : `"${raw}"`;
      problems.push(
        `${one.env}: ${shown} is invalid: ${result.error.issues.map((issue) => issue.message).join(', ')} (${one.doc})`,
      );
    }
  }
  for (const name of PROXIES) {
    const value = env[name]?.trim() ?? '';
    if (value !== '' && !isProxy(value))
      problems.push(
        `${name}: its value is invalid: must be the URL of a proxy, such as http://proxy.example:3128, or its host and port`,
      );
  }
  if (config.eventStoreUrl !== undefined && config.databaseUrl === undefined) {
    problems.push('EVENTSTORE_URL needs DATABASE_URL: with an event store server, read models are kept in PostgreSQL');
  }
  if (config.oidcIssuer !== undefined) {
    if (config.oidcClientId === undefined)
      problems.push('OIDC_ISSUER needs OIDC_CLIENT_ID: the client id of this deployment at the provider');
    if (config.oidcRoles?.length === 0)
      problems.push(
        'OIDC_ISSUER needs OIDC_ROLES: without it no account could sign in; *=viewer lets every account read',
      );
    if (config.oidcAudience !== undefined && config.oidcAudience === config.oidcClientId)
      problems.push(
        'OIDC_AUDIENCE must differ from OIDC_CLIENT_ID: otherwise ID tokens, which other programs may hold, would be accepted as credentials',
      );
  }
  if (problems.length > 0) throw new ConfigError(problems.join('\n'));
  return config as Config;
}
