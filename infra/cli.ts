/** The command line: `signalbox start` and the tools around it. */
import { Command } from 'commander';
import { maskedAddresses } from '../shared/secret-texts.ts';
import { addStart } from './cli/start.ts';
import { ConfigError } from './config.ts';
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
  const configured = error instanceof ConfigError;
  const message = maskedAddresses(error instanceof Error ? error.message : String(error));
  console.error(configured ? `The configuration has errors:\n${message}` : `signalbox: ${message}`);
  if (process.env.LOG_LEVEL === 'debug' && error instanceof Error) console.error(maskedAddresses(error.stack ?? ''));
  process.exit(configured ? 2 : 1);
}
