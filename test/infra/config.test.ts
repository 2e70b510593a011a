/** The settings: what is refused, and how; and the README's table, which says the same as `SETTINGS`, both ways. */

import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { readConfig, SETTINGS } from '../../infra/config.ts';
import { ConfigError } from '../../shared/errors.ts';

const settings = Object.values(SETTINGS) as readonly { env: string; fallback: unknown; doc: string }[];

/** A default as the README shows it. */
function shown(fallback: unknown): string {
  if (fallback === undefined) return 'unset';
  if (Array.isArray(fallback)) return fallback.length === 0 ? 'empty' : `\`${fallback.join(',')}\``;
  if (typeof fallback === 'boolean') return fallback ? '`1`' : '`0`';
  return `\`${fallback}\``;
}

/** The message of a refusal; fails when nothing is refused. */
function refusal(env: Record<string, string>): string {
  try {
    readConfig(env);
  } catch (error) {
    expect(error).to.be.instanceOf(ConfigError);
    return (error as ConfigError).message;
  }
  throw new Error(`${JSON.stringify(env)} was accepted`);
}

const WHOLE = (from: number, to: number) => `must be a whole number from ${from} to ${to}`;
const FLAG = 'must be 1, true, yes, on, 0, false, no or off';
const OTHER_NUMBERS = ['abc', '1.5', '-1', '1e3', ' 5', '5 ', '0x10', '99999999999999999999'];
const NO_SHARES = ['1.1', '2', '-0.5', '.', '80%', '1e-1', 'half', ' 0.5'];

const pemOf = (privateKey: KeyObject) => privateKey.export({ format: 'pem', type: 'pkcs8' }) as string;
const RSA_KEY = pemOf(generateKeyPairSync('rsa', { modulusLength: 1_024 }).privateKey);

