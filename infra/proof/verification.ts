/**
 * Compares events with the leaves of the tree, and the tree with the signed checkpoints; findings name the numbers of
 * the events.
 */
import { type Beginning, GrowingRoot, NOTHING } from './hashing.ts';
import { type Note, signerOf, type VerifierKey } from './notes.ts';

/** One event, by number: the hash of the present event, and its stored leaf; undefined if missing. */
export interface Pair {
  readonly hash: Buffer | undefined;
  readonly leaf: Buffer | undefined;
}

export interface VerificationOptions {
  /** What the tree has before the first pair; default: nothing. */
  readonly before?: Beginning;
  /** Pages, by number. */
  readonly pairs: AsyncIterable<readonly Pair[]>;
  /** By size. */
  readonly notes: AsyncIterable<Note>;
  readonly keys: readonly VerifierKey[];
  /** The current name of the log; for other names, the newest events may have been lost. */
  readonly origin: string | undefined;
  /** How many events of an earlier origin still exist; undefined: unknown. */
  readonly keptOf?: (origin: string) => number | undefined;
  readonly onProgress?: (events: number) => void;
}

export interface Verified {
  /** Number of events, or of leaves if they are more. */
  readonly size: number;
  /** Of the events. */
  readonly root: Buffer;
  /** Checkpoints that hold. */
  readonly checkpoints: number;
  /** The findings, one sentence each; empty if the log is intact. */
  readonly findings: readonly string[];
  /** What a reader should know although it is not a fault. */
  readonly remarks: readonly string[];
}

/** Maximum number of bad signatures that are named. */
const MAX_NAMED = 10;

class Verification {
  readonly #options: VerificationOptions;
  readonly #stored: GrowingRoot;
  readonly #actual: GrowingRoot;
  readonly findings: string[] = [];
  readonly remarks = new Set<string>();
  checkpoints = 0;
  #size = 0;
  #badSignatures = 0;
  /** Number of the first event that does not match its leaf. */
  #different: number | undefined;
  #missing: number | undefined;
  /** Whether the events match a checkpoint that the leaves do not match. */
  #leavesAltered = false;
  /** Size of the last checkpoint that is valid, and of the first that is not. */
  #holds = 0;
  #fails: number | undefined;
  /** Size of the largest checkpoint with more events than exist. */
  #beyond = 0;

  constructor(options: VerificationOptions) {
    this.#options = options;
    const { before = NOTHING } = options;
    this.#stored = new GrowingRoot(before);
    this.#actual = new GrowingRoot(before);
    this.#size = before.size;
  }

  get size(): number {
    return this.#size;
  }

  /** Root of the events up to the first gap. */
  get root(): Buffer {
    return this.#actual.root;
  }

  add({ hash, leaf }: Pair): void {
    const number = this.#size++;
    if (hash && this.#actual.size === number) this.#actual.add(hash);
    if (leaf && this.#stored.size === number) this.#stored.add(leaf);
    if (!hash) this.#missing ??= number;
    else if (leaf && !hash.equals(leaf)) this.#different ??= number;
  }

  /** Checks a checkpoint whose size is the number of added events, or larger than the number that exists. */
  check(note: Note): void {
    const { keys, origin, keptOf } = this.#options;
    if (!signerOf(note, keys)) {
      if (++this.#badSignatures <= MAX_NAMED) {
        this.findings.push(
          `The checkpoint of ${note.size} events is not signed by a known key of ${note.origin}: its signature is wrong, or the key is another one.`,
        );
      }
      return;
    }
    if (note.size < this.#size) {
      this.findings.push(
        `The checkpoint of ${note.size} events comes after larger ones: the checkpoints were reordered.`,
      );
      return;
    }
    const holds = this.#match(note);
    if (holds) {
      this.checkpoints++;
      this.#holds = note.size;
      return;
    }
    const kept = note.origin === origin ? undefined : (keptOf?.(note.origin) ?? this.#holds);
    if (kept !== undefined && note.size > kept) {
      this.remarks.add(
        `Events under checkpoints of ${note.origin} were lost, from event ${kept} on; since then the log has another origin.`,
      );
    } else if (holds === false) this.#fails ??= note.size;
    else this.#beyond = Math.max(this.#beyond, note.size);
  }

  /** Undefined if there are not enough events. */
  #match({ size, root }: Note): boolean | undefined {
    const trees = [this.#stored, this.#actual].filter((tree) => tree.size === size);
    if (trees.length === 0) return undefined;
    // One match is enough: if the other tree differs, an event does not match its leaf, which is a finding of its own.
    const holds = trees.map((tree) => tree.root.equals(root));
    this.#leavesAltered ||= holds.length === 2 && !holds[0] && holds[1] === true;
    return holds.includes(true);
  }

  finish(): void {
    if (this.#badSignatures > MAX_NAMED)
      this.findings.push(`${this.#badSignatures - MAX_NAMED} more checkpoints have wrong signatures.`);
    if (this.#different !== undefined) {
      this.findings.push(
        this.#leavesAltered
          ? `The leaf of event ${this.#different} was altered: the events themselves match the checkpoints.`
          : `Event ${this.#different} is the first that is not what its leaf says: it was altered, moved or put in, or it was removed.`,
      );
    }
    const end = Math.max(this.#size, this.#beyond);
    const missing = this.#missing ?? (this.#beyond > this.#size ? this.#size : undefined);
    if (missing !== undefined) {
      this.findings.push(
        end - missing === 1 ? `Event ${missing} is missing.` : `Events ${missing} to ${end - 1} are missing.`,
      );
    }
    if (this.#fails === undefined) return;
    const range = `${this.#holds} to ${this.#fails - 1}`;
    const last = this.#holds === 0 ? 'No earlier one holds.' : `The one of ${this.#holds} events holds.`;
    this.findings.push(
      `The tree is not that of the checkpoint of ${this.#fails} events: of the events ${range}, some or all were rewritten. ${last}`,
    );
  }
}

export async function verifyTree(options: VerificationOptions): Promise<Verified> {
  const verification = new Verification(options);
  const notes = options.notes[Symbol.asyncIterator]();
  let next = await notes.next();
  try {
    const checkUpTo = async (size: number) => {
      while (!next.done && next.value.size <= size) {
        verification.check(next.value);
        next = await notes.next();
      }
    };
    await checkUpTo(verification.size);
    for await (const page of options.pairs) {
      for (const pair of page) {
        verification.add(pair);
        if (!next.done && next.value.size <= verification.size) await checkUpTo(verification.size);
      }
      options.onProgress?.(verification.size);
    }
    await checkUpTo(Number.POSITIVE_INFINITY);
  } finally {
    await notes.return?.();
  }
  verification.finish();
  const { size, root, checkpoints, findings, remarks } = verification;
  return { size, root, checkpoints, findings, remarks: [...remarks] };
}
