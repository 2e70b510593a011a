/** The port of the pause after a restore: until an operator ends it, no call leaves and no schedule runs. */
export interface Pause {
  /** Begin of the pause, Unix seconds; null: the deployment is not paused. */
  since(): Promise<number | null>;
  /** @throws AppError 503 PAUSED while the deployment is paused */
  refuse(): Promise<void>;
  /** Ends the pause in all processes. */
  end(): Promise<void>;
}
