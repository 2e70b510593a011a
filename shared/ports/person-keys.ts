/**
 * One data key per person, and one per personal field of an event. A field is sealed with both before it reaches the
 * log: deleting the key of the person erases the person, deleting that of the field erases this field. The log itself
 * does not change.
 */
export interface PersonKeys {
  /** 32 bytes; undefined when the person, or the field, never had a key or was erased. A promise unless the key is in memory. */
  find(person: string): Buffer | undefined | Promise<Buffer | undefined>;
  /** 32 bytes; creates the key when there is none. Every process gets the same one. */
  findOrCreate(person: string): Promise<Buffer>;
  /** New keys, 32 bytes each, under names that have none yet. */
  create(names: readonly string[]): Promise<readonly Buffer[]>;
}
