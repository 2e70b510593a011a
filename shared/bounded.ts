/**
 * Options of an LRU cache that holds at most `count` entries. With `max` the library sets aside room for all of them at
 * once, which for ten thousands of entries is most of what a start costs; counted as sizes they are only bounded.
 */
export const atMost = (count: number) => ({ maxSize: count, sizeCalculation: () => 1 });
