#!/usr/bin/env node
/** Runs the command line. What Node compiles for it is kept for the next start, by versions of Node that can do that. */
import module from 'node:module';

const { enableCompileCache } = module as { readonly enableCompileCache?: () => unknown };
enableCompileCache?.();
await import('./cli.ts');
