/** A process whose output has no reader. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { promisify } from 'node:util';
import { expect } from 'chai';

/** Logs without end, and answers each message with how many lines it has logged. */
const LOGGING = `
  import { createLogger } from '${new URL('../../infra/logging.js', import.meta.url).href}';
  const log = createLogger('info');
  let lines = 0;
  setInterval(() => log.info({ line: ++lines, text: 'x'.repeat(1_000) }, 'still here'), 1);
  process.on('message', () => process.send(lines));
  process.on('disconnect', () => process.exit(0));
`;

describe('the log', () => {
  it('has no secrets of addresses that errors quote, printed or stored', async () => {
    const script = `
      import { createLogger, holdLines } from '${new URL('../../infra/logging.js', import.meta.url).href}';
      const taken = holdLines();
      const log = createLogger('info', 'stderr', taken);
      log.warn({ err: new Error('no connection to postgres://app:pw@db/x'), url: 'redis://k3y@cache' }, 'away');
      console.log(taken.first(1)[0]);
    `;
    const { stdout, stderr } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script]);
    for (const line of [stdout, stderr]) {
      expect(JSON.parse(line)).to.deep.include({ msg: 'away', url: 'redis://--------@cache' });
      expect(line).to.include('no connection to postgres://--------@db/x').and.not.include('app:pw');
    }
  });
});

describe('the log on stdout', () => {
  let child: ChildProcess;
  afterEach(() => child.kill('SIGKILL'));

  it('does not block the process if its reader is gone', async () => {
    child = spawn(process.execPath, ['--input-type=module', '-e', LOGGING], {
      stdio: ['ignore', 'pipe', 'ignore', 'ipc'],
    });
    const ended = once(child, 'exit');
    const logged = async (): Promise<number> => {
      const answer = once(child, 'message');
      child.send('how many?');
      return Number((await answer)[0]);
    };
    const { stdout } = child;
    if (!stdout) throw new Error('the process has no stdout');
    const [first] = await once(stdout, 'data');
    expect(JSON.parse(String(first).split('\n')[0] as string)).to.include({ line: 1, msg: 'still here' });
    stdout.destroy();
    const before = await logged();
    for (let lines = before; lines < before + 20; ) lines = await logged();
    child.disconnect();
    expect((await ended)[0]).to.equal(0);
  });
});