/** Values that are refused, and what the message says. */
const REFUSED: Readonly<Record<string, { readonly values: readonly string[]; readonly says: string }>> = {
  PORT: { values: ['65536', ...OTHER_NUMBERS], says: WHOLE(0, 65_535) },
  DATABASE_URL: {
    values: ['mysql://user:secret@db/x', 'db:5432', 'postgres:/db'],
    says: 'must be a URL that starts with postgres:// or postgresql://',
  },
  EVENTSTORE_URL: { values: ['http://store:2113', 'store:2113'], says: 'must be a URL that starts with esdb://' },
  EVENTSTORE_STREAM_PREFIX: { values: ['acme', '.', 'a.b.', 'a-b.', '$acme.', 'ä.'], says: 'end with a dot' },
  BACKUP_PUBLIC_KEY: {
    values: [
      'age1xyz',
      'age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8q',
      'AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX',
    ],
    says: 'must be public keys of age, which begin with age1',
  },
  LOG_SIGNING_KEY: {
    values: ['geheim', RSA_KEY],
    says: 'must be an Ed25519 private key as PKCS#8 PEM',
  },
  LOG_ORIGIN: {
    values: ['example.com/the log', 'a+b', 'x'.repeat(201)],
    says: 'must be a name without blanks and +, at most 200 characters',
  },
  REDIS_URL: {
    values: ['http://redis:6379', '127.0.0.1:6379'],
    says: 'must be a URL that starts with redis:// or rediss://',
  },
  LOG_LEVEL: {
    values: ['verbose', 'INFO', '30'],
    says: 'must be one of trace, debug, info, warn, error, fatal, silent',
  },
  DATABASE_POOL: { values: ['1', '501', ...OTHER_NUMBERS], says: WHOLE(2, 500) },
  DATABASE_TIMEOUT_MS: { values: ['99', '600001', ...OTHER_NUMBERS], says: WHOLE(100, 600_000) },
  APPEND_TIMEOUT_MS: { values: ['99', '120001', ...OTHER_NUMBERS], says: WHOLE(100, 120_000) },
  VISIBLE_TIMEOUT_MS: { values: ['99', '120001', ...OTHER_NUMBERS], says: WHOLE(100, 120_000) },
  READY_MAX_LAG_MS: { values: ['99', '3600001', ...OTHER_NUMBERS], says: WHOLE(100, 3_600_000) },
  START_TIMEOUT_MS: { values: ['999', '3600001', ...OTHER_NUMBERS], says: WHOLE(1_000, 3_600_000) },
  PUBLIC_URL: {
    values: [
      'box.example.com',
      'ftp://example.com',
      'https:///box',
      'https://user@example.com',
      'https://example.com/a?b=c',
      'https://example.com/a#b',
      'https://example.com/a/../b',
      'https://example.com//a',
      'https://example.com/ä',
      'https://example.com/%61',
      'https://example.com/"><script>',
      'https://example.com:99999',
    ],
    says: 'must be http:// or https:// with a host and a path',
  },
  RESPONSE_STALL_MS: { values: ['99', '3600001', ...OTHER_NUMBERS], says: WHOLE(100, 3_600_000) },
  SHUTDOWN_TIMEOUT_MS: { values: ['600001', ...OTHER_NUMBERS], says: WHOLE(0, 600_000) },
  GOOGLE_KEYS_URL: { values: ['ftp://keys', 'keys.json'], says: 'must be a URL that starts with https:// or http://' },
  OIDC_ISSUER: { values: ['ldap://id', 'id.example.com'], says: 'must be a URL that starts with https:// or http://' },
  OIDC_CLIENT_AUTH: { values: ['basic'], says: 'client_secret_basic' },
  OIDC_NAME: { values: ['x'.repeat(61)], says: 'OIDC_NAME' },
  OIDC_SCOPES: { values: ['profile', 'openidx email'], says: 'must contain openid' },
  OIDC_ROLES: {
    values: [
      'admins',
      'admins=root',
      'ops=operator@',
      'ops=operator@Not A Slug',
      '=admin',
      '{"a": "root"}',
      '{"a": 1}',
      '{',
    ],
    says: 'must be group=role or group=role@workspace',
  },
  MC_DISABLE_RATE_LIMIT: { values: ['2', 'maybe'], says: FLAG },
  MC_ALLOW_ANY_HOST: { values: ['2', 'maybe'], says: FLAG },
  MC_COOKIE_SECURE: { values: ['2', 'maybe'], says: FLAG },
  MC_ENABLE_HSTS: { values: ['2', 'maybe'], says: FLAG },
  MC_TRUSTED_PROXIES: {
    values: ['proxy', '10.0.0.0/33', '10.0.0', '10.0.0.5;::1'],
    says: 'must be networks or addresses',
  },
  MC_ALLOWED_HOSTS: {
    values: [
      'https://example.com',
      '*.example.com:3000',
      'a b',
      'example.com/x',
      '*',
      '*.*',
      'x.*.y',
      '100.*.*',
      'a;b',
    ],
    says: 'must be hosts with commas in between',
  },
  MC_PROXY_AUTH_HEADER: { values: ['X User', 'X-User:', 'X-A,X-B', 'ä'], says: 'must be the name of one header' },
  MC_PROXY_AUTH_TRUSTED_IPS: { values: ['proxy', '10.0.0.0/-1', '::1 ::2'], says: 'must be networks or addresses' },
  MC_PROXY_AUTH_DEFAULT_ROLE: { values: ['root', 'Admin'], says: 'must be one of viewer, operator, admin' },
  API_KEY: { values: ['changeme', '123456789012345', '   padded-0815   '], says: 'at least 16 characters' },
  MC_AGENT_TIMEOUT_MINUTES: { values: ['10081', ...OTHER_NUMBERS], says: WHOLE(0, 10_080) },
  MC_CONNECTION_TIMEOUT_MINUTES: { values: ['10081', ...OTHER_NUMBERS], says: WHOLE(0, 10_080) },
  MC_COORDINATOR_AGENT: { values: ['  ', 'x'.repeat(101)], says: 'must ' },
  RUNNER_URL: {
    values: ['ftp://runner', 'runner:8080', 'https://user:pass@runner/steps'],
    says: 'must ',
  },
  RELEASES_URL: { values: ['ftp://feed', 'example.org'], says: 'must ' },
  ALERT_EVALUATION_SECONDS: { values: ['86401', '9', ...OTHER_NUMBERS], says: 'must be ' },
  GITHUB_API_URL: { values: ['ftp://api', 'api.github.com', 'https://user:pass@github/api'], says: 'must ' },
  GITHUB_TOKEN: { values: ['two words', 'naïve', 'line\nbreak'], says: 'must be printable ASCII without blanks' },
  GITHUB_DEFAULT_REPO: { values: ['acme', 'acme/web/x', 'acme/..', '../web'], says: 'must be owner/name' },
  GITHUB_SYNC_INTERVAL_MS: { values: ['9999', '86400001', ...OTHER_NUMBERS], says: WHOLE(10_000, 86_400_000) },
  GITHUB_TIMEOUT_MS: { values: ['99', '60001', ...OTHER_NUMBERS], says: WHOLE(100, 60_000) },
  RUNNER_TOKEN: { values: ['two words', 'naïve', 'line\nbreak'], says: 'must be printable ASCII without blanks' },
  RUNNER_TIMEOUT_MS: { values: ['99', '600001', ...OTHER_NUMBERS], says: WHOLE(100, 600_000) },
  WEBHOOK_ALLOWED_NETWORKS: {
    values: ['10', '10.0.0.0/33', 'example.org', '10.0.0.0/8;::1'],
    says: 'must be networks or addresses with commas in between',
  },
  MC_WEBHOOK_MAX_RETRIES: { values: ['0', '21', ...OTHER_NUMBERS], says: WHOLE(1, 20) },
  WEBHOOK_RETRY_SECONDS: {
    values: [',', '30;300', '-1', '1e3', 'soon', '30,x'],
    says: 'must be seconds with commas in between',
  },
  WEBHOOK_TIMEOUT_MS: { values: ['99', '60001', ...OTHER_NUMBERS], says: WHOLE(100, 60_000) },
  MC_RETAIN_ACTIVITIES_DAYS: { values: ['3651', ...OTHER_NUMBERS], says: WHOLE(0, 3_650) },
  MC_RETAIN_AUDIT_DAYS: { values: ['3651', ...OTHER_NUMBERS], says: WHOLE(0, 3_650) },
  MC_RETAIN_HISTORY_DAYS: { values: ['3651', ...OTHER_NUMBERS], says: WHOLE(0, 3_650) },
  MC_RETAIN_LOGS_DAYS: { values: ['3651', ...OTHER_NUMBERS], says: WHOLE(0, 3_650) },
  MC_RETAIN_NOTIFICATIONS_DAYS: { values: ['3651', ...OTHER_NUMBERS], says: WHOLE(0, 3_650) },
  MC_RETAIN_PIPELINE_RUNS_DAYS: { values: ['3651', ...OTHER_NUMBERS], says: WHOLE(0, 3_650) },
  MC_RETAIN_TOKEN_USAGE_DAYS: { values: ['3651', ...OTHER_NUMBERS], says: WHOLE(0, 3_650) },
  MC_RETAIN_GATEWAY_SESSIONS_DAYS: { values: ['3651', ...OTHER_NUMBERS], says: WHOLE(0, 3_650) },
  MAX_AGENTS: { values: ['0', '1000001', ...OTHER_NUMBERS], says: WHOLE(1, 1_000_000) },
  MAX_AGENT_KEYS: { values: ['0', '10001', ...OTHER_NUMBERS], says: WHOLE(1, 10_000) },
  MAX_CONNECTIONS: { values: ['0', '1000001', ...OTHER_NUMBERS], says: WHOLE(1, 1_000_000) },
  MAX_RECURRING_TASKS: { values: ['0', '100001', ...OTHER_NUMBERS], says: WHOLE(1, 100_000) },
  MC_RETAIN_STREAM_DAYS: { values: ['3651', ...OTHER_NUMBERS], says: WHOLE(0, 3_650) },
  MC_STALE_TASK_MINUTES: { values: ['10081', ...OTHER_NUMBERS], says: WHOLE(0, 10_080) },
  MC_TENANT_HOME_ROOT: { values: ['home', '/home/', '/', '/a b'], says: 'must be an absolute path' },
  MC_TENANT_WORKSPACE_DIRNAME: { values: ['a/b', '..', '.hidden', 'a b'], says: 'must be the name of a directory' },
  MC_DEFAULT_OWNER_GATEWAY: { values: ['g'.repeat(121)], says: '120' },
  TZ: { values: ['Mars/Olympus', 'Berlin', '+25:00'], says: 'must be an IANA time zone, such as Europe/Berlin' },
  JOB_LOCK_MS: { values: ['999', '600001', ...OTHER_NUMBERS], says: WHOLE(1_000, 600_000) },
  MC_WORKLOAD_QUEUE_DEPTH_NORMAL: { values: ['1000001', ...OTHER_NUMBERS], says: WHOLE(0, 1_000_000) },
  MC_WORKLOAD_QUEUE_DEPTH_THROTTLE: { values: ['1000001', ...OTHER_NUMBERS], says: WHOLE(0, 1_000_000) },
  MC_WORKLOAD_QUEUE_DEPTH_SHED: { values: ['1000001', ...OTHER_NUMBERS], says: WHOLE(0, 1_000_000) },
  MC_WORKLOAD_BUSY_RATIO_THROTTLE: { values: NO_SHARES, says: 'must be a number from 0 to 1' },
  MC_WORKLOAD_BUSY_RATIO_SHED: { values: NO_SHARES, says: 'must be a number from 0 to 1' },
  MC_WORKLOAD_ERROR_RATE_THROTTLE: { values: NO_SHARES, says: 'must be a number from 0 to 1' },
  MC_WORKLOAD_ERROR_RATE_SHED: { values: NO_SHARES, says: 'must be a number from 0 to 1' },
  MC_WORKLOAD_RECENT_WINDOW_SECONDS: { values: ['0', '86401', ...OTHER_NUMBERS], says: WHOLE(1, 86_400) },
};

