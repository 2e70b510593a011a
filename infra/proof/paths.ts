/** The parts of the tree in a proof (RFC 9162, sections 2.1.3.1 and 2.1.4.1). Pure. */
import { splitOf } from './hashing.ts';

/** The leaves from `from` to before `to`. The proof contains the hash of the tree over them. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** The path from a leaf to the root of the tree with `size` leaves, from the leaf upwards. */
export function inclusionSpans(index: number, size: number): Span[] {
  const spans: Span[] = [];
  let [from, to] = [0, size];
  while (to - from > 1) {
    const middle = from + splitOf(to - from);
    if (index < middle) {
      spans.push({ from: middle, to });
      to = middle;
    } else {
      spans.push({ from, to: middle });
      from = middle;
    }
  }
  return spans.reverse();
}

/** The proof that the tree with `first` leaves is the beginning of the tree with `second`. */
export function consistencySpans(first: number, second: number): Span[] {
  const spans: Span[] = [];
  let [from, to] = [0, second];
  while (first !== to) {
    const middle = from + splitOf(to - from);
    if (first <= middle) {
      spans.push({ from: middle, to });
      to = middle;
    } else {
      spans.push({ from, to: middle });
      from = middle;
    }
  }
  // The verifier already has the first tree itself.
  if (from > 0) spans.push({ from, to });
  return spans.reverse();
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
