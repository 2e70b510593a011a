/**
 * When the rows of events are written if no other process writes to the leader's tables: as soon as a read waits for
 * them, once many have gathered, and otherwise after a short time. Writing them together costs less: rows that change
 * several times are written once, and all share one statement (docs/adr/0025-reads-wait.md).
 */

/** Longest time that events wait to be applied while no read waits for their rows, milliseconds. */
const GATHER_MS = 50;

export interface Gathering {
  /** Resolves when a follower should apply its events. All waiting followers begin at the same time. */
  wait(): Promise<void>;
  /** Lets all followers begin: one statement for all costs less than one for the awaited ones and another later. */
  end(): void;
}

/** @param isAwaited whether a read waits for rows */
export function createGathering(isAwaited: () => boolean, gatherMs = GATHER_MS): Gathering {
  let timer: NodeJS.Timeout | undefined;
  const waiting: (() => void)[] = [];
  const end = () => {
    clearTimeout(timer);
    timer = undefined;
    for (const begin of waiting.splice(0)) begin();
  };
  return {
    async wait() {
      if (isAwaited()) return;
      timer ??= setTimeout(end, gatherMs);
      await new Promise<void>((begin) => waiting.push(begin));
    },
    end,
  };
}
