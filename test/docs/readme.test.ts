/**
 * The sessions that the documents print, typed line by line into bash against a real service: what they show behind
 * `# → ` has to come, and nothing else. `…` stands for anything.
 */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { LIMITS } from '../../api/http/limits.ts';
import { box } from '../../infra/cli/start.ts';
import { needs } from '../support/needs.ts';
import { AUDIENCE, MACHINE, OIDC_CLIENT, startOidcProvider } from '../support/oidc.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { commandLine } from '../support/service-process.ts';
import { until } from '../support/until.ts';

// Compiled tests run from dist/; the documents are where package.json is.
const top = new URL('../../../', import.meta.url);
const read = (file: string) => readFileSync(new URL(file, top), 'utf8');

const namesIn = (text: string, names: RegExp) => [...text.matchAll(names)].map(([, name]) => name);

/** A command as one types it, and the lines that the document says it prints. */
interface Step {
  readonly command: string;
  readonly expected: readonly string[];
}

/** The `sh` blocks between the marks of a session. */
function sessionOf(file: string): Step[] {
  const session = /<!-- session:start -->([\s\S]*?)<!-- session:end -->/.exec(read(file))?.[1];
  if (session === undefined) throw new Error(`${file} has no session`);
  const steps: { command: string; expected: string[] }[] = [];
  for (const [, block = ''] of session.matchAll(/^```sh\n([\s\S]*?)^```$/gm)) {
    for (const line of block.split('\n')) {
      const last = steps.at(-1);
      if (line.startsWith('# → ')) last?.expected.push(line.slice(4));
      else if (last?.command.endsWith('\\')) last.command += `\n${line}`;
      else if (line.trim() !== '' && !line.startsWith('#')) steps.push({ command: line, expected: [] });
    }
  }
  return steps;
}

const pattern = (line: string) => new RegExp(`^${line.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replaceAll('…', '.*')}$`);

