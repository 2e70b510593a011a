/**
 * When the rows of events are written where the leader has its tables to itself: as soon as a read waits for them, once
 * many have gathered, and otherwise after a moment. Together they cost less: rows that change several times are written
 * once, and a statement is answered for all of them (docs/adr/0025-reads-wait.md).
 */

/** Longest time that events wait to be applied while nobody waits for their rows, milliseconds. */
const GATHER_MS = 50;

export class Gathering {
  readonly #isAwaited: () => boolean;
  readonly #gatherMs: number;
  readonly #waiting = new Map<string, () => void>();
  #timer: NodeJS.Timeout | undefined;

  /** @param isAwaited whether anybody waits for rows */
  constructor(isAwaited: () => boolean, gatherMs = GATHER_MS) {
    this.#isAwaited = isAwaited;
    this.#gatherMs = gatherMs;
  }

  /** Resolves when the follower of this name is to apply what it has received. All that wait begin at the same time. */
  async wait(name: string): Promise<void> {
    if (this.#isAwaited()) return;
    this.#timer ??= setTimeout(() => this.end(), this.#gatherMs);
    await new Promise<void>((resolve) => this.#waiting.set(name, resolve));
  }

  /** Lets one follower begin. */
  hurry(name: string): void {
    this.#waiting.get(name)?.();
    this.#waiting.delete(name);
  }

  /** Lets all begin: one statement for all costs less than one for those that somebody waits for, and another later. */
  end(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const resolve of this.#waiting.values()) resolve();
    this.#waiting.clear();
  }
}
