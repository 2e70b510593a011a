/**
 * Tells whether something read earlier is still current, without reading it again.
 *
 * With a single process, the answer is in memory; when several processes share a database, it takes one small query,
 * shared by all requests that wait for it at the same time.
 */
export interface Freshness {
  /**
   * A value that changes whenever rows of these projections change; `workspace` narrows it down where the store
   * supports that. Get it before reading: what was read is current for as long as the value stays the same.
   *
   * @param since `performance.now()`, such as the arrival of a request: what the store has said when asked after this
   *   will do. Nothing that was acknowledged before then is missed. By default the store is asked anew.
   * @param despite types of events whose changes may be missed
   */
  stamp(
    projections: readonly string[],
    workspace: number | 'all',
    since?: number,
    despite?: ReadonlySet<string>,
  ): Promise<string>;
  /** The same, synchronously; undefined when it would take a query. */
  stampNow(projections: readonly string[], workspace: number | 'all'): string | undefined;
  /** A value that changes whenever a credential (session, key, password) is added or removed. */
  credentials(since?: number): Promise<string>;
  credentialsNow(): string | undefined;
}
