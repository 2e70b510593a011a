/**
 * Servers of PostgreSQL and Redis that a test starts itself, if their programs are found, so that they can really
 * crash.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { freePort } from './service-process.ts';
import { until } from './until.ts';

export interface Server {
  readonly url: URL;
  /** Crashes it and starts it again. */
  crash: (() => Promise<void>) | undefined;
  close(): Promise<void>;
}

export interface OwnPostgres extends Server {
  crash: () => Promise<void>;
  /** Restarts it as an operator would: sessions are ended, and a checkpoint is made. */
  restart(): Promise<void>;
}

export const found = (program: string, places: readonly string[] = []): string | undefined =>
  [...(process.env.PATH ?? '').split(':'), ...places].map((place) => join(place, program)).find(existsSync);

/** Debian keeps the server's programs out of PATH. */
const postgresPlaces = (): string[] => {
  const base = '/usr/lib/postgresql';
  return existsSync(base) ? readdirSync(base).map((version) => join(base, version, 'bin')) : [];
};

export const ended = (child: ChildProcess): Promise<void> =>
  child.exitCode !== null || child.signalCode !== null
    ? Promise.resolve()
    : new Promise((resolve) => child.once('exit', () => resolve()));

/** Undefined where its programs are not found. */
export async function ownPostgres(): Promise<OwnPostgres | undefined> {
  const [initdb, postgres] = ['initdb', 'postgres'].map((program) => found(program, postgresPlaces()));
  if (!initdb || !postgres) return undefined;
  const directory = await mkdtemp(join(tmpdir(), 'sbx-pg-'));
  const data = join(directory, 'data');
  await mkdir(data);
  // PostgreSQL refuses to run as root.
  const root = process.getuid?.() === 0;
  const as = (command: string, args: string[]): [string, string[]] =>
    root ? ['runuser', ['-u', 'postgres', '--', command, ...args]] : [command, args];
  if (root) {
    await chmod(directory, 0o755);
    if (spawnSync('chown', ['postgres', data]).status !== 0) return undefined;
  }
  const made = spawnSync(...as(initdb, ['-D', data, '-U', 'signalbox', '-A', 'trust', '--no-sync', '-E', 'UTF8']));
  if (made.status !== 0) throw new Error(`initdb: ${made.stderr}`);
  const port = await freePort();
  const url = new URL(`postgres://signalbox@127.0.0.1:${port}/postgres`);
  // A crash of the process loses nothing that was handed to the kernel, so fsync would only cost time.
  const settings = ['fsync=off', 'max_connections=200', 'unix_socket_directories=', 'listen_addresses=127.0.0.1'];
  let server: ChildProcess | undefined;
  const start = async () => {
    const args = ['-D', data, '-p', String(port), ...settings.flatMap((setting) => ['-c', setting])];
    server = spawn(...as(postgres, args), { stdio: 'ignore' });
    await until('PostgreSQL takes connections', async () => {
      const client = new pg.Client({ connectionString: url.href, connectionTimeoutMillis: 5_000 });
      client.on('error', () => undefined);
      return client.connect().then(
        () => client.end().then(() => true),
        () => false,
      );
    });
  };
  const stop = async (how: 'QUIT' | 'INT') => {
    // QUIT, immediate shutdown: no checkpoint, sessions are cut, the next start recovers from the log.
    spawnSync(...as('/bin/sh', ['-c', `kill -${how} $(head -1 ${join(data, 'postmaster.pid')})`]));
    if (server) await ended(server);
  };
  await start();
  return {
    url,
    async crash() {
      await stop('QUIT');
      await start();
    },
    async restart() {
      await stop('INT');
      await start();
    },
    async close() {
      await stop('QUIT');
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** Undefined where its program is not found. */
export async function ownRedis(): Promise<Server | undefined> {
  const program = found('redis-server');
  if (!program) return undefined;
  const directory = await mkdtemp(join(tmpdir(), 'sbx-redis-'));
  const port = await freePort();
  let server: ChildProcess | undefined;
  const start = async () => {
    // As docker-compose.yml starts it.
    const settings = ['--appendonly', 'yes', '--maxmemory-policy', 'noeviction', '--save', '', '--bind', '127.0.0.1'];
    server = spawn(program, ['--port', String(port), '--dir', directory, ...settings], { stdio: 'ignore' });
  };
  await start();
  return {
    url: new URL(`redis://127.0.0.1:${port}`),
    async crash() {
      server?.kill('SIGKILL');
      if (server) await ended(server);
      await start();
    },
    async close() {
      server?.kill('SIGKILL');
      if (server) await ended(server);
      await rm(directory, { recursive: true, force: true });
    },
  };
}
