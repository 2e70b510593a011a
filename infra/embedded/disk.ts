/**
 * Refuses events while the disk of the embedded database is nearly full. When PostgreSQL cannot write its own log, it
 * ends at once, and nothing could be read any more; and the read models of what was acknowledged need room as well.
 */
import { statfs } from 'node:fs/promises';

/** Bytes that stay free: four files of PostgreSQL's log. */
export const RESERVE_BYTES = 64 * 2 ** 20;
/** How old the number of free bytes may be, milliseconds. */
const FRESH_MS = 250;

/** Also has the code of the system's own error, which `shared/store-faults.ts` explains. */
class DiskFullError extends Error {
  readonly code = 'ENOSPC';
  constructor(free: number) {
    super(`the disk of the embedded database has ${free} bytes free; events need ${RESERVE_BYTES}`);
    this.name = 'DiskFullError';
  }
}

type FreeBytes = () => Promise<number>;

const freeBytesOf =
  (directory: string): FreeBytes =>
  async () => {
    const { bavail, bsize } = await statfs(directory);
    return bavail * bsize;
  };

/**
 * @param freeBytes of the disk; a test gives its own
 * @returns a function that throws while less than `RESERVE_BYTES` are free
 */
export function createDiskCheck(directory: string, freeBytes: FreeBytes = freeBytesOf(directory)): () => Promise<void> {
  let known: { readonly at: number; readonly free: Promise<number> } | undefined;
  return async () => {
    const now = performance.now();
    // A file system that does not report its size never refuses.
    if (!known || now - known.at > FRESH_MS)
      known = { at: now, free: freeBytes().catch(() => Number.POSITIVE_INFINITY) };
    const free = await known.free;
    if (free < RESERVE_BYTES) throw new DiskFullError(free);
  };
}
