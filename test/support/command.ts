/**
 * Commands of the command line in this process, which cost half of the CPU time of a process of their own. For tests of
 * what a command does; that the program runs it is tested with `runCommand`.
 */
import { Readable } from 'node:stream';
import { Command } from 'commander';
import { reportFailure } from '../../infra/cli/failure.ts';
import { addTools } from '../../infra/cli/tools.ts';
import { PROGRESS, type runCommand } from './service-process.ts';

let last: Promise<unknown> = Promise.resolve();

/** The same as `runCommand`, one after another, but log lines are not part of `err`. */
export const runHere: typeof runCommand = (args, env = {}, input = '') => {
  const mine = last.then(() => run(args, { PATH: process.env.PATH, HOME: process.env.HOME, ...env }, input));
  last = mine.catch(() => undefined);
  return mine;
};

/** Takes what is written to a stream. @returns the text; the stream is itself again */
function taking(stream: NodeJS.WriteStream): () => string {
  const { write } = stream;
  const parts: string[] = [];
  stream.write = (part: string | Uint8Array, ...more: unknown[]) => {
    parts.push(typeof part === 'string' ? part : Buffer.from(part).toString());
    const done = more.at(-1);
    if (typeof done === 'function') process.nextTick(done as () => void);
    return true;
  };
  return () => {
    stream.write = write;
    return parts.join('');
  };
}

async function run(args: readonly string[], env: NodeJS.ProcessEnv, input: string) {
  const before = { env: process.env, code: process.exitCode, stdin: Object.getOwnPropertyDescriptor(process, 'stdin') };
  const [out, err] = [taking(process.stdout), taking(process.stderr)];
  process.env = env;
  process.exitCode = undefined;
  Object.defineProperty(process, 'stdin', { configurable: true, value: Readable.from([input]) });
  const program = new Command('signalbox').exitOverride();
  addTools(program);
  let code = 0;
  try {
    await program.parseAsync(args, { from: 'user' });
    code = Number(process.exitCode ?? 0);
  } catch (error) {
    code = reportFailure(error);
  } finally {
    process.env = before.env;
    process.exitCode = before.code;
    if (before.stdin) Object.defineProperty(process, 'stdin', before.stdin);
  }
  return { code, out: out(), err: err().replaceAll(PROGRESS, '') };
}
