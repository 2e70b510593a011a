/** Random numbers that are the same in every run. */

/** Creates functions that return a whole number below `n`, and one of several values. */
export function seeded(seed: number) {
  let state = seed;
  const below = (n: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return (state >> 8) % n;
  };
  return { below, pick: <T>(all: readonly T[]): T => all[below(all.length)] as T };
}
