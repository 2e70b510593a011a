/**
 * Options of an LRU cache that holds at most `count` entries. With `max`, the library allocates room for all of them up
 * front, which for tens of thousands of entries dominates the start time; with `maxSize` it does not.
 */
export const atMost = (count: number) => ({ maxSize: count, sizeCalculation: () => 1 });
