#!/usr/bin/env node
/** The command line: `signalbox start` and the tools around it. */
import { Command } from 'commander';
import { addCopyLog } from './cli/copy-log.ts';
import { addCreateUser } from './cli/create-user.ts';
import { addExportEvents } from './cli/export-events.ts';
import { registerJobs } from './cli/jobs.ts';
import { addRebuild } from './cli/rebuild.ts';
import { addStart } from './cli/start.ts';
import { addStatus } from './cli/status.ts';
import { ConfigError } from './config.ts';
import { VERSION } from './version.ts';

const program = new Command('signalbox')
  .description('Event-sourced backend that orchestrates AI agents.')
  .version(VERSION)
  .showHelpAfterError();
addStart(program);
addStatus(program);
addRebuild(program);
addCreateUser(program);
addExportEvents(program);
addCopyLog(program);
registerJobs(program);

try {
  await program.parseAsync();
} catch (error) {
  const configured = error instanceof ConfigError;
  const message = error instanceof Error ? error.message : String(error);
  console.error(configured ? `The configuration has errors:\n${message}` : `signalbox: ${message}`);
  if (process.env.LOG_LEVEL === 'debug' && error instanceof Error) console.error(error.stack);
  process.exit(configured ? 2 : 1);
}
