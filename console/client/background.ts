/** Lets something run whose failure is shown where it was asked for. */
export function background(running: Promise<unknown>): void {
  running.catch(() => undefined);
}
