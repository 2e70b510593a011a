/** Node 24 on a small machine (docs/operations.md, Sizing). */

/** V8 of Node 24 takes some 600 MB for the moment in which it optimises one function of the engine. */
const GREEDY = '13.6.';
/** Below this, that moment may end the process, bytes. */
const ENOUGH = 2 ** 30;

/**
 * Whether the program has to run with `--liftoff-only`, which V8 obeys only from the start of a process: WebAssembly is
 * compiled at once and never optimised, which makes statements slower.
 * @param memory of the machine or container, bytes; 0 means unknown
 */
export const needsLiftoff = (v8: string, memory: number, execArgv: readonly string[]): boolean =>
  v8.startsWith(GREEDY) && memory > 0 && memory < ENOUGH && !execArgv.includes('--liftoff-only');
