/** The real service as a child process, for fault tests and the benchmark. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { get } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { ProcessRole } from '../../infra/config.ts';

export const KEY = 'process-key-0123456789abcdef';
const CLI = fileURLToPath(new URL('../../bin/signalbox.js', import.meta.url));
/** Options of Node for processes of the service: SERVICE_NODE_ARGS. */
export const nodeArgs = (): string[] => process.env.SERVICE_NODE_ARGS?.split(' ') ?? [];
/** What Node is started with to run a command of the command line. */
export const commandLine = (...args: readonly string[]): string[] => [...nodeArgs(), CLI, ...args];
/** Kernel clock ticks per second, as Linux fixes it for /proc. */
const TICKS = 100;

export interface ServiceProcess {
  readonly url: string;
  readonly child: ChildProcess;
  /** From spawn to the first 200 of /health/ready, milliseconds. */
  readonly startedMs: number;
  /** User and system CPU of the process so far, milliseconds; NaN where there is no /proc. */
  cpuMs(): number;
  /** Resident memory, MB. */
  memoryMb(): number;
  stop(signal?: NodeJS.Signals): Promise<void>;
}

/** Below the ports that the kernel gives to outgoing connections: one of these could take it before it is used. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(11_000, 32_000);
    if (await isFree(port)) return port;
  }
}

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });

/** Whether the service at `url` says so; false while nobody listens there. */
function isReady(url: string): Promise<boolean> {
  return new Promise((resolve) => {
    const asked = get(`${url}/health/ready`, { agent: false, timeout: 30_000 }, (response) => {
      response.on('error', () => resolve(false)).resume();
      resolve(response.statusCode === 200);
    });
    asked.on('timeout', () => asked.destroy(new Error('no answer within 30 s')));
    asked.on('error', () => resolve(false));
  });
}

export async function temporaryDirectory(): Promise<{ path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), 'sbx-'));
  return { path, remove: () => rm(path, { recursive: true, force: true }) };
}

/**
 * Starts `signalbox start`, on a free port unless `env` names one, and waits until it is ready; a role without HTTP is not
 * waited for. @param readyMs how long it may take
 */
export async function startProcess(
  dataDir: string,
  env: Record<string, string> = {},
  args: readonly string[] = [],
  readyMs = 120_000,
): Promise<ServiceProcess> {
  const port = env.PORT ?? String(await freePort());
  const url = `http://127.0.0.1:${port}`;
  const begun = performance.now();
  const child = spawn(process.execPath, commandLine('start', ...args), {
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      PORT: port,
      DATA_DIR: dataDir,
      LOG_LEVEL: 'warn',
      API_KEY: KEY,
      AUTH_PASS: 'correct horse battery',
      MC_DISABLE_RATE_LIMIT: '1',
      ...env,
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  for (const serves = !args.includes('projector') && !args.includes('worker'); serves; ) {
    if (child.exitCode !== null) throw new Error(`the service ended with ${child.exitCode} before it was ready`);
    if (await isReady(url)) break;
    if (performance.now() - begun > readyMs)
      throw new Error(`the service did not become ready within ${readyMs / 1_000} s`);
    // Asked more often, it would take CPU time from the start that is waited for.
    await sleep(10);
  }
  return {
    url,
    child,
    startedMs: performance.now() - begun,
    cpuMs() {
      const [user, system] = stat(child.pid ?? 0)
        .slice(11, 13)
        .map(Number);
      return (((user ?? Number.NaN) + (system ?? Number.NaN)) * 1000) / TICKS;
    },
    memoryMb: () => Number(/VmRSS:\s+(\d+)/.exec(proc(child.pid ?? 0, 'status'))?.[1] ?? Number.NaN) / 1024,
    async stop(signal = 'SIGTERM') {
      child.kill(signal);
      await ended;
    },
  };
}

/** A line of progress, which a command that takes long writes beside its messages (`infra/cli/progress.ts`). */
export const PROGRESS = /^.+: \d+ events, \d+\/s(, about \d+ \w+ left)?\n/gm;

/** Runs a command of the command line to its end. @returns `err` without lines of progress */
export function runCommand(
  args: readonly string[],
  env: Record<string, string> = {},
  input = '',
): Promise<{ readonly code: number; readonly out: string; readonly err: string }> {
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      commandLine(...args),
      { env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env }, timeout: 120_000 },
      (error, out, err) =>
        resolve({ code: error ? Number(error.code ?? -1) : 0, out, err: err.replaceAll(PROGRESS, '') }),
    );
    // A command may end before it has read all of it.
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(input);
  });
}

/** Starts a process for each role, all at once: first starts must not trip over each other. */
export async function startProcesses(
  env: Record<string, string>,
  roles: readonly ProcessRole[],
): Promise<{ readonly services: readonly ServiceProcess[]; stop(): Promise<void> }> {
  const directory = await temporaryDirectory();
  const starting = roles.map((role) => startProcess(directory.path, env, ['--role', role]));
  const settled = await Promise.allSettled(starting);
  const services = settled.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const stop = async () => {
    for (const service of services) await service.stop();
    await directory.remove();
  };
  for (const one of settled) {
    if (one.status === 'fulfilled') continue;
    await stop();
    throw one.reason;
  }
  return { services, stop };
}

const proc = (pid: number, file: string): string => {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch (error) {
    if ((error as { code?: string }).code === 'ENOENT') return '';
    throw error;
  }
};
/** Fields of /proc/<pid>/stat behind the command's name: [11] is utime, [12] stime (see proc(5), fields 14 and 15). */
const stat = (pid: number): string[] =>
  proc(pid, 'stat')
    .replace(/^.*\) /, '')
    .split(' ');
