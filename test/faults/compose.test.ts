/** What can be checked about `docker-compose.yml` and the `Dockerfile` without running them. */
import { existsSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { parse } from 'yaml';
import { z } from 'zod';
import { PROCESS_ROLES, readConfig, SETTINGS } from '../../infra/config.ts';

// Compiled tests run from dist/; the files are where package.json is.
const top = new URL('../../../', import.meta.url);
const read = (file: string): string => readFileSync(new URL(file, top), 'utf8');

const duration = z.string().regex(/^\d+(ms|s|m)$/);
const healthcheck = z.union([
  z.strictObject({ disable: z.literal(true) }),
  z.strictObject({
    test: z.tuple([z.enum(['CMD', 'CMD-SHELL'])], z.string()),
    interval: duration,
    timeout: duration,
    retries: z.int().positive(),
    start_period: duration.optional(),
  }),
]);
/** The part of the Compose specification that the file uses; anything else is a typo. */
const service = z.strictObject({
  image: z.string(),
  build: z.string().optional(),
  command: z.array(z.string()).optional(),
  restart: z.enum(['unless-stopped', 'always', 'on-failure']),
  environment: z.record(z.string(), z.string()),
  depends_on: z
    .record(z.string(), z.strictObject({ condition: z.enum(['service_healthy', 'service_started']) }))
    .optional(),
  ports: z.array(z.string().regex(/^\$\{\w+:-[\d.]+\}:\d+:\d+$/)).optional(),
  volumes: z.array(z.string().regex(/^[a-z-]+:\/[\w/.-]+$/)).optional(),
  healthcheck: healthcheck.optional(),
  stop_grace_period: duration.optional(),
});
const compose = z.strictObject({
  'x-signalbox': z.unknown(),
  services: z.record(z.string(), service.partial({ environment: true })),
  volumes: z.record(z.string(), z.null()),
});

/** What an operator sets where not any text will do. */
const GIVEN: Readonly<Record<string, string>> = {
  LOG_LEVEL: 'info',
  MC_TRUSTED_PROXIES: '172.18.0.1',
  PUBLIC_URL: 'https://signalbox.example.com',
};

describe('docker-compose.yml', () => {
  const file = compose.parse(parse(read('docker-compose.yml'), { merge: true }));
  const services = Object.entries(file.services);
  const own = services.filter(([, { build }]) => build !== undefined);
  const stores = services.filter(([, { build }]) => build === undefined);
  const settings = new Map(Object.values(SETTINGS).map((setting) => [setting.env as string, setting]));
  /** What a variable of the shell stands for in these tests. */
  const filled = (text: string) =>
    text.replace(/\$\{(\w+)(?::[?-]([^}]*))?\}/g, (_all, name) => GIVEN[name] ?? 'given-by-the-operator');

  it('pins every image to a version', () => {
    for (const [name, { image }] of services) expect(image, name).to.match(/^[\w./-]+:\d+\.\d+(\.\d+)?[\w.-]*$/);
  });

  it('builds the version in package.json', () => {
    const { version } = JSON.parse(read('package.json')) as { version: string };
    for (const [name, { image }] of own) expect(image, name).to.equal(`signalbox:${version}`);
  });

  it('has the layout in the documentation, and only roles that the command line accepts', () => {
    const roles = own.map(([name, { command = [] }]) => {
      expect(command.slice(0, 2), name).to.deep.equal(['start', '--role']);
      expect(command, name).to.have.length(3);
      expect(command[2], name).to.be.oneOf([...PROCESS_ROLES]);
      return command[2];
    });
    expect(roles.sort()).to.deep.equal(['api', 'api', 'projector', 'worker']);
  });

  it('sets only existing settings, to valid values', () => {
    for (const [name, { environment = {} }] of own) {
      for (const variable of Object.keys(environment))
        expect(settings.has(variable), `${name}: ${variable}`).to.equal(true);
      const env = Object.fromEntries(Object.entries(environment).map(([key, value]) => [key, filled(value)]));
      const config = readConfig(env);
      expect(config.databaseUrl, name).to.be.a('string');
      expect(config.eventStoreUrl, name).to.be.a('string');
      expect(config.redisUrl, name).to.be.a('string');
    }
  });

  it('requires secrets, and contains none', () => {
    const secret = /PASS|KEY/;
    for (const [name, { environment = {} }] of services) {
      for (const [variable, value] of Object.entries(environment)) {
        if (secret.test(variable)) expect(value, `${name}: ${variable}`).to.match(/^\$\{\w+:\?[^}]+\}$/);
      }
    }
  });

  it('reaches stores by their actual names, ports and credentials', () => {
    const ports: Readonly<Record<string, string>> = { postgres: '5432', eventstore: '2113', redis: '6379' };
    for (const [name, { environment = {} }] of own) {
      for (const variable of ['DATABASE_URL', 'EVENTSTORE_URL', 'REDIS_URL']) {
        const url = new URL(filled(environment[variable] ?? '').replace(/^esdb:/, 'http:'));
        expect(Object.keys(file.services), `${name}: ${variable}`).to.include(url.hostname);
        expect(url.port, `${name}: ${variable}`).to.equal(ports[url.hostname]);
      }
      const database = new URL(filled(environment.DATABASE_URL ?? ''));
      const { POSTGRES_USER, POSTGRES_PASSWORD, POSTGRES_DB } = file.services.postgres?.environment ?? {};
      expect(database.username).to.equal(POSTGRES_USER);
      expect(database.pathname).to.equal(`/${POSTGRES_DB}`);
      expect(environment.DATABASE_URL).to.contain(`:${POSTGRES_PASSWORD}@`);
    }
  });

  it('waits until the stores report that they are healthy', () => {
    for (const [name, { depends_on = {} }] of own) {
      expect(Object.keys(depends_on).sort(), name).to.deep.equal(stores.map(([store]) => store).sort());
      for (const { condition } of Object.values(depends_on)) expect(condition, name).to.equal('service_healthy');
    }
    for (const [name, { healthcheck: check }] of stores) expect(check, name).to.have.property('test');
  });

  it('probes exactly the processes that serve HTTP, and restarts all processes', () => {
    for (const [name, { command = [], healthcheck: check, ports }] of own) {
      const api = command[2] === 'api';
      // Of an image with HEALTHCHECK.
      expect(check, name).to.deep.equal(api ? undefined : { disable: true });
      expect(ports !== undefined, `${name} publishes a port`).to.equal(api);
    }
    for (const [name, { restart }] of services) expect(restart, name).to.equal('unless-stopped');
  });

  it('allows enough time for a graceful stop', () => {
    const limit = SETTINGS.shutdownTimeoutMs.fallback;
    for (const [name, { stop_grace_period = '10s' }] of own) {
      expect(Number.parseInt(stop_grace_period, 10) * 1_000, name).to.be.greaterThan(limit + 5_000);
    }
  });

  it('publishes each port once, as the port that the image listens on', () => {
    const published = own.flatMap(([, { ports = [] }]) => ports.map((port) => port.split(':').slice(-2)));
    expect(new Set(published.map(([host]) => host)).size).to.equal(published.length);
    for (const [, inside] of published) expect(inside).to.equal(/PORT=(\d+)/.exec(read('Dockerfile'))?.[1]);
    for (const [name, { ports }] of stores) expect(ports, `${name} is reached from inside only`).to.equal(undefined);
  });

  it('publishes on the loopback address by default', () => {
    const ports = own.flatMap(([, { ports = [] }]) => ports);
    const addresses = ports.map((port) => /^\$\{PUBLISH_ADDRESS:-([\d.]+)\}:/.exec(port)?.[1]);
    expect(addresses).to.deep.equal(ports.map(() => '127.0.0.1'));
    for (const document of ['README.md', 'docs/operations.md'])
      expect(read(document), document).to.include('PUBLISH_ADDRESS');
  });

  it('keeps the data of the stores in declared volumes', () => {
    const used = stores.map(([name, { volumes = [] }]) => {
      expect(volumes, name).to.have.length(1);
      return volumes[0]?.split(':')[0];
    });
    expect(used.sort()).to.deep.equal(Object.keys(file.volumes).sort());
  });

  it('starts a Redis that persists jobs', () => {
    const { command = [] } = file.services.redis ?? {};
    const options = command.join(' ');
    expect(options).to.contain('--appendonly yes').and.to.contain('--maxmemory-policy noeviction');
  });
});

