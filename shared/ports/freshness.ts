/**
 * Tells whether something that was read before still holds, without reading it again.
 *
 * In one process the answer is in memory; where several processes share a database it is one small query, shared by
 * all requests that wait for it at the same moment.
 */
export interface Freshness {
  /**
   * A value that is different whenever rows of these projections changed; `workspace` narrows it where the store can.
   * Take it before reading; what was read holds while the value stands.
   */
  stamp(projections: readonly string[], workspace: number | 'all'): Promise<string>;
  /** The same at once where it is in memory; undefined where the store has to be asked, which this does not do. */
  stampNow(projections: readonly string[], workspace: number | 'all'): string | undefined;
  /** A value that is different whenever a credential (session, key, password) was added or removed. */
  credentials(): Promise<string>;
  credentialsNow(): string | undefined;
}