/** One shell, which is given one command at a time. */
function openShell() {
  const shell = spawn('bash', ['--noprofile', '--norc'], {
    cwd: fileURLToPath(top),
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ended = new Promise<void>((resolve) => shell.once('exit', () => resolve()));
  const lines: string[] = [];
  let done: (() => void) | undefined;
  createInterface({ input: shell.stdout }).on('line', (line) => {
    if (line === '<done>') done?.();
    // curl prints a response and the end of its line separately; a frame of the stream may come in between.
    else lines.push(...line.split(/(?<=\})(?=id: )/).filter((part) => part !== ''));
  });
  shell.stdin.write('exec 2>&1\n');
  return {
    /** What was printed and not expected so far. */
    lines,
    async type(command: string): Promise<void> {
      const finished = new Promise<void>((resolve) => {
        done = resolve;
      });
      shell.stdin.write(`${command}\nprintf '\\n<done>\\n'\n`);
      await finished;
    },
    async close(): Promise<void> {
      shell.stdin.end('exit\n');
      await ended;
    },
  };
}

/**
 * Types a session. Output of a command in the background may come earlier than the document shows it, never later.
 *
 * @param values what is exported instead of what the document says
 */
async function play(steps: readonly Step[], values: Readonly<Record<string, string>>): Promise<void> {
  const shell = openShell();
  try {
    for (const { command, expected } of steps) {
      const name = /^export (\w+)=/.exec(command)?.[1];
      await shell.type(name !== undefined && name in values ? `export ${name}='${values[name]}'` : command);
      for (const line of expected) {
        const found = shell.lines.findIndex((printed) => pattern(line).test(printed));
        if (found < 0) {
          throw new Error(`${command}\nshould print\n  ${line}\nand there is\n  ${shell.lines.join('\n  ')}`);
        }
        shell.lines.splice(found, 1);
      }
    }
    expect(shell.lines, 'printed, but not shown in the document').to.deep.equal([]);
  } finally {
    await shell.close();
  }
}

/** What names the stores of the service to the command line, besides DATA_DIR. */
function storesOf({ config: { databaseUrl, eventStoreUrl, eventStorePrefix } }: TestService): Step[] {
  const stores = {
    ...(databaseUrl !== undefined && { DATABASE_URL: databaseUrl }),
    ...(eventStoreUrl !== undefined && { EVENTSTORE_URL: eventStoreUrl }),
    ...(eventStorePrefix !== undefined && { EVENTSTORE_STREAM_PREFIX: eventStorePrefix }),
  };
  return Object.entries(stores).map(([name, value]) => ({ command: `export ${name}='${value}'`, expected: [] }));
}

/** Defines `signalbox` in a shell. */
const signalboxCommand: Step = {
  command: `signalbox() { ${[process.execPath, ...commandLine()].map((word) => `'${word}'`).join(' ')} "$@"; }`,
  expected: [],
};

/** What stands behind a label in the box of generated credentials. */
const shownBy = ({ shownCredentials }: TestService, label: string) =>
  shownCredentials.find((line) => line.startsWith(`${label}:`))?.split(/: +/)[1] ?? '';

describe('documentation pages', () => {
  /** [major, minor] of curl; undefined without curl or bash. */
  const curl = spawnSync('bash', ['-c', 'curl --version'], { encoding: 'utf8' })
    .stdout?.match(/^curl (\d+)\.(\d+)/)
    ?.slice(1)
    .map(Number) as [number, number] | undefined;
  let service: TestService;

  before(async function () {
    needs('bash and curl', curl, this);
    // As a newcomer starts it: without a key or a password of one's own.
    service = await startTestService({ API_KEY: '', AUTH_PASS: '' });
  });
  after(() => service?.close());

  const values = () => ({
    SIGNALBOX: service.url,
    KEY: shownBy(service, 'API key'),
    PASSWORD: shownBy(service, 'Admin password'),
  });

  it('README: the generated credentials look as a first start shows them', () => {
    const printed = read('README.md').match(/^[┌│└].*$/gm) ?? [];
    const inside = printed.slice(1, -1).map((line) => line.slice(2, -2).trimEnd());
    expect(box(inside)).to.equal(printed.join('\n'));
    const withoutSecrets = (lines: readonly string[]) =>
      lines.map((line) =>
        line.replace(
          /(password: +|API key: +(?:mc_)?)([A-Za-z0-9]+)/,
          (_, label, secret) => label + '*'.repeat(secret.length),
        ),
      );
    expect(withoutSecrets(inside.slice(0, service.shownCredentials.length))).to.deep.equal(
      withoutSecrets(service.shownCredentials),
    );
  });

  it('README: the first session works as printed', async function () {
    this.timeout(60_000);
    const steps = sessionOf('README.md');
    expect(steps.flatMap(({ expected }) => expected)).to.have.length.above(10);
    await play(steps, values());
  });

  const get = (path: string) => fetch(service.url + path, { headers: { 'x-api-key': values().KEY } });

  it('operations.md: lists exactly the existing metrics', async () => {
    const exported = namesIn(await (await get('/metrics')).text(), /^# TYPE (signalbox_\w+) /gm);
    expect(namesIn(read('docs/operations.md'), /^\| `(signalbox_\w+)` \|/gm)).to.have.members(exported);
  });

  it('operations.md: lists exactly the scheduled tasks', async () => {
    const { tasks } = (await (await get('/api/scheduler')).json()) as { tasks: { id: string }[] };
    const section = read('docs/operations.md').split('## Scheduled tasks')[1]?.split(/^## /m)[0] ?? '';
    expect(namesIn(section, /^\| `([a-z_]+)` \|/gm)).to.have.members([...tasks.map(({ id }) => id), 'task_id']);
  });

  it('authentication.md: lists exactly the rate limits', () => {
    const section = read('docs/authentication.md').split('## Rate limits')[1]?.split(/^## /m)[0] ?? '';
    const listed = [...section.matchAll(/^\| (`.*`) \| (\d+)/gm)].flatMap(([, names = '', limit]) =>
      namesIn(names, /`([a-z-]+)`/g).map((name) => `${name} ${limit}`),
    );
    expect(listed).to.have.members(Object.entries(LIMITS).map(([name, { limit }]) => `${name} ${limit}`));
  });

  it('proofs.md: its session works as printed', async function () {
    this.timeout(120_000);
    await until('a checkpoint is signed', async () => {
      const headers = { 'x-api-key': values().KEY };
      return (await fetch(`${service.url}/api/history/checkpoint`, { headers })).status === 200;
    });
    const before = [...storesOf(service), signalboxCommand];
    await play([...before, ...sessionOf('docs/proofs.md')], { ...values(), DATA_DIR: service.config.dataDir });
  });

  it('mcp.md: its session works as printed', async function () {
    this.timeout(120_000);
    await play([signalboxCommand, ...sessionOf('docs/mcp.md')], values());
  });

  it('auditors.md: its session works as printed, on a fresh service', async function () {
    this.timeout(180_000);
    const fresh = await startTestService({ API_KEY: '', AUTH_PASS: '' });
    try {
      const given = { SIGNALBOX: fresh.url, KEY: shownBy(fresh, 'API key'), DATA_DIR: fresh.config.dataDir };
      await play([...storesOf(fresh), ...sessionOf('docs/auditors.md')], given);
    } finally {
      await fresh.close();
    }
  });

  it('operations.md: its session about archives works as printed, on a fresh service', async function () {
    this.timeout(180_000);
    const fresh = await startTestService({ API_KEY: '', AUTH_PASS: '' });
    try {
      // EventStoreDB archives by itself.
      if (fresh.config.eventStoreUrl !== undefined) this.skip();
      const given = { SIGNALBOX: fresh.url, KEY: shownBy(fresh, 'API key'), DATA_DIR: fresh.config.dataDir };
      await play([...storesOf(fresh), ...sessionOf('docs/operations.md')], given);
    } finally {
      await fresh.close();
    }
  });

  it('openid-connect.md: a program with an access token works as printed', async function () {
    this.timeout(60_000);
    const provider = await startOidcProvider(() => ['http://signalbox.example/']);
    const fresh = await startTestService({
      OIDC_ISSUER: provider.issuer,
      OIDC_CLIENT_ID: OIDC_CLIENT,
      OIDC_AUDIENCE: AUDIENCE,
      OIDC_ROLES: 'builders=operator',
    });
    try {
      provider.machineGroups = ['builders'];
      await play(sessionOf('docs/openid-connect.md'), {
        SIGNALBOX: fresh.url,
        TOKEN_ENDPOINT: `${provider.issuer}/token`,
        AUDIENCE,
        CLIENT_ID: MACHINE.client_id,
        CLIENT_SECRET: MACHINE.client_secret,
      });
    } finally {
      await fresh.close();
      await provider.stop();
    }
  });

  it('tracing.md: its session works as printed', async function () {
    this.timeout(60_000);
    await play(sessionOf('docs/tracing.md'), values());
  });

  it('client.md: its session works as printed, as does the agent in the README', async function () {
    this.timeout(120_000);
    await play(sessionOf('docs/client.md'), values());
  });

  it('authentication.md: signing in works as printed', async function () {
    this.timeout(60_000);
    const [major, minor] = curl as [number, number];
    // Older ones keep no Secure cookie over http.
    needs('curl 7.79', major > 7 || (major === 7 && minor >= 79), this);
    await play(sessionOf('docs/authentication.md'), values());
  });
});

describe('README: command line', () => {
  it('the table contains every command', () => {
    const cli = fileURLToPath(new URL('../../bin/signalbox.js', import.meta.url));
    const help = spawnSync(process.execPath, [cli, '--help'], { encoding: 'utf8' }).stdout;
    const commands = [...(help.split('Commands:')[1] ?? '').matchAll(/^ {2}([a-z][a-z-]*)/gm)].map(([, name]) => name);
    const section = read('README.md').split('## Command line')[1]?.split(/^## /m)[0] ?? '';
    const rows = [...section.matchAll(/^\| `([a-z-]+)` \|/gm)].map(([, name]) => name);
    expect(rows).to.have.members(commands.filter((name) => name !== 'help'));
  });
});

/** The anchors of the headings of a document, as GitHub makes them. */
const headingsOf = (text: string) =>
  namesIn(text.replace(/^```[\s\S]*?^```$/gm, ''), /^#+ (.*)$/gm).map((title = '') =>
    title
      .toLowerCase()
      .replace(/[^\p{L}\p{N}_ -]/gu, '')
      .replaceAll(' ', '-'),
  );

describe('links in the documentation', () => {
  const documents = [
    'README.md',
    'CHANGELOG.md',
    'client/README.md',
    ...readdirSync(new URL('docs/', top)).map((name) => `docs/${name}`),
  ];
  for (const document of documents.filter((name) => name.endsWith('.md'))) {
    it(`${document}: all links lead to existing files and headings`, () => {
      const targets = [...read(document).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target);
      for (const target of targets.filter((one) => !/^https?:/.test(one))) {
        const [path, heading] = target.split('#');
        const file = path ? new URL(path, new URL(document, top)) : new URL(document, top);
        expect(existsSync(file), target).to.equal(true);
        if (heading) expect(headingsOf(readFileSync(file, 'utf8')), target).to.include(heading);
      }
    });
  }
});
