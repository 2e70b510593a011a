/** Locks for work that only one process may do at a time. */
export interface Locks {
  /** Whether this is the only process, so that a lock costs nothing. */
  readonly isAlone: boolean;
  /**
   * Runs work while no other caller, in any process, runs work under the same name. The work must not request the same
   * name again.
   *
   * @param work receives a signal that is aborted if the lock is lost before the work is done, because its connection
   *   broke: another process may then have the lock, so nothing may be written that relies on it
   * @throws AppError 409 `BUSY` when the others take too long; what `work` throws
   */
  holding<T>(name: string, work: (lost: AbortSignal) => Promise<T>): Promise<T>;
}
