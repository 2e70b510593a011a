/** Runs a promise whose failure is shown where it was started. */
export function background(running: Promise<unknown>): void {
  running.catch(() => undefined);
}
