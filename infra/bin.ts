#!/usr/bin/env node
/** Runs the command line. If the Node version supports it, the compiled code is cached for the next start. */
import module from 'node:module';

const { enableCompileCache } = module as { readonly enableCompileCache?: () => unknown };
enableCompileCache?.();
await import('./cli.ts');
