/** The command line: `signalbox start` and the tools around it. */
import { Command } from 'commander';
import { reportFailure } from './cli/failure.ts';
import { VERSION } from './version.ts';

type Add = (program: Command) => void;

/** Commands that load only what they need: `start` in its own order, and `mcp`, which a host starts for each agent. */
const ALONE: ReadonlyMap<string | undefined, () => Promise<Add>> = new Map([
  ['start', async () => (await import('./cli/start.ts')).addStart],
  ['mcp', async () => (await import('./cli/mcp.ts')).addMcp],
]);

async function addAll(): Promise<Add> {
  const { addStart } = await import('./cli/start.ts');
  const { addTools } = await import('./cli/tools.ts');
  return (program) => {
    addStart(program);
    addTools(program);
  };
}

const program = new Command('signalbox')
  .description('Event-sourced backend that orchestrates AI agents.')
  .version(VERSION)
  .showHelpAfterError();
const add = await (ALONE.get(process.argv[2]) ?? addAll)();
add(program);

try {
  await program.parseAsync();
} catch (error) {
  process.exit(reportFailure(error));
}
