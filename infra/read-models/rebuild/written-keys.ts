/**
 * Remembers which keys were written, in about 12 bits for each: a Bloom filter. A key that it does not have was never
 * added, so a rebuild need not look it up in the table; a few keys that it seems to have were not added either.
 *
 * Without it, a long log takes a look-up for each new row of every table whose rows no longer fit in memory.
 */

/** Bits for each key, and how many of them it sets: about one false positive in 300 for each full part. */
const BITS_PER_KEY = 12;
const HASHES = 6;
/** Bits of the first part; each further one has twice as many. Powers of two. */
const FIRST_BITS = 2 ** 20;
/** Of all parts: 64 MB, enough for 44 million keys. */
const MAX_BITS = 2 ** 29;

interface Part {
  readonly words: Uint32Array;
  /** Bits minus one. */
  readonly mask: number;
  /** How many keys still fit. */
  free: number;
}

export class WrittenKeys {
  readonly #maxBits: number;
  readonly #parts: Part[] = [];
  #bits = 0;
  /** Two hashes of the last key. */
  #first = 0;
  #second = 0;

  /** @param maxBits of all parts together */
  constructor(maxBits = MAX_BITS) {
    this.#maxBits = maxBits;
  }

  /** @returns false if there is no room left: then the key is not remembered */
  add(table: string, key: string): boolean {
    if (this.mayHave(table, key)) return true;
    const part = this.#partWithRoom();
    if (!part) return false;
    const { words, mask } = part;
    for (let n = 0, bit = this.#first; n < HASHES; n++, bit = (bit + this.#second) | 0) {
      const at = (bit & mask) >>> 5;
      words[at] = (words[at] as number) | (1 << (bit & 31));
    }
    part.free--;
    return true;
  }

  /** False only if the key was not added. */
  mayHave(table: string, key: string): boolean {
    this.#hash(table, key);
    return this.#parts.some((part) => this.#mayBeIn(part));
  }

  #partWithRoom(): Part | undefined {
    const last = this.#parts.at(-1);
    if (last && last.free > 0) return last;
    const bits = last ? 2 * (last.mask + 1) : FIRST_BITS;
    if (this.#bits + bits > this.#maxBits) return undefined;
    this.#bits += bits;
    const part = { words: new Uint32Array(bits / 32), mask: bits - 1, free: Math.floor(bits / BITS_PER_KEY) };
    this.#parts.push(part);
    return part;
  }

  #mayBeIn({ words, mask }: Part): boolean {
    for (let n = 0, bit = this.#first; n < HASHES; n++, bit = (bit + this.#second) | 0) {
      if (((words[(bit & mask) >>> 5] as number) & (1 << (bit & 31))) === 0) return false;
    }
    return true;
  }

  /** FNV-1a, and a second hash that is odd, so that its multiples reach different bits. */
  #hash(table: string, key: string): void {
    let first = 0x811c9dc5;
    for (let n = 0; n < table.length; n++) first = Math.imul(first ^ table.charCodeAt(n), 0x01000193);
    let second = first;
    for (let n = 0; n < key.length; n++) {
      const code = key.charCodeAt(n);
      first = Math.imul(first ^ code, 0x01000193);
      second = Math.imul(second + code, 0x5bd1e995);
      second ^= second >>> 15;
    }
    this.#first = mixed(first);
    this.#second = mixed(second) | 1;
  }
}

/** Spreads the bits: the last characters of a key reach only a few of FNV's. */
function mixed(hash: number): number {
  let bits = hash ^ (hash >>> 16);
  bits = Math.imul(bits, 0x85ebca6b);
  bits ^= bits >>> 13;
  bits = Math.imul(bits, 0xc2b2ae35);
  return bits ^ (bits >>> 16);
}
