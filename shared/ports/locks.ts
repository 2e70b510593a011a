/** Work of which all processes together may do one piece at a time. */
export interface Locks {
  /**
   * Does work while nobody else, in whatever process, does work under the same name. It may not ask for the same name
   * again.
   *
   * @throws AppError 409 `BUSY` when the others take too long; what `work` throws
   */
  holding<T>(name: string, work: () => Promise<T>): Promise<T>;
}
