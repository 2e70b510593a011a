/**
 * When the rows of events are written where the leader has its tables to itself: as soon as a read waits for them, once
 * many have gathered, and otherwise after a moment. Together they cost less: rows that change several times are written
 * once, and a statement is answered for all of them (docs/adr/0025-reads-wait.md).
 */

/** Longest time that events wait to be applied while nobody waits for their rows, milliseconds. */
const GATHER_MS = 50;

export interface Gathering {
  /** Resolves when a follower is to apply what it has received. All that wait begin at the same time. */
  wait(): Promise<void>;
  /** Lets all begin: one statement for all costs less than one for those that a read waits for, and another later. */
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
