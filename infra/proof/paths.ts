/** The parts of the tree in a proof (RFC 9162, sections 2.1.3.1 and 2.1.4.1). Pure. */
import { splitOf } from './hashing.ts';

/** The leaves from `from` to before `to`. The proof contains the hash of the tree over them. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** Walks down from the root of the tree with `size` leaves, towards a leaf. @returns the last tree, and those beside the way */
function walk(leaf: number, size: number, isEnd: (tree: Span) => boolean): { end: Span; beside: Span[] } {
  const beside: Span[] = [];
  let end: Span = { from: 0, to: size };
  while (!isEnd(end)) {
    const middle = end.from + splitOf(end.to - end.from);
    const [left, right] = [
      { ...end, to: middle },
      { ...end, from: middle },
    ];
    beside.unshift(leaf < middle ? right : left);
    end = leaf < middle ? left : right;
  }
  return { end, beside };
}

/** The path from a leaf to the root of the tree with `size` leaves, from the leaf upwards. */
export const inclusionSpans = (index: number, size: number): Span[] =>
  walk(index, size, ({ from, to }) => to - from <= 1).beside;

/** The proof that the tree with `first` leaves is the beginning of the tree with `second`. */
export function consistencySpans(first: number, second: number): Span[] {
  const { end, beside } = walk(first - 1, second, ({ to }) => to === first);
  // The verifier already has the first tree itself.
  return end.from > 0 ? [end, ...beside] : beside;
}

/** The complete trees of a span, from the left, the largest first. */
export function completeTrees({ from, to }: Span): { readonly first: number; readonly leaves: number }[] {
  const trees: { first: number; leaves: number }[] = [];
  for (let first = from; first < to; ) {
    const left = to - first;
    const half = left > 1 ? splitOf(left) : 1;
    const leaves = half * 2 === left ? left : half;
    trees.push({ first, leaves });
    first += leaves;
  }
  return trees;
}
