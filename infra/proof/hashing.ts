/** Hashes of the Merkle tree over the log (RFC 9162, section 2.1). */
import { hash } from 'node:crypto';

/** Bytes of a hash. */
export const HASH_BYTES = 32;
/** The root of a tree without leaves. */
export const EMPTY_ROOT = hash('sha256', '', 'buffer');

const pair = Buffer.alloc(1 + 2 * HASH_BYTES, 1);

export function nodeHash(left: Buffer, right: Buffer): Buffer {
  left.copy(pair, 1);
  right.copy(pair, 1 + HASH_BYTES);
  return hash('sha256', pair, 'buffer');
}

/** The hash of the tree over two or more hashes of complete trees of one size, or the hash itself if it is one. */
export function treeHash(hashes: readonly Buffer[]): Buffer {
  const [first = EMPTY_ROOT] = hashes;
  if (hashes.length <= 1) return first;
  const half = splitOf(hashes.length);
  return nodeHash(treeHash(hashes.slice(0, half)), treeHash(hashes.slice(half)));
}

/** The largest power of two that is smaller than `size`; `size` is at least 2. */
export function splitOf(size: number): number {
  let power = 1;
  while (power * 2 < size) power *= 2;
  return power;
}

/** The hashes in their concatenated bytes; a truncated last one is left out. */
export async function* hashesIn(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer, undefined> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const chunk of chunks) {
    const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk]);
    let at = 0;
    for (; at + HASH_BYTES <= bytes.length; at += HASH_BYTES) yield bytes.subarray(at, at + HASH_BYTES);
    rest = bytes.subarray(at);
  }
  return undefined;
}

/** The first leaves of a tree. */
export interface Beginning {
  readonly size: number;
  /** The hashes of the complete trees over them, the largest first: one for each bit of `size`. */
  readonly trees: readonly Buffer[];
}
export const NOTHING: Beginning = { size: 0, trees: [] };

/** How many complete trees the first `size` leaves have. */
export function treesIn(size: number): number {
  let trees = 0;
  for (let left = size; left > 0; left = Math.floor(left / 2)) trees += left % 2;
  return trees;
}

/** The root of a growing tree: it keeps one hash for each bit of its size. */
export class GrowingRoot {
  /** Hashes of complete trees; the one at `n` has 2^n leaves. */
  readonly #complete: (Buffer | undefined)[] = [];
  size = 0;

  /** @param before what the tree has already, if it does not begin with its first leaf */
  constructor({ size, trees }: Beginning = NOTHING) {
    this.size = size;
    const hashes = [...trees];
    for (let level = Math.floor(Math.log2(size || 1)); level >= 0; level--)
      if (Math.floor(size / 2 ** level) % 2 === 1) this.#complete[level] = hashes.shift();
  }

  add(leaf: Buffer): void {
    let carried = leaf;
    let level = 0;
    for (let left = this.#complete[0]; left; left = this.#complete[++level]) {
      carried = nodeHash(left, carried);
      this.#complete[level] = undefined;
    }
    this.#complete[level] = carried;
    this.size++;
  }

  get root(): Buffer {
    let root: Buffer | undefined;
    for (const left of this.#complete) if (left) root = root ? nodeHash(left, root) : left;
    return root ?? EMPTY_ROOT;
  }
}
