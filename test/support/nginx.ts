/** A real nginx with TLS on this machine, for tests. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from './until.ts';

/** Path of the program; suites that need it are skipped without. */
export const NGINX = process.env.TEST_NGINX;

export interface Certificate {
  readonly folder: string;
  /** Files. Clients that trust `cert` accept the server. */
  readonly cert: string;
  readonly key: string;
  remove(): Promise<void>;
}

/** A self-signed certificate for these names, by openssl. */
export async function makeCertificate(names: string): Promise<Certificate> {
  const folder = await mkdtemp(join(tmpdir(), 'sbx-tls-'));
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
  const how = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'];
  const what = ['-subj', '/CN=signalbox.test', '-addext', `subjectAltName=${names}`, '-keyout', key, '-out', cert];
  const { status, stderr } = spawnSync('openssl', [...how, ...what], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`openssl made no certificate: ${stderr}`);
  return { folder, cert, key, remove: () => rm(folder, { recursive: true, force: true }) };
}

/**
 * Starts nginx with the `server` blocks, and waits until it accepts connections on the port.
 *
 * @throws Error with what nginx wrote, if it ends
 */
export async function startNginx(servers: string, port: number): Promise<{ stop(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'sbx-nginx-'));
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  const file = join(folder, 'nginx.conf');
  await writeFile(
    file,
    `${process.getuid?.() === 0 ? 'user root;' : ''}
daemon off;
worker_processes 1;
pid ${folder}/pid;
error_log ${folder}/error.log;
events {}
http {
  access_log off;
  ${temporary.map((name) => `${name}_temp_path ${folder}/${name};`).join('\n  ')}
  ${servers}
}
`,
  );
  const child = spawn(NGINX as string, ['-p', folder, '-c', file, '-e', `${folder}/error.log`], { stdio: 'ignore' });
  const stop = async () => {
    await end(child);
    await rm(folder, { recursive: true, force: true });
  };
  await until('nginx accepts connections', async () => {
    if (child.exitCode === null) return accepts(port);
    throw new Error(`nginx ended: ${await readFile(`${folder}/error.log`, 'utf8')}`);
  });
  return { stop };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  await ended;
}

const accepts = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
