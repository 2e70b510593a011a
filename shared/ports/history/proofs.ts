/** The port of the proofs that the log was not altered. */

/**
 * Whether a log can have this name: in a checkpoint, white space or a plus sign ends it (https://c2sp.org/signed-note).
 */
export const isOrigin = (name: string): boolean => ORIGIN.test(name);
const ORIGIN = /^[^\s+\p{Cc}\p{Surrogate}]+$/u;

export interface InclusionProof {
  readonly leaf: Buffer;
  readonly path: readonly Buffer[];
}

export interface Proofs {
  /** How many events the tree over the log has. */
  size(): Promise<number>;
  /** The key of the log, or the one that signed the checkpoint of a size, as a verifier key of a signed note. */
  key(size?: number): Promise<string | undefined>;
  /** The newest checkpoint, or that of a size; undefined if none was signed. */
  checkpoint(size?: number): Promise<{ readonly size: number; readonly text: string } | undefined>;
  /** The nearest sizes with a signed checkpoint, for a size without one. */
  sizesAround(size: number): Promise<readonly number[]>;
  /** @param index below `size`, which must not exceed that of the tree */
  inclusion(index: number, size: number): Promise<InclusionProof>;
  /** @param from at least 1, at most `to`, which must not exceed the size of the tree */
  consistency(from: number, to: number): Promise<readonly Buffer[]>;
}
