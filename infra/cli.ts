/** The command line: `signalbox start` and the tools around it. */
import { Command } from 'commander';
import { reportFailure } from './cli/failure.ts';
import { addStart } from './cli/start.ts';
import { VERSION } from './version.ts';

const program = new Command('signalbox')
  .description('Event-sourced backend that orchestrates AI agents.')
  .version(VERSION)
  .showHelpAfterError();
addStart(program);
// `start` loads only what it needs, in its own order, to be fast.
if (process.argv[2] !== 'start') (await import('./cli/tools.ts')).addTools(program);

try {
  await program.parseAsync();
} catch (error) {
  process.exit(reportFailure(error));
}
