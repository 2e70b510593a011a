/** Proofs that the log was not altered (`shared/ports/history/proofs.ts`), from the stored tree and the signed checkpoints. */
import type { Proofs } from '../../shared/ports/history/proofs.ts';
import type { Database } from '../database/database.ts';
import { latestNote, noteOfSize, sizesAround } from './checkpoints.ts';
import { type KeySettings, knownKeys, openSigner } from './keys.ts';
import { signerOf, verifierKeyText } from './notes.ts';
import { consistencySpans, inclusionSpans } from './paths.ts';
import { spanHashes, treeSize } from './tree.ts';

export function createProofs({ pool }: Pick<Database, 'pool'>, settings: KeySettings): Proofs {
  const signer = () => openSigner(pool, settings, false);
  const noteOf = async (size: number | undefined) => {
    if (size !== undefined) return noteOfSize(pool, size);
    const signs = await signer();
    return signs && latestNote(pool, signs.origin);
  };
  return {
    size: () => treeSize(pool),
    async key(size) {
      if (size === undefined) {
        const signs = await signer();
        return signs && verifierKeyText(signs.verifierKey);
      }
      const note = await noteOfSize(pool, size);
      const key = note && signerOf(note, await knownKeys(pool));
      return key && verifierKeyText(key);
    },
    checkpoint: noteOf,
    sizesAround: (size) => sizesAround(pool, size),
    async inclusion(index, size) {
      const spans = [{ from: index, to: index + 1 }, ...inclusionSpans(index, size)];
      const [leaf, ...path] = await spanHashes(pool, spans);
      return { leaf: leaf as Buffer, path };
    },
    consistency: (from, to) => spanHashes(pool, consistencySpans(from, to)),
  };
}
