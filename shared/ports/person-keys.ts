/**
 * One data key per person. Personal fields are sealed with it before they reach the log, so that deleting the key
 * erases the person and keeps the log whole.
 */
export interface PersonKeys {
  /** 32 bytes; undefined when the person never had a key or was erased. A promise unless the key is in memory. */
  find(person: string): Buffer | undefined | Promise<Buffer | undefined>;
  /** 32 bytes; creates the key when there is none. Every process gets the same one. */
  findOrCreate(person: string): Promise<Buffer>;
}