describe('Dockerfile', () => {
  /** One line per instruction, continued lines joined. */
  const lines = read('Dockerfile')
    .replace(/\\\n\s*/g, '')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => ({ instruction: line.slice(0, line.indexOf(' ')), rest: line.slice(line.indexOf(' ') + 1) }));
  const of = (instruction: string) => lines.filter((line) => line.instruction === instruction).map(({ rest }) => rest);
  const last = lines.slice(lines.findLastIndex(({ instruction }) => instruction === 'FROM'));
  const inLast = (instruction: string) =>
    last.filter((line) => line.instruction === instruction).map(({ rest }) => rest);

  it('builds in one stage and runs in another, both on one pinned image', () => {
    const stages = of('FROM').map((stage) => /^(node:\d+\.\d+\.\d+-[\w-]+)(?: AS (\w+))?$/.exec(stage));
    expect(stages).to.have.length(2);
    expect(stages[0]?.[1]).to.be.a('string').and.to.equal(stages[1]?.[1]);
    expect(inLast('COPY').every((copy) => copy.startsWith('--from=build '))).to.equal(true);
  });

  it('copies only existing files, and everything that the build needs', () => {
    const copied = of('COPY')
      .filter((copy) => !copy.startsWith('--from'))
      .flatMap((copy) => copy.split(' ').slice(0, -1));
    for (const source of copied) expect(existsSync(new URL(source, top)), source).to.equal(true);
    const { scripts } = JSON.parse(read('package.json')) as { scripts: { build: string } };
    const projects = [...scripts.build.matchAll(/tsc -p (\w+)(?: |$)/g)].map(([, folder]) => folder as string);
    expect(projects).to.include('console');
    const { include } = JSON.parse(read('tsconfig.json')) as { include: string[] };
    const rooms = include.filter((room) => room !== 'test');
    const files = ['package.json', 'package-lock.json', 'tsconfig.json', 'bundle.mjs'];
    expect(copied).to.include.members([...files, ...rooms, ...projects]);
  });

  it('runs as an unprivileged user, with a Node version that package.json accepts', () => {
    expect(inLast('USER')).to.deep.equal(['node']);
    const { engines } = JSON.parse(read('package.json')) as { engines: { node: string } };
    const [wanted, given] = [engines.node, of('FROM')[0] ?? ''].map((text) => Number(/\d+/.exec(text)?.[0]));
    expect(given).to.be.at.least(wanted as number);
  });

  it('sets only existing settings, and starts the command line', () => {
    // Node and the C library have settings of their own.
    const others = ['NODE_ENV', 'MALLOC_MMAP_THRESHOLD_'];
    const known = new Set([...Object.values(SETTINGS).map((setting) => setting.env as string), ...others]);
    const set = inLast('ENV').flatMap((env) => env.split(' ').map((one) => one.split('=')[0] as string));
    for (const name of set) expect(known.has(name), name).to.equal(true);
    expect(set).to.include.members(['HOST', 'PORT', 'DATA_DIR']);
    expect(JSON.parse(inLast('ENTRYPOINT')[0] ?? '').at(-1)).to.equal(
      (JSON.parse(read('package.json')) as { bin: { signalbox: string } }).bin.signalbox,
    );
    expect(JSON.parse(inLast('CMD')[0] ?? '')).to.deep.equal(['start']);
    expect(inLast('HEALTHCHECK')[0]).to.contain('/health/ready').and.contain('process.env.HOST');
  });
});
