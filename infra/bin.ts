#!/usr/bin/env node
/** Runs the command line. If the Node version supports it, the compiled code is cached for the next start. */
import module from 'node:module';
import { totalmem } from 'node:os';
import { needsLiftoff } from './liftoff.ts';

// Node 22.15 and newer have it.
const { execve } = process as { readonly execve?: (file: string, args: readonly string[]) => never };
if (execve && needsLiftoff(process.versions.v8, Math.min(process.constrainedMemory(), totalmem()), process.execArgv)) {
  process.stderr.write('signalbox: less than 1 GB of memory on Node 24: starting again with --liftoff-only\n');
  execve.call(process, process.execPath, [
    process.execPath,
    '--liftoff-only',
    ...process.execArgv,
    ...process.argv.slice(1),
  ]);
}
const { enableCompileCache } = module as { readonly enableCompileCache?: () => unknown };
enableCompileCache?.();
await import('./cli.ts');
