/** Work of which all processes together may do one piece at a time. */
export interface Locks {
  /**
   * Does work while no other caller, in any process, does work under the same name. It may not ask for the same name
   * again.
   *
   * @param work gets a signal that is aborted when the lock is lost before the work is done, because the connection that
   *   holds it broke: another process may have it by then, so nothing may be written that relies on it
   * @throws AppError 409 `BUSY` when the others take too long; what `work` throws
   */
  holding<T>(name: string, work: (lost: AbortSignal) => Promise<T>): Promise<T>;
}