/** Settings that take any text. */
const ANYTHING = [
  'HOST',
  'DATA_DIR',
  'ARCHIVE_DIR',
  'AUTH_USER',
  'AUTH_PASS',
  'AUTH_PASS_B64',
  'GOOGLE_CLIENT_ID',
  'GOOGLE_ISSUERS',
  'OIDC_AUDIENCE',
  'OIDC_CLIENT_ID',
  'OIDC_CLIENT_SECRET',
  'OIDC_GROUPS_CLAIM',
  'SUBSCRIBED_PROVIDERS',
];

describe('configuration', () => {
  it('is tested here for every setting', () => {
    expect(settings.map(({ env }) => env)).to.have.members([...Object.keys(REFUSED), ...ANYTHING]);
  });

  it('is complete without any environment variable', () => {
    const config = readConfig({}) as Readonly<Record<string, unknown>>;
    for (const [name, { fallback }] of Object.entries(SETTINGS)) expect(config[name], name).to.equal(fallback);
  });

  it('treats an empty variable as unset', () => {
    expect(readConfig(Object.fromEntries(settings.map(({ env }) => [env, ''])))).to.deep.equal(readConfig({}));
  });

  it('rejects a provider without a client or roles, and the client id as the token audience', () => {
    const issuer = { OIDC_ISSUER: 'https://id.example.com' };
    expect(() => readConfig(issuer)).to.throw(ConfigError, /OIDC_CLIENT_ID[\s\S]*OIDC_ROLES/);
    const whole = { ...issuer, OIDC_CLIENT_ID: 'signalbox', OIDC_ROLES: 'a b=c=admin,x=viewer@acme-1,*=viewer' };
    expect(readConfig(whole).oidcRoles).to.deep.equal([
      { group: 'a b=c', role: 'admin', workspace: null },
      { group: 'x', role: 'viewer', workspace: 'acme-1' },
      { group: '*', role: 'viewer', workspace: null },
    ]);
    expect(readConfig({ ...whole, OIDC_ROLES: '{"a,b": "admin", "x": "viewer@acme-1"}' }).oidcRoles).to.deep.equal([
      { group: 'a,b', role: 'admin', workspace: null },
      { group: 'x', role: 'viewer', workspace: 'acme-1' },
    ]);
    expect(() => readConfig({ ...whole, OIDC_ROLES: '{"x": "viewer", "7": "admin"}' })).to.throw(
      ConfigError,
      /order would be lost/,
    );
    expect(() => readConfig({ ...whole, OIDC_ROLES: 'admins=root' }), 'one bad value').to.throw(
      ConfigError,
      /^OIDC_ROLES: "admins=root" is invalid/,
    );
    expect(() => readConfig({ ...whole, OIDC_AUDIENCE: 'signalbox' })).to.throw(ConfigError, /must differ/);
  });

  it('reads numbers, flags and lists', () => {
    expect(readConfig({ PORT: '0', DATABASE_POOL: '500' })).to.include({ port: 0, poolSize: 500 });
    for (const [text, workloadBusyRatioShed] of Object.entries({ '0': 0, '.5': 0.5, '0.95': 0.95, '1.0': 1, '1': 1 })) {
      expect(readConfig({ MC_WORKLOAD_BUSY_RATIO_SHED: text })).to.include({ workloadBusyRatioShed });
    }
    for (const on of ['1', 'true', 'yes', 'on', 'ON', ' True ']) {
      expect(readConfig({ MC_ENABLE_HSTS: on }).enableHsts, on).to.equal(true);
    }
    for (const off of ['0', 'false', 'no', 'off', 'Off']) {
      expect(readConfig({ MC_COOKIE_SECURE: off }).cookieSecure, off).to.equal(false);
    }
    const allowed = [
      'localhost',
      'web',
      'a_b.example',
      '10.1.2.3',
      '100.*',
      '10.1.*',
      '*.example.com',
      '::1',
      '[::1]:3000',
      'x.',
      'x.example:3000',
    ];
    expect(readConfig({ MC_ALLOWED_HOSTS: allowed.join(',') }).allowedHosts).to.deep.equal(allowed);
    expect(readConfig({ MC_TRUSTED_PROXIES: '10.0.0.0/8, ::1' }).trustedProxies).to.deep.equal(['10.0.0.0/8', '::1']);
    expect(readConfig({ MC_ALLOWED_HOSTS: ' a.example , *.example.com,, ' }).allowedHosts).to.deep.equal([
      'a.example',
      '*.example.com',
    ]);
    expect(readConfig({ WEBHOOK_RETRY_SECONDS: '0.5, 30' }).webhookRetrySeconds).to.deep.equal([0.5, 30]);
    const networks = ['10.0.0.0/8', '::1', 'fd00::/8', '192.168.1.1'];
    expect(readConfig({ WEBHOOK_ALLOWED_NETWORKS: networks.join() }).webhookAllowedNetworks).to.deep.equal(networks);
  });

  it('accepts the URLs of every store', () => {
    for (const databaseUrl of ['postgres://db/x', 'postgresql://u:p@db:5432/x?sslmode=require']) {
      expect(readConfig({ DATABASE_URL: databaseUrl })).to.include({ databaseUrl });
    }
    for (const scheme of ['esdb', 'esdb+discover', 'kurrentdb', 'kurrentdb+discover']) {
      const eventStoreUrl = `${scheme}://store:2113?tls=false`;
      expect(readConfig({ DATABASE_URL: 'postgres://db/x', EVENTSTORE_URL: eventStoreUrl })).to.include({
        eventStoreUrl,
      });
    }
    expect(readConfig({ REDIS_URL: 'rediss://redis:6379' }).redisUrl).to.equal('rediss://redis:6379');
  });

  for (const [env, { values, says }] of Object.entries(REFUSED)) {
    it(`${env}: reports an invalid value and the valid ones`, () => {
      const { doc } = settings.find((one) => one.env === env) as (typeof settings)[number];
      // Alone, an event store is refused for another reason too.
      const others: Record<string, string> = env === 'EVENTSTORE_URL' ? { DATABASE_URL: 'postgres://db/x' } : {};
      for (const value of values) {
        const message = refusal({ ...others, [env]: value });
        expect(message.split('\n'), value).to.have.length(1);
        expect(message).to.match(new RegExp(`^${env}: `));
        expect(message).to.include(says).and.include(`(${doc})`);
        if (/(URL|KEY|TOKEN)$/.test(env)) expect(message, 'may hold a password').not.to.include(value);
        else expect(message).to.include(`"${value}"`);
      }
    });
  }

  it('reports all invalid values at once', () => {
    const message = refusal({ PORT: 'http', LOG_LEVEL: 'loud', DATABASE_URL: 'sqlite:x', HOST: '0.0.0.0' });
    expect(message.split('\n').map((line) => line.split(':')[0])).to.deep.equal(['PORT', 'DATABASE_URL', 'LOG_LEVEL']);
  });

  it('rejects an egress proxy that is no URL, without showing its password', () => {
    for (const name of ['HTTPS_PROXY', 'HTTP_PROXY', 'https_proxy', 'http_proxy'])
      for (const value of [
        ...['foo', 'socks5://proxy.example:1080', 'http://', 'https:///x', 'http://proxy.example:99999'],
        ...['me:secret@proxy.example', 'http://me:secret@', 'proxy.example:99999', 'proxy example:3128'],
      ]) {
        const message = refusal({ [name]: value });
        expect(message, value).to.match(new RegExp(`^${name}: its value is invalid: must be the URL of a proxy`));
        expect(message).not.to.include('secret');
      }
    for (const value of [
      ...['', ' ', 'proxy.example:3128', 'http://proxy.example', 'HTTPS://me:secret@proxy.example:443/'],
      ...['me:secret@proxy.example:3128', '[fd00::1]:3128'],
    ])
      readConfig({ HTTPS_PROXY: value, http_proxy: value });
  });

  it('rejects an event store without PostgreSQL', () => {
    expect(refusal({ EVENTSTORE_URL: 'esdb://store:2113' })).to.match(/^EVENTSTORE_URL needs DATABASE_URL: /);
  });
});

describe('README: configuration table', () => {
  // Compiled tests run from dist/; the README is where package.json is.
  const readme = readFileSync(new URL('../../../README.md', import.meta.url), 'utf8');
  const rows = [...readme.matchAll(/^\| `([A-Z][A-Z0-9_]*)` \| (.*?) \| (.*?) \|$/gm)].map(
    ([, env = '', fallback = '', doc = '']) => ({ env, fallback, doc: doc.replaceAll('\\*', '*') }),
  );

  it('contains exactly the existing settings, in the order of the code', () => {
    expect(rows.map(({ env }) => env)).to.deep.equal(settings.map(({ env }) => env));
  });
  for (const { env, fallback, doc } of settings) {
    it(`${env}: default and meaning match the code`, () => {
      expect(rows.find((row) => row.env === env)).to.deep.equal({ env, fallback: shown(fallback), doc });
    });
  }
});
